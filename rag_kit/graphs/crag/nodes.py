"""The nodes of the CRAG graph: judge what was found, refine it, look outside, or both; then answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langgraph.types import Overwrite, interrupt

from rag_kit.concurrency.notes import write_note
from rag_kit.documents.provenance import peek_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.crag.state import CragContext, CragState, PassageGrading, Strip
from rag_kit.graphs.crag.strips import DEFAULT_STRIPS, MAX_JUDGED, REFINED, select_strips
from rag_kit.graphs.crag.web import WebSearch, one_line, read_approval
from rag_kit.graphs.evaluators.base import Grading, Thresholds, judge_passages, note_ungraded
from rag_kit.graphs.guards import Refusal
from rag_kit.graphs.nodes import RagNodes
from rag_kit.graphs.running import can_wait, report
from rag_kit.graphs.state import Update, digest_of, page_of
from rag_kit.graphs.wiring import Route

_MAX_SHOWN = 80  # characters of a strip in the state; its passage holds the whole
# fixed words: a grader's reason may quote a passage, and notes outlive a refusal
_REASONS = {
    "correct": "correct: at least one passage is above {upper:.2f}; the passages are refined",
    "incorrect": "incorrect: all passages are below {lower:.2f}; they are put aside",
    "ambiguous": "ambiguous: no passage is above {upper:.2f}, not all are below {lower:.2f}; "
    "passages are refined and other sources looked for",
}
_WHY_WEB = {
    "incorrect": "Nothing that was retrieved fits the question.",
    "ambiguous": "What was retrieved may not be enough to answer the question.",
}


class CragNodes(RagNodes):
    """The nodes of CRAG. Nothing leaves for the outside unless there is a web search."""

    files = ("condense", "answer", "web_query")
    state = CragState
    grades = True

    def __init__(
        self, retriever: Any, llm: Any, options: Any, *, evaluator: Any, web: WebSearch | None
    ) -> None:
        super().__init__(retriever, llm, options, evaluator=evaluator)
        self.web = web

    async def grade(self, state: CragState, context: CragContext) -> Update:
        """Judge all passages at once, and choose the paper's action by the thresholds."""
        passages = state["documents"]
        question, instructions = state["search_query"], context.grade_instructions
        gradings = await judge_passages(
            self.evaluator(context), question, passages, state["language"], instructions=instructions
        )
        limits = self._thresholds(context)
        scores = [grading.score for grading in gradings]
        action = limits.action(scores)
        report("graded", action=action, scores=scores, evaluator=self.evaluator(context).name)
        reason = _REASONS[action].format(lower=limits.lower, upper=limits.upper)
        if not gradings:
            reason = "incorrect: the retriever found nothing"
        records = [
            PassageGrading(
                score=grading.score,
                reason=grading.reason,
                file=passage.metadata.get("file"),
                page=page_of(passage.metadata),
                digest=digest_of(passage),
            )
            for grading, passage in zip(gradings, passages, strict=True)
        ]
        notes = [f"grade: {reason}", *note_ungraded("grade", gradings)]
        return {"gradings": records, "action": action, "notes": notes}

    async def refine(self, state: CragState, context: CragContext) -> Update:
        """Keep the strips of passages that help, in the order of the passages."""
        return await self._select_strips(state, context, inside=True)

    async def select_external(self, state: CragState, context: CragContext) -> Update:
        """Keep the strips of web results that help, by the evaluator and thresholds for passages."""
        return await self._select_strips(state, context, inside=False)

    async def _select_strips(self, state: CragState, context: CragContext, *, inside: bool) -> Update:
        """Grade strips of passages or of web results by the run's settings; note how many are kept."""
        key = "documents" if inside else "web_documents"
        passages = state[key]  # type: ignore[literal-required]
        may_drop = self.evaluator(context).selective or not inside
        gradings = {
            item.get("digest", ""): Grading(item["score"], item["reason"]) for item in state["gradings"]
        }
        selection = await select_strips(
            self.evaluator(context),
            state["search_query"],
            passages,
            state["language"],
            origin="retrieved" if inside else "web",
            size=context.strip_sentences,
            max_strips=context.max_strips or (DEFAULT_STRIPS if may_drop else MAX_JUDGED),
            threshold=self._min_confidence(context, inside=inside),
            known_gradings=gradings if inside else {},
            keep_one=inside,
            instructions=context.grade_instructions,
        )
        kept_count = sum(strip["kept"] for strip in selection.strips)
        dropped_count = len(selection.strips) - kept_count
        report("refined" if inside else "selected", kept=kept_count, dropped=dropped_count)
        node, of = ("refine", "strips") if inside else ("select_external", "strips of the web")
        notes = [f"{node}: {kept_count} of {len(selection.strips)} {of} kept"] if inside or passages else []
        if selection.rescued:
            notes.append(f"{node}: no strip reached the threshold; the best one is kept")
        if selection.left_out:
            notes.append(f"{node}: {selection.left_out} strips beyond {MAX_JUDGED} were not judged")
        strips = [Strip({**strip, "text": _shorten(strip["text"])}) for strip in selection.strips]
        return {key: selection.documents, "strips": strips, "notes": notes}

    async def rewrite_query(self, state: CragState, context: CragContext) -> Update:
        """Rewrite the question as keywords, or note that there is no web search; drop passages that do not fit."""
        question = state["search_query"]
        update: Update = {"documents": []} if state["action"] == "incorrect" else {}
        if self.web is None:
            used = "answered from what was retrieved" if state["action"] == "ambiguous" else "nothing to use"
            report("no_web_search")
            note = f"web: could not look outside, no web search was given; {used}"
            return {**update, "notes": [note]}
        reply = await self.ask("web_query", state, context, {"question": question})
        query = one_line(question if reply is None else " ".join(reply.keywords))
        note = "web: the model gave no usable keywords; searched for the question itself"
        report("rewritten", web_query=query)
        asks = {"choices": {"rewrite_query": "approve" if context.approve_web else "web_search"}}
        return {**update, **asks, "web_query": query, "notes": [note] if reply is None else []}

    async def approve(self, state: CragState, context: CragContext) -> Update:
        """Ask a person whether the query may leave, if the run wants it; resume with True, False or another query."""
        query = state["web_query"]
        if not context.approve_web:
            return {}
        if not can_wait():
            # a run that cannot wait would end here without an answer, and nobody could let it go on
            why = "a person's approval was asked for, and without a checkpointer nobody can be waited for"
            return _skip_search(why)
        reply = interrupt({"query": query, "reason": _WHY_WEB[state["action"] or "ambiguous"]})
        edited, why = read_approval(reply)
        if edited is None:
            return _skip_search(why)
        if edited:
            verdict = await self.guards.check_question(edited)
            if isinstance(verdict, Refusal):
                return _skip_search(f"a guard refused the query: {verdict.reason or 'no reason given'}")
            query = one_line(verdict)
            if not query:
                return _skip_search("nothing is left of the query")
        report("web_approved", web_query=query)
        return {"web_query": query}

    async def web_search(self, state: CragState, context: CragContext) -> Update:
        """Search the web within bounds; a failure is noted."""
        query = state["web_query"]
        if self.web is None:  # a query that somebody wrote into the state
            return {"web_documents": [], "notes": ["web: could not look outside, no web search was given"]}
        results, why = await self.web.find(
            query,
            max_results=context.web_results,
            max_chars=context.web_result_chars,
            timeout=context.web_timeout,
        )
        allowed = await self.visible_passages(results)
        report("searched_web", web_query=query, results=len(allowed), failed=why is not None)
        if why is not None:
            write_note(f"web: {why}", unsearched=True)
            return {"web_documents": []}
        note = f"web: searched with {self.web.name} for {query!r}, {len(allowed)} results"
        return {"web_documents": allowed, "notes": [note]}

    async def generate(self, state: CragState, context: CragContext) -> Update:
        """Answer from what the action left: the refined passages, the selected ones of the web, or both."""
        documents, external = state["documents"], state["web_documents"]
        update: Update = {}
        if external and self._is_kept_for_want_of_better(documents, context):
            documents = []
            update["strips"] = Overwrite(
                [{**strip, "kept": strip["kept"] and strip["origin"] == "web"} for strip in state["strips"]]
            )
        documents = [*documents, *external]
        answer = await self.answer_from(state["search_query"], documents, state, context)
        return {**update, **answer, "documents": documents, "web_documents": []}

    def _is_kept_for_want_of_better(self, documents: Sequence[Document], context: CragContext) -> bool:
        """Tell whether the passages are only the best strip, kept below the least confidence."""
        last = [(peek_provenance(document).get("stages") or [{}])[-1] for document in documents]
        least = self._min_confidence(context, inside=True)
        return all(stage.get("stage") == REFINED and stage["score"] < least for stage in last)

    def _thresholds(self, context: CragContext) -> Thresholds:
        """Return the run's thresholds, else the evaluator's; one set beyond the other moves it along."""
        fitted = self.evaluator(context).thresholds
        lower = fitted.lower if context.lower is None else context.lower
        upper = fitted.upper if context.upper is None else context.upper
        if lower > upper:
            lower = upper = lower if context.upper is None else upper
        return Thresholds(lower, upper)

    def _min_confidence(self, context: CragContext, *, inside: bool) -> float:
        """Return the least confidence of a strip that is kept: as set, else the lower threshold of passages."""
        if context.strip_threshold is not None:
            return context.strip_threshold
        # -1 keeps all strips of the index, where the evaluator's confidence is too weak to drop some
        return -1.0 if inside and not self.evaluator(context).selective else self._thresholds(context).lower


def nodes_for_action(state: Mapping[str, Any]) -> list[str]:
    """Return the nodes that follow the action."""
    action = state.get("action")
    if not isinstance(action, str) or action not in _REASONS:
        raise InvalidInputError(
            f"the node 'grade' gave the action {action!r}; it must give 'correct', 'incorrect' or 'ambiguous'."
        )
    follow = {"refine": ("correct", "ambiguous"), "rewrite_query": ("incorrect", "ambiguous")}
    return [node for node, actions in follow.items() if action in actions]


def to_the_web(following: str | Route) -> Route:
    """Make the route to a node if there is a query for the web, or else to the answer."""

    def route(state: Mapping[str, Any]) -> str | Sequence[str]:
        if not state.get("web_query"):
            return "generate"
        return following if isinstance(following, str) else following(state)

    return route


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def _skip_search(why: str) -> Update:
    report("web_refused")
    return {"web_query": "", "notes": [f"web: not searched, {why}"]}
