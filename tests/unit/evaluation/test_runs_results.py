"""Results: rows, summaries with coverage, tables, the folder, the data frame, money, `assert_quality`."""

from __future__ import annotations

import os
import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from support.compared import four_rows
from support.report_results import hostile_results, results_of_pipelines

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation import assert_quality
from rag_kit.evaluation.cells import Cell, Summary
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.runs.evaluating import evaluate
from rag_kit.evaluation.runs.labels import Labels
from rag_kit.evaluation.runs.metering import cost, read_prices
from rag_kit.evaluation.runs.results import QualityError, Results
from rag_kit.evaluation.runs.rows import Row
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.evaluation.statistics import bootstrap_interval


def row(number: int, cell: Cell, **output: object) -> Row:
    example = Example(f"q{number}", f"Question {number}? 问题", reference="Yes.", tags={"type": "fact"})
    fields = {"answer": "Yes [1].", "passages": (Passage("d1", "It is so."),), "seconds": 0.5, **output}
    return Row(example, Output(**fields), {"m": cell})  # type: ignore[arg-type]


CELLS = [
    Cell.ok(1.0, "good", statements=["a"]),
    Cell.ok(0.5),
    Cell.undefined("no statement"),
    Cell.error("time-out"),
    Cell.not_applicable("no reference"),
]


def test_failed_cells_are_counted_and_never_become_a_number() -> None:
    """The mean is of the cells with a value; each other status is counted by itself, and so is what is missing."""
    summary = Results("mine", [row(i, cell) for i, cell in enumerate(CELLS)], total=7).summary()["m"]
    assert (summary.mean, summary.n, summary.total) == (0.75, 2, 7)
    assert (summary.undefined, summary.errors, summary.not_applicable, summary.missing) == (1, 1, 1, 2)
    assert summary.coverage == 2 / 7


def test_the_interval_is_the_bootstrap_interval() -> None:
    """Low and high are those of `bootstrap_interval` over the values; below two values there is none."""
    values = [0.2, 0.0, 0.1, 0.1, 0.2, 0.0, 0.05, 0.2]

    def summarize(values: list[float]) -> Summary:
        rows = [Row(Example(f"q{n}", "?"), Output("x"), {"m": Cell.ok(v)}) for n, v in enumerate(values)]
        return Results("mine", rows, ("m",)).summary()["m"]

    assert (summarize(values).low, summarize(values).high) == bootstrap_interval(values)
    assert summarize([0.5]).low is None and summarize([]).mean is None


def test_saved_results_come_back_the_same(tmp_path: Path) -> None:
    """Rows, cells with details, the order, the total and the manifest survive save and load."""
    results = Results("mine", [row(i, cell) for i, cell in enumerate(CELLS)], ("m",), {"note": "x"}, 9)
    loaded = Results.load(results.save(tmp_path / "r"))
    assert loaded.rows == results.rows
    assert (loaded.name, loaded.metrics, loaded.examples) == ("mine", ("m",), 9)
    assert loaded.manifest["note"] == "x"
    assert loaded.summary() == results.summary()
    results.save(tmp_path / "r")
    assert len(Results.load(tmp_path / "r")) == 5


def test_two_rows_of_one_example_are_refused() -> None:
    """An example has one row."""
    with pytest.raises(InvalidInputError, match="'q1'"):
        Results("mine", [row(1, CELLS[0]), row(1, CELLS[1])])


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """A folder that holds no results is refused by saving and by loading."""
    (tmp_path / "photo.jpg").write_text("x")
    with pytest.raises(InvalidInputError, match=r"photo\.jpg"):
        Results("mine", [row(1, CELLS[0])]).save(tmp_path)
    with pytest.raises(InvalidInputError, match=r"manifest\.json"):
        Results.load(tmp_path)
    with pytest.raises(InvalidInputError, match="holds something else"):
        Results("mine", [row(1, CELLS[0])]).save(tmp_path / "photo.jpg")


def test_a_half_written_last_line_is_left_out(tmp_path: Path) -> None:
    """The line that a killed process was writing is not read; a damaged line in the middle is named."""
    whole = Results("mine", [row(1, CELLS[0]), row(2, CELLS[1])], ("m",), {"status": "complete"})
    folder = whole.save(tmp_path / "r")
    file = folder / "rows.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    assert Results.load(folder).notes == []
    file.write_bytes(lines[0] + lines[1][:-5])
    cut = Results.load(folder)
    assert [each.example.id for each in cut] == ["q1"]
    assert cut.notes == ["Only 1 of 2 rows of a complete run are there: rows.jsonl was cut."]
    file.write_bytes(lines[0] + b"{broken\n" + lines[1])
    with pytest.raises(InvalidInputError, match=r"rows\.jsonl:2"):
        Results.load(folder)


def test_pandas_frame() -> None:
    """One line a row: value, status and reason of each metric; a cell without a value is a gap, not a number."""
    frame = Results("mine", [row(i, cell) for i, cell in enumerate(CELLS)], ("m",)).to_pandas()
    assert list(frame["id"]) == ["q0", "q1", "q2", "q3", "q4"]
    assert frame["m"].tolist()[:2] == [1.0, 0.5]
    assert frame["m"].isna().tolist() == [False, False, True, True, True]
    assert list(frame["m.status"]) == ["ok", "ok", "undefined", "error", "not_applicable"]
    assert frame["tag.type"].tolist() == ["fact"] * 5
    assert frame["passages"][0] == ["d1"]


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install, and for what."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"Results.to_pandas.*rag-kit\[eval\]"):
        results(*GOOD).to_pandas()


def test_tables_show_coverage() -> None:
    """The terminal table names n of all."""
    shown = str(Results("mine", [row(i, cell) for i, cell in enumerate(CELLS)], ("m",), total=7))
    assert "2 / 7" in shown and "7 个问题中还有 2 个没有提问" in shown


def test_what_a_debugger_shows_is_one_short_line() -> None:
    """A thousand rows with passages are not printed where somebody only looks at a variable."""
    results = Results("mine\n\x1b[31m", [row(i, CELLS[0]) for i in range(1000)], ("m",))
    assert repr(results) == r"<Results of 'mine\n\x1b[31m': 1000 rows, metrics ('m',)>"


def test_money_by_model() -> None:
    """Input and output tokens have their own prices; what has no price is unknown, and not free."""
    prices = read_prices({"gpt": {"input": 2.0, "output": 10.0}})
    used = {"gpt-2026-01-01": {"input_tokens": 1_000_000, "output_tokens": 100_000}}
    assert cost(prices, used, Output()) == pytest.approx(2.0 + 1.0)
    assert cost(prices, {"other": {"input_tokens": 5}}, Output()) is None
    assert cost(prices, {}, Output()) == 0.0
    assert cost(read_prices(4), {}, Output(tokens=500_000)) == 2.0
    assert cost(read_prices({"*": {"input": 1, "output": 2}}), {}, Output(tokens=10)) is None
    assert cost(read_prices({"gpt": {"input": 1}}), used, Output()) is None, (
        "no price of what came out is not 0"
    )
    for wrong in ("cheap", {"gpt": -1}, {"gpt": {"in": 1}}, {"gpt": True}, [1]):
        with pytest.raises(InvalidInputError, match="price"):
            read_prices(wrong)


def test_money_of_rows() -> None:
    """Each row's cost of the pipeline."""
    first, second = row(1, CELLS[0]), row(2, CELLS[1], tokens=7)
    first.usage = {"pipeline": {"gpt": {"input_tokens": 1_000_000, "output_tokens": 0}}}
    results = Results("mine", [first, second], ("m",), {"prices": {"gpt": {"input": 1.0, "output": 3.0}}})
    assert results.money() == [1.0, None]


@pytest.mark.slow
def test_neither_saving_nor_resuming_holds_what_a_folder_has_a_second_time(tmp_path: Path) -> None:
    """Lines are written one by one, and a record that a row has taken over is let go of."""
    questions = [Example(f"q{number}", f"Question {number}?", answers=("Yes",)) for number in range(200)]
    arguments: dict[str, Any] = {"out": tmp_path / "r", "progress": False}
    evaluate(lambda question: question, questions[:1], "ours_answer_found", **arguments)  # imports
    for _ in range(2):
        tracemalloc.start()
        try:
            results = evaluate(lambda question: "Yes. " * 2_000, questions, "ours_answer_found", **arguments)
            held, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak - held < sum(len(one.output.answer or "") for one in results) / 2


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_the_files_of_a_run_are_for_their_owner_alone(tmp_path: Path) -> None:
    """They hold questions, passages and answers."""
    one = EvaluationSet("one", [Example("q", "How long?")])
    evaluate(lambda question: "x", one, ["ours_decline"], progress=False, out=tmp_path / "run")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "run").iterdir()}
    assert {"rows.jsonl", "manifest.json"} <= set(modes) and set(modes.values()) == {0o600}


def results(*cells: Cell, **more: Any) -> Results:
    rows = [Row(Example(f"q{i}", "?"), Output(answer="!"), {"m": cell}) for i, cell in enumerate(cells)]
    return Results("mine", rows, ("m",), **more)


GOOD = [Cell.ok(value) for value in (0.9, 0.8, 1.0, 0.7, 0.9, 0.8)]


ERRORS = {"metrics": [{"name": "m", "higher_is_better": False}]}


@pytest.mark.parametrize(
    ("given", "options", "failure"),
    [
        (results(*GOOD), {"thresholds": {"m": 0.85}}, None),  # the mean
        (results(*GOOD), {"thresholds": {"m": 0.86}}, r"below 0\.86"),
        (results(*GOOD), {"thresholds": {"m": 0.85}, "rule": "low"}, "lower end"),
        (results(*GOOD), {"thresholds": {"m": 0.7}, "rule": "low"}, None),
        (results(Cell.ok(1.0)), {"thresholds": {"m": 0.1}, "rule": "low"}, "no interval"),
        (results(*GOOD, manifest=ERRORS), {"thresholds": {"m": 0.9}}, None),  # less is better
        (results(*GOOD, manifest=ERRORS), {"thresholds": {"m": 0.8}}, r"above 0\.8"),
        (results(*GOOD, Cell.error("x"), total=9), {"thresholds": {"m": 0.5}}, "1 failed, 2 not done"),
        (results(*GOOD, Cell.error("x"), total=9), {"thresholds": {"m": 0.5}, "min_coverage": 0.6}, None),
        (results(*GOOD, Cell.undefined("x"), Cell.not_applicable("y")), {"thresholds": {"m": 0.5}}, None),
        (results(Cell.undefined("x")), {"thresholds": {"m": 0.0}}, "no example has a value"),
    ],
)
def test_quality_by_mean_or_lower_end_with_enough_values(
    given: Results, options: dict[str, Any], failure: str | None
) -> None:
    """Failed cells do not make a good mean, and one example proves nothing; what is undefined is left out."""
    if failure is None:
        assert_quality(given, **options)
        return
    with pytest.raises(AssertionError, match=failure) as raised:
        assert_quality(given, **options)
    assert isinstance(raised.value, QualityError) and list(raised.value.failures) == ["m"]


def test_a_threshold_reached_on_few_questions_gives_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Undefined cells are left out, and the number of questions that count is said."""
    assert_quality(
        results(Cell.ok(1.0), Cell.undefined("cites nothing"), Cell.undefined("cites nothing")), {"m": 0.9}
    )
    assert caplog.messages == ["m reaches it on the 1 of 3 questions that have a value"]


def test_wrong_arguments() -> None:
    """A metric that was not computed, or thresholds that are none, are told apart from bad quality."""
    for wrong in ({"n": 0.5}, {}, {"m": float("nan")}):
        with pytest.raises(InvalidInputError):
            assert_quality(results(*GOOD), wrong)
    with pytest.raises(InvalidInputError, match="rule"):
        assert_quality(results(*GOOD), {"m": 0.5}, rule="best")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="min_coverage"):
        assert_quality(results(*GOOD), {"m": 0.5}, min_coverage=2)


def test_every_metric_has_its_interval_and_its_coverage() -> None:
    """A line says the mean, the interval, and what became of the questions without a value."""
    results = results_of_pipelines(60)[0]
    line = next(line for line in str(results).splitlines() if line.startswith("faithfulness"))
    summary = results.summary()["faithfulness"]
    interval = f"[{summary.low:.3f}, {summary.high:.3f}]"
    assert " ".join(line.split()).startswith(f"faithfulness {summary.mean:.3f} {interval} 55 / 60 3 2 0")
    assert "60 questions, 2 of them failed" in str(results)


def test_a_metric_without_values_shows_no_number() -> None:
    """No mean and no interval is made of nothing."""
    line = next(line for line in str(hostile_results()).splitlines() if line.startswith("javascript:"))
    assert line.split()[1:6] == ["-", "-", "0", "/", "4"]


def test_the_table_says_why_a_metric_has_no_value() -> None:
    """A column of dashes comes with its reason, in the terminal and in Jupyter; others are not mentioned."""
    run = four_rows("mine", mrr=0.5, faithfulness=None)
    for shown in (str(run), run._repr_html_()):
        assert "faithfulness without a value: no judge was given" in shown and "mrr without" not in shown


def test_results_of_chinese_questions_are_printed_in_chinese() -> None:
    """The table, every note and an estimate, as text and in HTML; names, ids and reasons of others stay as they are."""
    cells = {
        "faithfulness": Cell.ok(0.5),
        "bleu": Cell.not_applicable("the example has no reference"),
        "mrr": Cell.undefined("the example has neither answers nor reference"),
    }
    rows = [
        Row(
            Example(f"q{n}", "保修期多长？", relevant={"a": 1}), Output("两年。", (Passage("b", "x"),)), cells
        )
        for n in range(9)
    ]
    rows.append(Row(Example("q9", "How long?"), Output(error="boom")))
    manifest = {"missing_gold": {"a": ["q1"]}, "stopped_by": "max_calls=5"}
    results = Results(
        "混合 one", rows, tuple(cells), manifest, 12, Labels({"faithfulness": {"q1": 1.0, "q2": None}})
    )
    estimate = evaluate(
        lambda question: "两年", [rows[0].example], ["mrr"], name="one", dry_run=True, progress=False
    )
    kept = "one|faithfulness|bleu|mrr|reference|answers|max_calls|pipeline|total|p50|p95|rag|kit|label|q1"
    for shown in map(str, (results, estimate)):
        assert set(re.findall(r"[A-Za-z]\w+", shown, re.ASCII)) <= set(kept.split("|")), shown
    assert "混合 one：10 个问题，其中 1 个失败" in str(results) and "均值" in results._repr_html_()
    assert "mrr 没有值：这个问题既没有简短答案（answers），也没有参考答案（reference）" in str(results)
    assert results.notes[0].startswith("1 gold ids and spans")  # data, as in the manifest
