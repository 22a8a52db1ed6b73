"""One question to a model, with bounded retries, charged to every active budget; and the text of what came back.

Exceptions of the model come back as values: nothing that holds a request with its headers ever becomes the context
of an exception of ours.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from rag_kit.concurrency.budget import charge_call, charge_tokens, remaining_seconds, time_left
from rag_kit.concurrency.steps import Step, call_in_time
from rag_kit.errors import BranchTimeoutError, BudgetExceededError, ModelOutputError, ModelUnreachableError
from rag_kit.models.calls import ModelCall
from rag_kit.models.failures import RETRYABLE, Failure, classify, map_model_error, retry_after
from rag_kit.models.runnables import acall_runnable

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
_GRACE = 0.05


@dataclass(frozen=True)
class Reply:
    """A value, or the failure that is left after the retries."""

    value: Any = None
    error: Exception | None = None
    kind: Failure | None = None


async def ask(call: ModelCall, runnable: Runnable[Any, Any], messages: list[BaseMessage]) -> Reply:
    """Ask, and ask again after a rate limit, a server error, a time-out or a broken connection.

    Returns:
        The value, or a failure that retrying cannot mend: refused, final, a bad answer.

    Raises:
        BudgetExceededError: A cap is reached.
        ModelError: Unauthorised, still failing after the retries, or unknown.
    """
    wait = FIRST_PAUSE
    while True:
        charge_call()
        reply = await Step(
            "model", lambda call: _ask(call, runnable, messages), lambda call: _aask(call, runnable, messages)
        )
        if reply.error is None:
            charge_tokens(used_tokens(reply.value, messages))
            return reply
        kind = classify(reply.error)
        if kind in (Failure.REFUSED, Failure.FINAL, Failure.OUTPUT):
            return Reply(error=reply.error, kind=kind)
        left = remaining_seconds()
        if left is not None and left <= _GRACE and kind is not Failure.RATE_LIMITED:
            await _pause(left)
            time_left()  # raises the error of the budget
        mapped = map_model_error(reply.error, model=call.model)
        if kind not in RETRYABLE or call.retries_left < 1 or call.tokens.started:
            raise mapped
        asked = retry_after(reply.error) if kind in (Failure.RATE_LIMITED, Failure.SERVER) else None
        # Jitter, so that branches that failed together don't come back together.
        seconds = asked if asked is not None else wait * random.uniform(0.75, 1.25)
        if seconds > LONGEST_PAUSE or (left is not None and seconds >= left):
            if kind is not Failure.RATE_LIMITED:
                raise mapped
            allowed = LONGEST_PAUSE if left is None else min(left, LONGEST_PAUSE)
            raise ModelUnreachableError(
                f"{mapped} The server asks to wait {seconds:.1f} s; {allowed:.1f} s are allowed."
            )
        call.retries_left -= 1
        wait *= 2
        await _pause(seconds)


def _pause(seconds: float) -> Step[None]:
    return Step("pause", lambda call: time.sleep(seconds), lambda call: asyncio.sleep(seconds))


def _limit(call: ModelCall) -> float | None:
    known = [seconds for seconds in (call.timeout, remaining_seconds()) if seconds is not None]
    return min(known) if known else None


def _ask(call: ModelCall, runnable: Runnable[Any, Any], messages: list[BaseMessage]) -> Reply:
    def invoke() -> Reply:
        try:
            return Reply(runnable.invoke(messages, call.config))
        except BudgetExceededError:
            raise
        except Exception as error:  # noqa: BLE001 - handed on as a value, see the module's docstring
            return Reply(error=error)

    if _limit(call) is None:
        return invoke()
    try:
        # A client's own time-out is for each read; only a call that is given up ends on time.
        return call_in_time(invoke, call.timeout)
    except BranchTimeoutError:
        return Reply(error=TimeoutError(f"no answer within {call.timeout:g} s"))


async def _aask(call: ModelCall, runnable: Runnable[Any, Any], messages: list[BaseMessage]) -> Reply:
    try:
        async with asyncio.timeout(_limit(call)):
            return Reply(await acall_runnable(runnable, messages, call.config))
    except BudgetExceededError:
        raise
    except Exception as error:  # noqa: BLE001 - handed on as a value, see the module's docstring
        return Reply(error=error)


_THINK = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
MAX_CHARS = 1_000_000
"""Twice what today's models can write in one answer, thoughts included."""
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_MESSAGE_OVERHEAD = 4


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: a token per CJK character, else one per four characters.

    Good to about 30% for common tokenizers; used only where the provider reports no usage.

    Example:
        >>> estimate_tokens("retrieval-augmented"), estimate_tokens("检索增强")
        (5, 4)
    """
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide + (len(text) - wide + 3) // 4


def used_tokens(value: Any, sent: Iterable[Any]) -> int:
    """Tokens in and out of one call: the ``usage_metadata`` of what the model gave, else an estimate."""
    message = value.get("raw", value) if isinstance(value, dict) else value
    usage = getattr(message, "usage_metadata", None) or {}
    if reported := (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0):
        return int(reported)
    # Counting the reported number of a server that reports zeros would make a cap useless.
    tokens_in = sum(estimate_tokens(text_of(each)) + _MESSAGE_OVERHEAD for each in sent)
    # The arguments of tool calls are output as well.
    arguments = "".join(str(call.get("args")) for call in getattr(message, "tool_calls", []))
    return tokens_in + estimate_tokens(text_of(message) + arguments)


def text_of(message: Any) -> str:
    """The text of a message (its text blocks, joined), of a string, or of whatever else a model gives."""
    content = getattr(message, "content", message)
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return "" if content is None else str(content)


def check_size(message: Any) -> None:
    """Refuse an endless answer before anything reads it, whether it is text or the arguments of a tool call.

    Raises:
        ModelOutputError: It is longer than a million characters.
    """
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


def without_thinking(text: str) -> str:
    """Drop reasoning blocks, also one whose opening tag the server swallowed or whose end is missing."""
    kept: list[str] = []
    position, inside = 0, False
    for tag in _THINK.finditer(text):
        if tag.group(1):  # a closing tag: what stood before it was thought, opened or not
            kept = kept if inside else []
        elif not inside:
            kept.append(text[position : tag.start()])
        inside = not tag.group(1)
        position = tag.end()
    if not inside:
        kept.append(text[position:])
    return "".join(kept).strip()


def written(value: Any) -> str:
    """The text of an answer, or the arguments of a tool call that is no valid JSON."""
    message = value.get("raw") if has_raw(value) else value
    if message is None or (isinstance(message, BaseModel) and not hasattr(message, "content")):
        return ""
    broken = [call.get("args") for call in getattr(message, "invalid_tool_calls", None) or []]
    valid = [call.get("args") for call in getattr(message, "tool_calls", None) or []]
    return (
        next((args for args in broken if args), None) or text_of(message) or (str(valid[0]) if valid else "")
    )


def refusal_of(message: Any) -> str | None:
    """Why the model refused, if the provider marks it as a refusal; asked before an answer is read.

    Raises:
        ModelOutputError: The answer is endless.
    """
    check_size(message)
    extra = getattr(message, "additional_kwargs", None) or {}
    if isinstance(extra.get("refusal"), str) and extra["refusal"]:
        return str(extra["refusal"])[:200]
    content = getattr(message, "content", None)
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and block.get("type") == "refusal":
            return str(block.get("refusal", ""))[:200] or "no reason given"
    finish = (getattr(message, "response_metadata", None) or {}).get("finish_reason")
    if finish == "content_filter" and not text_of(message).strip():
        return "stopped by the provider's content filter"
    return None


def has_raw(value: Any) -> bool:
    """Whether it is LangChain's answer with the raw message beside the parsed value."""
    return isinstance(value, dict) and {"raw", "parsed"} <= value.keys()
