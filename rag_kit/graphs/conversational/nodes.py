"""The nodes of the conversational graph that lead to an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.graph import END
from langgraph.runtime import get_runtime
from langgraph.types import Command, Overwrite

from rag_kit.errors import ModelError
from rag_kit.graphs.answering import Answering
from rag_kit.graphs.conversational import facts as store_of
from rag_kit.graphs.conversational.context import ConversationalContext, ConversationalState
from rag_kit.graphs.conversational.memory import is_long, shown, split, summary_chars
from rag_kit.graphs.guards import Guards, Refusal
from rag_kit.graphs.opening import NOT_REWRITTEN, Opening, turned_away
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.running import report
from rag_kit.graphs.state import Update
from rag_kit.graphs.steps import ask, attempt, write
from rag_kit.prompts.tags import Markup
from rag_kit.text.analysis import warm_up

PROMPTS = (
    "summarise_history",
    "condense",
    "condense_for_user",
    "answer",
    "answer_for_user",
    "remember_facts",
    "related_questions",
)


class ConversationalNodes:
    """From the question to the checked answer.

    Args:
        retriever: Where passages come from.
        llm: The chat model.
        folder: Prompt files in place of the packaged ones.
        guards: What sees question, passages and answer.
        max_passage_chars: Characters of passages in a prompt.
        remember: Whether this graph keeps facts about users.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        llm: BaseChatModel,
        folder: Path | None,
        guards: Guards,
        max_passage_chars: int,
        remember: bool,
    ) -> None:
        self.retriever = retriever
        self.llm = llm
        self.guards = guards
        self.remembers = remember
        self.prompts = GraphPrompts(PROMPTS, folder)
        self.opening = Opening(llm, self.prompts, guards)
        self.answering = Answering(llm, self.prompts, guards, max_passage_chars)
        warm_up()

    async def begin(self, state: ConversationalState, context: ConversationalContext) -> Command[Any]:
        """See whether the question may be asked, read what is known about the user; no model is called."""
        own = {"asked": "", "facts": [], "related_questions": []}
        update = await self.opening.checked(state, context, own)
        if isinstance(update, Command):
            return update
        if context.user_id:
            known, notes = await self._recall(context.user_id)
            update["facts"] = known
            update["notes"] = Overwrite(notes)
        history, summary = state.get("history") or [], state.get("summary") or ""
        if is_long(history, summary, context.max_history_turns, context.max_history_chars):
            return Command(update=update, goto="summarise")
        needed = history or summary or update["facts"]
        return Command(update=update, goto="condense" if needed else "retrieve")

    async def _recall(self, user_id: str) -> tuple[list[str], list[str]]:
        store = get_runtime().store
        if not self.remembers:
            return [], ["memory: this graph was built without remember=True; user_id is not used"]
        await store_of.signed_in(user_id)
        if store is None:
            return [], ["memory: the graph has no store; nothing is known or remembered about the user"]
        found = await store_of.read(store, user_id)
        if isinstance(found, Exception):
            return [], [f"memory: the facts about the user could not be read ({type(found).__name__})"]
        report("recalled", facts=len(found))
        return found, []

    async def summarise(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Put the older turns into the summary; without one the newest turns alone are used."""
        most = context.max_history_chars
        older, newer = split(state["history"], context.max_history_turns, most)
        instructions = context.summarise_history_instructions
        prompt = self.prompts.pick("summarise_history", state["language"], instructions)
        values = {
            "history": shown(older, state.get("summary") or ""),
            "max_chars": summary_chars(most),
        }
        written = await attempt(write(self.llm, prompt, values, stream=False))
        if isinstance(written, ModelError):
            return _unsummarised(written)
        report("summarised", turns=len(older))
        return {
            "summary": written.strip()[: summary_chars(most)],
            "history": Overwrite(newer),
            "notes": [f"summarise: {len(older)} older turns were put into the summary"],
        }

    async def condense(self, state: ConversationalState, context: ConversationalContext) -> Command[Any]:
        """Make the question stand alone: without the conversation, and without knowing who asks."""
        known = state["facts"]
        history, summary = state.get("history") or [], state.get("summary") or ""
        values: dict[str, Any] = {
            "question": state["asked"],
            "history": shown(history, summary, context.max_history_chars)
            if history or summary
            else Markup(""),
        }
        if known:
            values["facts"] = store_of.rendered(known)
            name, instructions = "condense_for_user", context.condense_for_user_instructions
        else:
            name, instructions = "condense", context.condense_instructions
        prompt = self.prompts.pick(name, state["language"], instructions)
        query = await ask(self.llm, prompt, values, fallback=None)
        if query is None:
            return Command(update={"notes": [NOT_REWRITTEN]}, goto="retrieve")
        whole = await self.guards.check_completed(query.query, state["asked"])
        if isinstance(whole, Refusal):
            return turned_away(whole, {"facts": []})
        report("condensed", search_query=whole)
        return Command(update={"search_query": whole}, goto="retrieve")

    async def retrieve(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Fetch the passages that this user may see."""
        return await self.opening.retrieve(self.retriever, state, context)

    async def answer(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Answer from the passages alone; what is known about the user only says what matters to them."""
        known = state["facts"]
        return await self.answering.answer(
            state["search_query"],
            state["documents"],
            state["language"],
            name="answer_for_user" if known else "answer",
            instructions=context.answer_for_user_instructions if known else context.answer_instructions,
            more={"facts": store_of.rendered(known)} if known else None,
        )

    async def cite(self, state: ConversationalState, context: ConversationalContext) -> Command[Any]:
        """Check every citation; then, side by side, remember and offer questions, where that is wanted."""
        update = await self.answering.cite(state, context)
        extras = []
        if update["status"] != "refused":
            if self.remembers and context.user_id and get_runtime().store is not None:
                extras.append("remember")
            if context.related_questions and state["documents"]:
                extras.append("suggest")
        return Command(update=update, goto=extras or END)


def _unsummarised(error: Exception) -> Update:
    return {
        "notes": [f"summarise: no summary was written ({type(error).__name__}); the newest turns were used"]
    }
