"""The typed state of the plain graph. ``question`` is what the user asked and is never overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Required

from langchain_core.documents import Document
from typing_extensions import TypedDict

#: How many turns of a thread are kept to understand a follow-up question.
MAX_TURNS = 20


class Turn(TypedDict):
    """One question of a thread and the answer it got."""

    question: str
    answer: str


class Usage(TypedDict):
    """What a run has used so far: model calls, tokens in and out, seconds inside nodes."""

    calls: int
    tokens: int
    seconds: float


class AnswerCitation(TypedDict):
    """One ``[n]`` of the answer and the sentence of passage n that supports it.

    ``quote`` is a verbatim span of the passage; it is None when there is no passage n.
    ``status`` is ``supported``, ``unsupported`` or ``missing_passage``; ``reason`` says why.
    """

    number: int
    statement: str
    quote: str | None
    status: str
    reason: str
    score: float
    file: str | None
    title: str | None
    page: int | str | None
    heading: str | None
    source: str | None


#: ``grounded``: each statement has a citation that holds; ``flagged``: one does not hold; ``uncited``: one has
#: none; ``declined``: the answer says that the documents do not hold it.
AnswerStatus = Literal["grounded", "flagged", "uncited", "declined"]


def keep_last_turns(old: Sequence[Turn], new: Sequence[Turn]) -> list[Turn]:
    """Append, and forget what is older than the last `MAX_TURNS` turns."""
    return [*old, *new][-MAX_TURNS:]


class PlainRagInput(TypedDict):
    """What a caller gives: the question."""

    question: Required[str]


class PlainRagState(PlainRagInput, total=False):
    """State of the plain graph after and between its nodes."""

    history: Annotated[list[Turn], keep_last_turns]
    search_query: str
    language: Literal["en", "zh"]
    documents: list[Document]
    answer: str
    citations: list[AnswerCitation]
    uncited: list[str]
    status: AnswerStatus
    notes: list[str]
    usage: Usage


#: A node's return value: some keys of the state.
Update = dict[str, Any]
