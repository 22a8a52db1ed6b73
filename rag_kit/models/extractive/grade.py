"""The tasks ``grade_passage`` and ``grade_passages``: how surely passages help, by their evidence."""

from __future__ import annotations

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text.evidence.usefulness import usefulness


def grade_passage(prompt: Prompt) -> Reply:
    """One passage by itself: the fields of a ``Grade``."""
    found = usefulness(prompt.question, prompt.passages[:1])
    fields = _fields(found[0].value, found[0].measures["own"]) if found else _fields(0.0, 0.0)
    return Reply(str(fields["reason"]), fields, as_json=True)


def grade_passages(prompt: Prompt) -> Reply:
    """Several passages, seen beside each other, each under its id."""
    found = usefulness(prompt.question, prompt.passages)
    grades = [
        {"id": passage.number, **_fields(one.value, one.measures["own"])}
        for passage, one in zip(prompt.passages, found, strict=True)
    ]
    return Reply(f"{len(grades)} graded", {"grades": grades}, as_json=True)


def _fields(value: float, own: float) -> dict[str, object]:
    score = round(value, 3)
    return {
        "relevant": score >= 0.5,
        "score": score,
        "reason": f"{own:.0%} of the question's terms in its best sentence.",
    }
