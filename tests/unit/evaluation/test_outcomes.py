"""Outcomes of questions: right, wrong, declined, invented."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Example, evaluate, write_report
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.diagnosis import diagnose
from rag_kit.evaluation.outcomes import outcomes
from rag_kit.evaluation.reporting.payload import report_payload
from rag_kit.evaluation.runs.results import Results

QUESTIONS = [
    Example("q1", "谁写的？", answers=("张三",), answerable=True),
    Example("q2", "什么时候？", answers=("1912",), answerable=True),
    Example("q3", "在哪里？", answers=("北京",), answerable=True),
    Example("q4", "为什么？", answerable=False),
    Example("q5", "多少钱？", answerable=False),
    Example("q6", "怎么样？"),
]
NONE = "文档中没有答案。"
SAID = {"谁写的？": "是张三。", "什么时候？": "1911年。", "在哪里？": NONE, "为什么？": NONE}
METRICS = ["ours_answer_found", "ours_decline"]


def run(name: str, answers: dict[str, str]) -> Results:
    """The results of a pipeline that says what is given."""
    return evaluate(
        lambda question: answers.get(question, "因为。"), QUESTIONS, METRICS, name=name, progress=False
    )


def test_one_table_for_all_pipelines_as_pandas(tmp_path: Path) -> None:
    """Each question is counted once; a decline of a question without an answer is right; folders are read."""
    first, second = run("first", SAID), run("second", {})
    frame = outcomes([first, second.save(tmp_path / "second")])
    assert list(frame.index) == ["first", "second"]
    assert frame.loc["first"].to_dict() == {
        "right": 1, "wrong": 1, "declined": 2, "declined_rightly": 1, "invented": 1, "unknown": 1,
    }  # fmt: skip
    assert frame.loc["second", ["right", "wrong", "invented"]].tolist() == [0, 3, 2]
    assert list(outcomes({"mine": first}).index) == ["mine"]


def test_threshold_and_metric_can_be_named() -> None:
    """Another limit, another metric; one that is not there is refused, and so is nothing."""
    results = run("first", SAID)
    assert outcomes(results, answer="ours_decline").loc["first", "right"] == 2
    assert outcomes(results, threshold=1.1).loc["first", "right"] == 0
    with pytest.raises(InvalidInputError, match="no metric 'bleu'"):
        outcomes(results, answer="bleu")
    with pytest.raises(InvalidInputError, match="0 runs given"):
        outcomes([])


@pytest.mark.parametrize("said", ["", " \n"])
def test_an_empty_answer_invents_nothing(said: str) -> None:
    """Nothing said to a question without an answer is no invention, in the diagnosis neither."""
    results = run("mute", {"为什么？": said, "多少钱？": "三元。"})
    counts = outcomes(results).loc["mute"]
    assert (counts["invented"], counts["declined"], counts["unknown"]) == (1, 0, 2)
    results.rows[0].cells["recall@5"] = results.rows[0].cells["mrr"] = Cell.ok(1.0)
    results.metrics += ("recall@5", "mrr")
    assert [finding.case for finding in diagnose(results).rows[3:5]] == [None, "invented"]


def test_the_report_has_the_table(tmp_path: Path) -> None:
    """The counts of each pipeline, and the labels in both languages, are in the page."""
    runs = {"first": run("first", SAID), "second": run("second", {})}
    shown = report_payload(runs, None, {})["outcomes"]
    assert [(row["invented"], row["declined_rightly"], row["metric"]) for row in shown] == [
        (1, 1, "ours_answer_found"), (2, 0, "ours_answer_found"),
    ]  # fmt: skip
    page = write_report(list(runs.values()), tmp_path / "r.html").read_text("utf-8")
    assert "应拒答却作答" in page and "outcomesTable" in page
