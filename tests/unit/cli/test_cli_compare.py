"""``rag-kit compare``: tables, JSON, report, names, what is refused, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_kit.cli import exits
from rag_kit.cli.main import main
from rag_kit.evaluation import Example, Results, compare, write_report
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.runs.rows import Row

METRICS = ("answer_correctness", "context_recall", "context_precision")


def save(
    folder: Path, name: str, answer: float, *, prefix: str = "q", metrics: tuple[str, ...] = METRICS
) -> None:
    """Results of eight questions: answers of a quality, everything retrieved, half of it noise."""
    rows = []
    for number in range(8):
        values = {
            "answer_correctness": answer + number / 100,
            "context_recall": 1.0,
            "context_precision": 0.3,
        }
        output = Output("It.", (Passage("d", "It."), Passage("e", "Else.")), seconds=0.1)
        cells = {metric: Cell.ok(values[metric]) for metric in metrics}
        rows.append(Row(Example(f"{prefix}{number}", f"What is {number}?"), output, cells))
    Results(name, rows, metrics).save(folder)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders of results, in the current folder."""
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "one", "bm25", 0.2)
    save(tmp_path / "two", "混合检索", 0.7)
    return tmp_path


def test_tables_and_diagnosis(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables and the causes stand on stdout; nothing else does."""
    assert main(["compare", "one", "two"]) == exits.OK
    shown = capsys.readouterr()
    assert "2 pipelines on 8 questions" in shown.out
    assert "-0.500" in shown.out and "0.008" in shown.out
    assert "rag_kit.retrieval.RerankRetriever" in shown.out
    assert shown.err == ""


def test_json(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON document with tests and diagnoses."""
    assert (
        main(["compare", "one", "two", "--json", "--baseline", "bm25", "--metric", "answer_correctness"])
        == exits.OK
    )
    record = json.loads(capsys.readouterr().out)
    (pair,) = record["pairs"]
    assert (pair["pipeline"], pair["other"], pair["p"]) == ("混合检索", "bm25", 0.0078125)
    assert record["diagnoses"]["bm25"]["main"] == "noise"


def test_a_report_is_written(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One HTML file with both names."""
    assert main(["compare", "one", "two", "--report", "report.html"]) == exits.OK
    page = (two / "report.html").read_text(encoding="utf-8")
    assert "混合检索" in page and "bm25" in page and '<html lang="en"' in page


def test_a_report_is_in_the_language_of_most_questions(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command and write_report agree, for one run and several; --language and a comparison's decide."""
    runs = []
    for name in ("three", "four"):
        rows = [
            Row(Example(f"q{n}", "保修期多长？"), Output("两年。"), {"m": Cell.ok(n / 8)}) for n in range(8)
        ]
        runs.append(Results(name, rows, ("m",)))
        runs[-1].save(two / name)
    command = ["compare", "three", "four", "--report", "report.html"]
    for options, language in (
        ((), "zh-Hans"),
        (("--language", "en"), "en"),
        (("--language", "zh"), "zh-Hans"),
    ):
        assert main([*command, *options]) == exits.OK
        assert f'<html lang="{language}"' in (two / "report.html").read_text(encoding="utf-8")
    given = [
        (runs, {}),
        (runs[0], {}),
        (runs, {"comparison": compare(runs).in_language("en"), "language": "zh"}),
    ]
    for results, settings in given:
        page = write_report(results, two / "report.html", **settings).read_text(encoding="utf-8")  # type: ignore[arg-type]
        assert '<html lang="zh-Hans"' in page
    page = write_report(runs, two / "report.html", comparison=compare(runs).in_language("en")).read_text(
        encoding="utf-8"
    )
    assert '<html lang="en"' in page
    (two / "notes.html").write_text("mine")
    capsys.readouterr()
    assert main([*command[:-1], "notes.html"]) == exits.USAGE
    assert "move it away" in (said := capsys.readouterr().err) and "=True" not in said


def test_names_and_language(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NAME=FOLDER renames, the diagnosis speaks Chinese."""
    assert main(["compare", "before=one", "after=two", "--language", "zh"]) == exits.OK
    out = capsys.readouterr().out
    assert "before" in out and "干扰过多" in out and "2 个流程" in out


def test_slices_are_shown_where_they_are_asked_for(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are longer than all other tables: --slice prints them, otherwise a line says where they are."""
    for name, answer in (("three", 0.3), ("four", 0.6)):
        rows = [
            Row(
                Example(f"q{i}", "What?", tags={"topic": f"topic-{i % 2}"}),
                Output("It."),
                {"m": Cell.ok(answer)},
            )
            for i in range(8)
        ]
        Results(name, rows, ("m",)).save(two / name)
    assert main(["compare", "three", "four"]) == exits.OK
    out = capsys.readouterr().out
    assert "topic-1" not in out and "--slice" in out
    assert main(["compare", "three", "four", "--slice", "topic"]) == exits.OK
    assert "topic-1" in capsys.readouterr().out
    assert main(["compare", "three", "four", "--slice", "language"]) == exits.OK
    assert "one part by language" in capsys.readouterr().out


def test_a_folder_with_an_equals_sign(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that is there is meant as it stands; a name before it ends at the first sign."""
    save(two / "k=5", "five", 0.5)
    assert main(["compare", "one", "k=5"]) == exits.OK
    assert "five" in capsys.readouterr().out
    assert main(["compare", "one", "mine=k=5"]) == exits.OK
    assert "mine" in capsys.readouterr().out
    # and so may a name have one
    assert main(["compare", "k=4=one", "k=5=k=5", "--json"]) == exits.OK
    assert {"k=4", "k=5"} == set(json.loads(capsys.readouterr().out)["diagnoses"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["one"], "at least two"),
        (["one", "one"], "NAME=FOLDER"),
        (["one", "nowhere"], "nowhere"),
        (["one", "two="], "'two=' names no folder"),
        (["one", "=="], "'==' names no folder"),
        (["one", ""], "'' names no folder"),
        (["one", "other"], "no question in common"),
        (["one", "two", "--baseline", "x"], "baseline 'x'"),
        (["one", "two", "--metric", "x"], "metric 'x'"),
        (["one", "two", "--slice", "colour"], "tag 'colour'"),
        (["one", "two", "--report", "."], "folder"),
        (["one", "two", "--report", "/proc/report.html"], "cannot be written"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], said: str, two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every mistake is one line on stderr and the exit code for wrong use; stdout stays empty."""
    save(two / "other", "other", 0.5, prefix="x")
    assert main(["compare", *arguments]) == exits.USAGE
    shown = capsys.readouterr()
    assert said in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_hostile_names_do_not_reach_the_terminal(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences in a name of results are shown, not obeyed."""
    save(two / "bad", "\x1b[2Jbad\u202e", 0.5)
    assert main(["compare", "one", "bad"]) == exits.OK
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\u202e" not in out and "\\x1b[2Jbad" in out
