"""Requests to a model with bounded retries, messages that fit into its context, and the call that gives text.

Exceptions of the model come back as values: none that holds a request with its headers is the context of one of ours.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, TypeVar, Unpack

from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.budget import charge_call, charge_tokens, remaining_seconds, return_call
from rag_kit.concurrency.notes import write_note
from rag_kit.concurrency.steps import Logic, Step, ends_run, time_limit, timed_step
from rag_kit.errors import (
    BudgetExceededError,
    ContextLengthError,
    ModelError,
    ModelOutputError,
    ModelUnreachableError,
)
from rag_kit.prompts import PromptTemplate
from rag_kit.prompts.rendering import Markup, first_passages

from . import replies
from .failures import RETRYABLE, Failure, classify, refuses_bound, retry_after
from .json_text import ends_in_loop
from .model_call import CallLimits, Method, ModelCall
from .runnables import acall_runnable, ended_runs, has_handlers

T = TypeVar("T")
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
_GRACE = 0.05  # seconds of a deadline with which no retry begins
_MARGIN = 1.1  # times the characters that are too many are left out: texts differ in characters a token


async def ask(call: ModelCall, runnable: Runnable[Any, Any], messages: list[Any]) -> Any:
    """Send a request; retry after a rate limit, a server error, a time-out or a broken connection.

    Returns the reply; or an exception, if the endpoint refuses this form of the request or the client cannot read the
    answer. Any other failure, and that of the last retry, is raised as a ``ModelError``.
    """
    for attempt in count():
        charge_call()
        reply = await _ask_once(call, runnable, messages)
        if ends_run(reply):
            raise reply
        if not isinstance(reply, Exception):
            call.failure = None
            if replies.was_cached(reply):
                return_call()
            else:
                charge_tokens(replies.used_tokens(reply, messages))
            return reply
        kind = classify(reply)
        if kind in (Failure.REFUSED, Failure.OUTPUT):
            return reply
        remaining = remaining_seconds()
        if remaining is not None and remaining <= _GRACE and kind is not Failure.RATE_LIMITED:
            await wait(remaining)
            time_limit()  # no time remains now, so this raises BudgetExceededError
        may_retry = call.retries_left > 0 and not call.watch.started
        await wait(seconds_before_retry(reply, call.failed(reply), attempt, may_retry=may_retry))
        call.retries_left -= 1


def seconds_before_retry(error: Exception, mapped: ModelError, attempt: int, *, may_retry: bool) -> float:
    """Return the seconds to wait after an attempt (the first is 0); raise ``mapped`` if a retry is of no use."""
    kind = classify(error)
    if kind not in RETRYABLE or not may_retry:
        raise mapped
    seconds = retry_after(error) if kind in (Failure.RATE_LIMITED, Failure.SERVER) else None
    if seconds is None:  # jitter, so that branches that failed together don't come back together
        seconds = FIRST_PAUSE * 2**attempt * random.uniform(0.75, 1.25)
    remaining = remaining_seconds()
    allowed = LONGEST_PAUSE if remaining is None else min(remaining, LONGEST_PAUSE)
    if seconds > allowed:
        if kind is not Failure.RATE_LIMITED:
            raise mapped
        waits = f"The server asks to wait {seconds:.1f} s; {allowed:.1f} s are allowed."
        raise ModelUnreachableError(f"{mapped} {waits}")
    return seconds


def wait(seconds: float) -> Step[None]:
    """Make a step that waits."""
    return Step("wait", lambda _: time.sleep(seconds), lambda _: asyncio.sleep(seconds))


async def _ask_once(call: ModelCall, runnable: Runnable[Any, Any], messages: list[Any]) -> Any:
    """Send one request: return the reply, or an error that the caller may retry."""
    send = partial(runnable.invoke, messages, call.config)
    asend = partial(acall_runnable, runnable, messages, call.config)
    try:
        with ended_runs():
            # a client's own time-out is for each read; this one is for the whole request
            return await timed_step("It", send, asend, call.timeout)
    except BudgetExceededError:
        raise
    except Exception as error:  # noqa: BLE001 - a value, so that it is the context of no other error
        return replies.cut_off_reply(error) or error


async def ask_within(call: ModelCall, messages: list[Any], bind: Method | None = None) -> Any:
    """Send a request with a bound on the reply, in plain text or by ``bind``, a method of structured output.

    A reply that is cut off at its bound is asked for once more. Returns the reply; None if the model does not have that
    method; an error that another method may avoid. Every other failure is raised as a ``ModelError``.
    """
    bound = call.bound
    runnable = call.runnable(bind, bound)
    if runnable is None:
        return None
    reply = await ask(call, runnable, messages)
    if not isinstance(reply, Exception):
        message, _ = replies.split_reply(reply)
        call.endpoint.thinks = call.endpoint.thinks or replies.has_thoughts(message)
        # the bound is lower if the model was made with one of its own; a stream would be read twice
        if call.sent_bound == bound and not call.watch.started and replies.finish_of(message) == "length":
            reply = await _ask_again(call, messages, bind, reply, bound)
    elif call.sent_bound is not None and refuses_bound(reply):
        call.endpoint.takes_bound = False
        reply = await ask(call, call.runnable(bind), messages)
    if bind is None and isinstance(reply, Exception):
        raise call.failed(reply)
    return reply


async def _ask_again(
    call: ModelCall, messages: list[Any], bind: Method | None, cut_off: Any, bound: int
) -> Any:
    """Send a request again, whose reply was cut off at a bound, with twice that bound.

    A reply that repeats itself would only get longer: it is asked for again with a penalty on repetition, if the model
    takes one, and in a form that ends. Where it takes none, or that fails, the reply that was cut off is returned.
    """
    if not ends_in_loop(replies.written_text(cut_off), counting=bind is not None):
        return await ask(call, call.runnable(bind, max(2 * bound, call.bound)), messages)
    call.repeats = call.is_ending = True
    if not call.has_penalty:
        return cut_off
    reply = await ask(call, call.runnable(bind, bound), messages)
    return cut_off if isinstance(reply, Exception) else reply


async def format_prompt(call: ModelCall) -> list[BaseMessage]:
    """Fill in the caller's prompt."""
    # where no handler would see it, a run of the prompt's own costs more than the formatting
    if type(call.prompt) in (PromptTemplate, ChatPromptTemplate) and not has_handlers(call.config):
        messages: list[BaseMessage] = call.prompt.format_messages(**call.values)
        return messages
    value = await Step(
        "prompt",
        lambda call: call.prompt.invoke(call.values, call.config),
        lambda call: call.prompt.ainvoke(call.values, call.config),
    )
    return list(value.to_messages())


async def ask_fitted(call: ModelCall, ask: Callable[[list[BaseMessage]], Logic[T]]) -> T:
    """Fill in the caller's prompt and ask; leave out passages if it is too long for the model's context.

    An estimate says so first. If the endpoint refuses the prompt as too long, and says what its limit is, the model is
    asked once more, with fewer passages or for a shorter reply.
    """
    messages = await format_prompt(call)
    if _leave_out_passages(call, messages, replies.count_tokens(messages)):
        messages = await format_prompt(call)
    sent_bound = call.bound  # smaller once this call, or another one meanwhile, learns the context
    try:
        return await ask(messages)
    except ContextLengthError as error:
        if error.limit is None:
            raise
        call.endpoint.context = error.limit
        sent_tokens = error.given or replies.count_tokens(messages)
        has_fewer_passages = _leave_out_passages(call, messages, sent_tokens)
        if not has_fewer_passages and call.bound >= sent_bound:
            raise
    return await ask(await format_prompt(call))


def _leave_out_passages(call: ModelCall, messages: list[BaseMessage], tokens: int) -> bool:
    """Remove passages from the call's values if messages with ``tokens`` do not fit; tell whether any were removed."""
    context, passages = call.context, call.values.get("passages")
    if context is None or not isinstance(passages, Markup):
        return False
    room = context - call.bound
    if tokens <= room:
        return False
    chars = sum(len(replies.text_of(message)) for message in messages)
    excess_chars = chars * (tokens - room) / tokens
    kept, left_out = first_passages(passages, len(passages) - round(_MARGIN * excess_chars))
    if not kept:
        return False
    call.values = {**call.values, "passages": kept}
    write_note(
        f"{left_out} passages were left out of the prompt, or cut: about {tokens:,} tokens, where the model's context "
        f"of {context:,} has room for {room:,}"
    )
    return True


async def ask_for_reply(call: ModelCall) -> replies.TextReply:
    """Ask for a text, with a shorter prompt if the first was too long; a refusal or an empty reply is an error."""
    message = await ask_fitted(call, partial(ask_within, call))
    if refusal := replies.refusal_of(message):
        raise ModelOutputError(f"The model refused to answer: {call.without_secrets(refusal)}")
    return replies.text_reply(message)


async def _ask_for_text(call: ModelCall) -> str:
    """Ask for a text; write a note on the run if the reply was cut off."""
    reply = await ask_for_reply(call)
    if reply.cut_off:
        write_note(f"{getattr(call.prompt, 'title', 'a text')} is not whole: {reply.cut_off}")
    return reply.text


def text_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    **limits: Unpack[CallLimits],
) -> str:
    """Ask a model for text.

    Tokens stream to whoever listens through `config` (LangGraph's ``messages`` mode, callbacks). A stream that
    breaks off after its first token is not retried: the listener would read everything twice.

    Args:
        model: A chat model, or any runnable that takes messages.
        prompt, values, config, **limits: Those of ``structured_call``.

    Returns:
        The answer without reasoning blocks and surrounding white space; never empty.

    Raises:
        ModelError: Unreachable, unauthorised, rate limited, refused, or an empty answer.
        BudgetExceededError: A cap was reached.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.prompts import ChatPromptTemplate
        >>> text_call(FakeListChatModel(responses=["Hello."]), ChatPromptTemplate([("user", "{q}")]), {"q": "Hi"})
        'Hello.'
    """
    return ModelCall(model, prompt, values, config, **limits).run(_ask_for_text)


async def atext_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    **limits: Unpack[CallLimits],
) -> str:
    """``text_call`` without blocking; a cancelled task stops at once and is never retried."""
    return await ModelCall(model, prompt, values, config, **limits).arun(_ask_for_text)
