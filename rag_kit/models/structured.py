"""One structured call: a prompt and a model to a validated object, whatever the model can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel

from .calls import MAX_RETRIES, ModelCall
from .ladder import RAISE, Ladder
from .slots import Slot


def structured_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    schema: type[BaseModel] | Mapping[str, Any] | None = None,
    *,
    fallback: Any = RAISE,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    timeout: float | None = None,
    max_retries: int = MAX_RETRIES,
    config: RunnableConfig | None = None,
) -> Any:
    """Ask a model for an object of a given form.

    The ladder: native JSON schema, function calling, JSON mode, then plain text read tolerantly (fences,
    reasoning blocks, tags, one entry a line), with one repair. An endpoint that refuses a method (400, 404,
    415, 422) is asked in the next one, and that is remembered for this model and endpoint. A bad answer sends
    only this call on to text and repair. 429 (``Retry-After`` is honoured), 5xx, time-outs and broken
    connections are retried, at most `max_retries` times in all.

    Args:
        model: A chat model; any other runnable is asked in plain text.
        prompt: A prompt from ``load_prompt``, or any ``ChatPromptTemplate``.
        values: The prompt's variables.
        schema: A Pydantic class or a JSON schema; default: the prompt's own ``output_schema``.
        fallback: Returned instead of raising a ``ModelError`` or ``BudgetExceededError``; a callable is
            called with that error. Default: raise.
        max_calls: Most requests to the model, for this call alone; active budgets hold as well.
        max_tokens: Most tokens in and out; the call that goes over is kept, the next one is refused.
        deadline: Seconds for the whole call.
        timeout: Seconds for one request.
        max_retries: Most retries over the whole call.
        config: Passed down whole: callbacks, tags, metadata.

    Returns:
        An instance of the class, or a dict for a JSON schema; or the fallback.

    Raises:
        ModelError: Unreachable, unauthorised, rate limited, or no valid answer came; no message holds a key.
        BudgetExceededError: A cap was reached.
        InvalidInputError: There is no schema, or a limit is negative.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.prompts import load_prompt
        >>> model = FakeListChatModel(responses=["<think>hm</think><query>What is BM25?</query>"])
        >>> values = {"history": "", "question": "What is it?"}
        >>> structured_call(model, load_prompt("condense"), values).query
        'What is BM25?'
    """
    limits = (max_calls, max_tokens, deadline, timeout, max_retries)
    call = ModelCall(model, prompt, values, config, *limits)
    return call.run(Ladder(call, schema, fallback).answer)


async def astructured_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    schema: type[BaseModel] | Mapping[str, Any] | None = None,
    *,
    fallback: Any = RAISE,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    deadline: float | None = None,
    timeout: float | None = None,
    max_retries: int = MAX_RETRIES,
    config: RunnableConfig | None = None,
    slot: Slot | None = None,
) -> Any:
    """``structured_call`` without blocking; a cancelled task stops at once and is never retried.

    `slot`, if given, is taken while a request is under way or waits to be repeated.
    """
    limits = (max_calls, max_tokens, deadline, timeout, max_retries)
    call = ModelCall(model, prompt, values, config, *limits, slot)
    return await call.arun(Ladder(call, schema, fallback).answer)
