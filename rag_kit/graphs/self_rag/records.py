"""What is made of beams and candidates as they are recorded: queries, copies, failures, the trace's winners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_kit.graphs.self_rag.beams import FAILED
from rag_kit.graphs.self_rag.state import Beam, Candidate


def search_query(question: str, beam: Beam) -> str:
    """What is searched for: the question and the segment before, as in the paper."""
    return f"{question} {beam['segments'][-1]['text']}" if beam["segments"] else question


def has_answer(beams: Sequence[Beam]) -> bool:
    """Whether any way to go on has said something."""
    return any(beam["segments"] for beam in beams)


def changed(beam: Beam, **changes: Any) -> Beam:
    """A beam with some of its entries changed, as a copy."""
    return Beam(**{**beam, **changes})  # type: ignore[typeddict-item]


def failed_candidate(segment: int, beam: Beam, passage: int | None, error: BaseException) -> Candidate:
    """The candidate that an error took the place of."""
    return Candidate(
        segment=segment, beam=beam["number"], passage=passage, source=None, text="", labels={},
        probabilities={}, parts={}, f=None, score=None, kept=False, won=False,
        reason=f"{FAILED}: {type(error).__name__}",
    )  # fmt: skip


def with_chosen(trace: Sequence[dict[str, Any]], best: Beam) -> list[dict[str, Any]]:
    """The trace, with those candidates marked that the answer is made of."""
    parts = {
        (number, part["beam"], part["text"], part["passage"])
        for number, part in enumerate(best["segments"], start=1)
    }
    return [
        {**one, "won": one["kept"] and (one["segment"], one["beam"], one["text"], one["passage"]) in parts}
        for one in trace
    ]
