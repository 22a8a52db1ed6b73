"""The nodes of the CRAG graph that begin it, judge what was found, refine it and answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.types import Command, Overwrite

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.answering import Answering
from rag_kit.graphs.crag.context import CragContext
from rag_kit.graphs.crag.state import CragState, PassageGrading
from rag_kit.graphs.crag.strips import DEFAULT_STRIPS, MAX_JUDGED, Selection, select_strips
from rag_kit.graphs.evaluators.base import Evaluator, Grading, judged_by, unjudged
from rag_kit.graphs.evaluators.thresholds import Action, Thresholds
from rag_kit.graphs.guards import Guards
from rag_kit.graphs.opening import Opening
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.running import report
from rag_kit.graphs.state import Update

_REASONS = {
    "correct": "correct: at least one passage is above {upper:.2f}; the passages are refined",
    "incorrect": "incorrect: all passages are below {lower:.2f}; they are put aside",
    "ambiguous": "ambiguous: no passage is above {upper:.2f}, not all are below {lower:.2f}; "
    "passages are refined and other sources looked for",
}


class CragNodes:
    """The nodes but for those of the web; each is written once for ``invoke`` and ``ainvoke``."""

    def __init__(
        self,
        retriever: BaseRetriever,
        llm: BaseChatModel,
        evaluator: Evaluator,
        prompts: GraphPrompts,
        guards: Guards,
        max_passage_chars: int,
    ) -> None:
        self.retriever = retriever
        self.evaluator = evaluator
        self.opening = Opening(llm, prompts, guards)
        self.answering = Answering(llm, prompts, guards, max_passage_chars)

    async def begin(self, state: CragState, context: CragContext) -> Command[Any]:
        """Check the question, and make a follow-up stand alone; no model call at the first turn of a thread."""
        return await self.opening.begin(state, context, _cleared_state(), goto="retrieve")

    async def retrieve(self, state: CragState, context: CragContext) -> Update:
        """Fetch the passages that this user may see."""
        update = await self.opening.retrieve(self.retriever, state, context)
        return {"retrieved": update["documents"], **update}

    async def grade(self, state: CragState, context: CragContext) -> Update:
        """Judge all passages at once, and choose the paper's action by the thresholds."""
        passages = state["retrieved"]
        gradings = await judged_by(
            self.evaluator,
            state["search_query"],
            passages,
            state["language"],
            instructions=context.grade_instructions,
        )
        limits = thresholds_of(self.evaluator, context)
        scores = [grading.score for grading in gradings]
        action = limits.action(scores)
        report("graded", action=action, scores=scores, evaluator=self.evaluator.name)
        return {
            "gradings": [
                _grading_record(grading, passage) for grading, passage in zip(gradings, passages, strict=True)
            ],
            "action": action,
            "notes": [f"grade: {_reason(action, gradings, limits)}", *unjudged("grade", gradings)],
        }

    async def refine(self, state: CragState, context: CragContext) -> Update:
        """Keep the strips of the passages that help, in the order of the passages."""
        known = [Grading(item["score"], item["reason"]) for item in state["gradings"]]
        chosen = await select_strips(
            self.evaluator,
            state["search_query"],
            state["retrieved"],
            state["language"],
            origin="retrieved",
            size=context.strip_sentences,
            most=context.max_strips or (DEFAULT_STRIPS if self.evaluator.selective else MAX_JUDGED),
            threshold=strip_threshold(self.evaluator, context, retrieved=True),
            known=known,
            keep_one=True,
            instructions=context.grade_instructions,
        )
        kept = report_strips("refined", chosen)
        notes = [f"refine: {kept} of {len(chosen.strips)} strips kept", *_selection_notes("refine", chosen)]
        return {"internal": chosen.documents, "strips": chosen.strips, "notes": notes}

    async def generate(self, state: CragState, context: CragContext) -> Update:
        """Answer from what the action left: the refined passages, the selected ones of the web, or both."""
        internal, external = state["internal"], state["external"]
        update: Update = {}
        rescued = [strip for strip in state["strips"] if strip["origin"] == "retrieved" and strip["kept"]]
        enough = strip_threshold(self.evaluator, context, retrieved=True)
        if external and all(strip["score"] < enough for strip in rescued):
            # the best of what was retrieved was kept for want of anything better, and the web gave better
            internal = []
            update["strips"] = Overwrite(
                [{**strip, "kept": strip["kept"] and strip["origin"] == "web"} for strip in state["strips"]]
            )
        documents = [*internal, *external]
        answered = await self.answering.answer(
            state["search_query"], documents, state["language"], instructions=context.answer_instructions
        )
        return {**update, **answered, "internal": internal, "documents": documents}

    async def cite(self, state: CragState, context: CragContext) -> Update:
        """Check every citation against the passage that it names."""
        update = await self.answering.cite(state, context)
        # a refused answer's passages must not leave either
        return {**update, **_cleared_state()} if update["status"] == "refused" else update


def ways_on(state: CragState) -> list[str]:
    """The labels of the edges that follow from the action.

    Raises:
        InvalidInputError: The node that grades (which may be a user's own) gave no action.
    """
    action = state.get("action")
    if action not in ("correct", "incorrect", "ambiguous"):
        raise InvalidInputError(
            f"the node 'grade' gave the action {action!r}; it must give 'correct', 'incorrect' or 'ambiguous'."
        )
    return [way for way in ("correct, ambiguous", "incorrect, ambiguous") if action in way.split(", ")]


def _reason(action: Action, gradings: Sequence[Grading], limits: Thresholds) -> str:
    """Why this action, in fixed words: a grader's reason may quote a passage, and notes outlive a refusal."""
    if not gradings:
        return "incorrect: the retriever found nothing"
    return _REASONS[action].format(lower=limits.lower, upper=limits.upper)


def thresholds_of(evaluator: Evaluator, context: CragContext) -> Thresholds:
    """The thresholds of the run's context, the evaluator's own for those that it does not set.

    If the context sets one of them, and it lies beyond the evaluator's other one, both have the value that was set.
    """
    own = evaluator.thresholds
    lower = own.lower if context.lower is None else context.lower
    upper = own.upper if context.upper is None else context.upper
    if lower > upper:
        lower = upper = lower if context.upper is None else upper
    return Thresholds(lower, upper)


def strip_threshold(evaluator: Evaluator, context: CragContext, *, retrieved: bool = False) -> float:
    """The least confidence of a strip that is kept; by default the lower threshold of passages.

    All strips of what was retrieved stay where the evaluator's confidence is too weak to drop some.
    """
    if context.strip_threshold is not None:
        return context.strip_threshold
    return -1.0 if retrieved and not evaluator.selective else thresholds_of(evaluator, context).lower


def report_strips(event: str, chosen: Selection) -> int:
    """Send an event with the numbers of strips kept and dropped; returns how many were kept."""
    kept = sum(strip["kept"] for strip in chosen.strips)
    report(event, kept=kept, dropped=len(chosen.strips) - kept)
    return kept


def _selection_notes(node: str, chosen: Selection) -> Sequence[str]:
    """Notes on strips that were kept below the threshold, and on those that were not judged."""
    notes = []
    if chosen.rescued:
        notes.append(f"{node}: no strip reached the threshold; the best one is kept")
    if chosen.left_out:
        notes.append(f"{node}: {chosen.left_out} strips beyond {MAX_JUDGED} were not judged")
    return notes


def _grading_record(grading: Grading, passage: Document) -> PassageGrading:
    """A grading for the state, with the file and the page of its passage."""
    metadata = passage.metadata
    return PassageGrading(
        score=grading.score,
        reason=grading.reason,
        file=metadata.get("file"),
        page=metadata.get("page", metadata.get("slide", metadata.get("sheet"))),
    )


def _cleared_state() -> Update:
    """Empty values for what an earlier turn of the thread left in the state."""
    return {
        "retrieved": [],
        "gradings": [],
        "action": None,
        "web_query": "",
        "web_documents": [],
        "internal": [],
        "external": [],
        "strips": Overwrite([]),
    }
