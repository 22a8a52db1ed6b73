"""What is tested: a chat model, a function of question and passages, or a pipeline built upon `GivenPassages`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency.bridge import acall_function
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.rgb.given import give
from rag_kit.evaluation.rgb.rules import Item
from rag_kit.evaluation.runs.asking import asker, default_name, resolve
from rag_kit.text.citations import DECLINED

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.documents import Document

#: Gives the reply, and whether the passages were asked for.
Answer = Callable[[Item, "list[Document]"], Awaitable[tuple[str, bool]]]


class Answerer:
    """Asks what is tested.

    Attributes:
        name: Its name.
        identity: What decides its replies, as far as can be told.
        declines: Words by which it declines, beside RGB's.
        ask: Asks it.

    Raises:
        InvalidInputError: If it is nothing that can be asked.
    """

    def __init__(self, pipeline: Any, prompts: Path | None) -> None:
        from langchain_core.language_models import BaseChatModel

        self.declines: tuple[str, ...] = ()
        if isinstance(pipeline, BaseChatModel):
            self._of_model(pipeline, prompts)
            return
        pipeline = resolve(pipeline)
        self.name = default_name(pipeline)
        self.identity: dict[str, Any] = {"name": self.name}
        self.declines = tuple(sentence.rstrip(".。") for sentence in DECLINED.values())
        self.needs_reading = not takes_passages(pipeline)
        self.ask: Answer = _pipeline(pipeline) if self.needs_reading else _function(pipeline)

    def _of_model(self, model: Any, prompts: Path | None) -> None:
        from rag_kit.models import atext_call, describe_model
        from rag_kit.prompts import load_prompt, render_passages

        templates = {
            language: load_prompt("answer_or_doubt", language=language, folder=prompts)
            for language in ("en", "zh")
        }
        self.name = describe_model(model).partition(". ")[0]
        hashes = {language: (each.metadata or {}).get("hash") for language, each in templates.items()}
        self.identity = {"name": self.name, "prompts": hashes}
        self.needs_reading = False

        async def ask(item: Item, documents: list[Document]) -> tuple[str, bool]:
            values = {"question": item.question, "passages": render_passages(documents)}
            return await atext_call(model, templates[item.language], values), True

        self.ask = ask


def takes_passages(pipeline: Any) -> bool:
    """Whether it is a function of a question and passages."""
    if hasattr(pipeline, "ainvoke"):
        return False
    try:
        parameters = list(inspect.signature(pipeline).parameters.values())
    except (TypeError, ValueError):
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in places if p.default is p.empty]
    variable = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(needed) > 2:
        raise InvalidInputError(
            f"the function needs {len(needed)} arguments; give one of (question, passages), or of (question)"
        )
    return len(needed) == 2 or (len(places) >= 2 and places[1].name in ("passages", "documents")) or variable


def _function(function: Callable[..., Any]) -> Answer:
    async def ask(item: Item, documents: list[Document]) -> tuple[str, bool]:
        return _reply(await acall_function(function, item.question, documents)), True

    return ask


def _pipeline(pipeline: Any) -> Answer:
    asked = asker(pipeline)

    async def ask(item: Item, documents: list[Document]) -> tuple[str, bool]:
        with give(documents) as given:
            value = await asked(Example(item.id, item.question))
        return _reply(value), given.read

    return ask


def _reply(value: Any) -> str:
    output = Output.of(value)
    if output.answer is None:
        raise InvalidInputError("the pipeline gave no answer; abilities are those of answering")
    return output.answer
