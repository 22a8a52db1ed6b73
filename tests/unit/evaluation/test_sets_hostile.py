"""Files that would lose something in silence, or take all memory, are refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import EvaluationSet


def feedback(tmp_path: Path, *rows: dict[str, Any]) -> EvaluationSet:
    """Rows as an export."""
    path = tmp_path / "thumbs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return EvaluationSet.from_feedback(path)


def run(question: str = "a?", **more: Any) -> dict[str, Any]:
    """A run with a thumb up."""
    return {"inputs": {"question": question}, "outputs": {"answer": "b"}, "score": 1, **more}


@pytest.mark.parametrize(
    "outputs", [None, "", {}, {"answer": ""}, {"messages": [{"role": "user", "content": "a?"}]}]
)
def test_a_thumb_on_a_run_that_answered_nothing_counts(outputs: Any, tmp_path: Path) -> None:
    """Runs that failed get thumbs too: the question is kept, without a reference."""
    found = feedback(tmp_path, run(outputs=outputs, score=0), run("c?"))
    assert [(each.question, each.reference, each.tags["feedback"]) for each in found] == [
        ("a?", None, "down"),
        ("c?", "b", "up"),
    ]


def test_thumbs_on_silence_and_on_an_answer_are_weighed(tmp_path: Path) -> None:
    """The answer that was liked is the reference; that another run of the question was not is told."""
    (found,) = feedback(tmp_path, run(outputs=None, score=0), run())
    assert (found.reference, found.tags["feedback"]) == ("b", "mixed")


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (run(outputs={"essay": "b"}), "no answer"),
        (run(outputs=[1, 2]), "no answer"),
        (run(score={"a": 1}), "the thumb is"),
        (run(score=0, correction={"essay": "b"}), "no answer"),
        (run(score=0, correction=["b"]), "no answer"),
    ],
)
def test_what_cannot_be_read_is_not_left_out(row: dict[str, Any], named: str, tmp_path: Path) -> None:
    """The message names file and line."""
    with pytest.raises(InvalidInputError, match=rf"thumbs.jsonl:2: .*{named}"):
        feedback(tmp_path, run("c?"), row)


def test_statistics_without_scores_do_not_hide_the_thumb(tmp_path: Path) -> None:
    """A summary that holds no score says nothing; the row's own thumb does."""
    (found,) = feedback(tmp_path, run(feedback_stats={"note": {"n": 1, "avg": None}}))
    assert found.reference == "b"
    (found,) = feedback(tmp_path, run(score=0, correction=42))
    assert found.reference == "42"


def test_messages_with_odd_ids_are_no_crash(tmp_path: Path) -> None:
    """A dumped message whose id is no list of names is no message."""
    with pytest.raises(InvalidInputError, match="no question"):
        feedback(tmp_path, {"inputs": {"messages": [{"id": 5, "kwargs": {"content": "a?"}}]}, "score": 1})
