"""The description of a collection for a model: its fields as lines, with the values that the question names."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

_MAX_VALUES = 40
_MAX_CHARS = 80


def prompt_values(
    prompt: Any, question: str, schema: Schema, today: date, contents: str | None = None
) -> dict[str, Any]:
    """What a prompt is filled with: question, fields, today's date; `contents` says what the documents are."""
    language = (getattr(prompt, "metadata", None) or {}).get("language", "en")
    fields = describe(schema, question, language)
    if contents:
        line = "正文：{}。可用的字段：\n{}" if language == "zh" else "The text is: {}. The fields:\n{}"
        fields = line.format(_one_line(contents, 300).rstrip(".。"), fields)
    values = {"question": question, "fields": fields, "today": today.isoformat()}
    return {name: value for name, value in values.items() if name in prompt.input_variables}


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
    """A field as the model reads it: name, type, description, and its range or values, those named first."""
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


def _one_line(text: str, max_chars: int = _MAX_CHARS) -> str:
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"
