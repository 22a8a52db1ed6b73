"""How every graph begins: guards see the question, a follow-up is made to stand alone, passages are fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.graph import END
from langgraph.types import Command, Overwrite

from rag_kit.graphs.answering import refused
from rag_kit.graphs.context import RagContext
from rag_kit.graphs.guards import Guards, Refusal
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.running import report
from rag_kit.graphs.state import Turn, Update, cleared
from rag_kit.graphs.steps import ask, fetch
from rag_kit.prompts.rendering import render_history
from rag_kit.prompts.tags import Markup
from rag_kit.text import check_question, detect_language

#: Said where a rewriting cannot be used.
NOT_REWRITTEN = "condense: the model gave no usable rewriting; searched for the question as asked"


class Opening:
    """Bodies of the nodes before a graph's own work.

    Args:
        llm: The chat model.
        prompts: The graph's prompts; ``condense`` is among them.
        guards: What sees the question before anything is asked or searched.
    """

    def __init__(self, llm: BaseChatModel, prompts: GraphPrompts, guards: Guards) -> None:
        self.llm = llm
        self.prompts = prompts
        self.guards = guards

    async def checked(
        self, state: Mapping[str, Any], context: RagContext, own: Update
    ) -> Update | Command[Any]:
        """Let the guards see the question; nothing of an earlier turn of the thread is left but its history.

        Args:
            state: The state that the run begins with.
            context: The run's settings.
            own: The graph's own keys as a run begins.

        Returns:
            The update of the first node, or the command that ends a refused run.

        Raises:
            InvalidInputError: There is no question.
        """
        question = check_question(state.get("question"), example="{'question': 'How ...?'}")
        language = detect_language(question) if context.language == "auto" else context.language
        update: Update = {**cleared(question, language), **own}
        verdict = await self.guards.check_question(question)
        if isinstance(verdict, Refusal):
            return turned_away(verdict, update)
        return {**update, "asked": verdict, "search_query": verdict}

    async def begin(
        self,
        state: Mapping[str, Any],
        context: RagContext,
        own: Update,
        *,
        goto: str,
        max_history: int | None = None,
        asked_complete: bool = False,
        fallback: Any = None,
    ) -> Command[Any]:
        """As ``checked``, and a follow-up is made to stand alone; no model call at the first turn of a thread.

        Args:
            state: The state that the run begins with.
            context: The run's settings, with ``condense_instructions``.
            own: The graph's own keys as a run begins.
            goto: The next node.
            max_history: Characters of the history that are shown to the model.
            asked_complete: Whether ``asked`` becomes the complete question too: the graph writes to that one.
            fallback: What to take for a rewriting that failed, or a function of the error.
        """
        update = await self.checked(state, context, own)
        if isinstance(update, Command):
            return update
        if history := state.get("history"):
            seen = str(update["asked"])
            instructions: str | None = getattr(context, "condense_instructions", None)
            prompt = self.prompts.pick("condense", update["language"], instructions)
            values = {"question": seen, "history": rendered(history, max_history)}
            query = await ask(self.llm, prompt, values, fallback=fallback)
            if query is None:
                update["notes"] = Overwrite([NOT_REWRITTEN])
            else:
                whole = await self.guards.check_completed(query.query, seen)
                if isinstance(whole, Refusal):
                    return turned_away(whole, {**update, **own})
                update["search_query"] = whole
                if asked_complete:
                    update["asked"] = whole
                report("condensed", search_query=whole)
        return Command(update=update, goto=goto)

    async def retrieve(
        self, retriever: BaseRetriever, state: Mapping[str, Any], context: RagContext
    ) -> Update:
        """Fetch the passages that this user may see."""
        found = await fetch(retriever, state["search_query"], k=context.k, filter=context.filter)
        documents = await self.guards.allowed(found)
        report("retrieved", passages=len(documents))
        return {"documents": documents}


def turned_away(refusal: Refusal, update: Update) -> Command[Any]:
    """End a run whose question is refused; it is not remembered, or the next turn would show it to the model."""
    return Command(update={**update, **refused("", refusal), "history": []}, goto=END)


def turns(history: Sequence[Turn]) -> list[tuple[str, str]]:
    """Turns as ``(role, text)`` pairs.

    Example:
        >>> turns([{"question": "Why?", "answer": "Because."}])
        [('user', 'Why?'), ('assistant', 'Because.')]
    """
    return [
        message for turn in history for message in (("user", turn["question"]), ("assistant", turn["answer"]))
    ]


def rendered(history: Sequence[Turn] | None, max_chars: int | None = None) -> Markup:
    """A thread's turns for a prompt; nothing where there are none."""
    return render_history(turns(history), max_chars=max_chars) if history else Markup("")
