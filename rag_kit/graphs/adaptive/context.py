"""Settings of one run of the adaptive graph."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rag_kit.graphs.context import (
    CitationCheck,
    RagContext,
    calls_field,
    check_field,
    deadline_field,
    filter_field,
    instructions_field,
    k_field,
    language_field,
    shown_at,
    tokens_field,
)

MAX_HOPS = 10
MAX_CLARIFICATIONS = 3
_ASKING = ("begin", "classify", "direct", "single", "ask_back", "next_hop", "answer_hop", "conclude")


class AdaptiveContext(RagContext):
    """Settings of one run of the adaptive graph; each has a default.

    Example:
        >>> AdaptiveContext(max_hops=2).max_hops
        2
        >>> AdaptiveContext(max_hops=0)
        Traceback (most recent call last):
        ...
        rag_kit.errors.InvalidInputError: context is not valid: max_hops: input should be greater than or equal to 1...
    """

    language: Literal["auto", "en", "zh"] = language_field("begin")
    k: int | None = k_field("single", "search_hop")
    filter: dict[str, Any] | None = filter_field("single", "search_hop")
    max_calls: int | None = calls_field(100, *_ASKING)
    max_tokens: int | None = tokens_field(*_ASKING)
    deadline: float | None = deadline_field("single", "search_hop", "conclude")
    citation_check: CitationCheck = check_field("single", "finish")
    route: Literal["auto", "single", "multi"] = Field(
        default="auto",
        description="'auto' classifies the question; 'single' or 'multi' goes that way without asking.",
        json_schema_extra=shown_at("classify"),
    )
    direct: bool = Field(
        default=True,
        description="Whether talk may be answered without looking anything up; if not, it is searched for too.",
        json_schema_extra=shown_at("classify", "direct"),
    )
    clarify: bool = Field(
        default=True,
        description="Whether the run may wait for a reply to a question back (needs a checkpointer); if not, "
        "the question back is the answer.",
        json_schema_extra=shown_at("ask_back", "clarify"),
    )
    max_clarifications: int = Field(
        default=1,
        ge=0,
        le=MAX_CLARIFICATIONS,
        description="How often the user is asked back; 0: never, an unclear question is searched for as it is.",
        json_schema_extra=shown_at("classify"),
    )
    max_hops: int = Field(
        default=4,
        ge=1,
        le=MAX_HOPS,
        description="Steps of a question that needs several facts.",
        json_schema_extra=shown_at("next_hop"),
    )
    single: dict[str, Any] | None = Field(
        default=None,
        description='Further settings of the graph behind "single" (CRAG), e.g. {"upper": 0.4}.',
        json_schema_extra=shown_at("single"),
    )
    condense_instructions: str | None = instructions_field("condense", "begin")
    classify_question_instructions: str | None = instructions_field("classify_question", "classify")
    clarify_question_instructions: str | None = instructions_field("clarify_question", "ask_back")
    direct_answer_instructions: str | None = instructions_field("direct_answer", "direct")
    next_hop_instructions: str | None = instructions_field("next_hop", "next_hop")
    answer_instructions: str | None = instructions_field("answer", "answer_hop", "single")
    answer_from_hops_instructions: str | None = instructions_field("answer_from_hops", "conclude")
