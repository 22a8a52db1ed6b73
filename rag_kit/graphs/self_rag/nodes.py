"""What both modes of Self-RAG share: the first and the last node, and the end at a cap."""

from __future__ import annotations

from typing import Any, ClassVar

from langchain_core.documents import Document
from langgraph.types import Command

from rag_kit.errors import BudgetExceededError, ModelOutputError
from rag_kit.graphs.nodes import RagNodes
from rag_kit.graphs.self_rag.state import SelfRagContext, SelfRagState
from rag_kit.graphs.state import AnswerStatus, Update


class SelfRagNodes(RagNodes):
    """Base of the nodes of both modes."""

    mode: ClassVar[str]
    state = SelfRagState

    def empty_update(self) -> Update:
        """The graph's keys as a run begins, and as a refused one ends."""
        return {**super().empty_update(), "mode": self.mode, "scoring": "labels"}

    async def begin(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Ask the guards, forget the last turn, make a follow-up question stand alone."""
        begun = await super().begin(state, context)
        update: Any = begun.update
        update["asked"] = update["search_query"]  # the whole question is what is written about
        return begun

    def final_status(self, state: SelfRagState, status: AnswerStatus) -> AnswerStatus:
        """``unsourced`` where nothing was looked up; ``flagged`` where the passages do not support the answer."""
        if status == "uncited" and not state["documents"]:
            return "unsourced"
        unsupported = state["unsupported"] and status in ("grounded", "undecided", "uncited")
        return "flagged" if unsupported else status

    def at_cap(
        self, state: SelfRagState, context: SelfRagContext, error: BudgetExceededError
    ) -> Command[Any] | None:
        """Finish with the best so far, where there is something."""
        if not (state["drafts"] or has_answer(state)):
            return None
        note = f"finished early: {cap_of(error, context)} was reached; the answer is the best so far"
        return Command(update={"notes": [note]}, goto="finish")


def has_answer(state: SelfRagState) -> bool:
    """Whether any beam has said something."""
    return any(beam["segments"] for beam in state["beams"])


def cap_of(error: BudgetExceededError, context: SelfRagContext) -> str:
    """Which cap was reached, as the caller gave it."""
    name = "deadline" if error.what == "deadline" else f"max_{error.what}"
    return f"{name}={getattr(context, name)}"


def none_if_unreadable(error: Exception) -> None:
    """A structured answer that cannot be used is None; whatever else went wrong is raised."""
    if not isinstance(error, ModelOutputError):
        raise error


def source_of(document: Document) -> str | None:
    """The file or the address of a passage."""
    source = document.metadata.get("file") or document.metadata.get("source")
    return None if source is None else str(source)
