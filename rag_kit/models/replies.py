"""Reading of a model's reply: its text without reasoning, why it ended, a refusal, and how many tokens it took."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

from langchain_core.messages import AIMessage

from rag_kit.errors import ModelOutputError

MAX_CHARS = 1_000_000
"""Twice what today's models can write in one answer, thoughts included."""
_THINK = "(?:think|thinking|thought|reasoning)>"
_END = re.compile(rf"</{_THINK}", re.IGNORECASE)
THOUGHT = re.compile(rf"<{_THINK}.*?(?:</{_THINK}|\Z)", re.IGNORECASE | re.DOTALL)
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_MESSAGE_OVERHEAD = 4

#: Why a model stopped: ``length``: at its token limit; ``refusal``: it would not answer; ``filter``: the provider's
#: content filter; ``tools``: it called a tool; ``error``: the provider broke off; ``stop``: it was done.
Finish = Literal["length", "refusal", "filter", "tools", "error", "stop"]
# where the clients of LangChain put the reason, and the words of the providers for it, letters alone
_REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "incomplete_details", "status")
_LINES = Path(__file__).with_name("finish_words.txt").read_text("utf-8").splitlines()
_WORDS = {finish: words.split() for finish, words in (line.split(": ") for line in _LINES)}
_BY_WORD: dict[str, Finish] = {word: cast(Finish, finish) for finish in _WORDS for word in _WORDS[finish]}
_CUT_OFF: dict[Finish, str] = {
    "length": "the model reached its token limit",
    "filter": "the provider's content filter broke it off",
    "error": "the provider broke it off",
}
_GOOGLE = {1: "stop", 2: "maxtokens", 3: "safety", 4: "recitation", 5: "other", 6: "language", 8: "blocklist"}


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, within 30%: one for each CJK character, one for four others."""
    wide_chars = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide_chars + (len(text) - wide_chars + 3) // 4


def used_tokens(value: Any, messages: Iterable[Any]) -> int:
    """Return the tokens of a call, prompt and reply: the number that the model reported, else an estimate."""
    reply = value.get("raw", value) if isinstance(value, dict) else value
    usage = getattr(reply, "usage_metadata", None) or {}
    reported = (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
    if reported > 0:  # a cap would be useless with a server that reports zeros or less
        return int(reported)
    tokens_in = count_tokens(messages)
    # The arguments of tool calls are output as well.
    arguments = "".join(str(call.get("args")) for call in getattr(reply, "tool_calls", []))
    return tokens_in + estimate_tokens(text_of(reply) + arguments)


def count_tokens(messages: Iterable[Any]) -> int:
    """Estimate the tokens of messages."""
    texts = list(map(text_of, messages))
    return sum(map(estimate_tokens, texts)) + _MESSAGE_OVERHEAD * len(texts)


def was_cached(value: Any) -> bool:
    """Tell whether LangChain's cache gave the reply, at no cost."""
    message, _ = split_reply(value)
    usage = getattr(message, "usage_metadata", None) or {}
    return usage.get("total_cost") == 0


def text_of(message: Any) -> str:
    """Return the text of a message (its text blocks, joined), of a string, or of anything else."""
    content = getattr(message, "content", message)
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return "" if content is None else str(content)


def without_thinking(text: str, start: int = 0) -> str:
    """Remove reasoning blocks, also one whose opening or closing tag is missing; tags before ``start`` are no tags."""
    without_blocks = text[:start] + THOUGHT.sub("", text[start:])
    # a closing tag that is left lacks its opening tag: all before it is reasoning
    closing_ends = [tag.end() for tag in _END.finditer(without_blocks, start)]
    return without_blocks[max(closing_ends, default=0) :].strip()


def split_reply(reply: Any) -> tuple[Any, Any]:
    """Return the message that a model wrote, if any, and the value that its client parsed."""
    if isinstance(reply, dict) and {"raw", "parsed"} <= reply.keys():
        return reply["raw"], reply["parsed"]
    if hasattr(reply, "content"):
        return reply, (getattr(reply, "additional_kwargs", None) or {}).get("parsed")
    return None, reply


def written_text(reply: Any) -> str:
    """Return the text that a model wrote, as it is: broken arguments of a tool call, else its text, else arguments."""
    message, parsed = split_reply(reply)
    if message is None:
        return parsed if isinstance(parsed, str) else ""
    invalid = [call.get("args") for call in getattr(message, "invalid_tool_calls", None) or []]
    valid = [str(call.get("args")) for call in getattr(message, "tool_calls", None) or []]
    return next(filter(None, [*invalid, text_of(message), *valid[:1]]), "")


class TextReply(NamedTuple):
    """A model's answer as text, without its reasoning; and why it was cut off, "" where the model was done."""

    text: str
    cut_off: str = ""


def text_reply(message: Any) -> TextReply:
    """Return the answer in a model's message, without reasoning; raise ``ModelOutputError`` if it is empty."""
    text, finish = without_thinking(text_of(message)), finish_of(message)
    if not text:
        names = [str(call.get("name")) for call in getattr(message, "tool_calls", None) or []]
        if finish == "tools" or names:
            raise ModelOutputError(
                f"The model called a tool ({', '.join(names) or 'no name'}) in place of answering. Give a model "
                "without tools bound to it."
            )
        if finish in _CUT_OFF:
            raise ModelOutputError(
                f"The model's answer is empty: {_CUT_OFF[finish]} before any text. Allow more tokens (max_tokens=...), "
                "or use another model."
            )
        raise ModelOutputError("The model's answer is empty. Ask again, or use another model.")
    return TextReply(text, _CUT_OFF.get(finish, ""))


def finish_of(message: Any) -> Finish:
    """Return why a model stopped, in one vocabulary for all providers; ``stop`` if the message does not say."""
    return "refusal" if _refusal_text(message) else _stated_finish(message)


def _stated_finish(message: Any) -> Finish:
    """Return why a model stopped as the metadata of its message say; of several reasons the first of ``Finish``."""
    metadata = getattr(message, "response_metadata", None)
    metadata = metadata if isinstance(metadata, dict) else {}
    stated = {_finish_of_word(word) for key in _REASON_KEYS for word in _reasons_in(metadata.get(key))}
    return next((finish for finish in get_args(Finish) if finish in stated), "stop")


def cut_off_reply(error: BaseException) -> AIMessage | None:
    """Return the cut-off reply inside the error that OpenAI's client raises in its place."""
    completion = getattr(error, "completion", None)
    if completion is None or type(error).__name__ != "LengthFinishReasonError":
        return None
    message, usage = AIMessage(completion.choices[0].message.content or ""), completion.usage
    message.response_metadata = {"finish_reason": "length"}
    if usage is not None:
        details = usage.completion_tokens_details
        message.usage_metadata = {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
            "output_token_details": {"reasoning": (details and details.reasoning_tokens) or 0},
        }
    return message


def has_thoughts(message: Any) -> bool:
    """Tell whether a model reasoned before it answered, by a count of tokens, a field or a block."""
    details = (getattr(message, "usage_metadata", None) or {}).get("output_token_details") or {}
    in_field = (getattr(message, "additional_kwargs", None) or {}).get("reasoning_content")
    in_block = any(block.get("type") in ("thinking", "reasoning") for block in _blocks(message))
    in_tags = THOUGHT.match(text_of(message).lstrip())
    return bool(details.get("reasoning") or in_field or in_block or in_tags)


def _blocks(message: Any) -> list[dict[str, Any]]:
    """Return the blocks of a message whose content is a list of them, else []."""
    content = getattr(message, "content", None)
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _reasons_in(value: Any) -> list[str]:
    """Return the words for why a model stopped, letters alone: ``"MAX_TOKENS"`` and Google's ``2`` -> ["maxtokens"]."""
    if isinstance(value, list):
        return [word for item in value for word in _reasons_in(item)]
    if isinstance(value, dict):
        value = value.get("reason")
    if isinstance(value, int) and not isinstance(value, bool):  # enumerations are integers too
        value = getattr(value, "name", None) or _GOOGLE.get(value)
    value = getattr(value, "value", value)
    if not isinstance(value, str):
        return []
    last_name = value.rpartition(".")[2]  # of "FinishReason.MAX_TOKENS"
    return [re.sub(r"[\W\d_]", "", last_name).lower()]


def _finish_of_word(word: str) -> Finish:
    """Return the kit's word for a provider's; a word that a stream doubled ("lengthlength") counts once."""
    half = len(word) // 2
    once = word[:half] if half and word[:half] == word[half:] else word
    return _BY_WORD.get(once) or _BY_WORD.get(word) or "stop"


def refusal_of(message: Any) -> str | None:
    """Return why a model refused, None if it did not; raise for a reply that is endless or nested too deeply."""
    _check_size(message)
    if reason := _refusal_text(message):
        return reason[:200]
    finish = _stated_finish(message)
    if finish == "refusal":
        return "no reason given"
    filtered = finish == "filter" and not text_of(message).strip()
    return "stopped by the provider's content filter" if filtered else None


def _refusal_text(message: Any) -> str | None:
    """Return the words of a refusal, from a field or a block of the message; None if there is none."""
    blocks = _blocks(message)
    # LangChain's streams put a block of a provider's own form under "value"
    blocks += [block["value"] for block in blocks if isinstance(block.get("value"), dict)]
    refusals = [(getattr(message, "additional_kwargs", None) or {}).get("refusal")]
    for block in blocks:
        if block.get("type") == "refusal" or block.get("refusal"):
            refusals.append(block.get("refusal") or "no reason given")
    return next((text for text in refusals if isinstance(text, str) and text), None)


def _check_size(message: Any) -> None:
    """Refuse an endless reply, text or arguments of a tool call, before anything reads it."""
    size = len(text_of(message))
    try:
        for name in ("invalid_tool_calls", "tool_calls"):
            size += sum(len(str(call.get("args"))) for call in getattr(message, name, None) or [])
    except RecursionError:
        raise ModelOutputError("The model's answer is nested too deeply.") from None
    if size > MAX_CHARS:
        raise ModelOutputError(
            f"The model's answer has {size:,} characters; at most {MAX_CHARS:,} are read. Limit it "
            "(max_tokens=...), or use another model."
        )
