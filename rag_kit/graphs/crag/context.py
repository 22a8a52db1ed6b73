"""What may be set for one run of the CRAG graph."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rag_kit.concurrency.budget import MAX_SECONDS
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.context import (
    RagContext,
    calls_field,
    deadline_field,
    filter_field,
    instructions_field,
    k_field,
    language_field,
    shown_at,
    tokens_field,
)


def _threshold(description: str, default: float | None, *nodes: str) -> Any:
    return Field(
        default=default, ge=-1.0, le=1.0, description=description, json_schema_extra=shown_at(*nodes)
    )


class CragContext(RagContext):
    """Settings of one run of the CRAG graph; each has a default.

    Raises:
        InvalidInputError: A setting is unknown or out of range, or `lower` is above `upper`.

    Example:
        >>> CragContext(upper=0.4).upper
        0.4
        >>> CragContext(lower=0.5, upper=0.4)
        Traceback (most recent call last):
        ...
        rag_kit.errors.InvalidInputError: context is not valid: lower=0.5 is above upper=0.4; lower must not be above.
    """

    language: Literal["auto", "en", "zh"] = language_field("begin", "rewrite_query", "generate")
    k: int | None = k_field("retrieve")
    filter: dict[str, Any] | None = filter_field("retrieve")
    lower: float | None = _threshold(
        "Lower threshold: with all passages below it the action is 'incorrect'; empty: the evaluator's own.",
        None,
        "grade",
    )
    upper: float | None = _threshold(
        "Upper threshold: with any passage above it the action is 'correct'; empty: the evaluator's own.",
        None,
        "grade",
    )
    strip_sentences: int = Field(
        default=3,
        ge=1,
        le=50,
        description="Sentences in a strip; a passage of one or two sentences is a strip as it is.",
        json_schema_extra=shown_at("refine", "select_external"),
    )
    max_strips: int | None = Field(
        default=None,
        ge=1,
        le=50,
        description="Most strips that are kept of each source (the index, the web); empty: 5, and all of the index "
        "where the evaluator drops none.",
        json_schema_extra=shown_at("refine", "select_external"),
    )
    strip_threshold: float | None = _threshold(
        "Strips whose confidence is below it are dropped; empty: the lower threshold, and none of the index where the "
        "evaluator drops none.",
        None,
        "refine",
        "select_external",
    )
    approve_web: bool = Field(
        default=False,
        description="Ask a person before a query leaves for the web (needs a checkpointer).",
        json_schema_extra=shown_at("approve"),
    )
    web_results: int = Field(
        default=5,
        ge=1,
        le=20,
        description="Most results of the web search that are looked at.",
        json_schema_extra=shown_at("web_search"),
    )
    web_result_chars: int = Field(
        default=4_000,
        ge=100,
        le=50_000,
        description="Most characters of each result of the web search.",
        json_schema_extra=shown_at("web_search"),
    )
    web_timeout: float = Field(
        default=20.0,
        gt=0,
        le=MAX_SECONDS,
        description="Seconds that the web search may take.",
        json_schema_extra=shown_at("web_search"),
    )
    max_calls: int | None = calls_field(100, "begin", "grade", "refine", "rewrite_query", "generate")
    max_tokens: int | None = tokens_field("begin", "grade", "refine", "rewrite_query", "generate")
    deadline: float | None = deadline_field("retrieve", "grade", "web_search", "generate")
    condense_instructions: str | None = instructions_field("condense", "begin")
    web_query_instructions: str | None = instructions_field("web_query", "rewrite_query")
    grade_instructions: str | None = instructions_field(
        "grade_passages (with a chat model as evaluator)", "grade", "refine", "select_external"
    )
    answer_instructions: str | None = instructions_field("answer", "generate")

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise InvalidInputError(
                f"context is not valid: lower={self.lower} is above upper={self.upper}; lower must not be above."
            )
