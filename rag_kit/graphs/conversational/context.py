"""Settings of one run of the conversational graph."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

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
from rag_kit.graphs.conversational.facts import check_user_id
from rag_kit.graphs.state import MAX_TURNS

MAX_RELATED = 5


class ConversationalContext(RagContext):
    """Settings of one run of the conversational graph; each has a default.

    Example:
        >>> ConversationalContext(user_id="ann@example.org").user_id
        'ann@example.org'
        >>> ConversationalContext(user_id="../bob")
        Traceback (most recent call last):
        ...
        rag_kit.errors.InvalidInputError: context is not valid: user_id: value error, '../bob' is no user id...
    """

    language: Literal["auto", "en", "zh"] = language_field("begin")
    k: int | None = k_field("retrieve")
    filter: dict[str, Any] | None = filter_field("retrieve")
    max_calls: int | None = calls_field(8, "summarise", "condense", "answer", "remember", "suggest")
    max_tokens: int | None = tokens_field("summarise", "condense", "answer", "remember", "suggest")
    deadline: float | None = deadline_field("retrieve", "answer")
    max_history_turns: int = Field(
        default=10,
        ge=1,
        le=MAX_TURNS - 1,  # so that no turn is forgotten before it was summarised
        description="Turns of the thread that are kept word for word; beyond it the older half is summarised.",
        json_schema_extra=shown_at("begin", "summarise"),
    )
    max_history_chars: int = Field(
        default=8_000,
        ge=200,
        le=64_000,
        description="Characters of history that go into a prompt; beyond it the older part is summarised.",
        json_schema_extra=shown_at("begin", "summarise", "condense"),
    )
    user_id: str | None = Field(
        default=None,
        description="Who asks: what is known about this user is used, and new facts are remembered. Empty: neither.",
        json_schema_extra=shown_at("begin", "remember"),
    )
    related_questions: int = Field(
        default=0,
        ge=0,
        le=MAX_RELATED,
        description="How many questions to offer at the end.",
        json_schema_extra=shown_at("suggest"),
    )
    summarise_history_instructions: str | None = instructions_field("summarise_history", "summarise")
    condense_instructions: str | None = instructions_field("condense", "condense")
    condense_for_user_instructions: str | None = instructions_field("condense_for_user", "condense")
    answer_instructions: str | None = instructions_field("answer", "answer")
    answer_for_user_instructions: str | None = instructions_field("answer_for_user", "answer")
    remember_facts_instructions: str | None = instructions_field("remember_facts", "remember")
    related_questions_instructions: str | None = instructions_field("related_questions", "suggest")

    @field_validator("user_id")
    @classmethod
    def _is_user_id(cls, value: str | None) -> str | None:
        return None if value is None or value == "" else check_user_id(value)
