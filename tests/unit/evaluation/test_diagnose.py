"""Diagnosis: the table of causes, remedies that exist, what is not known is said and not guessed, both languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Cell, Example, Output, Passage, Results, Row
from rag_kit.evaluation.diagnosing import CASE_OF, CASES, Diagnosis, diagnose
from rag_kit.text.citations import DECLINED

METRICS = ("answer_correctness", "context_recall", "context_precision")
HOSTILE = '<img src=x onerror="alert(1)">\x1b[2J\u202e'
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
    assert (found.rows[0].case, found.overall, found.counts) == (case, case, {case: 1})


def test_the_worked_rows() -> None:
    """Two answers with 0 and 0 lie at retrieval; one with recall 1 and precision 0.5 is right."""
    scores = [(0.1, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 1.0, 0.49999999995)]
    rows = [row(i, each, question="张伟是哪个部门的？") for i, each in enumerate(scores)]
    found = diagnose(Results("rag", rows, METRICS))
    assert [finding.case for finding in found.rows] == ["retrieval", "retrieval", "right"]
    assert (found.main, found.language) == ("retrieval", "zh")
    assert "整个检索环节" in str(found) and "EnsembleRetriever" in str(found)


@pytest.mark.parametrize("case", CASES)
def test_every_remedy_exists(case: str) -> None:
    """Each part named can be imported, is callable, is public, and is described in both languages."""
    remedies = CASE_OF[case].remedies
    assert remedies or case == "right"
    for remedy in remedies:
        assert callable(remedy.load())
        assert not any(part.startswith("_") for part in remedy.name.split("."))
        assert remedy.text.en.endswith(".") and remedy.text.zh.endswith("。")
    assert len({remedy.part for remedy in remedies}) == len(remedies)


@pytest.mark.parametrize("case", CASES)
def test_both_languages_say_something(case: str) -> None:
    """Titles and causes are there in English and in Chinese characters."""
    for text in (CASE_OF[case].title, CASE_OF[case].cause):
        assert text.en.isascii()
        assert any("\u4e00" <= character <= "\u9fff" for character in text.zh)


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
    assert (found.rows[0].case, found.rows[0].unknown) == (None, reason)
    assert (found.unknown, found.diagnosed, found.counts) == (1, 1, {"model": 1})
    assert found.means == {"answer": LOW, "recall": HIGH, "precision": HIGH}
    assert reason in str(found) and "not diagnosed" in str(found)


def test_nothing_known_at_all() -> None:
    """Where no question has all three, there is no overall cause either."""
    found = diagnose(results((None, None, None), (LOW, Cell.error("x"), LOW)))
    assert (found.overall, found.main, found.means, found.unknown) == (None, None, {}, 2)
    assert "no diagnosis" in str(found)
    assert "没有诊断" in str(found.in_language("zh"))


def test_a_question_without_an_answer_in_the_documents() -> None:
    """Where declining is right, a low score of the answer has no cause to look for."""
    found = diagnose(results((LOW, LOW, LOW), answerable=False))
    assert found.rows[0].case is None
    assert "decline" in found.rows[0].unknown


def test_thresholds_are_settable() -> None:
    """One number for all, or one by role or by the metric's name; the threshold itself is high."""
    scores = results((0.6, 0.6, 0.6))
    assert diagnose(scores).overall == "right"
    assert diagnose(scores, thresholds=0.6).overall == "right"
    assert diagnose(scores, thresholds=0.61).overall == "retrieval"
    assert diagnose(scores, thresholds={"answer": 0.7}).overall == "model"
    assert diagnose(scores, thresholds={"answer": 0.7, "context_precision": 0.7}).overall == "noise"


def test_other_metrics_may_stand_for_the_three() -> None:
    """Any metric of the results can be the answer's, the recall's or the precision's."""
    cells = {"f1": Cell.ok(0.2), "recall@5": Cell.ok(1.0), "precision@5": Cell.ok(0.2)}
    found = diagnose(
        Results("r", [Row(Example("q", "Who?"), Output("It."), cells)]), answer="f1", recall="recall@5",
        precision="precision@5",
    )  # fmt: skip
    assert found.overall == "noise"
    assert "recall@5" in str(found)


def test_hints_say_what_the_row_shows() -> None:
    """Failed, nothing retrieved, declined, citations that do not hold."""
    outputs = [
        Output(error="TimeoutError: slow"),
        Output("Yes.", passages=()),
        Output(DECLINED["en"], passages=(Passage("d", "x"),)),
        Output("Yes [1].", citations=({"status": "unsupported"}, {"status": "supported"})),
        Output(" "),
    ]
    rows = [row(i, (LOW, HIGH, HIGH), output=output) for i, output in enumerate(outputs)]
    found = diagnose(Results("r", rows, METRICS))
    assert [finding.hints for finding in found.rows] == [
        ("the pipeline failed: TimeoutError: slow",),
        ("no passage was retrieved",),
        ("only one passage was retrieved", "the answer declines"),
        ("citations that do not hold: 1",),
        ("the answer is empty",),
    ]
    assert diagnose(Results("r", rows, METRICS), language="zh").rows[1].hints == ("没有召回任何段落",)


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    """A folder that a run wrote can be diagnosed."""
    results((LOW, HIGH, HIGH)).save(tmp_path / "run")
    assert diagnose(tmp_path / "run").overall == "model"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answer": "nothing"}, "Evaluate with it"),
        ({"recall": "context_precision"}, "three metrics"),
        ({"thresholds": {"speed": 1}}, "answer, recall and precision"),
        ({"thresholds": float("nan")}, "give numbers"),
        ({"thresholds": True}, "give numbers"),
        ({"thresholds": "high"}, "give numbers"),
        ({"language": "fr"}, "auto, en, zh"),
    ],
)
def test_settings_that_there_are_not(options: dict, message: str) -> None:
    """Each wrong setting is refused with what is allowed."""
    with pytest.raises(InvalidInputError, match=message):
        diagnose(results((LOW, HIGH, HIGH)), **options)


@pytest.mark.parametrize("given", [None, 3, ["a"], Results("r", [], METRICS)])
def test_what_are_no_results(given: object) -> None:
    """Something else than results, or results without rows, are refused."""
    with pytest.raises(InvalidInputError):
        diagnose(given)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="no case"):
        diagnose(results((LOW, HIGH, HIGH))).case("weather")  # type: ignore[arg-type]


def test_json_and_frame_hold_everything() -> None:
    """Plain JSON with texts; a frame with a line for each question."""
    found = diagnose(results((LOW, HIGH, LOW), (LOW, None, LOW)))
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["cases"]["noise"]["remedies"][0]["part"] == "rag_kit.retrieval.RerankRetriever"
    assert record["rows"][1]["case"] is None
    frame = found.to_pandas()
    assert list(frame["case"]) == ["noise", None]
    assert frame["context_recall"].isna().tolist() == [False, True]


def test_hostile_text_stays_text() -> None:
    """Questions, names and reasons are not obeyed by terminal or page."""
    rows = [
        row(0, (LOW, Cell.error(HOSTILE), LOW), question=HOSTILE),
        row(1, (LOW, LOW, LOW), question=HOSTILE),
    ]
    found = diagnose(Results(HOSTILE, rows, METRICS))
    text, page = str(found), found._repr_html_()
    assert "\x1b" not in text + page and "\u202e" not in text + page
    assert "<img" not in page and "&lt;img" in page


def test_many_questions_are_cut_on_the_screen_only() -> None:
    """Forty questions are shown, the worst cause first; all are in the frame."""
    found = diagnose(results(*[(LOW, HIGH, HIGH)] * 30, *[(LOW, LOW, LOW)] * 50, (HIGH, HIGH, HIGH)))
    assert found.main == "retrieval"
    assert "... and 40 more" in str(found)
    assert len(found.to_pandas()) == len(found) == 81
    assert isinstance(found, Diagnosis) and repr(found).startswith("<Diagnosis of 81 questions")
    assert len(found.questions("model")) == 30


def test_what_a_graph_put_aside_was_retrieved() -> None:
    """CRAG hands on fewer passages than it found: the hint speaks of keeping, not of a search without hits."""
    found: dict[str, object] = {"retrieved": ["a", "b", "c"]}
    outputs = [
        Output(DECLINED["en"], passages=(), extra=found),
        Output("Yes.", passages=(Passage("d", "x"),), extra=found),
        Output("Yes.", passages=(), extra={"retrieved": "what else a pipeline calls so"}),
    ]
    rows = [row(i, (LOW, HIGH, HIGH), output=output) for i, output in enumerate(outputs)]
    results = diagnose(Results("r", rows, METRICS))
    assert [finding.hints for finding in results.rows] == [
        ("all passages that were retrieved (3) were put aside", "the answer declines"),
        ("of the passages that were retrieved (3) one was kept",),
        ("no passage was retrieved",),
    ]


def test_hints_follow_the_language() -> None:
    """A diagnosis in another language is the one made in it, hints included, there and back."""
    outputs = [
        Output(error="TimeoutError: {slow}\nvery"),
        Output("Yes.", passages=()),
        Output(DECLINED["en"], passages=(Passage("d", "x"),), extra={"retrieved": ["a", "b"]}),
        Output("Yes [1].", citations=({"status": "unsupported"},)),
    ]
    rows = [row(i, (LOW, HIGH, HIGH), output=output) for i, output in enumerate(outputs)]
    english, chinese = (diagnose(Results("r", rows, METRICS), language=which) for which in ("en", "zh"))
    assert [one.hints for one in english.in_language("zh").rows] == [one.hints for one in chinese.rows]
    assert [one.hints for one in chinese.in_language("en").rows] == [one.hints for one in english.rows]
    assert english.in_language("zh").rows[2].hints[0] == "召回的 2 个段落中只采用了一个"
