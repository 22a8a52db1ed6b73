"""Prompts filled in, as steps of a call."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import Step
from rag_kit.prompts import PromptTemplate, load_prompt
from rag_kit.prompts.folders import VARIABLE

from .calls import ModelCall
from .listening import has_handlers

_FRESH_SECONDS = 2.0
_MOST_KEPT = 16
# The prompts named in the code (two names in two languages), by name, language and override folder.
_loaded: dict[tuple[str, str, str | None], tuple[float, PromptTemplate]] = {}
_instructions: dict[tuple[str | None, str], list[BaseMessage]] = {}


def formatted() -> Step[list[BaseMessage]]:
    """Fill in the caller's prompt."""

    def sync(call: ModelCall) -> list[BaseMessage]:
        if (direct := _formatted(call)) is not None:
            return direct
        messages: list[BaseMessage] = call.prompt.invoke(call.values, call.config).to_messages()
        return messages

    async def native(call: ModelCall) -> list[BaseMessage]:
        if (direct := _formatted(call)) is not None:
            return direct
        messages: list[BaseMessage] = (await call.prompt.ainvoke(call.values, call.config)).to_messages()
        return messages

    return Step("prompt", sync, native)


def rendered(name: str, language: str, values: Mapping[str, Any]) -> Step[list[BaseMessage]]:
    """Fill in one of the kit's own prompts; its file is read again when the last reading is 2 seconds old."""
    place = (name, language, os.environ.get(VARIABLE))

    def load() -> PromptTemplate:
        prompt = load_prompt(name, language=language)
        _keep(_loaded, place, (time.monotonic(), prompt))
        return prompt

    def recent() -> PromptTemplate | None:
        read, prompt = _loaded.get(place, (0.0, None))
        return prompt if time.monotonic() - read < _FRESH_SECONDS else None

    async def native(call: ModelCall) -> list[BaseMessage]:
        prompt = recent()
        if prompt is None:  # a file is read, which would block the loop
            prompt = await run_in_thread(load)
        return _filled(prompt, values)

    return Step(name, lambda call: _filled(recent() or load(), values), native)


def _filled(prompt: PromptTemplate, values: Mapping[str, Any]) -> list[BaseMessage]:
    if set(values) != {"schema"}:
        return prompt.format_messages(**values)
    # The same text for each call of a schema, so it is filled in once for a content of the prompt file.
    key = ((prompt.metadata or {}).get("hash"), values["schema"])
    if key not in _instructions:
        _keep(_instructions, key, prompt.format_messages(**values))
    return _instructions[key]


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = value


def _formatted(call: ModelCall) -> list[BaseMessage] | None:
    """The messages, where no handler would see the prompt's own run; else None."""
    # Where anybody listens, the config holds a handler of the kit's own.
    if type(call.prompt) not in (PromptTemplate, ChatPromptTemplate) or has_handlers(call.config):
        return None
    messages: list[BaseMessage] = call.prompt.format_messages(**call.values)  # type: ignore[attr-defined]
    return messages
