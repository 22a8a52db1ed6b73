"""Write the tables of docs/benchmarks.md and docs/scale.md from benchmarks/quality/quality.yaml and the result files.

python scripts/make_tables.py            write them
python scripts/make_tables.py --check    change nothing; exit 1 when a table is not what the files say
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / room) for room in ("speed", "quality", "")]

import quality  # noqa: E402 - found by the line above
import tables  # noqa: E402
from tables import interval  # noqa: E402
from tables import markdown as table  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
SCALE_PAGE = ROOT / "docs" / "scale.md"
FRONT_PAGE = ROOT / "docs" / "index.md"
MARKED = re.compile(
    r"(<!-- begin table: (?P<name>[a-z-]+)[^>]*-->\n).*?(<!-- end table: (?P=name) -->)", re.DOTALL
)
COLUMNS = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "map", "hit_rate@10", "gold_span_recall@3000")
TITLES = (
    "nDCG@10",
    "Recall@10",
    "Recall@100",
    "MRR@10",
    "MAP",
    "Hit rate@10",
    "Gold span in 3000 characters",
)
Loaded = list[tuple[dict[str, Any], dict[str, Any]]]


def quality_table(loaded: Loaded) -> str:
    """All metrics with their intervals; the best nDCG@10 of a set is bold."""
    rows = []
    for run, result in loaded:
        best = max(entry["ndcg@10"]["value"] for entry in result["pipelines"])
        for number, entry in enumerate(result["pipelines"]):
            cells = [interval(entry.get(column)) for column in COLUMNS]
            if len(result["pipelines"]) > 1 and entry["ndcg@10"]["value"] == best:
                cells[0] = f"**{cells[0]}**"
            rows.append([run["name"] if number == 0 else "", entry["pipeline"], *cells])
    return table(["set", "pipeline", *TITLES], rows)


def sets_table(loaded: Loaded) -> str:
    """The sizes of each set."""
    rows = []
    for run, result in loaded:
        counts = result["counts"]
        rows.append(
            [
                run["name"],
                run["language"],
                f"{counts['documents']:,}",
                f"{counts['passages']:,}",
                f"{counts['queries_scored']:,}",
                f"{counts['queries_without_relevant_documents']:,}",
                f"{counts['queries_with_gold_span']:,}",
                run.get("note", ""),
            ]
        )
    head = ["set", "language", "documents", "passages", "queries scored", "left out: no answer in the corpus"]
    return table([*head, "with a gold span", "note"], rows)


def techniques_table(loaded: Loaded) -> str:
    """nDCG@10 of every pipeline on every set; the best of a set is bold."""
    names = list(dict.fromkeys(entry["pipeline"] for _, result in loaded for entry in result["pipelines"]))
    rows = []
    for name in names:
        cells = []
        for _, result in loaded:
            scores = {entry["pipeline"]: entry["ndcg@10"] for entry in result["pipelines"]}
            cell = interval(scores.get(name))
            best = name in scores and scores[name]["value"] == max(s["value"] for s in scores.values())
            cells.append(f"**{cell}**" if best else cell)
        rows.append([name, *cells])
    return table(["pipeline", *(run["name"].removeprefix("techniques_") for run, _ in loaded)], rows)


def speed_table(loaded: Loaded) -> str:
    """Milliseconds a query, one at a time."""
    rows = []
    for run, result in loaded:
        for number, entry in enumerate(result["pipelines"]):
            rows.append(
                [
                    run["name"] if number == 0 else "",
                    entry["pipeline"],
                    f"{entry['p50_ms']:.2f}",
                    f"{entry['p95_ms']:.2f}",
                    f"{entry['queries_per_second']:,.0f}",
                ]
            )
    return table(["set", "pipeline", "p50 (ms)", "p95 (ms)", "queries/s"], rows)


def verdict_table(loaded: Loaded, tolerance: dict[str, float]) -> str:
    """Expected scores beside measured ones."""
    rows = []
    for run, result in loaded:
        for verdict in quality.judge(run, result, tolerance):
            value = "missing" if verdict.measured is None else f"{verdict.measured:.4f}"
            rows.append([verdict.run, verdict.what, verdict.expected, value, verdict.verdict])
    return table(["set", "score", "expected", "measured", "verdict"], rows)


def commands(loaded: Loaded) -> str:
    """The commands, as a block to paste."""
    lines = []
    for run, _ in loaded:
        names = {"data": "$RAG_KIT_DATA", "out": f"benchmarks/results/{run['name']}.json"}
        lines.append(run["command"].format(**names, cache="benchmarks/results/local/vectors"))
    return "```bash\n" + "\n".join(lines) + "\n```"


def versions(loaded: Loaded) -> str:
    """With which versions the results were made, and how busy the machine was."""
    found = {
        ", ".join(f"{name} {version}" for name, version in result["versions"].items()) for _, result in loaded
    }
    cores = sorted({result["machine"]["cpus"] for _, result in loaded})
    loads = [result["machine"]["load_per_cpu"] or 0.0 for _, result in loaded]
    lines = [*sorted(found), f"Processor cores: {', '.join(map(str, cores))}."]
    if max(loads) > 0.5:
        lines.append(
            f"Other work kept the machine busy (up to {max(loads):.1f} running processes a core): these times "
            "are far too long, and not to be compared with each other."
        )
    return "\n".join(lines)


def render(page: str, content: dict[str, Any], loaded: Loaded) -> str:
    """The page with every marked table written anew."""
    techniques = [(run, result) for run, result in loaded if run.get("table") == "techniques"]
    every, loaded = loaded, [(run, result) for run, result in loaded if "table" not in run]
    parts = {
        "sets": sets_table(loaded),
        "techniques": techniques_table(techniques),
        "quality": quality_table(loaded),
        "speed": speed_table(loaded),
        "verdicts": verdict_table(loaded, content["tolerance"]),
        "commands": commands(every),
        "versions": versions(every),
    }
    return fill(PAGE, page, parts | tables.all_tables())


def render_scale(page: str) -> str:
    """docs/scale.md with every marked table written anew."""
    return fill(SCALE_PAGE, page, tables.finished_tables("scale"))


def render_front(page: str) -> str:
    """docs/index.md with its table written anew."""
    return fill(FRONT_PAGE, page, {"front": tables.front()})


def fill(path: Path, page: str, parts: dict[str, str]) -> str:
    """The page with these tables between its marks."""
    seen = {match["name"] for match in MARKED.finditer(page)}
    if seen != parts.keys():
        raise SystemExit(f"{path.name} has the tables {sorted(seen)}; it must have {sorted(parts)}")
    return MARKED.sub(lambda match: f"{match[1]}\n{parts[match['name']]}\n\n{match[3]}", page)


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing, say whether the tables are current"
    )
    check = parser.parse_args().check
    content = quality.load()
    loaded = []
    for run in content["runs"]:
        path = quality.result_file(run)
        if not path.is_file():
            print(
                f"{path.relative_to(ROOT)} is missing; run python benchmarks/quality/quality.py {run['name']}"
            )
            return 1
        loaded.append((run, json.loads(path.read_text(encoding="utf-8"))))
    failed = [
        v
        for run, result in loaded
        for v in quality.judge(run, result, content["tolerance"])
        if v.verdict == "FAIL"
    ]
    for verdict in failed:
        print(f"FAIL {verdict.run}: {verdict.what} is {verdict.measured}, expected {verdict.expected}")
    pages = {
        PAGE: lambda page: render(page, content, loaded),
        SCALE_PAGE: render_scale,
        FRONT_PAGE: render_front,
    }
    for path, renewed in pages.items():
        page = path.read_text(encoding="utf-8")
        wanted = renewed(page)
        if wanted != page:
            if check:
                print(
                    f"{path.relative_to(ROOT)} is not what the result files say; run python scripts/make_tables.py"
                )
                return 1
            path.write_text(wanted, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} written")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
