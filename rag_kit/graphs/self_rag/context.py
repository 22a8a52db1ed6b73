"""What a caller may set for one run of Self-RAG."""

from __future__ import annotations

from typing import Any, Literal

from rag_kit.graphs.context import RagContext, instructions_field, max_calls_field, nodes_of_settings, setting
from rag_kit.graphs.self_rag.scores import Weights

_ASKS = ("begin", "generate_segments", "generate")


def _number(default: Any, low: float, high: float, description: str, *nodes: str) -> Any:
    return setting(default, description, *nodes, ge=low, le=high)


class SelfRagContext(RagContext):
    """Settings of one run; the defaults are the paper's where it names any.

    Example:
        >>> SelfRagContext().delta, SelfRagContext().beam_width, SelfRagContext(delta=0).delta
        (0.2, 2, 0.0)
    """

    common_nodes = nodes_of_settings(language="begin", retrieve="retrieve", asks=_ASKS)

    max_calls: int | None = max_calls_field(64)
    k: int | None = _number(5, 1, 20, "Passages that are looked up for a segment (or a round).", "retrieve")

    max_segments: int = _number(
        3, 1, 20, "mode paper: parts that an answer may have.", "rank_segments", "decide_retrieval"
    )
    segment_sentences: int = _number(
        1, 1, 5, "mode paper: sentences of a part.", "generate_segments", "generate_direct"
    )
    beam_width: int = _number(2, 1, 5, "mode paper: ways to go on that are kept.", "rank_segments")
    delta: float = _number(
        0.2, 0, 1, "mode paper: look documents up if P(yes)/(P(yes)+P(no)) is above this.", "decide_retrieval"
    )
    relevance_weight: float = _number(
        1.0, 0, 10, "mode paper: weight of the passage's relevance.", "rank_segments"
    )
    support_weight: float = _number(
        1.0, 0, 10, "mode paper: weight of the passage's support.", "rank_segments"
    )
    usefulness_weight: float = _number(0.5, 0, 10, "mode paper: weight of the usefulness.", "rank_segments")
    constraint: Literal["soft", "hard"] = setting(
        "soft",
        "soft: irrelevant or unsupported text only scores low, and is flagged; hard: it is dropped.",
        "rank_segments",
        "finish",
    )
    max_rounds: int = _number(
        2, 1, 10, "mode reflect: searches, the first one included.", "grade_documents", "grade_usefulness"
    )
    max_generations: int = _number(2, 1, 10, "mode reflect: answers written in a round.", "grade_support")

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

    @property
    def weights(self) -> Weights:
        """The weights of the three critiques."""
        return Weights(self.relevance_weight, self.support_weight, self.usefulness_weight)
