"""Why a model stopped, read alike from the messages of all providers."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.prompts import ChatPromptTemplate

from rag_kit.errors import ModelOutputError
from rag_kit.models import atext_call, text_call
from rag_kit.models.replies import finish_of, refusal_of, text_reply, used_tokens

ASK = ChatPromptTemplate([("user", "{q}")])


class GoogleReason(IntEnum):
    """As Google's older client gives it."""

    MAX_TOKENS = 2
    SAFETY = 3


class BedrockReason(Enum):
    """A reason whose value is the word."""

    MAX_TOKENS = "max_tokens"


@pytest.mark.parametrize(
    ("metadata", "finish"),
    [
        ({"finish_reason": "length"}, "length"),  # OpenAI, vLLM, llama.cpp, Mistral
        ({"finish_reason": "model_length"}, "length"),  # Mistral
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
        ),  # Responses
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "filter"),
        ({"stop_reason": "max_tokens"}, "length"),  # Anthropic
        ({"stop_reason": "model_context_window_exceeded"}, "length"),
        ({"stop_reason": "refusal"}, "refusal"),
        ({"stop_reason": "tool_use"}, "tools"),
        ({"stop_reason": "end_turn", "stop_sequence": None}, "stop"),
        ({"stopReason": "guardrail_intervened"}, "filter"),  # Bedrock
        ({"stopReason": ["max_tokens"]}, "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),  # Google, Cohere
        ({"finish_reason": "FinishReason.SAFETY"}, "filter"),
        ({"finish_reason": GoogleReason.MAX_TOKENS}, "length"),
        ({"finish_reason": 3}, "filter"),
        ({"stop_reason": BedrockReason.MAX_TOKENS}, "length"),
        ({"done_reason": "length"}, "length"),  # Ollama
        ({"finish_reason": "sensitive"}, "filter"),  # Zhipu
        ({"finish_reason": "ERROR_TOXIC"}, "filter"),  # Cohere
        ({"finish_reason": "insufficient_system_resource"}, "error"),  # DeepSeek
        ({"finish_reason": "repetition"}, "error"),  # vLLM
        ({"finish_reason": "OTHER"}, "error"),  # Google
        ({"finish_reason": 5}, "error"),
        ({"stop_reason": "pause_turn"}, "error"),  # Anthropic
        ({"stop_reason": "not_finished"}, "error"),  # watsonx
        ({"finish_reason": "tool_calls"}, "tools"),
        ({"finish_reason": "stopstop"}, "stop"),  # merged chunks
        ({"finish_reason": "lengthlength"}, "length"),
        ({"finish_reason": "COMPLETE"}, "stop"),
        ({"status": "completed"}, "stop"),
        ({"finish_reason": None, "status": 200}, "stop"),
        ({}, "stop"),
        (None, "stop"),
    ],
    ids=str,
)
def test_every_provider_is_read(metadata: Any, finish: str) -> None:
    """The word, its place and its form are the provider's."""
    message = AIMessage("The fee is 15")
    message.response_metadata = metadata
    assert finish_of(message) == finish


def test_a_refusal_in_chunks_is_one() -> None:
    """Pieces of a refusal, in what was merged of a stream."""
    pieces = [{"refusal": "I can"}, {"refusal": "not."}]
    first, second = (AIMessageChunk("", additional_kwargs=piece) for piece in pieces)
    assert refusal_of(first + second) == "I cannot." and finish_of(first + second) == "refusal"
    block: Any = [{"type": "refusal", "refusal": "No.", "index": 0}]
    assert refusal_of(AIMessageChunk(block)) == "No."
    nested: Any = [{"type": "non_standard", "value": {"refusal": "No."}}]
    assert refusal_of(AIMessage(nested)) == "No."
    stopped = AIMessage("I was going to", response_metadata={"stop_reason": "refusal"})
    assert refusal_of(stopped) == "no reason given"
    assert refusal_of(AIMessage("It is 15.", response_metadata={"finish_reason": "content_filter"})) is None


CALL: Any = {"name": "search", "args": {}, "id": "1", "type": "tool_call"}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            AIMessage("", response_metadata={"finish_reason": "length"}),
            "reached its token limit before any text",
        ),
        (AIMessage("<think>hm", response_metadata={"finish_reason": "length"}), "before any text"),
        (AIMessage("", tool_calls=[CALL]), r"called a tool \(search\) in place of answering"),
        (AIMessage(""), "answer is empty. Ask again"),
        (AIMessage("", response_metadata={"finish_reason": "content_filter"}), "refused.*content filter"),
    ],
    ids=["length", "thoughts alone", "tool", "nothing", "filter"],
)
async def test_an_answer_without_text_says_why(message: AIMessage, said: str) -> None:
    """In both forms."""
    for _ in range(2):
        with pytest.raises(ModelOutputError, match=said):
            text_call(GenericFakeChatModel(messages=iter([message])), ASK, {"q": "?"})
        with pytest.raises(ModelOutputError, match=said):
            await atext_call(GenericFakeChatModel(messages=iter([message])), ASK, {"q": "?"})


def test_a_cut_off_answer_keeps_its_text() -> None:
    """And says why it ended; one that is whole says nothing."""
    cut = text_reply(AIMessage("<think>hm</think>The fee", response_metadata={"finish_reason": "length"}))
    assert cut == ("The fee", "the model reached its token limit")
    assert text_reply(AIMessage("The fee is 15.")) == ("The fee is 15.", "")


@pytest.mark.parametrize("reported", [0, -3])
def test_tokens_are_estimated_where_the_report_cannot_be_right(reported: int) -> None:
    """A server that reports zeros would make a cap useless; less than that would be an error of the budget."""
    usage: Any = {"input_tokens": reported, "output_tokens": 0, "total_tokens": reported}
    assert used_tokens(AIMessage("four letters", usage_metadata=usage), []) == 3
