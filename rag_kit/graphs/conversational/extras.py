"""The nodes after the answer: facts remembered, questions offered. Their failure never costs the answer."""

from __future__ import annotations

from langgraph.runtime import get_runtime

from rag_kit.errors import BudgetExceededError
from rag_kit.graphs.conversational import facts as store_of
from rag_kit.graphs.conversational.context import MAX_RELATED, ConversationalContext, ConversationalState
from rag_kit.graphs.conversational.memory import shown
from rag_kit.graphs.conversational.nodes import ConversationalNodes
from rag_kit.graphs.conversational.related import worth_asking
from rag_kit.graphs.guards import Refusal
from rag_kit.graphs.running import report
from rag_kit.graphs.state import Update
from rag_kit.graphs.steps import ask
from rag_kit.prompts import render_passages
from rag_kit.prompts.tags import Markup

_MAX_HISTORY = 8_000


class ExtraNodes:
    """Bodies of ``remember`` and ``suggest``.

    Args:
        nodes: The other nodes; model, prompts and guards are theirs.
        max_facts: How many facts are kept about a user.
    """

    def __init__(self, nodes: ConversationalNodes, max_facts: int) -> None:
        self.nodes = nodes
        self.max_facts = max_facts

    async def remember(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Note what the user said about themselves: from the user's own words alone, never from passages."""
        store, user_id = get_runtime().store, context.user_id
        if store is None or not user_id:
            return {}
        prompt = self.nodes.prompts.pick(
            "remember_facts", state["language"], context.remember_facts_instructions
        )
        values = {"question": state["asked"], "facts": store_of.rendered(state["facts"])}
        noted = await ask(self.nodes.llm, prompt, values, fallback=_error)
        if isinstance(noted, Exception):
            return _left_out("remember", noted)
        if not noted.facts:
            return {}
        # read again, since another run of the same user may have written meanwhile
        known = await store_of.read(store, user_id)
        if isinstance(known, Exception):
            return _unkept(known)
        kept = store_of.merged(known, noted.facts, state["asked"], self.max_facts)
        if kept != known:
            failed = await store_of.write(store, user_id, kept)
            if isinstance(failed, Exception):
                return _unkept(failed)
            report("remembered", facts=len([fact for fact in kept if fact not in known]))
        return {"facts": kept}

    async def suggest(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Offer questions that the passages answer and that were not asked yet; guards see each."""
        count = min(context.related_questions, MAX_RELATED)
        prompt = self.nodes.prompts.pick(
            "related_questions", state["language"], context.related_questions_instructions
        )
        earlier = state.get("history") or []
        values = {
            "question": state["search_query"],
            "answer": state["answer"],
            "passages": render_passages(state["documents"], max_chars=self.nodes.answering.max_passage_chars),
            "history": shown(earlier, state.get("summary") or "", _MAX_HISTORY) if earlier else Markup(""),
            "count": count,
        }
        offered = await ask(self.nodes.llm, prompt, values, fallback=_error)
        if isinstance(offered, Exception):
            return _left_out("related questions", offered)
        asked = [state["asked"], state["search_query"], *(turn["question"] for turn in earlier)]
        kept: list[str] = []
        for question in worth_asking(offered.queries, state["documents"], asked, count):
            verdict = await self.nodes.guards.check_answer(question)
            if not isinstance(verdict, Refusal):
                kept.append(verdict)
        report("suggested", questions=len(kept))
        return {"related_questions": kept}


def remember_capped(
    state: ConversationalState, context: ConversationalContext, error: BudgetExceededError
) -> Update:
    """The answer stands when a cap of the run leaves no room for remembering."""
    return _left_out("remember", error)


def suggest_capped(
    state: ConversationalState, context: ConversationalContext, error: BudgetExceededError
) -> Update:
    """The answer stands when a cap of the run leaves no room for related questions."""
    return _left_out("related questions", error)


def _error(error: Exception) -> Exception:
    """A fallback that hands the error back, for the notes."""
    return error


def _left_out(what: str, error: Exception) -> Update:
    if isinstance(error, BudgetExceededError):
        return {"notes": [f"{what}: left out, a cap of the run was reached ({error.what})"]}
    return {"notes": [f"{what}: left out, the model gave nothing usable ({type(error).__name__})"]}


def _unkept(error: Exception) -> Update:
    return {"notes": [f"remember: the facts could not be kept ({type(error).__name__})"]}
