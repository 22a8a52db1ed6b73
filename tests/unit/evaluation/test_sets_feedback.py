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
    """The disliked answer is kept aside, with the comment; the run's marks of citations are no part of a reference."""
    up, down = read(
        tmp_path,
        run("When?", "In 1999 [1][2].", 1, run_id="r1"),
        run("Who?", "Nobody.", 0, run_id="r2", comment="wrong"),
    )
    assert (up.question, up.reference, up.tags["feedback"]) == ("When?", "In 1999.", "up")
    assert up.metadata == {"runs": ["r1"]} and up.answerable is True
    assert down.reference is None and down.tags["feedback"] == "down" and down.answerable is None
    assert down.metadata == {"runs": ["r2"], "rejected": ["Nobody."], "comments": ["wrong"]}


@pytest.mark.parametrize("thumb", ["up", "thumbs_up", "👍", "👍🏽", 1, 1.0, True, "positive", "赞", "+1"])
@pytest.mark.parametrize("field", ["score", "thumbs", "feedback", "rating"])
def test_thumbs_up_in_all_spellings(tmp_path, thumb, field):
    """Words, numbers, truth values, signs in any skin."""
    (found,) = read(tmp_path, {"inputs": "a?", "outputs": "b", field: thumb})
    assert found.reference == "b"


@pytest.mark.parametrize("thumb", ["down", "👎", 0, -1, False, "踩", "dislike"])
def test_thumbs_down_in_all_spellings(tmp_path, thumb):
    """None of them makes a reference."""
    (found,) = read(tmp_path, {"inputs": "a?", "outputs": "b", "score": thumb})
    assert found.reference is None and found.metadata["rejected"] == ["b"]


@pytest.mark.parametrize("thumb", [0.5, 4, "so so", 5, "⭐⭐", [0.7]])
def test_other_ratings_are_refused_with_their_line(tmp_path, thumb):
    """Stars and shares are no thumbs; nothing is guessed."""
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
    assert one.metadata["also_liked"] == ["Monday."] and one.tags["feedback"] == "mixed"
    assert two.reference is None and two.tags["feedback"] == "mixed"


def test_a_correction_counts_more_than_a_thumb(tmp_path):
    """What a user wrote as the right answer is the reference, also below a thumb down."""
    (found,) = read(tmp_path, run("a?", "wrong", 0, correction={"answer": "right"}))
    assert found.reference == "right" and found.metadata["corrected"] is True


def test_a_liked_decline_means_not_answerable(tmp_path):
    """Users who agree that the documents do not say it tell that the question is not answerable."""
    en, zh = read(
        tmp_path,
        run("a?", "The answer is not in the documents.", 1),
        run("潮汐？", "文档中没有答案。", 1),
    )
    assert en.answerable is False and zh.answerable is False and zh.tags["language"] == "zh"


def test_forms_of_langsmith(tmp_path):
    """feedback_stats, a list of feedback with evaluators beside, messages with earlier turns, LangChain's dumps."""
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
    one, two, three = read(
        tmp_path,
        {"inputs": {"messages": talk}, "outputs": {"messages": [*talk, {"role": "ai", "content": "Now."}]},
         "feedback_stats": {"user_score": {"n": 2, "avg": 1.0}, "conciseness": {"n": 1, "avg": 0.3}}},
        {"inputs": {"messages": dumped}, "outputs": {"output": "Ada."},
         "feedback": [{"key": "user_thumb", "score": 1}, {"key": "conciseness", "score": 0.4}]},
        {"inputs": {"input": "Why?"}, "outputs": {"output": "So."},
         "feedback_stats": {"user_score": {"n": 2, "avg": 0.5}}},
    )  # fmt: skip
    assert (one.question, one.reference) == ("When?", "Now.") and one.history == (
        {"question": "Hi", "answer": "Hello"},
    )
    assert (two.question, two.reference) == ("Who?", "Ada.")
    assert three.reference is None and three.tags["feedback"] == "mixed"


def test_runs_without_a_thumb(tmp_path):
    """They are left out unless wanted; a file without any thumb is refused."""
    rows = [run("a?", "b", 1), run("c?", "d", None)]
    assert len(read(tmp_path, *rows)) == 1
    kept = read(tmp_path, *rows, keep_unrated=True)
    assert kept[1].tags["feedback"] == "none" and kept[1].reference is None
    with pytest.raises(InvalidInputError, match="holds no run with a thumb"):
        read(tmp_path, rows[1])


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
    """The line, and what the run has."""
    with pytest.raises(InvalidInputError, match=r"thumbs.jsonl:1: the run has no question.*outputs, score"):
        read(tmp_path, {"outputs": "b", "score": 1})
