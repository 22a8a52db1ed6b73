"""A prompt and a model to text, with the same caps, retries and errors as a structured call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.errors import ModelOutputError

from .attempts import ask, refusal_of, text_of, without_thinking
from .calls import Limits, ModelCall, formatted
from .failures import map_model_error
from .redact import secrets_of, short


def text_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    **limits: Unpack[Limits],
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
    call = ModelCall(model, prompt, values, config, **limits)
    return call.run(partial(_text, call))


async def atext_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    **limits: Unpack[Limits],
) -> str:
    """``text_call`` without blocking; a cancelled task stops at once and is never retried."""
    call = ModelCall(model, prompt, values, config, **limits)
    return await call.arun(partial(_text, call))


async def _text(call: ModelCall) -> str:
    reply = await ask(call, call.bare_model, await formatted())
    if reply.error is not None:
        raise map_model_error(reply.error, model=call.model)
    if refusal := refusal_of(reply.value):
        raise ModelOutputError(f"The model refused to answer: {short(refusal, secrets_of(call.model))}")
    text = without_thinking(text_of(reply.value))
    if not text:
        raise ModelOutputError("The model's answer is empty. Ask again, or use another model.")
    return text
