"""From a question to a text and a filter, by a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.models import astructured_call, structured_call
from rag_kit.prompts.filter_schema import SelfQuery
from rag_kit.query_construction.checking import check_answer
from rag_kit.query_construction.constructed import ConstructedQuery
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

_MAX_VALUES = 40
_MAX_CHARS = 80


class ModelConstructor:
    """Asks a model for text and filter, in a form; checks each condition against the schema.

    Args:
        llm: A chat model, or another runnable that takes messages.
        prompt_for: Gives the prompt for a question.
        today: What relative dates count from; ``None`` for the day of the call.
        timeout: Seconds for one request.
        contents: What the documents are, in words for the model.
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

    def construct(
        self, question: str, schema: Schema, config: RunnableConfig | None = None
    ) -> ConstructedQuery:
        """Turn a question into text and filter; raises ``ModelError`` or ``BudgetExceededError``."""
        answer = structured_call(*self._request(question, schema), timeout=self._timeout, config=config)
        return check_answer(answer, question, schema, self._today or date.today())

    async def aconstruct(
        self, question: str, schema: Schema, config: RunnableConfig | None = None
    ) -> ConstructedQuery:
        """As ``construct``, without blocking."""
        answer = await astructured_call(
            *self._request(question, schema), timeout=self._timeout, config=config
        )
        return check_answer(answer, question, schema, self._today or date.today())

    def _request(self, question: str, schema: Schema) -> tuple[Any, Any, dict[str, Any], type[SelfQuery]]:
        """Model, prompt, values and form."""
        prompt = self._prompt_for(question)
        language = (getattr(prompt, "metadata", None) or {}).get("language", "en")
        fields = describe(schema, question, language)
        if self._contents:
            line = "正文：{}。可用的字段：\n{}" if language == "zh" else "The text is: {}. The fields:\n{}"
            fields = line.format(_one_line(self._contents, 300).rstrip(".。"), fields)
        today = (self._today or date.today()).isoformat()
        known = {"question": question, "fields": fields, "today": today}
        values = {name: value for name, value in known.items() if name in prompt.input_variables}
        return self.llm, prompt, values, SelfQuery


# list, field with type, before a description, before what follows, range, values, between values, how many more
_WORDS = {
    "en": ("list of {}", "{} ({})", ": ", "; ", "from {} to {}", "values: ", ", ", " and {} more"),
    "zh": ("{} 列表", "{}（{}）", "：", "；", "从 {} 到 {}", "取值：", "、", "，另有 {} 个"),
}


def describe(schema: Schema, question: str = "", language: str = "en") -> str:
    """The fields as lines for the prompt, in its language: type, meaning, range, values.

    Of many values only those are listed that the question names, then the most frequent ones, 40 in all.

    Example:
        >>> schema = Schema.of([{"name": "year", "type": "int", "minimum": 1990, "maximum": 2020}])
        >>> print(describe(schema))
        year (int); from 1990 to 2020
        >>> print(describe(schema, language="zh"))
        year（int）；从 1990 到 2020
    """
    named = RuleConstructor.named_values(schema, question) if question else {}
    return "\n".join(_line(field, named.get(field.name, []), language) for field in schema)


def _line(field: MetadataField, named: list[Any], language: str) -> str:
    listed, typed, colon, semicolon, ranged, valued, comma, others = _WORDS[
        "zh" if language == "zh" else "en"
    ]
    line = typed.format(_one_line(field.name), listed.format(field.type) if field.many else field.type)
    if field.description:
        line += colon + _one_line(field.description, 300)
    if field.minimum is not None and field.maximum is not None:
        return line + semicolon + ranged.format(field.minimum, field.maximum)
    if field.values:
        values = list(dict.fromkeys([*named, *field.values]))[:_MAX_VALUES]
        more = len(field.values) - len(values)
        line += semicolon + valued
        line += comma.join(json.dumps(_one_line(str(value)), ensure_ascii=False) for value in values)
        if more > 0 or not field.complete:
            line += others.format(more)
    return line


def _one_line(text: str, most: int = _MAX_CHARS) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
