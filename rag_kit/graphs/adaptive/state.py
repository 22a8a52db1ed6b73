"""The typed state of the adaptive graph, and the settings of one run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator
from typing_extensions import TypedDict

from rag_kit.graphs.context import RagContext, instructions_field, setting
from rag_kit.graphs.state import RagState

Route = Literal["direct", "single", "multi", "clarify"]
MAX_HOPS = 10
MAX_CLARIFICATIONS = 3


class Hop(TypedDict):
    """One step of a question that needs several facts; ``answer`` is "" where nothing was found.

    ``found`` are the digests of its passages, best first.
    """

    question: str
    answer: str
    found: list[str]


class Clarification(TypedDict):
    """A question back to the user, and the reply."""

    question: str
    reply: str


class AdaptiveState(RagState, total=False):
    """State of the adaptive graph after and between its nodes.

    ``asked`` is the question as the guards left it, with the replies to questions back in brackets; ``route`` the
    way it was answered, and ``reason`` why; ``hops`` the steps of a question that needs several facts, whose passages
    are all in ``documents``. ``checked`` is the answer of the single step, or the question back, as it was checked.
    """

    route: Route
    intent: str
    complexity: str
    reason: str
    question_back: str
    clarifications: list[Clarification]
    hops: list[Hop]
    sub_question: str
    checked: str


class AdaptiveContext(RagContext):
    """Settings of one run of the adaptive graph; each has a default."""

    search_node = "search_hop"
    citing_nodes = ("single", "finish")

    route: Literal["auto", "single", "multi"] = setting(
        "auto", "'single' or 'multi' goes that way without asking the classifier.", "classify"
    )
    direct: bool = setting(
        True, "Whether talk may be answered without looking anything up.", "classify", "direct"
    )
    clarify: bool = setting(
        True, "Whether to wait for a reply to a question back (needs a checkpointer).", "ask_back", "clarify"
    )
    max_clarifications: int = setting(
        1, "How often the user is asked back.", "classify", ge=0, le=MAX_CLARIFICATIONS
    )
    max_hops: int = setting(4, "Steps of a question that needs several facts.", "next_hop", ge=1, le=MAX_HOPS)
    single: dict[str, Any] | None = setting(None, 'Further settings of CRAG: {"upper": 0.4}.', "single")

    @field_validator("single")
    @classmethod
    def _check_single(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        """Refuse settings that hold for the whole run and would have no effect on the single step alone."""
        for name in ("language", "max_calls", "max_tokens", "deadline"):
            if (value or {}).get(name) is not None:
                raise ValueError(f"{name} holds for the whole run; give it beside single")
        return value

    condense_instructions: str | None = instructions_field("condense", "begin")
    classify_question_instructions: str | None = instructions_field("classify_question", "classify")
    clarify_question_instructions: str | None = instructions_field("clarify_question", "ask_back")
    direct_answer_instructions: str | None = instructions_field("direct_answer", "direct")
    next_hop_instructions: str | None = instructions_field("next_hop", "next_hop")
    answer_instructions: str | None = instructions_field("answer", "answer_hop", "single")
    answer_from_hops_instructions: str | None = instructions_field("answer_from_hops", "conclude")
