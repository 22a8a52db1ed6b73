"""The state of the CRAG graph, and the settings of one run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from langchain_core.documents import Document
from typing_extensions import TypedDict

from rag_kit.concurrency.budget import MAX_SECONDS
from rag_kit.graphs.context import RagContext, instructions_field, setting
from rag_kit.graphs.evaluators.base import Thresholds
from rag_kit.graphs.state import RagState, add_items, as_documents

_STRIPS = ("refine", "select_external")


class PassageGrading(TypedDict):
    """The evaluator's verdict on one retrieved passage.

    ``score`` is its confidence, from -1 (surely of no use) to 1 (surely of use); ``file`` and ``page`` say which, and
    ``digest`` whether its text is still the one that was judged.
    """

    score: float
    reason: str
    file: str | None
    page: int | str | None
    digest: str


class Strip(TypedDict):
    """A few sentences of one passage, judged by themselves.

    It is the span ``[start:end]`` of passage number ``passage`` (from 0) of those that were retrieved or, where
    ``origin`` is ``web``, of the results of the web search; ``text`` is its beginning. ``kept`` says whether the answer
    may use it.
    """

    origin: Literal["retrieved", "web"]
    passage: int
    start: int
    end: int
    text: str
    score: float
    reason: str
    kept: bool


class CragState(RagState, total=False):
    """State of the CRAG graph after and between its nodes.

    ``documents`` are the passages of the retriever, then what refinement left of them, and in the end those that the
    answer was made from, numbered as it cites them. ``web_documents`` are the results of the web search, then those
    that were selected, which join ``documents`` for the answer.
    """

    gradings: list[PassageGrading]
    action: Literal["correct", "incorrect", "ambiguous"] | None
    web_query: str
    web_documents: Annotated[list[Document], as_documents]
    strips: Annotated[list[Strip], add_items]


class CragContext(RagContext):
    """Settings of one run of the CRAG graph; each has a default."""

    lower: float | None = setting(
        None, "All passages below it: 'incorrect'; empty: the evaluator's own.", "grade", ge=-1.0, le=1.0
    )
    upper: float | None = setting(
        None, "Any passage above it: 'correct'; empty: the evaluator's own.", "grade", ge=-1.0, le=1.0
    )
    strip_sentences: int = setting(3, "Sentences in a strip.", *_STRIPS, ge=1, le=50)
    max_strips: int | None = setting(
        None, "Most strips kept of each source; empty: 5, or all of the index.", *_STRIPS, ge=1, le=50
    )
    strip_threshold: float | None = setting(
        None, "Strips below it are dropped; empty: the lower threshold.", *_STRIPS, ge=-1.0, le=1.0
    )
    approve_web: bool = setting(
        False, "Ask a person before a query leaves for the web (needs a checkpointer).", "approve"
    )
    web_results: int = setting(5, "Most results of the web search.", "web_search", ge=1, le=20)
    web_result_chars: int = setting(4_000, "Most characters of each.", "web_search", ge=100, le=50_000)
    web_timeout: float = setting(20.0, "Seconds it may take.", "web_search", gt=0, le=MAX_SECONDS)
    condense_instructions: str | None = instructions_field("condense", "begin")
    web_query_instructions: str | None = instructions_field("web_query", "rewrite_query")
    grade_instructions: str | None = instructions_field("grade_passages", "grade", *_STRIPS)
    answer_instructions: str | None = instructions_field("answer", "generate")

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        if self.lower is not None and self.upper is not None:
            Thresholds(self.lower, self.upper)  # refuses them where they cross
