"""Run the commands of quality.yaml and compare their scores with what is expected.

python benchmarks/quality/quality.py                 run everything, print OK, OKish or FAIL for each score
python benchmarks/quality/quality.py scifact         only the named runs
python benchmarks/quality/quality.py --update        write the measured scores into quality.yaml as the expected ones
python benchmarks/quality/quality.py --committed     run nothing; judge the result files that are there
"""

from __future__ import annotations

import json
import operator
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

sys.path.append(str(Path(__file__).resolve().parents[1]))
from measured import RESULTS, arguments, save

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "benchmarks" / "quality" / "quality.yaml"
RECORDED = ("ndcg@10", "recall@100", "gold_span_recall@3000")
_CLAIM = re.compile(r"(\S+) (\S+) (>=|>) (?:(\d[\d.]*)|(\S+) (\S+))")
_COMPARE = {">=": operator.ge, ">": operator.gt}


@dataclass(frozen=True)
class Verdict:
    """One expected score or claim beside what was measured."""

    run: str
    what: str
    expected: str
    measured: float | None
    verdict: str


def load(path: Path = FILE) -> dict[str, Any]:
    """The file's content, checked for what the rest relies on."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    names = [run["name"] for run in content["runs"]]
    if len(set(names)) != len(names):
        raise SystemExit(f"{path.name}: a run's name occurs twice in {names}")
    return content


def result_file(run: dict[str, Any]) -> Path:
    """The path of a run's result."""
    return RESULTS / f"{run['name']}.json"


def command_of(run: dict[str, Any], *, data: str, out: str, cache: str) -> list[str]:
    """A run's command, ready to start."""
    return [part.format(data=data, out=out, cache=cache) for part in shlex.split(run["command"])]


def measured(result: dict[str, Any], pipeline: str, metric: str) -> float | None:
    """A score in a result, or ``None`` where it has none."""
    for entry in result["pipelines"]:
        if entry["pipeline"] == pipeline and metric in entry:
            return float(entry[metric]["value"])
    return None


def grade(expected: float, value: float | None, tolerance: dict[str, float]) -> str:
    """``OK``, ``OKish`` or ``FAIL``."""
    if value is None:
        return "FAIL"
    difference = round(abs(value - expected), 9)
    return "OK" if difference <= tolerance["ok"] else "OKish" if difference <= tolerance["okish"] else "FAIL"


def judge(run: dict[str, Any], result: dict[str, Any], tolerance: dict[str, float]) -> list[Verdict]:
    """Every expected score and claim of a run against its result."""
    verdicts = []
    for pipeline, scores in run.get("expected", {}).items():
        for metric, expected in scores.items():
            value = measured(result, pipeline, metric)
            verdict = grade(expected, value, tolerance)
            verdicts.append(Verdict(run["name"], f"{pipeline} {metric}", f"{expected:.4f}", value, verdict))
    for claim in run.get("claims", []):
        match = _CLAIM.fullmatch(claim)
        if not match:
            raise SystemExit(f"quality.yaml: {claim!r} is not PIPELINE METRIC >= NUMBER or > PIPELINE METRIC")
        pipeline, metric, sign, number, other, other_metric = match.groups()
        value = measured(result, pipeline, metric)
        limit = float(number) if number else measured(result, other, other_metric)
        holds = value is not None and limit is not None and _COMPARE[sign](value, limit)
        against = sign + " " + (number or f"{other} {limit:.4f}" if limit is not None else f"{other} missing")
        verdicts.append(
            Verdict(run["name"], f"{pipeline} {metric}", against, value, "OK" if holds else "FAIL")
        )
    return verdicts


def execute(run: dict[str, Any], data: str) -> dict[str, Any]:
    """Run the command; its result file is replaced when it is done."""
    out = result_file(run)
    command = command_of(run, data=data, out=str(out), cache=str(RESULTS / "local" / "vectors"))
    if command[0] != "rag-kit":
        raise SystemExit(f"quality.yaml: {run['name']}: the command must start with rag-kit")
    full = [sys.executable, "-m", "rag_kit.cli", *command[1:]]
    subprocess.run(full, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    result = json.loads(out.read_text(encoding="utf-8"))
    save(out, result)
    return result


def update(content: dict[str, Any], results: dict[str, dict[str, Any]]) -> None:
    """Put the measured scores into quality.yaml, keeping its comments."""
    for run in content["runs"]:
        if run["name"] in results:
            run["expected"] = {
                entry["pipeline"]: {m: round(entry[m]["value"], 4) for m in RECORDED if m in entry}
                for entry in results[run["name"]]["pipelines"]
            }
    head = FILE.read_text(encoding="utf-8").split("\nruns:", 1)[0]
    body = yaml.safe_dump({"runs": content["runs"]}, sort_keys=False, allow_unicode=True, width=110)
    FILE.write_text(f"{head}\n{body}", encoding="utf-8")


def main() -> int:
    """Run, compare, print; 1 when a score failed."""
    content = load()
    names = [run["name"] for run in content["runs"]]
    parser = arguments(__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"any of: {', '.join(names)}")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--committed", action="store_true")
    options = parser.parse_args()
    if unknown := sorted(set(options.runs) - set(names)):
        parser.error(f"unknown run {', '.join(unknown)}; known: {', '.join(names)}")
    data = os.environ.get("RAG_KIT_DATA", str(ROOT.parent / "shared" / "data"))
    if not options.committed and not Path(data).is_dir():
        parser.error(f"the data sets are not at {data}; name their folder with RAG_KIT_DATA")

    results: dict[str, dict[str, Any]] = {}
    failed = 0
    for run in content["runs"]:
        if options.runs and run["name"] not in options.runs:
            continue
        print(f"\n{run['name']}: {run['command']}", flush=True)
        if options.committed:
            results[run["name"]] = json.loads(result_file(run).read_text(encoding="utf-8"))
        else:
            results[run["name"]] = execute(run, data)
        if not options.update:
            for verdict in judge(run, results[run["name"]], content["tolerance"]):
                value = "missing" if verdict.measured is None else f"{verdict.measured:.4f}"
                print(f"  {verdict.verdict:<5} {verdict.what:<32} {value}  expected {verdict.expected}")
                failed += verdict.verdict == "FAIL"
    if options.update:
        update(content, results)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
