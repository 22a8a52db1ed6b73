"""The typed state of the Self-RAG graphs; plain JSON beside the documents, so that any checkpointer takes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from langchain_core.documents import Document
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from rag_kit.graphs.state import RagState, Update, add_items, as_documents

#: ``logprobs``: label probabilities and p(y) are the model's own; ``labels``: a label counts as certain, p(y) = 1.
Scoring = Literal["logprobs", "labels"]


class Segment(TypedDict):
    """One part of an answer.

    ``passage`` is the index of the passage that it rests on in the state's ``passages``; None: on none.
    ``beam`` is the one that it continued; ``f`` is its score.
    """

    text: str
    beam: int
    passage: int | None
    f: float


class Beam(TypedDict):
    """One way in which the answer may go on.

    ``number`` counts from 1 within its segment, best first; ``score`` is the mean of its segments' ``f``;
    ``ended``: nothing is to be added. ``query`` is what was searched for, ``found`` are indices into ``passages``,
    ``retrieve`` is whether documents are looked up for the next segment, ``wanted`` the probability of that.
    """

    number: int
    segments: list[Segment]
    score: float
    ended: bool
    retrieve: bool
    wanted: float
    query: str
    found: list[int]


class Candidate(TypedDict):
    """One continuation that was generated: an entry of the trace.

    ``segment`` and ``beam`` count from 1; ``passage`` is an index into ``passages``, or None. ``labels`` are those
    that the model wrote, ``probabilities`` those that the score rests on, ``parts`` of ``f`` are unweighted.
    ``score`` is that of the beam which it makes. ``kept`` says whether it went on, ``won`` whether it is a part of
    the answer, ``reason`` why it went on or why it lost.
    """

    segment: int
    beam: int
    passage: int | None
    source: str | None
    text: str
    labels: dict[str, str]
    probabilities: dict[str, dict[str, float]]
    parts: dict[str, float]
    f: float | None
    score: float | None
    kept: bool
    won: bool
    reason: str


class Draft(TypedDict):
    """An answer of the loop and what the graders said of it; ``None`` where they were not asked.

    ``documents`` are the passages that it was written from.
    """

    answer: str
    supported: bool | None
    useful: bool | None
    reason: str
    documents: list[Document]


class SelfRagState(RagState, total=False):
    """State of both modes. ``trace`` holds every candidate (paper) or every verdict (reflect) and why it lost."""

    mode: Literal["paper", "reflect"]
    asked: str
    scoring: Scoring
    trace: Annotated[list[dict[str, Any]], add_items]
    passages: Annotated[list[Document], as_documents]
    # paper
    segment: int
    beams: list[Beam]
    candidates: list[Candidate]
    streamed: int
    capped: bool
    # reflect
    round: int
    generations: int
    tried: list[str]
    drafts: list[Draft]
    unsupported: bool


def fresh(mode: str) -> Update:
    """This graph's own keys as a run begins."""
    return {
        **emptied(),
        "mode": mode,
        "scoring": "labels",
        "segment": 0,
        "streamed": 0,
        "capped": False,
        "round": 0,
        "generations": 0,
        "unsupported": False,
    }


def emptied() -> Update:
    """What goes when a guard refuses: whatever was found or written may hold what it refuses."""
    return {
        "asked": "",
        "trace": Overwrite([]),
        "passages": [],
        "beams": [],
        "candidates": [],
        "tried": [],
        "drafts": [],
    }
