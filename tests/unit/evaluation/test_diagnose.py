"""Diagnosis: the table of causes, remedies that exist, what is not known is said and not guessed, both languages."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from support.compared import four_rows

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.diagnosis import CASES, Diagnosis, case_of, diagnose
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row
from rag_kit.evaluation.wording import in_chinese
from rag_kit.text.citations.decline import DECLINED

METRICS = ("answer_correctness", "context_recall", "context_precision")
HIGH, LOW = 0.9, 0.1

TABLE = [
    ((LOW, HIGH, HIGH), "model"),
    ((LOW, HIGH, LOW), "noise"),
    ((LOW, LOW, HIGH), "coverage"),
    ((LOW, LOW, LOW), "retrieval"),
    ((HIGH, HIGH, HIGH), "right"),
    ((HIGH, HIGH, LOW), "right_noisy"),
    ((HIGH, LOW, HIGH), "right_unsupported"),
    ((HIGH, LOW, LOW), "right_unsupported"),
]


def row(
    number: int, scores: tuple, *, question: str = "Who wrote it?", output: Output | None = None, **example
) -> Row:
    """A row with three cells; ``None`` leaves one out."""
    cells = {
        metric: value if isinstance(value, Cell) else Cell.ok(value)
        for metric, value in zip(METRICS, scores, strict=True)
        if value is not None
    }
    passages = (Passage("d1", "Ada wrote it."), Passage("d2", "It is long."))
    return Row(Example(f"q{number}", question, **example), output or Output("Ada.", passages), cells)


def results(*scores: tuple, **options) -> Results:
    """One row for each triple."""
    return Results("mine", [row(i, each, **options) for i, each in enumerate(scores)], METRICS)


@pytest.mark.parametrize(("scores", "case"), TABLE)
def test_the_table(scores: tuple[float, float, float], case: str) -> None:
    """Low and high of answer, recall and precision name the cause, of one question and of all."""
    found = diagnose(results(scores))
    assert (found.rows[0].case, found.counts) == (case, {case: 1})
    assert found.main == (None if case.startswith("right") else case)


def test_the_metric_that_covers_the_questions_is_taken() -> None:
    """A better metric that has a value for few questions is passed over for one that all have."""
    cells = [
        {"ours_answer_found": Cell.ok(float(n)), "recall@5": Cell.ok(1.0), "mrr": Cell.ok(1.0)}
        for n in range(2)
    ]
    cells[1]["ours_span_recall"] = Cell.ok(1.0)
    cells[0]["ours_span_recall"] = Cell.not_applicable("no spans")
    rows = [Row(Example(f"q{n}", "Who?"), Output("Ada."), each) for n, each in enumerate(cells)]
    found = diagnose(Results("rag", rows))
    assert found.counts == {"model": 1, "right": 1} and found.metrics["recall"] == "recall@5"


def test_why_a_score_is_missing_is_said_in_chinese_too() -> None:
    """The reason of the kit's own metric has Chinese words; one that a judge wrote stays as it is."""
    cells = {
        "answer_correctness": Cell.not_applicable("the example has no reference"),
        "context_recall": Cell.error("the judge wrote this"),
        "context_precision": Cell.ok(1.0),
    }
    found = diagnose(Results("p", [Row(Example("q", "谁？"), Output("它。"), cells)]))
    assert found.rows[0].unknown[0] == "answer_correctness: not applicable (the example has no reference)"
    said = found.to_json()["rows"][0]["unknown"].split("；")
    assert said[0] == "answer_correctness：不适用（这个问题没有参考答案（reference））"
    assert said[1:] == ["context_recall：出错（the judge wrote this）"]


def test_every_remedy_exists_and_is_described_in_both_languages() -> None:
    """Each part named can be imported, is callable and public; titles, causes and remedies are in two languages."""
    for case in map(case_of, CASES):
        assert case.remedies or case.name in ("right", "right_declined")
        assert len({remedy.name for remedy in case.remedies}) == len(case.remedies)
        for remedy in case.remedies:
            module, _, name = remedy.name.rpartition(".")
            assert callable(getattr(import_module(module), name)) and "._" not in remedy.name
        chinese = case_of(case.name, "zh")
        for of, text in ((case, chinese), *zip(case.remedies, chinese.remedies, strict=True)):
            for field in ("title", "cause") if of is case else ("text",):
                assert getattr(of, field).isascii() and re.search("[\u4e00-\u9fff]", getattr(text, field))
                assert in_chinese(getattr(of, field)) == getattr(text, field), "the page switches by this"


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (None, "context_recall: missing"),
        (Cell.undefined("no statement"), "context_recall: undefined (no statement)"),
        (Cell.error("time-out"), "context_recall: error (time-out)"),
        (Cell.not_applicable("no reference"), "context_recall: not applicable (no reference)"),
    ],
)
def test_what_is_not_known_is_not_guessed(cell: Cell | None, reason: str) -> None:
    """Without one of the three scores there is no cause, and the reason stands there."""
    found = diagnose(results((LOW, cell, HIGH), (LOW, HIGH, HIGH)))
    assert (found.rows[0].case, list(found.rows[0].unknown)) == (None, [reason])
    assert (found.unknown, found.counts) == (1, {"model": 1})
    assert reason in str(found) and "not diagnosed" in str(found)


def test_nothing_known_at_all() -> None:
    """There is no main cause when no question has all three scores."""
    found = diagnose(results((None, None, None), (LOW, Cell.error("x"), LOW)))
    assert (found.main, found.counts, found.unknown) == (None, {}, 2)
    assert "not diagnosed" in str(found)
    assert "answer_correctness：没有测量" in str(found.in_language("zh"))


@pytest.mark.parametrize(
    ("output", "case", "outcome"),
    [
        (Output("Ada, in 1912."), "invented", "invented"),
        (Output("文档中没有答案。"), "right_declined", "declined"),
        (Output("Sorry.", status="declined"), "right_declined", "declined"),
        (Output("Which one?", status="clarify"), None, "unknown"),
        (Output(error="RuntimeError: x"), None, "unknown"),
    ],
)
def test_a_question_without_an_answer_in_the_documents(
    output: Output, case: str | None, outcome: str
) -> None:
    """An answer is wrong, a decline is right; whatever is neither has no cause."""
    found = diagnose(results((None, LOW, LOW), answerable=False, output=output))
    assert (found.rows[0].case, found.main) == (case, "invented" if case == "invented" else None)
    assert found.outcomes[outcome] == 1 and found.outcomes["declined_rightly"] == (outcome == "declined")
    assert len(found.questions(None)) == (case is None)


def test_answers_where_there_is_none_are_a_cause_and_a_column() -> None:
    """Printed in both languages, with remedies; the first table says what became of all questions."""
    rows = [row(0, (HIGH, HIGH, HIGH)), row(1, (LOW, LOW, LOW)), row(2, (LOW, LOW, LOW), answerable=False)]
    rows.append(row(3, (LOW, LOW, LOW), output=Output("The documents do not contain the answer.")))
    found = diagnose(Results("rag", rows, METRICS))
    assert found.counts == {"right": 1, "retrieval": 2, "invented": 1}
    expected = {"right": 1, "wrong": 1, "declined": 1, "declined_rightly": 0, "invented": 1, "unknown": 0}
    assert found.outcomes == expected == found.to_json()["outcomes"]
    assert "Answered anyway" in str(found) and "build_crag" in str(found)
    chinese = str(found.in_language("zh"))
    assert chinese.count("应拒答却作答") > 2 and "答非所问" in chinese
    assert "编造" not in chinese and "invented" not in str(found), "its citations may all hold"


def test_thresholds_are_settable() -> None:
    """One number for all, or one by role; the threshold itself is high."""
    scores = results((0.6, 0.6, 0.6))
    assert diagnose(scores, thresholds=0.6).counts == {"right": 1}
    assert diagnose(scores, thresholds=0.61).counts == {"retrieval": 1}
    assert diagnose(scores, thresholds={"answer": 0.7}).counts == {"model": 1}
    assert diagnose(scores, thresholds={"answer": 0.7, "precision": 0.7}).counts == {"noise": 1}


def test_other_metrics_may_stand_for_the_three() -> None:
    """Any metric of the results can be the answer's, the recall's or the precision's."""
    cells = {"f1": Cell.ok(0.2), "recall@5": Cell.ok(1.0), "precision@5": Cell.ok(0.2)}
    found = diagnose(
        Results("r", [Row(Example("q", "Who?"), Output("It."), cells)]), answer="f1", recall="recall@5",
        precision="precision@5",
    )  # fmt: skip
    assert found.main == "noise"
    assert "recall@5" in str(found)


def test_hints_say_what_the_row_shows() -> None:
    """Failed, nothing retrieved, declined, citations that do not hold; in both languages."""
    one = (Passage("d", "x"),)
    cases = [
        (Output(error="TimeoutError: {slow}"), ["the pipeline failed: TimeoutError: {slow}"]),
        (Output("Yes.", passages=()), ["no passage was retrieved"]),
        (Output(DECLINED["en"], passages=one), ["the answer declines"]),
        (Output("Yes [1].", citations=({"status": "unsupported"}, {"status": "supported"})),
         ["citations that do not hold: 1"]),
    ]  # fmt: skip
    rows = [row(i, (LOW, HIGH, HIGH), output=output) for i, (output, _) in enumerate(cases)]
    found = diagnose(Results("r", rows, METRICS))
    assert [list(finding.hints) for finding in found.rows] == [said for _, said in cases]
    assert "没有检索到任何段落" in str(found.in_language("zh"))


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    """A folder that a run wrote can be diagnosed."""
    results((LOW, HIGH, HIGH)).save(tmp_path / "run")
    assert diagnose(tmp_path / "run").main == "model"


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (results((LOW, HIGH, HIGH)), {"answer": "nothing"}, "Evaluate with it"),
        (results((LOW, HIGH, HIGH)), {"thresholds": {"speed": 1}}, "answer, recall, precision"),
        (results((LOW, HIGH, HIGH)), {"thresholds": float("nan")}, "give a number"),
        (results((LOW, HIGH, HIGH)), {"language": "fr"}, "auto, en, zh"),
        (3, {}, "give what evaluate returned"),
        (Results("r", [], METRICS), {}, "without rows"),
    ],
)
def test_what_cannot_be_diagnosed(given: object, options: dict, message: str) -> None:
    """Each wrong setting is refused with what is allowed."""
    with pytest.raises(InvalidInputError, match=message):
        diagnose(given, **options)  # type: ignore[arg-type]


def test_json_holds_everything() -> None:
    """Plain JSON with texts, and a record for each question."""
    found = diagnose(results((LOW, HIGH, LOW), (LOW, None, LOW)))
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["cases"]["noise"]["remedies"][0]["part"] == "rag_kit.retrieval.RerankRetriever"
    assert [row["case"] for row in record["rows"]] == ["noise", None]
    assert record["main"] == "noise"
    assert [row["context_recall"] for row in record["rows"]] == [HIGH, None]


def test_many_questions_are_cut_on_the_screen_only() -> None:
    """Forty questions are printed, the most frequent cause first; all are in the JSON."""
    found = diagnose(results(*[(LOW, HIGH, HIGH)] * 30, *[(LOW, LOW, LOW)] * 50, (HIGH, HIGH, HIGH)))
    assert found.main == "retrieval"
    assert "... and 40 more" in str(found)
    assert len(found.to_json()["rows"]) == 81
    assert isinstance(found, Diagnosis) and repr(found).startswith("<Diagnosis of 81 questions")
    assert len(found.questions("model")) == 30


def test_a_diagnosis_takes_what_was_measured() -> None:
    """Without a judge's metrics those of ids stand in; named ones are taken as named; without any it says so."""
    found = diagnose(
        four_rows("a", answer_correctness=None, ours_answer_found=0.0, **{"recall@5": 1.0}, mrr=1.0)
    )
    assert list(found.metrics.values()) == ["ours_answer_found", "recall@5", "mrr"]
    assert found.counts == {"model": 4}
    named = diagnose(
        four_rows("a", ours_answer_found=0.0, mine=1.0, **{"recall@5": 1.0}, mrr=1.0),
        answer="mine",
    )
    assert named.metrics["answer"] == "mine"
    with pytest.raises(InvalidInputError, match="no 'answer_correctness'"):
        diagnose(four_rows("a", mrr=1.0))
