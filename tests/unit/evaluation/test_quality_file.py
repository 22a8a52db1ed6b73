"""The file of expected scores, and the tables made from it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest
from support.scripts import ROOT, load_script

quality = load_script("benchmarks/quality/quality.py")
measured = load_script("benchmarks/measured.py")
tables = load_script("benchmarks/tables.py")


def result(**scores):
    return {"pipelines": [{"pipeline": name, "ndcg@10": {"value": value}} for name, value in scores.items()]}


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(0.6871, "OK"), (0.6866, "OK"), (0.6865, "OKish"), (0.6921, "OKish"), (0.6922, "FAIL"), (None, "FAIL")],
)
def test_grades(value, verdict):
    """Within .0005 is OK, within .005 OKish, beyond or missing is FAIL."""
    assert quality.grade(0.6871, value, {"ok": 0.0005, "okish": 0.005}) == verdict


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("bm25 ndcg@10 >= 0.68", "OK"),
        ("bm25 ndcg@10 >= 0.69", "FAIL"),
        ("hybrid ndcg@10 > bm25 ndcg@10", "OK"),
        ("bm25 ndcg@10 > hybrid ndcg@10", "FAIL"),
        ("hybrid ndcg@10 > dense ndcg@10", "FAIL"),
    ],
)
def test_claims(claim, verdict):
    """A claim compares a score with a number or another score; a missing one fails."""
    run = {"name": "x", "claims": [claim]}
    (found,) = quality.judge(run, result(bm25=0.687, hybrid=0.71), {})
    assert found.verdict == verdict


def test_every_command_parses():
    """Each command of the file is one that the command line understands."""
    from rag_kit.cli.main import parser

    for run in quality.load()["runs"]:
        command = quality.command_of(run, data="/data", out="out.json", cache="cache")
        arguments = parser().parse_args(command[1:])
        assert arguments.command == "benchmark" and str(arguments.out) == "out.json", shlex.join(command)


def test_committed_results_are_as_expected():
    """No result file that stands in the repository fails its own expectations."""
    content = quality.load()
    assert content["runs"]
    for run in content["runs"]:
        found = json.loads(quality.result_file(run).read_text(encoding="utf-8"))
        failed = [v for v in quality.judge(run, found, content["tolerance"]) if v.verdict == "FAIL"]
        assert not failed


@pytest.mark.parametrize("result", [[{"a": 1}], {"rows": [{"a": 1}], "minutes": 3}])
def test_results_say_what_they_measured(result, tmp_path, monkeypatch):
    """Commit and cleanness stand in the file; its rows are read with them, and without git as well."""
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    path = tmp_path / "x.json"
    for state in ({"commit": "abc", "clean": True}, {}):
        monkeypatch.setattr(measured, "AT_START", state)
        measured.save(path, result)
        written = json.loads(path.read_text())
        assert state.items() <= written.items() and tables.rows_of("x") == [{"a": 1}]
    path.write_text('[{"a": 1}]')
    assert tables.rows_of("x") == [{"a": 1}]


def test_the_state_of_a_checkout(monkeypatch):
    """The commit, and whether anything but the result files was changed; nothing outside of a checkout."""
    answers = {"rev-parse": "abc", "status": " M rag_kit/x.py"}
    monkeypatch.setattr(measured, "_git", lambda *words: answers.get(words[0]))
    assert measured.state() == {"commit": "abc", "clean": False}
    answers["status"] = ""
    assert measured.state() == {"commit": "abc", "clean": True}
    del answers["rev-parse"]
    assert measured.state() == {}


def test_tables_of_the_page_are_current():
    """docs/benchmarks.md says what the result files say."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_tables.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
