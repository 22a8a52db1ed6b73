"""The state of the conversational graph, and the settings of one run."""

from __future__ import annotations

from pydantic import field_validator

from rag_kit.graphs.context import RagContext, instructions_field, nodes_of_settings, setting
from rag_kit.graphs.conversational.facts import check_user_id
from rag_kit.graphs.state import MAX_TURNS, RagState

MAX_RELATED = 5
_LONG = ("begin", "summarise")


class ConversationalContext(RagContext):
    """Settings of one run of the conversational graph; each has a default."""

    common_nodes = nodes_of_settings(
        language="begin", retrieve="retrieve", asks=("summarise", "condense", "answer", "remember", "suggest")
    )

    max_history_turns: int = setting(
        10, "Turns kept word for word; older ones are summarised.", *_LONG, ge=1, le=MAX_TURNS - 1
    )
    max_history_chars: int = setting(
        8_000, "Characters of history that go into a prompt.", *_LONG, "condense", ge=200, le=64_000
    )
    user_id: str | None = setting(
        None, "Who asks; empty: nothing is known or remembered about the user.", "begin", "remember"
    )
    related_questions: int = setting(
        0, "How many questions to offer at the end.", "suggest", ge=0, le=MAX_RELATED
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


class ConversationalState(RagState, total=False):
    """State of the conversational graph after and between its nodes.

    ``asked`` is the question as the guards left it. ``summary`` holds the turns that are no longer in
    ``history``. ``facts`` is what is known about the user in this run; ``related_questions`` what may be asked next.
    """

    summary: str
    facts: list[str]
    related_questions: list[str]
