"""The typed state of the adaptive graph."""

from __future__ import annotations

from typing import Literal

from langchain_core.documents import Document
from typing_extensions import TypedDict

from rag_kit.graphs.state import RagState, Update

Route = Literal["direct", "single", "multi", "clarify"]


class Hop(TypedDict):
    """One step of a question that needs several facts; ``answer`` is "" where nothing was found."""

    question: str
    answer: str


class Clarification(TypedDict):
    """A question back to the user, and the reply."""

    question: str
    reply: str


class AdaptiveState(RagState, total=False):
    """State of the adaptive graph after and between its nodes.

    ``asked`` is the question as the guards left it, with the replies to questions back in brackets; ``route`` the
    way it was answered, and ``reason`` why; ``hops`` the steps of a question that needs several facts.
    """

    asked: str
    route: Route
    intent: str
    complexity: str
    reason: str
    question_back: str
    clarifications: list[Clarification]
    hops: list[Hop]
    sub_question: str
    hop_documents: list[list[Document]]


def forgotten() -> Update:
    """This graph's own keys as a run begins, and as a refused one ends."""
    return {
        "asked": "",
        "route": "single",
        "intent": "",
        "complexity": "",
        "reason": "",
        "question_back": "",
        "clarifications": [],
        "hops": [],
        "sub_question": "",
        "hop_documents": [],
    }
