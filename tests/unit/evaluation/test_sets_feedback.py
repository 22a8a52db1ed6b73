"""Users' thumbs as examples: a liked answer becomes the reference, a disliked one does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import EvaluationSet


def read(folder: Path, *rows: Any, **settings: Any) -> EvaluationSet:
    path = folder / "thumbs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return EvaluationSet.from_feedback(path, **settings)


def run(question: str, answer: str, score: Any, **more: Any) -> dict[str, Any]:
    return {"inputs": {"question": question}, "outputs": {"answer": answer}, "score": score, **more}


def test_up_is_a_reference_and_down_is_not(tmp_path):
    """The disliked answer is kept aside; the run's marks of citations are no part of a reference."""
    up, down = read(
        tmp_path,
        run("When?", "In 1999 [1][2].", 1, run_id="r1"),
        run("Who?", "Nobody.", 0, run_id="r2"),
    )
    assert (up.question, up.reference, up.tags["feedback"]) == ("When?", "In 1999.", "up")
    assert up.metadata == {"runs": ["r1"]} and up.answerable is True
    assert down.reference is None and down.tags["feedback"] == "down" and down.answerable is None
    assert down.metadata == {"runs": ["r2"], "rejected": ["Nobody."]}


def test_thumbs_in_all_spellings(tmp_path):
    """Words, numbers, truth values, signs in any skin, in a field of any usual name."""
    for thumb in ("up", "thumbs_up", "👍🏽", 1, 1.0, True, "positive", "赞", "+1"):
        assert read(tmp_path, {"inputs": "a?", "outputs": "b", "score": thumb})[0].reference == "b"
    for name in ("thumbs", "feedback", "rating"):
        assert read(tmp_path, {"inputs": "a?", "outputs": "b", name: "up"})[0].reference == "b"
    for thumb in ("down", "👎", 0, -1, False, "踩", "dislike"):
        (found,) = read(tmp_path, {"inputs": "a?", "outputs": "b", "score": thumb})
        assert found.reference is None and found.metadata["rejected"] == ["b"]


def test_a_chinese_table(tmp_path):
    """Columns have Chinese names, thumbs are Chinese words."""
    path = tmp_path / "导出.csv"
    path.write_text(
        "编号,问题,回答,评价\nr1,年假几天？,五天。,赞\nr2,产假几天？,九十天。,踩\n", encoding="utf-8"
    )
    first, second = EvaluationSet.from_feedback(path)
    assert (first.question, first.reference, first.tags["feedback"]) == ("年假几天？", "五天。", "up")
    assert second.reference is None and second.metadata["rejected"] == ["九十天。"]


def test_other_ratings_are_refused_with_their_line(tmp_path):
    """Stars and shares are no thumbs; nothing is guessed."""
    for thumb in (0.5, 4, "so so", [1], {"key": "user_score", "score": 1}):
        with pytest.raises(InvalidInputError, match=r"thumbs.jsonl:2: the thumb is"):
            read(tmp_path, run("a?", "b", 1), run("c?", "d", thumb))


def test_the_same_question_is_one_example(tmp_path):
    """The answer liked most is the reference; a disliked one stays rejected; what is disputed is no reference."""
    one, two = read(
        tmp_path,
        run("When is it?", "Monday.", 1), run("when is it? ", "Tuesday.", 1), run("When is it?", "Tuesday.", 1),
        run("When is it?", "Never.", 0), run("Who?", "Ada.", 1), run("Who?", "Ada.", 0),
    )  # fmt: skip
    assert one.reference == "Tuesday." and one.metadata["rejected"] == ["Never."]
    assert one.tags["feedback"] == "mixed"
    assert two.reference is None and two.tags["feedback"] == "mixed"


def test_a_correction_counts_more_than_a_thumb(tmp_path):
    """A right answer that a user wrote is the reference, also below a thumb down; a number is its text."""
    for correction, reference in (({"answer": "right"}, "right"), (42, "42")):
        (found,) = read(tmp_path, run("a?", "wrong", 0, correction=correction))
        assert found.reference == reference


def test_a_liked_decline_means_not_answerable(tmp_path):
    """Users who agree that the documents do not say it tell that the question is not answerable."""
    en, zh = read(
        tmp_path,
        run("a?", "The answer is not in the documents.", 1),
        run("潮汐？", "文档中没有答案。", 1),
    )
    assert en.answerable is False and zh.answerable is False and zh.tags["language"] == "zh"


def test_forms_of_langsmith(tmp_path):
    """Messages with earlier turns, and LangChain's dumps of them."""
    talk = [
        {"role": "system", "content": "be kind"}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"}, {"role": "user", "content": [{"type": "text", "text": "When?"}]},
    ]  # fmt: skip
    dumped = [
        [
            {
                "lc": 1,
                "id": ["langchain", "schema", "messages", "HumanMessage"],
                "kwargs": {"content": "Who?", "type": "human"},
            }
        ]
    ]
    answered = [*talk, {"role": "ai", "content": "Now."}]
    one, two = read(
        tmp_path,
        {"inputs": {"messages": talk}, "outputs": {"messages": answered}, "feedback": 1.0},
        {"inputs": {"messages": dumped}, "outputs": {"output": "Ada."}, "feedback": 1},
    )
    assert (one.question, one.reference) == ("When?", "Now.") and one.history == (
        {"question": "Hi", "answer": "Hello"},
    )
    assert (two.question, two.reference) == ("Who?", "Ada.")


def test_runs_without_a_thumb(tmp_path, caplog):
    """They are left out and named; a file without any thumb is refused."""
    rows = [run("a?", "-", 1), run("c?", "d", None)]
    (example,) = read(tmp_path, *rows)
    assert example.reference == "-" and "nobody rated are left out: 'c?'" in caplog.text
    with pytest.raises(InvalidInputError, match="holds no run with a thumb"):
        read(tmp_path, rows[1])


def test_answers_that_are_json_stay_texts(tmp_path):
    """Answers of a run are taken as they are; only cells of a table are opened."""
    for answer in ('{"x": 1}', "['a', b()]"):
        assert read(tmp_path, run("Which?", answer, 1))[0].reference == answer


def test_csv_exports(tmp_path):
    """Inputs and outputs as JSON in cells, or as plain columns."""
    path = tmp_path / "t.csv"
    path.write_text(
        'id,inputs,outputs,thumbs\n1,"{""question"": ""a?""}","{""answer"": ""b""}",up\n', encoding="utf-8"
    )
    assert EvaluationSet.from_feedback(path)[0].reference == "b"
    path.write_text("question,answer,thumbs\na?,b,up\nc?,d,down\n", encoding="utf-8")
    assert [e.reference for e in EvaluationSet.from_feedback(path)] == ["b", None]


def test_a_run_without_a_question_is_named(tmp_path):
    """The line, and what the run has; a dumped message whose id is no list of names is no message."""
    with pytest.raises(InvalidInputError, match=r"thumbs.jsonl:1: the run has no question.*outputs, score"):
        read(tmp_path, {"outputs": "b", "score": 1})
    with pytest.raises(InvalidInputError, match="no question"):
        read(tmp_path, {"inputs": {"messages": [{"id": 5, "kwargs": {"content": "a?"}}]}, "score": 1})


def liked(question: str = "a?", **more: Any) -> dict[str, Any]:
    """A run with a thumb up."""
    return {**run(question, "b", 1), **more}


@pytest.mark.parametrize(
    "outputs", [None, "", {}, {"answer": ""}, {"messages": [{"role": "user", "content": "a?"}]}]
)
def test_a_thumb_on_a_run_that_answered_nothing_counts(outputs: Any, tmp_path: Path) -> None:
    """Runs that failed get thumbs too: the question is kept, without a reference."""
    found = read(tmp_path, liked(outputs=outputs, score=0), liked("c?"))
    assert [(each.question, each.reference, each.tags["feedback"]) for each in found] == [
        ("a?", None, "down"),
        ("c?", "b", "up"),
    ]


def test_thumbs_on_silence_and_on_an_answer_are_weighed(tmp_path: Path) -> None:
    """The answer that was liked is the reference; that another run of the question was not is told."""
    (found,) = read(tmp_path, liked(outputs=None, score=0), liked())
    assert (found.reference, found.tags["feedback"]) == ("b", "mixed")


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (liked(outputs={"essay": "b"}), "no answer"),
        (liked(outputs=[1, 2]), "no answer"),
        (liked(score={"a": 1}), "the thumb is"),
        (liked(score=0, correction={"essay": "b"}), "no answer"),
        (liked(score=0, correction=["b"]), "no answer"),
    ],
)
def test_what_cannot_be_read_is_not_left_out(row: dict[str, Any], named: str, tmp_path: Path) -> None:
    """The message names file and line."""
    with pytest.raises(InvalidInputError, match=rf"thumbs.jsonl:2: .*{named}"):
        read(tmp_path, liked("c?"), row)
