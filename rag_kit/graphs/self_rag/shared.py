"""Parts of both modes of Self-RAG: the state (plain JSON beside the documents), the settings of one run, nodes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from typing_extensions import TypedDict

from rag_kit.errors import BudgetExceededError, ModelOutputError
from rag_kit.graphs.context import RagContext, instructions_field, setting
from rag_kit.graphs.nodes import RagNodes
from rag_kit.graphs.state import AnswerStatus, RagState, Update, add_items

#: ``logprobs``: label probabilities and p(y) are the model's own; ``labels``: a label counts as certain, p(y) = 1.
Scoring = Literal["logprobs", "labels"]


class AnswerSegment(TypedDict):
    """One part of an answer.

    ``passage`` is the index of the passage that it rests on in the state's ``documents``; None: on none.
    ``beam`` is the one that it continued; ``f`` is its score.
    """

    text: str
    beam: int
    passage: int | None
    f: float


class Beam(TypedDict):
    """One of the best sequences of segments so far.

    ``number`` counts from 1 within its segment, best first; ``score`` is the mean of its segments' ``f``;
    ``ended``: nothing is to be added. ``query`` is what was searched for, ``found`` are indices into ``documents``,
    ``retrieve`` is whether documents are looked up for the next segment, ``wanted`` the probability of that.
    """

    number: int
    segments: list[AnswerSegment]
    score: float
    ended: bool
    retrieve: bool
    wanted: float
    query: str
    found: list[int]


class Continuation(TypedDict):
    """A continuation that was generated: an entry of the trace.

    ``segment`` and ``beam`` count from 1; ``passage`` is an index into ``documents`` as they were when it was
    written, or None; ``source`` says which file that is. ``cut_off`` says why its text ends too early, if it does.
    ``labels`` are those that the model wrote, ``probabilities`` those that the score rests on, ``parts`` of ``f`` are
    unweighted. ``score`` is that of the beam which it makes. ``kept`` says whether it went on, ``won`` whether it is a
    part of the answer, ``reason`` why it went on or why it lost.
    """

    segment: int
    beam: int
    passage: int | None
    source: str | None
    text: str
    cut_off: str
    labels: dict[str, str]
    probabilities: dict[str, dict[str, float]]
    parts: dict[str, float]
    f: float | None
    score: float | None
    kept: bool
    won: bool
    reason: str


class SelfRagState(RagState, total=False):
    """State of both modes: ``trace`` holds every candidate (paper) or verdict (reflect) and why it lost.

    ``unsupported``: by the critique, or the grader, a part of the answer has no support.
    """

    mode: Literal["paper", "reflect"]
    trace: Annotated[list[dict[str, Any]], add_items]
    unsupported: bool


class PaperState(SelfRagState, total=False):
    """State of mode ``paper``; ``known`` passages were there after the last search, later ones were put in since."""

    scoring: Scoring
    segment: int
    beams: list[Beam]
    candidates: list[Continuation]
    known: int
    streamed: int
    capped: bool


class SelfRagContext(RagContext):
    """Settings of one run; the defaults are the paper's where it names any. The first group is of mode ``paper``."""

    max_calls: int | None = setting(64, "Model calls that one run may make.", ge=0)
    k: int | None = setting(
        None, "Passages for a segment or a round; empty: the retriever's own number.", ge=1, le=20
    )

    max_segments: int = setting(
        3, "paper: parts of an answer.", "rank_segments", "decide_retrieval", ge=1, le=20
    )
    segment_sentences: int = setting(
        1, "paper: sentences of a part.", "generate_segments", "generate_direct", ge=1, le=5
    )
    beam_width: int = setting(2, "paper: ways to go on that are kept.", "rank_segments", ge=1, le=5)
    delta: float = setting(0.2, "paper: P(yes) above which to retrieve.", "decide_retrieval", ge=0, le=1)
    relevance_weight: float = setting(1.0, "paper: weight of relevance.", "rank_segments", ge=0, le=10)
    support_weight: float = setting(1.0, "paper: weight of support.", "rank_segments", ge=0, le=10)
    usefulness_weight: float = setting(0.5, "paper: weight of usefulness.", "rank_segments", ge=0, le=10)
    constraint: Literal["soft", "hard"] = setting(
        "soft", "hard: irrelevant or unsupported text is dropped.", "rank_segments", "finish"
    )
    max_rounds: int = setting(2, "reflect: searches.", "grade_documents", "grade_usefulness", ge=1, le=10)
    max_generations: int = setting(2, "reflect: answers of a round.", "grade_support", ge=1, le=10)

    condense_instructions: str | None = instructions_field("condense", "begin")
    retrieve_needed_instructions: str | None = instructions_field("retrieve_needed", "decide_retrieval")
    continue_answer_instructions: str | None = instructions_field("continue_answer", "generate_segments")
    continue_unaided_instructions: str | None = instructions_field(
        "continue_unaided", "generate_direct", "generate_segments"
    )
    critique_instructions: str | None = instructions_field("critique", "generate_segments")
    critique_usefulness_instructions: str | None = instructions_field(
        "critique_usefulness", "generate_direct", "generate_segments"
    )
    grade_instructions: str | None = instructions_field("grade_passages", "grade_documents")
    rewrite_query_instructions: str | None = instructions_field("rewrite_query", "rewrite_query")
    answer_instructions: str | None = instructions_field("answer", "generate")
    answer_again_instructions: str | None = instructions_field("answer_again", "generate")
    grade_support_instructions: str | None = instructions_field("grade_support", "grade_support")
    grade_usefulness_instructions: str | None = instructions_field("grade_usefulness", "grade_usefulness")


class SelfRagNodes(RagNodes):
    """Base of the nodes of both modes: the first one, the status, and the end at a cap."""

    mode: ClassVar[str]

    async def begin(self, state: SelfRagState, context: SelfRagContext) -> Update:
        """Ask the guards, make a follow-up question stand alone."""
        return {"mode": self.mode, **await super().begin(state, context)}

    def final_status(self, state: SelfRagState, status: AnswerStatus) -> AnswerStatus:
        """Return the status of the citations, but ``unsourced`` without a search, ``flagged`` without support."""
        if status == "uncited" and not state["documents"]:
            return "unsourced"
        if state["unsupported"] and status in ("grounded", "undecided", "uncited"):
            return "flagged"
        return status

    def at_cap(
        self, node: str, state: Any, context: SelfRagContext, error: BudgetExceededError
    ) -> Update | None:
        """Make the update of a node that reached a cap: finish with the best answer so far; None without one."""
        if not (state.get("drafts") or has_answer(state)):
            return None
        note = f"finished early: {cap_of(error, context)} was reached; the answer is the best so far"
        return {"notes": [note], "choices": {node: "finish"}}


def has_answer(state: Any) -> bool:
    """Tell whether any beam has written something."""
    return any(beam["segments"] for beam in state.get("beams") or [])


def cap_of(error: BudgetExceededError, context: SelfRagContext) -> str:
    """Return which cap was reached, as the caller gave it."""
    name = "deadline" if error.what == "deadline" else f"max_{error.what}"
    return f"{name}={getattr(context, name)}"


def none_if_unreadable(error: Exception) -> None:
    """Return None for a structured answer that cannot be read; raise other errors."""
    if not isinstance(error, ModelOutputError):
        raise error
