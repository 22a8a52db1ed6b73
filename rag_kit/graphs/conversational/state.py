"""The typed state of the conversational graph."""

from __future__ import annotations

from rag_kit.graphs.state import RagState


class ConversationalState(RagState, total=False):
    """State of the conversational graph after and between its nodes.

    ``asked`` is the question as the guards left it. ``summary`` holds the turns that are no longer in
    ``history``. ``facts`` is what is known about the user in this run; ``related_questions`` what may be asked next.
    """

    asked: str
    summary: str
    facts: list[str]
    related_questions: list[str]
