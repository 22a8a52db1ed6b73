"""The first and the last node of both modes."""

from __future__ import annotations

from typing import Any

from langgraph.types import Command

from rag_kit.errors import BudgetExceededError
from rag_kit.graphs.answering import Answering
from rag_kit.graphs.opening import Opening
from rag_kit.graphs.self_rag.candidates import unreadable
from rag_kit.graphs.self_rag.context import SelfRagContext
from rag_kit.graphs.self_rag.state import SelfRagState, emptied, fresh
from rag_kit.graphs.state import Update


class Ends:
    """What both modes begin and end with.

    Args:
        answering: The shared last steps, with model, prompts and guards.
        mode: ``"paper"`` or ``"reflect"``.
        after_begin: The node after the first one.
    """

    def __init__(self, answering: Answering, mode: str, after_begin: str) -> None:
        self.answering = answering
        self.opening = Opening(answering.llm, answering.prompts, answering.guards)
        self.mode = mode
        self.after_begin = after_begin

    async def begin(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Ask the guards, forget the last turn, make a follow-up question stand alone."""
        return await self.opening.begin(
            state,
            context,
            fresh(self.mode),
            goto=self.after_begin,
            asked_complete=True,
            fallback=unreadable,
        )

    async def cite(self, state: SelfRagState, context: SelfRagContext) -> Update:
        """Check every citation against its passage, let the guards see the answer."""
        update = await self.answering.cite(state, context)
        if update["status"] == "refused":
            return {**update, **emptied()}
        if update["status"] == "uncited" and not state["documents"]:
            update["status"] = "unsourced"
        elif state.get("unsupported") and update["status"] in ("grounded", "undecided", "uncited"):
            update["status"] = "flagged"
        return update


def cap_of(error: BudgetExceededError, context: SelfRagContext) -> str:
    """Which cap was reached, as the caller gave it."""
    if error.what == "calls":
        return f"max_calls={context.max_calls}"
    if error.what == "tokens":
        return f"max_tokens={context.max_tokens}"
    return f"deadline={context.deadline:g} s" if context.deadline is not None else str(error)
