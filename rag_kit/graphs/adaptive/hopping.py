"""The nodes of a question that needs several facts: one sub-question after the other, then the answer."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.types import Command

from rag_kit.documents.identity import document_key
from rag_kit.graphs.adaptive.context import AdaptiveContext
from rag_kit.graphs.adaptive.state import AdaptiveState, Hop
from rag_kit.graphs.answering import Answering
from rag_kit.graphs.running import report
from rag_kit.graphs.state import Update
from rag_kit.graphs.steps import ask, fetch
from rag_kit.prompts.rendering import render_history
from rag_kit.prompts.tags import Markup
from rag_kit.text import fold
from rag_kit.text.citations.decline import DECLINED
from rag_kit.text.citations.statements import renumbered

MAX_HISTORY = 8_000
MAX_NOTED = 500
#: Calls of a step (ask for it, answer it) and of the last answer.
_CALLS_LEFT = 3


class HoppingNodes:
    """Bodies of ``next_hop``, ``search_hop``, ``answer_hop`` and ``conclude``."""

    def __init__(self, retriever: BaseRetriever, answering: Answering) -> None:
        self.retriever, self.answering = retriever, answering
        self.llm, self.prompts, self.guards = answering.llm, answering.prompts, answering.guards

    async def next_hop(self, state: AdaptiveState, context: AdaptiveContext) -> Command[Any]:
        """Ask for the next fact, with those found so far in view; or go on to the answer."""
        hops = state["hops"]
        if len(hops) >= context.max_hops:
            return self._conclude(f"hops: stopped at max_hops={context.max_hops}")
        used = state["usage"]["calls"]
        if hops and context.max_calls is not None and context.max_calls - used < _CALLS_LEFT:
            return self._conclude(
                f"hops: stopped, so that max_calls={context.max_calls} leaves one for the answer"
            )
        question = state["search_query"]
        prompt = self.prompts.pick("next_hop", state["language"], context.next_hop_instructions)
        values = {"question": question, "history": hop_history(hops), "count": context.max_hops - len(hops)}
        found = await ask(self.llm, prompt, values, fallback=None)
        query, notes = "" if found is None or found.done else found.query, []
        if found is None:
            notes.append("hops: the model gave no usable sub-question")
        if fold(query) in {fold(hop["question"]) for hop in hops}:
            notes += ["hops: the model repeated a sub-question"] if query else []
            query = ""
        if not query and hops:
            return self._conclude(*notes)
        query = query or question  # at least one search, whatever the model says
        report("hop", number=len(hops) + 1, question=query)
        return Command(update={"sub_question": query, "notes": notes}, goto="search_hop")

    def _conclude(self, *notes: str) -> Command[Any]:
        return Command(update={"sub_question": "", "notes": list(notes)}, goto="conclude")

    async def search_hop(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Fetch passages for the sub-question; those that this user may not see are left out."""
        found = await fetch(self.retriever, state["sub_question"], k=context.k, filter=context.filter)
        documents = await self.guards.allowed(found)
        report("retrieved", passages=len(documents))
        return {"hop_documents": [*state["hop_documents"], documents]}

    async def answer_hop(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Note what the passages say to the sub-question; the note is for the next steps, not for the user."""
        question, documents = state["sub_question"], state["hop_documents"][-1]
        written = await self.answering.answer(
            question, documents, state["language"], instructions=context.answer_instructions, stream=False
        )
        text = await self.answering.allowed_part(renumbered(written["answer"], {}))
        text = " ".join(text.split())[:MAX_NOTED]
        return {"hops": [*state["hops"], Hop(question=question, answer=text)]}

    async def conclude(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Answer from the passages of all steps; what was hop_history on the way is no source."""
        documents = interleaved(state["hop_documents"])
        update = await self.answering.answer(
            state["search_query"],
            documents,
            state["language"],
            name="answer_from_hops",
            instructions=context.answer_from_hops_instructions,
            more={"history": hop_history(state["hops"])},
        )
        return {**update, "documents": documents, "hop_documents": []}


def hop_history(hops: list[Hop], max_chars: int | None = MAX_HISTORY) -> Markup:
    """Sub-questions and their answers, rendered as a conversation for a prompt."""
    turns = []
    for hop in hops:
        language = "zh" if any("\u3400" <= char <= "\u9fff" for char in hop["question"]) else "en"
        turns += [("user", hop["question"]), ("assistant", hop["answer"] or DECLINED[language])]
    return render_history(turns, max_chars=max_chars) if turns else Markup("")


def interleaved(found: list[list[Document]]) -> list[Document]:
    """The best passage of each step, then the second of each, and so on; each passage once.

    So every step is represented, however little of it all fits into a prompt.

    Example:
        >>> a, b, c = Document("a"), Document("b"), Document("c")
        >>> [document.page_content for document in interleaved([[a, b], [c, a]])]
        ['a', 'c', 'b']
    """
    kept: dict[str, Document] = {}
    for document in chain.from_iterable(zip_longest(*found)):
        if document is not None:
            kept.setdefault(document_key(document), document)
    return list(kept.values())
