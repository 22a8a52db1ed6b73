"""A prompt and a model to text, with the same caps, retries and errors as a structured call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.budget import budget_scope
from rag_kit.concurrency.steps import run
from rag_kit.errors import ModelOutputError

from .attempts import Tally, ask
from .endpoint import quick
from .failures import map_model_error
from .json_text import without_thinking
from .native import refusal_of, salvage
from .redact import secrets_of, short
from .settings import MAX_RETRIES, call_config, check_limits, check_parts
from .slots import Slot
from .steps import Calling, arun_with_slot, formatted
from .tokens import text_of


def text_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    timeout: float | None = None,
    max_retries: int = MAX_RETRIES,
) -> str:
    """Ask a model for text.

    Tokens stream to whoever listens through `config` (LangGraph's ``messages`` mode, callbacks). A stream that
    breaks off after its first token is not retried: the listener would read everything twice.

    Args:
        model: A chat model, or any runnable that takes messages.
        prompt: A prompt from ``load_prompt``, or any ``ChatPromptTemplate``.
        values: The prompt's variables.
        config: Passed down whole: callbacks, tags, metadata.
        max_calls: Most requests to the model, retries included; active budgets hold as well.
        max_tokens: Most tokens in and out.
        deadline: Seconds for the whole call.
        timeout: Seconds for one request.
        max_retries: Most retries after 429, 5xx, time-outs and broken connections.

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
    check_limits(timeout, max_retries)
    check_parts(model, prompt, values)
    tally = Tally(retries=max_retries)
    with budget_scope(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline):
        calling = Calling(call_config(config, model, prompt, tally.tokens_seen))
        return run(_text(model, prompt, values, tally, timeout), calling)


async def atext_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    timeout: float | None = None,
    max_retries: int = MAX_RETRIES,
    slot: Slot | None = None,
) -> str:
    """``text_call`` without blocking; a cancelled task stops at once and is never retried.

    `slot`, if given, is taken while a request is under way or waits to be repeated.
    """
    check_limits(timeout, max_retries)
    check_parts(model, prompt, values)
    tally = Tally(retries=max_retries, places=slot is not None)
    with budget_scope(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline):
        calling = Calling(call_config(config, model, prompt, tally.tokens_seen), slot)
        return await arun_with_slot(_text(model, prompt, values, tally, timeout), calling)


async def _text(
    model: Any, prompt: Runnable[Any, Any], values: Mapping[str, Any], tally: Tally, timeout: float | None
) -> str:
    messages = await formatted(prompt, values)
    reply = await ask(quick(model, timeout), messages, tally, model=model, timeout=timeout)
    if reply.kind is not None:
        text = salvage(cast(Exception, reply.error))
        if not text:
            raise map_model_error(cast(Exception, reply.error), model=model)
        return text
    if refusal := refusal_of(reply.value):
        raise ModelOutputError(f"The model refused to answer: {short(refusal, secrets_of(model))}")
    text = without_thinking(text_of(reply.value))
    if not text:
        raise ModelOutputError("The model's answer is empty. Ask again, or use another model.")
    return text
