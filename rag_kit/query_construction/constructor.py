"""From a question to a text and a filter, by a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Protocol

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.models import astructured_call, structured_call
from rag_kit.prompts.filter_schema import SelfQuery
from rag_kit.query_construction.checking import check_answer
from rag_kit.query_construction.constructed import ConstructedQuery
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

_SHOWN_VALUES = 40
_SHOWN_CHARS = 80


class Constructor(Protocol):
    """What turns questions into text and filter."""

    def construct(
        self, question: str, schema: Schema, config: RunnableConfig | None = None
    ) -> ConstructedQuery:
        """Turn a question into text and filter; only fields of the schema may be used."""

    async def aconstruct(
        self, question: str, schema: Schema, config: RunnableConfig | None = None
    ) -> ConstructedQuery:
        """As ``construct``, without blocking."""


class ModelConstructor:
    """Asks a model for text and filter, in a form; checks each condition against the schema.

    Args:
        llm: A chat model, or another runnable that takes messages.
        prompt_for: Gives the prompt for a question.
        today: What relative dates count from; ``None`` for the day of the call.
        timeout: Seconds for one request.
        contents: What the documents are, in words for the model.

    Raises:
        ModelError: On call: the model could not be reached or gave no answer of the form.
        BudgetExceededError: On call: a cap was reached.
    """

    def __init__(
        self,
        llm: Runnable[Any, Any],
        prompt_for: Callable[[str], Any],
        *,
        today: date | None = None,
        timeout: float | None = None,
        contents: str | None = None,
    ) -> None:
        self.llm = llm
        self._contents = contents
        self._prompt_for = prompt_for
        self._today = today
        self._timeout = timeout

    def _ask(self, question: str, schema: Schema) -> tuple[Any, Any, dict[str, Any], Any]:
        prompt = self._prompt_for(question)
        today = self._today or date.today()
        language = (getattr(prompt, "metadata", None) or {}).get("language", "en")
        fields = describe(schema, question, language)
        if self._contents:
            said = "正文：{}。可用的字段：\n{}" if language == "zh" else "The text is: {}. The fields:\n{}"
            fields = said.format(_plain(self._contents, 300).rstrip(".。"), fields)
        known = {"question": question, "fields": fields, "today": today.isoformat()}
        values = {name: value for name, value in known.items() if name in prompt.input_variables}
        return self.llm, prompt, values, SelfQuery

    def _check(self, answer: Any, question: str, schema: Schema) -> ConstructedQuery:
        if not isinstance(answer, SelfQuery):
            answer = SelfQuery.model_validate(dict(answer))
        return check_answer(answer, question, schema, self._today or date.today())

    def construct(
        self, question: str, schema: Schema, config: RunnableConfig | None = None
    ) -> ConstructedQuery:
        """Ask the model."""
        answer = structured_call(*self._ask(question, schema), timeout=self._timeout, config=config)
        return self._check(answer, question, schema)

    async def aconstruct(
        self, question: str, schema: Schema, config: RunnableConfig | None = None
    ) -> ConstructedQuery:
        """Ask the model without blocking."""
        answer = await astructured_call(*self._ask(question, schema), timeout=self._timeout, config=config)
        return self._check(answer, question, schema)


def describe(schema: Schema, question: str = "", language: str = "en") -> str:
    """The fields as lines for the prompt, in its language: type, meaning, range, values.

    Of many values only those are shown that the question names, then the most frequent ones, 40 in all.

    Example:
        >>> schema = Schema.of([{"name": "year", "type": "int", "minimum": 1990, "maximum": 2020}])
        >>> print(describe(schema))
        year (int); from 1990 to 2020
        >>> print(describe(schema, language="zh"))
        year（int）；从 1990 到 2020
    """
    named: Mapping[str, list[Any]] = RuleConstructor.named_values(schema, question) if question else {}
    tongue = "zh" if language == "zh" else "en"
    return "\n".join(_line(field, *_shown(field, named.get(field.name, [])), tongue) for field in schema)


def _shown(field: MetadataField, named: list[Any]) -> tuple[list[str], str]:
    """The values to show, quoted, and how many there are besides; empty where that is nothing."""
    shown = list(dict.fromkeys([*named, *(field.values or ())]))[:_SHOWN_VALUES]
    more = len(field.values or ()) - len(shown)
    listed = [json.dumps(_plain(str(value)), ensure_ascii=False) for value in shown]
    return listed, str(more) if more > 0 or not field.complete else ""


# list, field with type, before a description, before what follows, range, values, between values, how many more
_WORDS = {
    "en": ("list of {}", "{} ({})", ": ", "; ", "from {} to {}", "values: ", ", ", " and {} more"),
    "zh": ("{} 列表", "{}（{}）", "：", "；", "从 {} 到 {}", "取值：", "、", "，另有 {} 个"),
}


def _line(field: MetadataField, values: list[str], more: str, language: str) -> str:
    listed, typed, colon, semicolon, ranged, valued, comma, others = _WORDS[language]
    line = typed.format(_plain(field.name), listed.format(field.type) if field.many else field.type)
    if field.description:
        line += colon + _plain(field.description, 300)
    if field.minimum is not None and field.maximum is not None:
        return line + semicolon + ranged.format(field.minimum, field.maximum)
    if field.values:
        line += semicolon + valued + comma.join(values) + (others.format(more) if more else "")
    return line


def _plain(text: str, most: int = _SHOWN_CHARS) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
