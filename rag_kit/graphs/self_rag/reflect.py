"""Self-RAG as a loop: grade the passages, answer, grade the answer's support and its use, try again within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.types import Command

from rag_kit.errors import BudgetExceededError
from rag_kit.graphs.answering import Answering, fitting
from rag_kit.graphs.citing import cited
from rag_kit.graphs.evaluators.base import Evaluator, judged_by, unjudged
from rag_kit.graphs.running import report
from rag_kit.graphs.self_rag.candidates import unreadable
from rag_kit.graphs.self_rag.context import SelfRagContext
from rag_kit.graphs.self_rag.opening import cap_of
from rag_kit.graphs.self_rag.state import Draft, SelfRagState
from rag_kit.graphs.state import Update
from rag_kit.graphs.steps import ask, fetch, write
from rag_kit.prompts import PromptTemplate, render_passages
from rag_kit.text.citations.decline import DECLINED, is_declined

PROMPTS = (
    "answer",
    "answer_again",
    "grade_support",
    "grade_usefulness",
    "rewrite_query",
)


class Reflect:
    """The nodes of mode ``reflect``; `Ends` has the first and the last one.

    Args:
        retriever: Where passages come from.
        answering: Model, prompts and guards.
        evaluator: What grades passages.
    """

    def __init__(self, retriever: BaseRetriever, answering: Answering, evaluator: Evaluator) -> None:
        self.retriever = retriever
        self.evaluator = evaluator
        self.answering = answering
        self.llm = answering.llm
        self.guards = answering.guards

    async def retrieve(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Search with the present query: the question, or what it was rewritten to."""
        found = await fetch(self.retriever, state["search_query"], k=context.k, filter=context.filter)
        passages = await self.guards.allowed(found)
        number = state["round"] + 1
        report("retrieved", round=number, passages=len(passages))
        update = {
            "passages": passages,
            "documents": [],
            "round": number,
            "generations": 0,
            "tried": [*state["tried"], state["search_query"]],
        }
        return Command(update=update, goto="grade_documents")

    async def grade_documents(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Keep the passages that help, as the evaluator judges; what it could not judge is kept."""
        passages = state["passages"]
        gradings = await judged_by(
            self.evaluator,
            state["asked"],
            passages,
            state["language"],
            instructions=context.grade_instructions,
        )
        limits = self.evaluator.thresholds
        # one that is not selective decides on all of them together
        enough = limits.lower if self.evaluator.selective else -1.0
        useless = limits.action([grading.score for grading in gradings]) == "incorrect"
        kept: list[Document] = []
        trace: list[dict[str, Any]] = []
        for number, (document, grading) in enumerate(zip(passages, gradings, strict=True)):
            relevant = not useless and grading.score >= enough
            if relevant:
                kept.append(document)
            trace.append(_verdict(state, "relevance", relevant, grading.reason, passage=number))
        report("graded", round=state["round"], relevant=len(kept), passages=len(passages))
        update = {"documents": kept, "trace": trace, "notes": unjudged("grade_documents", gradings)}
        if kept:
            return Command(update=update, goto="generate")
        return Command(update=update, goto=self._again(state, context))

    async def rewrite_query(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Write another query for the same question; the question itself stays."""
        prompt = self._prompt("rewrite_query", state, context)
        values = {"question": state["asked"], "queries": "\n".join(state["tried"])}
        query = await ask(self.llm, prompt, values, fallback=unreadable)
        if query is None or _same(query.query) in map(_same, state["tried"]):
            why = "no usable query" if query is None else "a query that was tried already"
            return Command(update={"notes": [f"rewrite_query: the model gave {why}"]}, goto="finish")
        report("rewritten", search_query=query.query)
        return Command(update={"search_query": query.query}, goto="retrieve")

    async def generate(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Answer from the passages that were kept; after a rejected answer, without what had no support."""
        documents, last = state["documents"], state["drafts"][-1] if state["generations"] else None
        notes: list[str] = []
        if last is None:
            update = await self.answering.answer(
                state["asked"],
                documents,
                state["language"],
                instructions=context.answer_instructions,
                stream=False,
            )
            text, notes = update["answer"], update.get("notes", [])
        else:
            values = {
                "question": state["asked"],
                "passages": self._shown(documents),
                "answer": last["answer"],
                "reason": last["reason"],
            }
            prompt = self._prompt("answer_again", state, context)
            text = (await write(self.llm, prompt, values, stream=False)).strip()
        draft = Draft(answer=text, supported=None, useful=None, reason="", documents=documents)
        report("generated", round=state["round"], generation=state["generations"] + 1)
        update = {
            "drafts": [*state["drafts"], draft],
            "generations": state["generations"] + 1,
            "notes": notes,
        }
        if not is_declined(text):
            return Command(update=update, goto="grade_support")
        update["drafts"][-1] = Draft(**{**draft, "supported": True, "useful": False, "reason": "it declines"})
        update["trace"] = [_verdict(state, "usefulness", False, "it declines", answer=text)]
        return Command(update=update, goto=self._again(state, context))

    async def grade_support(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Whether the passages support all of the answer; without a usable verdict, what its citations say."""
        draft = state["drafts"][-1]
        prompt = self._prompt("grade_support", state, context)
        values = {
            "question": state["asked"],
            "passages": self._shown(draft["documents"]),
            "answer": draft["answer"],
        }
        grade = await ask(self.llm, prompt, values, fallback=unreadable)
        notes: list[str] = []
        if grade is None:
            status = cited(draft["answer"], draft["documents"], language=state["language"])["status"]
            good, reason = status in ("grounded", "undecided"), f"by its citations the answer is {status}"
            notes.append("grade_support: no usable verdict; the check of the citations decided")
        else:
            good, reason = grade.relevant, grade.reason
        update: Update = {
            "drafts": [*state["drafts"][:-1], {**draft, "supported": good, "reason": reason}],
            "trace": [_verdict(state, "support", good, reason, answer=draft["answer"])],
            "notes": notes,
        }
        report("graded_support", round=state["round"], supported=good)
        if good:
            return Command(update=update, goto="grade_usefulness")
        if state["generations"] < context.max_generations:
            return Command(update=update, goto="generate")
        return Command(update=update, goto=self._again(state, context))

    async def grade_usefulness(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Whether the answer resolves the question; without a usable verdict it counts as useful."""
        draft = state["drafts"][-1]
        prompt = self._prompt("grade_usefulness", state, context)
        values = {"question": state["asked"], "answer": draft["answer"]}
        grade = await ask(self.llm, prompt, values, fallback=unreadable)
        good = grade is None or grade.relevant
        reason = "not graded" if grade is None else grade.reason
        update: Update = {
            "drafts": [*state["drafts"][:-1], {**draft, "useful": good, "reason": reason}],
            "trace": [_verdict(state, "usefulness", good, reason, answer=draft["answer"])],
            "notes": ["grade_usefulness: no usable verdict; the answer was kept"] if grade is None else [],
        }
        report("graded_usefulness", round=state["round"], useful=good)
        return Command(update=update, goto="finish" if good else self._again(state, context))

    async def finish(self, state: SelfRagState, context: SelfRagContext) -> Update:
        """Hand over the best answer that was written; what has no support is flagged, or dropped when hard."""
        best = max(state["drafts"], key=_worth, default=None)  # the first of the best
        notes: list[str] = []
        if best is not None and best["supported"] is False and context.constraint == "hard":
            notes.append("finish: no answer was supported by the passages (hard constraint)")
            best = None
        elif best is None:
            notes.append("finish: no passage was relevant")
        if best is None:
            return {
                "answer": DECLINED[state["language"]],
                "documents": state["documents"] or state["passages"],
                "notes": notes,
            }
        if best["supported"] is False:
            notes.append(f"finish: the best answer is not supported: {best['reason']}")
        elif best["supported"] is None:
            notes.append("finish: the answer was not graded")
        elif best["useful"] is False:
            notes.append(f"finish: the best answer may not resolve the question: {best['reason']}")
        if not self.guards.answer:
            report("segment", text=best["answer"])
        return {
            "answer": best["answer"],
            "documents": best["documents"],
            "unsupported": best["supported"] is False,
            "notes": notes,
        }

    def at_cap(
        self, state: SelfRagState, context: SelfRagContext, error: BudgetExceededError
    ) -> Command[Any] | None:
        """Finish with the best so far, where there is something."""
        if not state.get("drafts"):
            return None
        note = f"finished early: {cap_of(error, context)} was reached; the answer is the best so far"
        return Command(update={"notes": [note]}, goto="finish")

    def _again(self, state: SelfRagState, context: SelfRagContext) -> str:
        return "rewrite_query" if state["round"] < context.max_rounds else "finish"

    def _prompt(self, name: str, state: SelfRagState, context: SelfRagContext) -> PromptTemplate:
        return self.answering.prompts.pick(name, state["language"], getattr(context, f"{name}_instructions"))

    def _shown(self, documents: Sequence[Document]) -> str:
        limit = self.answering.max_passage_chars
        return render_passages(fitting(documents, limit), max_chars=limit)


def _worth(draft: Draft) -> tuple[int, int]:
    """Supported and useful, supported, not graded, not supported."""
    support = {True: 2, None: 1, False: 0}[draft["supported"]]
    return support, {True: 2, None: 1, False: 0}[draft["useful"]]


def _same(query: str) -> str:
    return " ".join(query.casefold().split())


def _verdict(
    state: SelfRagState,
    of: str,
    good: bool,
    reason: str,
    *,
    passage: int | None = None,
    answer: str | None = None,
) -> dict[str, Any]:
    """An entry of the trace: what was judged, in which round, and how."""
    found: dict[str, Any] = {
        "round": state["round"],
        "generation": state["generations"],
        "verdict": of,
        "kept": good,
        "reason": reason,
    }
    if passage is not None:
        metadata = state["passages"][passage].metadata
        source = metadata.get("file") or metadata.get("source")
        found |= {"passage": passage, "source": None if source is None else str(source)}
    if answer is not None:
        found["answer"] = answer
    return found
