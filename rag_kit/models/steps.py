"""The steps of a call as data, so that one piece of logic serves the sync and the async face.

The logic is a generator that yields steps; a driver carries each out, sync or async, and sends back what came
of it. Exceptions of the model come back as values: nothing that holds a request with its headers ever
becomes the context of an exception of ours.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency import fan_out, remaining_seconds, run_in_thread
from rag_kit.concurrency import steps as concurrency
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
class Ask:
    """Invoke a runnable with messages; answered by an ``Answer``."""

    runnable: Runnable[Any, Any]
    messages: list[BaseMessage]
    timeout: float | None


@dataclass(frozen=True)
class Answer:
    """What came of an ``Ask``: a value, or the exception."""

    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True)
class Pause:
    """Wait some seconds; answered by None."""

    seconds: float


@dataclass(frozen=True)
class Render:
    """Fill in one of the kit's own prompts; answered by its messages."""

    name: str
    language: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """Fill in the caller's prompt; answered by its messages."""

    prompt: Runnable[Any, Any]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Enter:
    """Take the place that the next requests need; only where there are such places."""


@dataclass(frozen=True)
class Leave:
    """Give the place back: the answer is there, and charged."""


Step = Ask | Pause | Render | Format | Enter | Leave


def drive(steps: Generator[Step, Any, T], config: RunnableConfig | None) -> T:
    """Carry out the steps, blocking."""

    def carry_out(step: Step) -> Any:
        if isinstance(step, Ask):
            return _ask(step, config)
        if isinstance(step, Format):
            if (direct := _formatted(step, config)) is not None:
                return direct
            return step.prompt.invoke(step.values, config).to_messages()
        if isinstance(step, Render):
            return render(step)
        # blocking calls have no places to wait for
        return time.sleep(step.seconds) if isinstance(step, Pause) else None

    return concurrency.drive(steps, carry_out)


async def adrive(
    steps: Generator[Step, Any, T], config: RunnableConfig | None, slot: Slot | None = None
) -> T:
    """Carry out the steps without blocking the event loop; requests wait for the place, if there is one."""

    async def carry_out(step: Step) -> Any:
        if isinstance(step, Ask):
            return await _aask(step, config)
        if isinstance(step, Format):
            if (direct := _formatted(step, config)) is not None:
                return direct
            return (await step.prompt.ainvoke(step.values, config)).to_messages()
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        if isinstance(step, Enter | Leave):
            if slot is None:
                return None
            return await (slot.take() if isinstance(step, Enter) else slot.give_back())
        prompt = _recent(step)  # else a file is read, which would block the loop
        return _filled(prompt, step) if prompt is not None else await run_in_thread(render, step)

    try:
        return await concurrency.adrive(steps, carry_out)
    finally:
        if slot is not None:
            slot.drop()


def render(step: Render) -> list[BaseMessage]:
    """Fill in one of the kit's prompts; its file is read again when the last reading is 2 seconds old."""
    prompt = _recent(step)
    if prompt is None:
        prompt = load_prompt(step.name, language=step.language)
        if len(_loaded) >= _MOST_LOADED:
            _loaded.clear()
        _loaded[_place(step)] = (time.monotonic(), prompt)
    return _filled(prompt, step)


def _filled(prompt: PromptTemplate, step: Render) -> list[BaseMessage]:
    if step.name != "structured_output":
        return prompt.format_messages(**step.values)
    # The same text for each call of a schema, so it is filled in once for a content of the prompt file.
    key = ((prompt.metadata or {}).get("hash"), step.values["schema"])
    if key not in _instructions:
        if len(_instructions) >= _MOST_LOADED:
            _instructions.clear()
        _instructions[key] = prompt.format_messages(**step.values)
    return _instructions[key]


def _recent(step: Render) -> PromptTemplate | None:
    read, prompt = _loaded.get(_place(step), (0.0, None))
    return prompt if time.monotonic() - read < _FRESH_SECONDS else None


def _place(step: Render) -> tuple[str, str, str | None]:
    return step.name, step.language, os.environ.get(VARIABLE)


def _formatted(step: Format, config: RunnableConfig | None) -> list[BaseMessage] | None:
    """The messages, where nothing would be told of the prompt's own run; else None."""
    prompt = step.prompt
    # Where anybody listens, ``call_config`` has added a handler of the kit's own.
    if type(prompt) not in _PLAIN_PROMPTS or config is None or has_handlers(config):
        return None
    return cast("ChatPromptTemplate", prompt).format_messages(**step.values)


def _limit(step: Ask) -> float | None:
    known = [seconds for seconds in (step.timeout, remaining_seconds()) if seconds is not None]
    return min(known) if known else None


def _ask(step: Ask, config: RunnableConfig | None) -> Answer:
    limit = _limit(step)

    def invoke() -> Answer:
        try:
            return Answer(step.runnable.invoke(step.messages, config))
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


async def _aask(step: Ask, config: RunnableConfig | None) -> Answer:
    limit = _limit(step)
    try:
        if limit is None:
            return Answer(await acall_runnable(step.runnable, step.messages, config))
        async with asyncio.timeout(limit):
            return Answer(await acall_runnable(step.runnable, step.messages, config))
    except BudgetExceededError:
        raise
    except Exception as error:  # noqa: BLE001 - handed on as a value, see the module's docstring
        return Answer(error=error)
