"""Self-RAG as a loop: grade the passages, answer, grade the answer's support and its use, try again within bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from typing_extensions import TypedDict

from rag_kit.graphs.evaluators.base import note_ungraded
from rag_kit.graphs.running import report
from rag_kit.graphs.self_rag.shared import SelfRagContext, SelfRagNodes, SelfRagState, none_if_unreadable
from rag_kit.graphs.state import Update, check_answer, question_of, source_of
from rag_kit.text import fold
from rag_kit.text.citations.decline import DECLINED, is_declined


class Draft(TypedDict):
    """An answer of the loop and what the graders said of it; ``None`` where they were not asked.

    ``documents`` are the passages that it was written from, if those are no longer the state's.
    """

    answer: str
    cut_off: str
    supported: bool | None
    useful: bool | None
    reason: str
    documents: list[Document]


class ReflectState(SelfRagState, total=False):
    """State of mode ``reflect``; ``documents`` are the passages of this round that are relevant."""

    round: int
    generations: int
    tried: list[str]
    drafts: list[Draft]


class Reflect(SelfRagNodes):
    """Nodes of mode ``reflect``; each reads the state and returns an update of it."""

    files = ("condense", "answer", "answer_again", "grade_support", "grade_usefulness", "rewrite_query")
    mode = "reflect"
    grades = True
    state = ReflectState

    async def retrieve(self, state: ReflectState, context: SelfRagContext) -> Update:
        """Search with the present query: the question, or its last rewriting."""
        number, query = state["round"] + 1, state["search_query"]
        drafts = list(state["drafts"])
        best = _best_draft(drafts)
        if best is not None and not best["documents"] and not is_declined(best["answer"]):
            # it keeps the passages that it was written from: those of the state are about to be replaced
            drafts[drafts.index(best)] = Draft({**best, "documents": state["documents"]})
        return {
            "documents": await self.search(query, context, round=number),
            "round": number,
            "generations": 0,
            "tried": [*state["tried"], query],
            "drafts": drafts,
        }

    async def grade_documents(self, state: ReflectState, context: SelfRagContext) -> Update:
        """Keep the passages that the evaluator finds relevant, and those it could not judge."""
        passages, evaluator = state["documents"], self.evaluator(context)
        gradings = await self.judge(passages, state, context)
        all_useless = evaluator.thresholds.action([grading.score for grading in gradings]) == "incorrect"
        relevant_documents, trace = [], []
        for number, (document, grading) in enumerate(zip(passages, gradings, strict=True)):
            # an evaluator that is not selective decides on all of them together
            is_good = not evaluator.selective or grading.score >= evaluator.thresholds.lower
            is_relevant = is_good and not all_useless
            if is_relevant:
                relevant_documents.append(document)
            source = {"passage": number, "source": source_of(document)}
            trace.append(_trace_entry(state, "relevance", is_relevant, grading.reason, **source))
        report("graded", round=state["round"], relevant=len(relevant_documents), passages=len(passages))
        notes = note_ungraded("grade_documents", gradings)
        update = {"documents": relevant_documents, "trace": trace, "notes": notes}
        # the next node if no passage is relevant; if one is, the edge leads to `generate`
        return {**update, "choices": {"grade_documents": self._next_try(state, context)}}

    async def rewrite_query(self, state: ReflectState, context: SelfRagContext) -> Update:
        """Write another query for the same question; the question itself stays."""
        values = {"question": question_of(state), "queries": "\n".join(state["tried"])}
        query = await self.ask("rewrite_query", state, context, values, none_if_unreadable)
        if query is None:
            return {"notes": ["rewrite_query: the model gave no usable query"]}
        if fold(query.query) in map(fold, state["tried"]):
            return {"notes": ["rewrite_query: the model gave a query that was tried already"]}
        report("rewritten", search_query=query.query)
        return {"search_query": query.query}

    async def generate(self, state: ReflectState, context: SelfRagContext) -> Update:
        """Answer from the passages kept; the model is shown a rejected answer, if there is one, and why it was."""
        rejected: dict[str, Any] = {}
        if state["generations"]:
            last = state["drafts"][-1]
            rejected = {"name": "answer_again", "answer": last["answer"], "reason": last["reason"]}
        written = await self.answer_from(question_of(state), state["documents"], state, context, **rejected)
        text, number = written["answer"], state["generations"] + 1
        report("generated", round=state["round"], generation=number)
        cut_off = written.get("cut_off", "")
        draft = Draft(answer=text, cut_off=cut_off, supported=None, useful=None, reason="", documents=[])
        trace, follows = [], "grade_support"
        if is_declined(text):
            draft.update({"supported": True, "useful": False, "reason": "it declines"})
            trace = [_trace_entry(state, "usefulness", False, "it declines", answer=text)]
            follows = self._next_try(state, context)
        return {
            "generations": number,
            "notes": [] if rejected else written.get("notes", []),  # noted with the first answer
            "drafts": [*state["drafts"], draft],
            "trace": trace,
            "choices": {"generate": follows},
        }

    async def grade_support(self, state: ReflectState, context: SelfRagContext) -> Update:
        """Ask whether the passages support all of the answer; without a verdict its citations decide."""
        draft = state["drafts"][-1]
        passages = self.render_fitting_passages(state["documents"])
        values = {"question": question_of(state), "passages": passages, "answer": draft["answer"]}
        grade = await self.ask("grade_support", state, context, values, none_if_unreadable)
        notes: list[str] = []
        if grade is None:
            status = check_answer(draft["answer"], state["documents"], language=state["language"])["status"]
            supported = status in ("grounded", "undecided")
            reason = f"by its citations the answer is {status}"
            notes = ["grade_support: no usable verdict; the check of the citations decided"]
        else:
            supported, reason = grade.relevant, grade.reason
        if supported:
            follows = "grade_usefulness"
        elif state["generations"] < context.max_generations:
            follows = "generate"
        else:
            follows = self._next_try(state, context)
        report("graded_support", round=state["round"], supported=supported)
        update = _grade_update(state, "support", supported, reason, supported=supported)
        return {**update, "notes": notes, "choices": {"grade_support": follows}}

    async def grade_usefulness(self, state: ReflectState, context: SelfRagContext) -> Update:
        """Ask whether the answer resolves the question; without a verdict it counts as useful."""
        values = {"question": question_of(state), "answer": state["drafts"][-1]["answer"]}
        grade = await self.ask("grade_usefulness", state, context, values, none_if_unreadable)
        useful = grade is None or grade.relevant
        reason = "not graded" if grade is None else grade.reason
        notes = ["grade_usefulness: no usable verdict; the answer was kept"] if grade is None else []
        report("graded_usefulness", round=state["round"], useful=useful)
        update = _grade_update(state, "usefulness", useful, reason, useful=useful)
        follows = "finish" if useful else self._next_try(state, context)
        return {**update, "notes": notes, "choices": {"grade_usefulness": follows}}

    async def finish(self, state: ReflectState, context: SelfRagContext) -> Update:
        """Return the best answer written; unsupported parts are flagged, or dropped if the run says so."""
        best, declined = _best_draft(state["drafts"]), DECLINED[state["language"]]
        if best is None:
            return {"answer": declined, "notes": ["finish: no passage was relevant"]}
        if best["supported"] is False and context.constraint == "hard":
            note = "finish: no answer was supported by the passages (hard constraint)"
            return {"answer": declined, "notes": [note]}
        notes = []
        if best["supported"] is False:
            notes = [f"finish: the best answer is not supported: {best['reason']}"]
        elif best["supported"] is None:
            notes = ["finish: the answer was not graded"]
        elif best["useful"] is False:
            notes = [f"finish: the best answer may not resolve the question: {best['reason']}"]
        if not self.guards.answer:
            report("segment", text=best["answer"])
        return {
            "answer": best["answer"],
            "cut_off": best.get("cut_off", ""),
            "documents": best["documents"] or state["documents"],
            "drafts": [Draft({**draft, "documents": []}) for draft in state["drafts"]],
            "notes": notes,
            "unsupported": best["supported"] is False,
        }

    def _next_try(self, state: ReflectState, context: SelfRagContext) -> str:
        return "rewrite_query" if state["round"] < context.max_rounds else "finish"


def another_query(state: Mapping[str, Any]) -> str:
    """Choose the next node: the search, unless its query was tried already."""
    tried = map(fold, state.get("tried") or [])
    return "finish" if fold(state.get("search_query") or "") in tried else "retrieve"


def _best_draft(drafts: Sequence[Draft]) -> Draft | None:
    """Return the draft that the graders rated best; of equals the first."""
    rank = {True: 0, None: 1, False: 2}  # None: not graded
    return min(drafts, key=lambda draft: (rank[draft["supported"]], rank[draft["useful"]]), default=None)


def _grade_update(state: ReflectState, quality: str, is_good: bool, reason: str, **verdict: bool) -> Update:
    """Make the update that adds a verdict on a quality (``"support"``) to the last draft and to the trace."""
    draft = {**state["drafts"][-1], **verdict, "reason": reason}
    entry = _trace_entry(state, quality, is_good, reason, answer=draft["answer"])
    return {"drafts": [*state["drafts"][:-1], draft], "trace": [entry]}


def _trace_entry(state: ReflectState, quality: str, kept: bool, reason: str, **more: Any) -> dict[str, Any]:
    """Make an entry of the trace: which quality was judged, in which round, and how."""
    progress = {"round": state["round"], "generation": state["generations"]}
    return {**progress, "verdict": quality, "kept": kept, "reason": reason, **more}
