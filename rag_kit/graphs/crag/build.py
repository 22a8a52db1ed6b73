"""The CRAG graph: its nodes, and how they are put together."""

from __future__ import annotations

from typing import Any, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langgraph.graph import END
from langgraph.types import Overwrite, interrupt

from rag_kit.concurrency.notes import write_note
from rag_kit.documents.display import cut
from rag_kit.documents.provenance import peek_provenance
from rag_kit.graphs.crag.state import CragContext, CragState, PassageGrading, Strip
from rag_kit.graphs.crag.strips import (
    DEFAULT_STRIPS,
    MAX_JUDGED,
    REFINED,
    cut_passages,
    cut_span,
    join_strips,
    keep_best,
    take_known_grades,
)
from rag_kit.graphs.crag.web import WebSearch, one_line, read_approval
from rag_kit.graphs.evaluators.base import Thresholds, note_ungraded
from rag_kit.graphs.guards import Refusal
from rag_kit.graphs.nodes import RagNodes
from rag_kit.graphs.running import can_wait, note_no_reply, report
from rag_kit.graphs.state import Update, digest_of, page_of, question_of
from rag_kit.graphs.wiring import READY, CompiledRag, GraphOptions, RagGraph, by_key, choice_of, if_set

_MAX_STRIP_CHARS = 80  # columns of a strip in the state; its passage holds the whole
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
        self.options += (web,)

    async def grade(self, state: CragState, context: CragContext) -> Update:
        """Judge all passages at once, and choose by the thresholds: ``correct``, ``incorrect`` or ``ambiguous``."""
        evaluator, passages = self.evaluator(context), state["documents"]
        gradings = await self.judge(passages, state, context)
        limits = self._thresholds(context)
        scores = [grading.score for grading in gradings]
        action = limits.action(scores)
        report("graded", action=action, scores=scores, evaluator=evaluator.name)
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
        """Select the strips that help, of the passages (``inside``) or of the web results; note how many are kept."""
        key, node, noun = "documents", "refine", "strips"
        if not inside:
            key, node, noun = "web_documents", "select_external", "strips of the web"
        evaluator, passages = self.evaluator(context), state[key]  # type: ignore[literal-required]
        all_strips = cut_passages(passages, context.strip_sentences, "retrieved" if inside else "web")
        strips, left_out_count = all_strips[:MAX_JUDGED], len(all_strips[MAX_JUDGED:])
        known = [*state["gradings"]] if inside else []
        if evaluator.selective:
            unjudged, max_strips = take_known_grades(strips, passages, known), DEFAULT_STRIPS
        else:  # it weighs strips against each other, so it judges all of them anew
            unjudged, max_strips = strips, MAX_JUDGED if inside else DEFAULT_STRIPS
        spans = [cut_span(passages[strip["passage"]], strip["start"], strip["end"]) for strip in unjudged]
        for strip, grading in zip(unjudged, await self.judge(spans, state, context), strict=True):
            strip["score"], strip["reason"] = grading.score, grading.reason
        threshold = self._min_confidence(context, inside=inside)
        is_rescued = keep_best(strips, context.max_strips or max_strips, threshold, keep_one=inside)
        kept_count = sum(strip["kept"] for strip in strips)
        report("refined" if inside else "selected", kept=kept_count, dropped=len(strips) - kept_count)
        notes = [f"{node}: {kept_count} of {len(strips)} {noun} kept"] if inside or passages else []
        if is_rescued:
            notes.append(f"{node}: no strip reached the threshold; the best one is kept")
        if left_out_count:
            note = f"{node}: {left_out_count} strips beyond {MAX_JUDGED} were not judged"
            write_note(note, unsearched=True)
        documents = join_strips(strips, passages, evaluator.name, question_of(state))
        shown = [Strip({**strip, "text": cut(strip["text"], _MAX_STRIP_CHARS, "…")}) for strip in strips]
        return {key: documents, "strips": shown, "notes": notes}

    async def rewrite_query(self, state: CragState, context: CragContext) -> Update:
        """Rewrite the question as keywords, or note that there is no web search; drop passages that do not fit."""
        question = question_of(state)
        update: Update = {"documents": []} if state["action"] == "incorrect" else {}
        if self.web is None:
            used = "answered from what was retrieved" if state["action"] == "ambiguous" else "nothing to use"
            report("no_web_search")
            note = f"web: could not look outside, no web search was given; {used}"
            return {**update, "notes": [note]}
        reply = await self.ask("web_query", state, context, {"question": question})
        notes: list[str] = []
        if isinstance(reply, Exception):
            notes = [note_no_reply("web", reply, "searched for the question itself")]
        query = one_line(question if notes else " ".join(reply.keywords))
        report("rewritten", web_query=query)
        choices = {"rewrite_query": "approve" if context.approve_web else "web_search"}
        return {**update, "choices": choices, "web_query": query, "notes": notes}

    async def approve(self, state: CragState, context: CragContext) -> Update:
        """Ask a person whether the query may leave, if the run wants it; see `read_approval`."""
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
        if edited:  # else it is approved as it was shown
            verdict = await self.guards.check_question(edited)
            if isinstance(verdict, Refusal):
                return _skip_search(f"a guard refused the query: {verdict.reason or 'no reason given'}")
            if not (query := one_line(verdict)):
                return _skip_search("nothing is left of the query")
        report("web_approved", web_query=query)
        return {"web_query": query}

    async def web_search(self, state: CragState, context: CragContext) -> Update:
        """Search the web within bounds; a failure is noted."""
        query = state["web_query"]
        if self.web is None:  # a query that somebody wrote into the state
            return {"web_documents": [], "notes": ["web: could not look outside, no web search was given"]}
        bounds: Any = {"max_results": context.web_results, "max_chars": context.web_result_chars}
        results, why = await self.web.find(query, timeout=context.web_timeout, **bounds)
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
        update, min_score = dict[str, Any](), self._min_confidence(context, inside=True)
        last_stages = [(peek_provenance(document).get("stages") or [{}])[-1] for document in documents]
        are_weak = all(stage.get("stage") == REFINED and stage["score"] < min_score for stage in last_stages)
        if external and are_weak:  # the best strip alone, which `keep_one` kept; the web has better ones
            documents = []
            strips = [{**old, "kept": old["kept"] and old["origin"] == "web"} for old in state["strips"]]
            update["strips"] = Overwrite(strips)
        documents = [*documents, *external]
        answer = await self.answer_from(question_of(state), documents, state, context)
        return {**update, **answer, "documents": documents, "web_documents": []}

    def _thresholds(self, context: CragContext) -> Thresholds:
        """Return the run's thresholds, and the evaluator's for those that the run does not set.

        Where the two would cross, the one that the run sets counts for both.
        """
        fitted = self.evaluator(context).thresholds
        if context.lower is not None:
            lower = context.lower
            return Thresholds(lower, max(fitted.upper, lower) if context.upper is None else context.upper)
        if context.upper is not None:
            return Thresholds(min(fitted.lower, context.upper), context.upper)
        return Thresholds(fitted.lower, fitted.upper)

    def _min_confidence(self, context: CragContext, *, inside: bool) -> float:
        """Return the least confidence of a strip that is kept: as set, else the lower threshold of passages."""
        if context.strip_threshold is not None:
            return context.strip_threshold
        if inside and not self.evaluator(context).selective:
            return -1.0  # keeps all strips of the index: the evaluator's confidence is too weak to drop some
        return self._thresholds(context).lower


#: The nodes that follow each action.
_BY_ACTION = {"correct": ["refine"], "incorrect": ["rewrite_query"], "ambiguous": ["refine", "rewrite_query"]}


def _skip_search(why: str) -> Update:
    report("web_refused")
    return {"web_query": "", "notes": [f"web: not searched, {why}"]}


#: Nodes on the longest path, with room for a user's own.
STEPS = 25


def build_crag(
    retriever: Runnable[str, list[Document]],
    llm: Runnable[Any, Any],
    *,
    evaluator: Any = None,
    web_search: Any = None,
    **options: Unpack[GraphOptions],
) -> CompiledRag[CragState]:
    """Build Corrective RAG: an evaluator judges what was retrieved, and one of three actions follows.

    *Correct*: the passages are cut into strips, and those that help are kept. *Incorrect*: they are put aside, the
    question becomes keywords for a web search, and strips of its results are selected. *Ambiguous*: both, side by
    side. Then the question is answered from what is left, and each citation is checked. With ``output="full"`` the
    state that comes back holds, besides that of every graph, ``gradings``, ``action``, ``strips`` (kept and dropped,
    with confidence), ``web_query`` and ``notes`` that say in words what was done.

    Paper: Yan et al., Corrective Retrieval Augmented Generation, arXiv 2401.15884.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents; about ten in the paper.
        llm: Any LangChain chat model: it answers, and writes the keywords.
        evaluator: An `Evaluator`, a chat model, a LangChain cross-encoder, or a function or chain
            (`FunctionEvaluator`). None: ``llm`` itself grades, several passages in a
            call (``LLMEvaluator``), and beside ``extractive``, which is not a language model, ``LexicalEvaluator``.
        web_search: Any LangChain tool or retriever. None: nothing ever leaves; the run says that it could not look
            outside, and answers from what it has (ambiguous) or declines (incorrect).
        **options: Those of all graphs: prompts, guards, output, checkpointer and others; see `GraphOptions`.

    Returns:
        A compiled graph. Per-run settings are `CragContext`: ``invoke({"question": ...}, context={"upper": 0.4})``.

    Raises:
        InvalidInputError: A part is of the wrong kind, or a prompt file is wrong.

    Example:
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = ["The index is written to the folder named by --index.", "Bananas are yellow."]
        >>> graph = build_crag(BM25Retriever.from_texts(texts, k=2), chat_model("extractive"))
        >>> result = graph.invoke({"question": "Which folder is the index written to?"})
        >>> result["answer"], result["status"]
        ('The index is written to the folder named by --index.[1]', 'grounded')
    """
    web = None if web_search is None else WebSearch(web_search)
    nodes = CragNodes(retriever, llm, options, evaluator=evaluator, web=web)
    graph = RagGraph(CragState, CragContext, "crag", options, STEPS)
    ways = {"retrieve": READY}
    graph.add_step("begin", nodes.begin, ways, route="retrieve", first=True, refused_by="question")
    graph.add_step("retrieve", nodes.retrieve, "grade", gives=["documents"], fetches=True)
    ways = {"refine": "correct, ambiguous", "rewrite_query": "incorrect, ambiguous"}
    graph.add_step("grade", nodes.grade, ways, route=by_key("action", _BY_ACTION), gives=["action"])
    graph.add_step("refine", nodes.refine, "generate", gives=["documents"])
    ways = {"approve": "approve_web", "web_search": "keywords", "generate": "no web search"}
    # a node that does not say so leads by way of the approval, which nobody is asked for unless the run wants it
    route = if_set("web_query", choice_of("rewrite_query", "approve"), "generate")
    # beside refine, whose passages stay as it leaves them
    graph.add_step("rewrite_query", nodes.rewrite_query, ways, route=route, sees_passages=False)
    ways = {"web_search": "approved", "generate": "refused"}
    graph.add_step("approve", nodes.approve, ways, route=if_set("web_query", "web_search", "generate"))
    graph.add_step("web_search", nodes.web_search, "select_external", gives=["web_documents"])
    graph.add_step("select_external", nodes.select_external, "generate", gives=["web_documents"])
    # defer: with two branches of unequal length it would run twice
    graph.add_step("generate", nodes.generate, "cite", gives=["answer"], streams=True, defer=True)
    graph.add_step("cite", nodes.cite, END, gives=["status"])
    return graph.compile_with_options()
