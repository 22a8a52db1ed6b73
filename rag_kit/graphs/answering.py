"""The last steps of every graph: an answer from passages alone, its citations checked, guards asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.citing import CitationJudge, cited
from rag_kit.graphs.context import RagContext
from rag_kit.graphs.guards import Guards, Refusal
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.running import report
from rag_kit.graphs.state import Turn, Update
from rag_kit.graphs.steps import write
from rag_kit.models.chat import is_extractive
from rag_kit.prompts import render_passages
from rag_kit.text.citations.decline import DECLINED, is_declined


class Answering:
    """Bodies of the nodes that answer and cite, the same in every graph.

    Args:
        llm: The chat model.
        prompts: The graph's prompts; ``answer`` is among them.
        guards: What sees the answer before it leaves.
        max_passage_chars: Characters of passages that go into the prompt.
    """

    def __init__(
        self, llm: BaseChatModel, prompts: GraphPrompts, guards: Guards, max_passage_chars: int
    ) -> None:
        if max_passage_chars < 1:
            raise InvalidInputError(
                f"max_passage_chars is {max_passage_chars}; give a whole number of 1 or more."
            )
        self.llm = llm
        self.prompts = prompts
        self.guards = guards
        self.max_passage_chars = max_passage_chars
        self.judge = CitationJudge(llm, prompts.folder)

    async def answer(
        self,
        question: str,
        documents: Sequence[Document],
        language: str,
        *,
        instructions: str | None = None,
        stream: bool = True,
        name: str = "answer",
        more: Mapping[str, Any] | None = None,
    ) -> Update:
        """Answer from the passages; with none the model is not asked and the answer declines.

        Args:
            question: The question, complete in itself.
            documents: The passages, best first.
            language: ``"en"`` or ``"zh"``.
            instructions: In place of the prompt file's own.
            stream: Whether tokens are streamed; they never are where a guard must see the answer first.
            name: The prompt to answer with; it takes ``question`` and ``passages``.
            more: Further values that this prompt takes.

        Returns:
            ``answer``, and ``notes`` where passages were left out.
        """
        if not documents:
            return {"answer": DECLINED[language]}
        fitted = fitting(documents, self.max_passage_chars)
        notes = []
        if left_out := len(documents) - len(fitted):
            notes.append(
                f"answer: {left_out} passages did not fit into max_passage_chars={self.max_passage_chars}"
            )
        values = {
            "question": question,
            "passages": render_passages(fitted, max_chars=self.max_passage_chars),
            **(more or {}),
        }
        prompt = self.prompts.pick(name, language, instructions)
        text = await write(self.llm, prompt, values, stream=stream and not self.guards.answer)
        return {"answer": text.strip(), "notes": notes}

    async def allowed_part(self, answer: str) -> str:
        """The answer to a part of a question after the guards; "" if it declines, or they refuse it."""
        if is_declined(answer):
            return ""
        verdict = await self.guards.check_answer(answer)
        return "" if isinstance(verdict, Refusal) else verdict

    async def cite(self, state: Mapping[str, Any], context: RagContext) -> Update:
        """Check every citation against its passage, let the guards see the answer, remember the turn.

        Returns:
            ``citations``, ``uncited``, ``status``, ``history``, ``notes``, and ``answer`` where a guard changed it.
        """
        question, answer, language = state["asked"], state["answer"], state["language"]
        update: Update = {"notes": []}
        verdict = await self.guards.check_answer(answer)
        if isinstance(verdict, Refusal):
            return refused(question, verdict)
        if verdict != answer:
            update["answer"] = answer = verdict
            update["notes"] = ["answer: changed by a guard"]
        fitted = fitting(state["documents"], self.max_passage_chars)
        if context.citation_check == "model" and not is_extractive(self.llm):
            found = await self.judge.cited(question, answer, fitted, language)
            update["notes"] += found.pop("notes", [])
        else:
            found = cited(answer, fitted, language=language)
        update.update(found)
        report("cited", status=update["status"])
        return {**update, "history": [Turn(question=question, answer=answer)]}


def refused(question: str, refusal: Refusal) -> Update:
    """The state of a run that a guard ended: its message is the answer, nothing that was found leaves.

    Search query and notes of the run so far may hold what the guard refuses, so they go too.
    """
    report("refused", reason=refusal.reason)
    return {
        "answer": refusal.message,
        "status": "refused",
        "documents": [],
        "citations": [],
        "uncited": [],
        "asked": "",
        "search_query": "",
        "notes": Overwrite([f"refused by a guard: {refusal.reason or 'no reason given'}"]),
        "history": [Turn(question=question, answer=refusal.message)],
    }


def fitting(documents: Sequence[Document], max_chars: int) -> list[Document]:
    """The longest run of leading documents that fits, and at least the first (which is cut when rendered)."""
    kept: list[Document] = []
    used = 0
    for document in documents:
        used += len(document.page_content)
        if kept and used > max_chars:
            break
        kept.append(document)
    return kept


def check_parts(retriever: Any, llm: Any) -> None:
    """Refuse parts of the wrong kind when a graph is built, and not when it is first asked.

    Raises:
        InvalidInputError: The retriever or the model is something else.
    """
    if not isinstance(retriever, Runnable) or isinstance(retriever, BaseChatModel):
        raise InvalidInputError(
            f"retriever is a {type(retriever).__name__}; give a LangChain retriever, "
            "e.g. BM25Retriever.from_texts(...)."
        )
    if not isinstance(llm, Runnable) or isinstance(llm, BaseRetriever):
        raise InvalidInputError(
            f"llm is a {type(llm).__name__}; give a LangChain chat model, e.g. chat_model('extractive')."
        )
