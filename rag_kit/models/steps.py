"""The steps of a call to a model.

Exceptions of the model come back as values: nothing that holds a request with its headers ever becomes the context
of an exception of ours.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency import fan_out
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.budget import remaining_seconds
from rag_kit.concurrency.steps import Logic, Step, arun
from rag_kit.errors import BranchTimeoutError, BudgetExceededError
from rag_kit.prompts import PromptTemplate, load_prompt
from rag_kit.prompts.folders import VARIABLE

from .clients import acall_runnable
from .listening import has_handlers
from .slots import Slot

T = TypeVar("T")
_FRESH_SECONDS = 2.0
_MOST_LOADED = 16
_PLAIN_PROMPTS = (PromptTemplate, ChatPromptTemplate)
_instructions: dict[tuple[str | None, str], list[BaseMessage]] = {}
# The prompts named in the code (two names in two languages), by name, language and override folder.
_loaded: dict[tuple[str, str, str | None], tuple[float, PromptTemplate | None]] = {}


@dataclass(frozen=True)
class Answer:
    """What a model gave: a value, or the exception."""

    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True)
class Calling:
    """What the steps of one call are carried out with.

    Attributes:
        config: Passed down to the model and to the caller's prompt.
        slot: The place that requests wait for on an event loop; None: they do not wait.
    """

    config: RunnableConfig | None
    slot: Slot | None = None


async def arun_with_slot(logic: Logic[T], calling: Calling) -> T:
    """Carry out the logic on an event loop; the place is given back, however it ends."""
    try:
        return await arun(logic, calling)
    finally:
        if calling.slot is not None:
            calling.slot.drop()


def request(runnable: Runnable[Any, Any], messages: list[BaseMessage], timeout: float | None) -> Step[Answer]:
    """Invoke a runnable with messages."""
    return Step(
        "model",
        lambda calling: _ask(runnable, messages, timeout, calling.config),
        lambda calling: _aask(runnable, messages, timeout, calling.config),
    )


def pause(seconds: float) -> Step[None]:
    """Wait some seconds."""
    return Step("pause", lambda calling: time.sleep(seconds), lambda calling: asyncio.sleep(seconds))


def take_place() -> Step[None]:
    """Take the place that the next requests need; blocking calls have none to wait for."""

    async def native(calling: Calling) -> None:
        if calling.slot is not None:
            await calling.slot.take()

    return Step("place", lambda calling: None, native)


def give_back_place() -> Step[None]:
    """Give the place back: the answer is there, and charged."""

    async def native(calling: Calling) -> None:
        if calling.slot is not None:
            await calling.slot.give_back()

    return Step("place", lambda calling: None, native)


def rendered(name: str, language: str, values: Mapping[str, Any]) -> Step[list[BaseMessage]]:
    """Fill in one of the kit's own prompts; its file is read again when the last reading is 2 seconds old."""

    async def native(calling: Calling) -> list[BaseMessage]:
        prompt = _recent(name, language)  # else a file is read, which would block the loop
        if prompt is None:
            prompt = await run_in_thread(_load, name, language)
        return _filled(prompt, values)

    return Step(
        name, lambda calling: _filled(_recent(name, language) or _load(name, language), values), native
    )


def formatted(prompt: Runnable[Any, Any], values: Mapping[str, Any]) -> Step[list[BaseMessage]]:
    """Fill in the caller's prompt."""

    def sync(calling: Calling) -> list[BaseMessage]:
        direct = _formatted(prompt, values, calling.config)
        return prompt.invoke(values, calling.config).to_messages() if direct is None else direct

    async def native(calling: Calling) -> list[BaseMessage]:
        direct = _formatted(prompt, values, calling.config)
        return (await prompt.ainvoke(values, calling.config)).to_messages() if direct is None else direct

    return Step("prompt", sync, native)


def _load(name: str, language: str) -> PromptTemplate:
    prompt = load_prompt(name, language=language)
    if len(_loaded) >= _MOST_LOADED:
        _loaded.clear()
    _loaded[_place(name, language)] = (time.monotonic(), prompt)
    return prompt


def _recent(name: str, language: str) -> PromptTemplate | None:
    read, prompt = _loaded.get(_place(name, language), (0.0, None))
    return prompt if time.monotonic() - read < _FRESH_SECONDS else None


def _place(name: str, language: str) -> tuple[str, str, str | None]:
    return name, language, os.environ.get(VARIABLE)


def _filled(prompt: PromptTemplate, values: Mapping[str, Any]) -> list[BaseMessage]:
    if set(values) != {"schema"}:
        return prompt.format_messages(**values)
    # The same text for each call of a schema, so it is filled in once for a content of the prompt file.
    key = ((prompt.metadata or {}).get("hash"), values["schema"])
    if key not in _instructions:
        if len(_instructions) >= _MOST_LOADED:
            _instructions.clear()
        _instructions[key] = prompt.format_messages(**values)
    return _instructions[key]


def _formatted(
    prompt: Runnable[Any, Any], values: Mapping[str, Any], config: RunnableConfig | None
) -> list[BaseMessage] | None:
    """The messages, where no handler would see the prompt's own run; else None."""
    # Where anybody listens, ``call_config`` has added a handler of the kit's own.
    if type(prompt) not in _PLAIN_PROMPTS or config is None or has_handlers(config):
        return None
    return cast("ChatPromptTemplate", prompt).format_messages(**values)


def _limit(timeout: float | None) -> float | None:
    known = [seconds for seconds in (timeout, remaining_seconds()) if seconds is not None]
    return min(known) if known else None


def _ask(
    runnable: Runnable[Any, Any],
    messages: list[BaseMessage],
    timeout: float | None,
    config: RunnableConfig | None,
) -> Answer:
    limit = _limit(timeout)

    def invoke() -> Answer:
        try:
            return Answer(runnable.invoke(messages, config))
        except BudgetExceededError:
            raise
        except Exception as error:  # noqa: BLE001 - handed on as a value, see the module's docstring
            return Answer(error=error)

    if limit is None:
        return invoke()
    # A client's own time-out is for each read; only a branch that is given up ends on time.
    (outcome,) = fan_out([invoke], timeout=limit, on_error="skip", names=["model"]).outcomes
    if outcome.ok and outcome.value is not None:
        return outcome.value
    if isinstance(outcome.error, BranchTimeoutError):
        return Answer(error=TimeoutError(f"no answer within {limit:g} s"))
    raise outcome.error or TimeoutError(f"no answer within {limit:g} s")


async def _aask(
    runnable: Runnable[Any, Any],
    messages: list[BaseMessage],
    timeout: float | None,
    config: RunnableConfig | None,
) -> Answer:
    limit = _limit(timeout)
    try:
        if limit is None:
            return Answer(await acall_runnable(runnable, messages, config))
        async with asyncio.timeout(limit):
            return Answer(await acall_runnable(runnable, messages, config))
    except BudgetExceededError:
        raise
    except Exception as error:  # noqa: BLE001 - handed on as a value, see the module's docstring
        return Answer(error=error)
