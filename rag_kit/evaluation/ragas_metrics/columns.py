"""The columns that a metric of Ragas's reads, filled in from an example and an output."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.ragas_metrics.messages import ragas_calls, ragas_messages

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.outputs import Output

_FENCED = re.compile(r"\s*(`{3,}|~{3,})[^\n`]*\n(.*?)\n?\s*\1\s*", re.DOTALL)
_SCORE = re.compile(r"(?:score)?\s*(-?\d{1,3})(?:_description)?")
_MOST_LEVELS, _MOST_CHARS = 20, 4_000

#: Column -> what of an example or an output it needs: a field of either, or a key of the example's metadata.
_NEEDS: dict[str, tuple[str, frozenset[str]]] = {
    "user_input": ("output", frozenset()),
    "messages": ("output", frozenset({"messages"})),
    "response": ("output", frozenset({"answer"})),
    "response_code": ("output", frozenset({"answer"})),
    "retrieved_contexts": ("output", frozenset({"passages"})),
    "reference": ("example", frozenset({"reference"})),
    "reference_code": ("example", frozenset({"reference"})),
    "reference_contexts": ("example", frozenset({"reference_contexts"})),
    "goal": ("any", frozenset({"reference", "metadata.reference_goal"})),
    "reference_table": ("any", frozenset({"reference", "metadata.reference_table"})),
}


def needs_of(columns: Iterable[str], *, best_of: bool = False) -> dict[str, frozenset[str]]:
    """The attributes of a `Metric` that say which fields must be there.

    Example:
        >>> needs_of(["response", "reference_topics"])["metadata_needs"]
        frozenset({'reference_topics'})
    """
    found: dict[str, set[str]] = {"example": set(), "output": set(), "any": set(), "metadata": set()}
    for column in columns:
        where, names = _NEEDS.get(column, ("metadata", frozenset({column})))
        if best_of and column == "reference":
            where, names = "any", frozenset({"reference", "answers"})
        found[where] |= names
    return {
        "example_needs": frozenset(found["example"]), "output_needs": frozenset(found["output"]),
        "example_any": frozenset(found["any"]), "metadata_needs": frozenset(found["metadata"]),
    }  # fmt: skip


def read_column(name: str, example: Example, output: Output) -> Any:
    """A column's value; ``None`` where there is none. Any other name is a key of the example's metadata.

    Raises:
        InvalidInputError: If what stands there has another form.
    """
    reader = _READERS.get(name)
    return example.metadata.get(name) if reader is None else reader(example, output)


def unfence(text: str) -> str:
    """What stands in a code fence, when the fence is all there is.

    Example:
        >>> unfence("```csv\\na,b\\n```")
        'a,b'
    """
    fenced = _FENCED.fullmatch(text) if text.lstrip()[:3] in ("```", "~~~") else None
    return fenced[2] if fenced else text


def rubric(levels: Any, where: str) -> dict[str, str]:
    """A scale (score -> description; the scores as numbers or with Ragas's keys) with Ragas's keys, in order.

    Raises:
        InvalidInputError: If it is none, or has fewer than 2 or more than 20 levels.

    Example:
        >>> rubric({2: "Right.", "score1_description": "Wrong."}, "rubrics")
        {'score1_description': 'Wrong.', 'score2_description': 'Right.'}
    """
    found: dict[int, str] = {}
    if isinstance(levels, Mapping):
        for key, text in levels.items():
            match = None if isinstance(key, bool) else _SCORE.fullmatch(str(key).strip())
            if match and isinstance(text, str) and text.strip() and len(text) <= _MOST_CHARS:
                found[int(match[1])] = text.strip()
    if not isinstance(levels, Mapping) or len(found) != len(levels) or not 2 <= len(found) <= _MOST_LEVELS:
        raise InvalidInputError(
            f"{where} is {levels!r:.120}; give from 2 to {_MOST_LEVELS} scores, each with a text of at most "
            f"{_MOST_CHARS:,} characters, such as {{1: 'Wrong.', 3: 'Right.'}}"
        )
    return {f"score{score}_description": text for score, text in sorted(found.items())}


def scores_of(rubrics: Mapping[str, str]) -> list[int]:
    """The scores of a scale with Ragas's keys; none for a scale with other keys."""
    found = [_SCORE.fullmatch(key) for key in rubrics]
    return [int(match[1]) for match in found if match] if all(found) else []


def _reference_table(example: Example, output: Output) -> str:
    """``metadata["reference_table"]`` (CSV text, or a list of rows as dicts), else the reference, as CSV text."""
    table = example.metadata.get("reference_table")
    if table is None or isinstance(table, str):
        return unfence(table or example.reference or "")
    rows = isinstance(table, Sequence) and table and all(isinstance(row, Mapping) and row for row in table)
    if not rows:
        raise InvalidInputError(
            f"reference_table is {table!r:.80}; give CSV text, or a list of rows such as {{'id': 1}}"
        )
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in table for key in row)))
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def _goal(example: Example, output: Output) -> str | None:
    goal = example.metadata.get("reference_goal", example.reference)
    if goal is not None and (not isinstance(goal, str) or not goal.strip()):
        raise InvalidInputError(f"metadata['reference_goal'] is {goal!r:.80}; give a text")
    return goal


def _schema(example: Example, output: Output) -> list[str] | None:
    """``metadata["schema"]``: text, texts, or tables with their columns."""
    schema = example.metadata.get("schema")
    if schema is None or isinstance(schema, str):
        return [schema] if schema else None
    if isinstance(schema, Mapping):
        return [f"{table}: {json.dumps(columns, ensure_ascii=False)}" for table, columns in schema.items()]
    return _texts(schema, "metadata['schema']", "give a text, a list of texts, or tables with their columns")


def _topics(example: Example, output: Output) -> list[str]:
    where = "metadata['reference_topics']"
    return _texts(example.metadata.get("reference_topics"), where, "give a list of texts")


def _texts(value: Any, where: str, wanted: str) -> list[str]:
    right = isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and value
    if not right or not all(isinstance(text, str) and text.strip() for text in value):
        raise InvalidInputError(f"{where} is {value!r:.80}; {wanted}")
    return list(value)


_READERS: dict[str, Callable[[Any, Any], Any]] = {
    "user_input": lambda example, output: example.question,
    "messages": lambda example, output: ragas_messages(output.messages),
    "response": lambda example, output: output.answer,
    "response_code": lambda example, output: unfence(output.answer or ""),
    "retrieved_contexts": lambda example, output: None if output.passages is None else output.contexts,
    "reference": lambda example, output: example.reference,
    "reference_code": lambda example, output: unfence(example.reference or ""),
    "reference_contexts": lambda example, output: list(example.reference_contexts) or None,
    "reference_table": _reference_table,
    "reference_topics": _topics,
    "reference_tool_calls": lambda example, output: ragas_calls(
        example.metadata.get("reference_tool_calls"), "the reference"
    ),
    "goal": _goal,
    "schema": _schema,
    "rubrics": lambda example, output: rubric(example.metadata.get("rubrics"), "metadata['rubrics']"),
}
