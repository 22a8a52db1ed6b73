"""The columns that a metric of Ragas's reads, filled in from an example and an output."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.text.citations.check import renumber

#: Such as "```sql\nSELECT 1\n```".
_FENCED = re.compile(r"\s*(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<code>.*?)\n?\s*(?P=fence)\s*", re.DOTALL)
_SCORE = re.compile(r"(?:score)?\s*(-?\d{1,3})(?:_description)?")  # "3", "score 3", "score3_description"


def needs_of(columns: Iterable[str], *, best_of: bool = False) -> dict[str, frozenset[str]]:
    """Return ``example_needs``, ``output_needs`` and ``example_any`` of a `Metric` that reads these columns.

    ``["reference", "schema"]`` -> ``{"example_needs": {"reference", "metadata.schema"}, ...}``.
    """
    needs: dict[str, set[str]] = {"example_needs": set(), "output_needs": set(), "example_any": set()}
    for column in columns:
        in_metadata = ("example_needs", f"metadata.{column}", None)
        attribute, fields, _ = _COLUMNS.get(column, in_metadata)
        if best_of and column == "reference":
            attribute, fields = "example_any", "reference answers"
        needs[attribute].update(fields.split())
    return {attribute: frozenset(fields) for attribute, fields in needs.items()}


def read_column(name: str, example: Example, output: Output) -> Any:
    """Return a column's value, ``None`` for none; an unknown column is a key of the example's metadata."""
    if name not in _COLUMNS:
        return example.metadata.get(name)
    _, _, read = _COLUMNS[name]
    try:
        return read(example, output)
    except InvalidInputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise InvalidInputError(f"what the metric reads as {name} has another form: {error!r:.300}") from None


def unfence(text: str) -> str:
    """Return the text inside a code fence; a text without one as it is."""
    match = _FENCED.fullmatch(text)
    return match["code"] if match else text


def rubric(levels: Any) -> dict[str, str]:
    """Return a scale (score -> description) with the keys that Ragas wants, in the order of the scores.

    Example:
        >>> rubric({2: "Right.", "score1_description": "Wrong."})
        {'score1_description': 'Wrong.', 'score2_description': 'Right.'}
    """
    entries = dict(levels) if isinstance(levels, Mapping) else {}
    by_score: dict[int, str] = {}
    for key, text in entries.items():
        match = _SCORE.fullmatch(str(key))
        if match and isinstance(text, str) and text:
            by_score[int(match[1])] = text
    if not 2 <= len(by_score) == len(entries):
        raise InvalidInputError(
            f"rubrics are {levels!r:.120}; give 2 scores or more, each with a text, such as "
            "{1: 'Wrong.', 3: 'Right.'}"
        )
    return {f"score{score}_description": text for score, text in sorted(by_score.items())}


def scores_of(rubrics: Mapping[str, str]) -> list[int]:
    """Return the scores of a scale with Ragas's keys; empty for other keys."""
    matches = [_SCORE.fullmatch(key) for key in rubrics]
    return [int(match[1]) for match in matches if match] if all(matches) else []


def arguments_of(metric: Any) -> dict[str, tuple[str, bool]]:
    """Map each argument of a metric's ``ascore`` to the column it reads, and to whether it must be given."""
    arguments = {}
    for name, parameter in inspect.signature(metric.ascore).parameters.items():
        if name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            # a user_input that is a list of messages is the conversation
            is_talk = name == "user_input" and "Message" in str(parameter.annotation)
            arguments[name] = ("messages" if is_talk else name, parameter.default is parameter.empty)
    return arguments


def _ragas_messages(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Turn dicts with ``type`` (LangChain) or ``role`` into Ragas's messages; system messages are left out."""
    from langchain_core.messages import convert_to_messages
    from ragas.messages import AIMessage, HumanMessage, ToolMessage

    converted: list[Any] = []
    for message in messages:
        calls = _ragas_tool_calls(message.get("tool_calls") or [])
        role = str(message.get("type") or message.get("role"))
        role = role.replace("MessageChunk", "").lower()  # "AIMessageChunk" is "ai", streamed
        # LangChain refuses a message of a tool without an id
        chat = convert_to_messages([{"role": role, "content": message.get("content"), "tool_call_id": ""}])[0]
        content = str(chat.text)
        if chat.type == "ai":
            converted.append(AIMessage(content=content, tool_calls=calls or None))
        elif chat.type == "human":
            converted.append(HumanMessage(content=content))
        elif chat.type in ("tool", "function"):
            converted.append(ToolMessage(content=content))
    return converted


def _ragas_tool_calls(calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Turn dicts ``{"name", "args"}``, or OpenAI's ``{"function": {"name", "arguments"}}``, into Ragas's tool calls."""
    from ragas.messages import ToolCall

    converted = []
    for call in calls:
        inner = call.get("function", call)
        args = inner.get("args", inner.get("arguments")) or {}
        args = json.loads(args) if isinstance(args, str) else dict(args)
        converted.append(ToolCall(name=inner["name"], args=args))
    return converted


def _reference_table(example: Example, _: Output) -> str:
    """Return ``metadata["reference_table"]``, else the reference, as CSV text."""
    table = example.metadata.get("reference_table", example.reference)
    if isinstance(table, str):
        return unfence(table)
    import pandas

    return str(pandas.DataFrame(list(table)).to_csv(index=False))


def _check_topics(topics: Any) -> list[str]:
    if not isinstance(topics, (list, tuple)) or not all(isinstance(topic, str) and topic for topic in topics):
        raise InvalidInputError(f"metadata['reference_topics'] is {topics!r:.80}; give a list of texts")
    return list(topics)


#: Column -> the attribute of a `Metric` that it belongs to, the fields that it needs there, and how it is read.
_COLUMNS: dict[str, tuple[str, str, Callable[[Any, Any], Any]]] = {
    "user_input": ("output_needs", "", lambda example, output: example.conversation),
    "question": ("output_needs", "", lambda example, output: example.question),
    "messages": ("output_needs", "messages", lambda example, output: _ragas_messages(output.messages)),
    "response": ("output_needs", "answer", lambda example, output: renumber(output.answer, {}, output.contexts)),
    "response_code": ("output_needs", "answer", lambda example, output: unfence(output.answer)),
    "retrieved_contexts": ("output_needs", "passages", lambda example, output: output.contexts),
    "reference": ("example_needs", "reference", lambda example, output: example.reference),
    "reference_code": ("example_needs", "reference", lambda example, output: unfence(example.reference)),
    "reference_contexts": (
        "example_needs", "reference_contexts", lambda example, output: list(example.reference_contexts) or None
    ),
    "goal": (
        "example_any", "reference metadata.reference_goal",
        lambda example, output: example.metadata.get("reference_goal", example.reference),
    ),
    "reference_table": ("example_any", "reference metadata.reference_table", _reference_table),
    "reference_tool_calls": (
        "example_needs", "metadata.reference_tool_calls",
        lambda example, output: _ragas_tool_calls(example.metadata["reference_tool_calls"]),
    ),
    "reference_topics": (
        "example_needs", "metadata.reference_topics",
        lambda example, output: _check_topics(example.metadata["reference_topics"]),
    ),
    "rubrics": ("example_needs", "metadata.rubrics", lambda example, output: rubric(example.metadata["rubrics"])),
    "schema": ("example_needs", "metadata.schema", lambda example, output: example.metadata.get("schema")),
}  # fmt: skip
