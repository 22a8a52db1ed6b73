"""Self-RAG as a loop: grade the passages, answer, grade the answer's support and its use, try again within bounds."""

from __future__ import annotations

from typing import Any

from langgraph.types import Command

from rag_kit.graphs.evaluators.base import Evaluator, judge_passages, note_ungraded
from rag_kit.graphs.running import report
from rag_kit.graphs.self_rag.shared import (
    Draft,
    SelfRagContext,
    SelfRagNodes,
    SelfRagState,
    none_if_unreadable,
    source_of,
)
from rag_kit.graphs.state import Update, check_answer
from rag_kit.text import fold
from rag_kit.text.citations.decline import DECLINED, is_declined


class Reflect(SelfRagNodes):
    """The nodes of mode ``reflect``."""

    files = ("condense", "answer", "answer_again", "grade_support", "grade_usefulness", "rewrite_query")
    mode = "reflect"

    def __init__(self, retriever: Any, llm: Any, options: Any, *, evaluator: Evaluator) -> None:
        super().__init__(retriever, llm, options)
        self.evaluator = evaluator

    async def retrieve(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Search with the present query: the question, or what it was rewritten to."""
        number, query = state["round"] + 1, state["search_query"]
        update = {
            "passages": await self.search(query, context, round=number),
            "documents": [],
            "round": number,
            "generations": 0,
            "tried": [*state["tried"], query],
        }
        return Command(update=update, goto="grade_documents")

    async def grade_documents(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Keep the passages that help, as the evaluator judges; what it could not judge is kept."""
        passages, judge = state["passages"], self.evaluator
        gradings = await judge_passages(
            judge, state["asked"], passages, state["language"], instructions=context.grade_instructions
        )
        # one that is not selective decides on all of them together
        enough = judge.thresholds.lower if judge.selective else -1.0
        useless = judge.thresholds.action([grading.score for grading in gradings]) == "incorrect"
        good = [not useless and grading.score >= enough for grading in gradings]
        relevant_documents = [document for document, relevant in zip(passages, good, strict=True) if relevant]
        places = [{"passage": at, "source": source_of(document)} for at, document in enumerate(passages)]
        trace = [
            _trace_entry(state, "relevance", relevant, grading.reason, **place)
            for relevant, grading, place in zip(good, gradings, places, strict=True)
        ]
        report("graded", round=state["round"], relevant=len(relevant_documents), passages=len(passages))
        notes = note_ungraded("grade_documents", gradings)
        update = {"documents": relevant_documents, "trace": trace, "notes": notes}
        follows = "generate" if relevant_documents else self._next_try(state, context)
        return Command(update=update, goto=follows)

    async def rewrite_query(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Write another query for the same question; the question itself stays."""
        values = {"question": state["asked"], "queries": "\n".join(state["tried"])}
        query = await self.ask("rewrite_query", state, context, values, none_if_unreadable)
        if query is None or fold(query.query) in map(fold, state["tried"]):
            why = "no usable query" if query is None else "a query that was tried already"
            return Command(update={"notes": [f"rewrite_query: the model gave {why}"]}, goto="finish")
        report("rewritten", search_query=query.query)
        return Command(update={"search_query": query.query}, goto="retrieve")

    async def generate(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Answer from the passages that were kept; after a rejected answer, without what had no support."""
        documents, more = state["documents"], {}
        if state["generations"]:
            last = state["drafts"][-1]
            more = {"name": "answer_again", "answer": last["answer"], "reason": last["reason"]}
        written = await self.answer_from(state["asked"], documents, state, context, stream=False, **more)
        text, number = written["answer"], state["generations"] + 1
        report("generated", round=state["round"], generation=number)
        update = {"generations": number, "notes": [] if more else written.get("notes", [])}
        if not is_declined(text):
            draft = Draft(answer=text, supported=None, useful=None, reason="", documents=documents)
            return Command(update={**update, "drafts": [*state["drafts"], draft]}, goto="grade_support")
        draft = Draft(answer=text, supported=True, useful=False, reason="it declines", documents=documents)
        update |= {"drafts": [*state["drafts"], draft]}
        update["trace"] = [_trace_entry(state, "usefulness", False, "it declines", answer=text)]
        return Command(update=update, goto=self._next_try(state, context))

    async def grade_support(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Ask whether the passages support all of the answer; if the model gives no verdict, its citations decide."""
        draft = state["drafts"][-1]
        passages = self.render_fitting_passages(draft["documents"])
        values = {"question": state["asked"], "passages": passages, "answer": draft["answer"]}
        grade = await self.ask("grade_support", state, context, values, none_if_unreadable)
        notes: list[str] = []
        if grade is None:
            status = check_answer(draft["answer"], draft["documents"], language=state["language"])["status"]
            good, reason = status in ("grounded", "undecided"), f"by its citations the answer is {status}"
            notes = ["grade_support: no usable verdict; the check of the citations decided"]
        else:
            good, reason = grade.relevant, grade.reason
        may_repeat = state["generations"] < context.max_generations
        again = "generate" if may_repeat else self._next_try(state, context)
        report("graded_support", round=state["round"], supported=good)
        update = {**_grade_update(state, "support", good, reason, supported=good), "notes": notes}
        return Command(update=update, goto="grade_usefulness" if good else again)

    async def grade_usefulness(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Whether the answer resolves the question; without a usable verdict it counts as useful."""
        values = {"question": state["asked"], "answer": state["drafts"][-1]["answer"]}
        grade = await self.ask("grade_usefulness", state, context, values, none_if_unreadable)
        good = grade is None or grade.relevant
        reason = "not graded" if grade is None else grade.reason
        notes = ["grade_usefulness: no usable verdict; the answer was kept"] if grade is None else []
        report("graded_usefulness", round=state["round"], useful=good)
        update = {**_grade_update(state, "usefulness", good, reason, useful=good), "notes": notes}
        return Command(update=update, goto="finish" if good else self._next_try(state, context))

    async def finish(self, state: SelfRagState, context: SelfRagContext) -> Update:
        """Hand over the best answer that was written; what has no support is flagged, or dropped when hard."""
        rank = {True: 0, None: 1, False: 2}  # None: not graded
        drafts = sorted(state["drafts"], key=lambda draft: (rank[draft["supported"]], rank[draft["useful"]]))
        best = drafts[0] if drafts else None
        if best is None or (best["supported"] is False and context.constraint == "hard"):
            why = "no passage was relevant"
            if best:
                why = "no answer was supported by the passages (hard constraint)"
            documents, notes = state["documents"] or state["passages"], [f"finish: {why}"]
            return {"answer": DECLINED[state["language"]], "documents": documents, "notes": notes}
        notes = []
        if best["supported"] is False:
            notes = [f"finish: the best answer is not supported: {best['reason']}"]
        elif best["supported"] is None:
            notes = ["finish: the answer was not graded"]
        elif best["useful"] is False:
            notes = [f"finish: the best answer may not resolve the question: {best['reason']}"]
        if not self.guards.answer:
            report("segment", text=best["answer"])
        update = {"answer": best["answer"], "documents": best["documents"], "notes": notes}
        return {**update, "unsupported": best["supported"] is False}

    def _next_try(self, state: SelfRagState, context: SelfRagContext) -> str:
        return "rewrite_query" if state["round"] < context.max_rounds else "finish"


def _grade_update(state: SelfRagState, of: str, good: bool, reason: str, **verdict: bool) -> Update:
    """The last draft with a verdict, and the verdict's entry of the trace."""
    draft = {**state["drafts"][-1], **verdict, "reason": reason}
    entry = _trace_entry(state, of, good, reason, answer=draft["answer"])
    return {"drafts": [*state["drafts"][:-1], draft], "trace": [entry]}


def _trace_entry(state: SelfRagState, of: str, good: bool, reason: str, **more: Any) -> dict[str, Any]:
    """An entry of the trace: what was judged, in which round, and how."""
    place = {"round": state["round"], "generation": state["generations"]}
    return {**place, "verdict": of, "kept": good, "reason": reason, **more}
