"""A small validator for the inline JSON schemas of prompt files.

Types, required and extra fields, enum, const, bounds, lengths, patterns, items, anyOf / oneOf / allOf and local
``$ref``: what a prompt's output needs. Numbers and booleans that came as strings are converted, as Pydantic does.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.json_schema import schema_problem

_MAX_DEPTH = 32
_MAX_NODES = 5_000
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}


class SchemaMismatchError(ValueError):
    """A value does not fit the schema; the message says where and what was expected."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """See that a schema describes an object with fields, before a model is asked.

    Raises:
        InvalidInputError: It does not.
    """
    problem = schema_problem(dict(schema), max_nodes=_MAX_NODES)
    if problem is not None:
        raise InvalidInputError(
            f"The JSON schema for a structured call is wrong: {problem}. Given: {str(dict(schema))[:200]}"
        )


def validate_json(value: Any, schema: Mapping[str, Any]) -> Any:
    """Validate a plain value.

    Args:
        value: JSON-plain value.
        schema: The schema; references may point to its ``$defs``.

    Returns:
        The value, with strings converted where the schema wants a number or a boolean.

    Raises:
        SchemaMismatchError: It does not fit.

    Example:
        >>> validate_json({"n": "3"}, {"type": "object", "properties": {"n": {"type": "integer"}}})
        {'n': 3}
    """
    return _check(value, schema, schema, "", 0)


def _check(value: Any, schema: Any, root: Mapping[str, Any], path: str, depth: int) -> Any:
    if schema is True or schema == {}:
        return value
    if schema is False or not isinstance(schema, Mapping):
        raise _mismatch(path, "nothing is allowed here")
    if depth > _MAX_DEPTH:
        raise _mismatch(path, f"nested deeper than {_MAX_DEPTH}")
    if isinstance(reference := schema.get("$ref"), str):
        return _check(value, _resolve(reference, root), root, path, depth + 1)
    for part in schema.get("allOf", []):
        value = _check(value, part, root, path, depth + 1)
    if options := schema.get("anyOf") or schema.get("oneOf"):
        value = _any(value, options, root, path, depth)
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        value = _typed(value, kinds, path)
    if "const" in schema and not _equal(value, schema["const"]):
        raise _mismatch(path, f"must be {schema['const']!r}")
    if "enum" in schema and not any(_equal(value, allowed) for allowed in schema["enum"]):
        raise _mismatch(path, f"must be one of {schema['enum']}, not {value!r}")
    _bounds(value, schema, path)
    if isinstance(value, dict):
        return _object(value, schema, root, path, depth)
    if isinstance(value, list) and "items" in schema:
        return [
            _check(item, schema["items"], root, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)
        ]
    return value


def _any(value: Any, options: list[Any], root: Mapping[str, Any], path: str, depth: int) -> Any:
    problems = []
    for option in options:
        try:
            return _check(value, option, root, path, depth + 1)
        except SchemaMismatchError as error:
            problems.append(str(error))
    raise SchemaMismatchError(" or ".join(problems[:4]))


def _typed(value: Any, kinds: list[str], path: str) -> Any:
    if unknown := [kind for kind in kinds if kind not in _TYPES]:
        raise InvalidInputError(f"The schema's type {unknown[0]!r} is unknown; allowed: {', '.join(_TYPES)}")
    for kind in kinds:
        if _is(value, kind):
            return int(value) if kind == "integer" else value
    for kind in kinds:
        converted = _convert(value, kind)
        if converted is not None:
            return converted
    raise _mismatch(path, f"expected {' or '.join(kinds)}, not {type(value).__name__}")


def _is(value: Any, kind: str) -> bool:
    if kind == "integer":
        return not isinstance(value, bool) and (
            isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        )
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "null":
        return value is None
    return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool}[kind])


def _convert(value: Any, kind: str) -> Any:
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
    except ValueError:
        return None
    return {"true": True, "false": False}.get(text.lower()) if kind == "boolean" else None


def _bounds(value: Any, schema: Mapping[str, Any], path: str) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for word, holds in _BOUNDS.items():
            if word in schema and not holds(value, schema[word]):
                raise _mismatch(path, f"{value} breaks {word} {schema[word]}")
    if isinstance(value, str | list):
        low, high = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
        if not schema.get(low, 0) <= len(value) <= schema.get(high, float("inf")):
            raise _mismatch(path, f"length {len(value)} breaks {low} or {high}")
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value[:10_000]):
        raise _mismatch(path, f"does not match {schema['pattern']!r}")


def _object(
    value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int
) -> Any:
    fields = schema.get("properties", {})
    if missing := [name for name in schema.get("required", []) if name not in value]:
        raise _mismatch(path, f"missing {', '.join(missing)}")
    more = schema.get("additionalProperties", True)
    result = {}
    for name, item in value.items():
        if name in fields:
            result[name] = _check(item, fields[name], root, f"{path}.{name}" if path else name, depth + 1)
        elif more is False:
            raise _mismatch(path, f"unknown field {name!r}; allowed: {', '.join(fields)}")
        else:
            result[name] = _check(item, more, root, f"{path}.{name}" if path else name, depth + 1)
    return result


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    if not reference.startswith("#/"):
        raise InvalidInputError(f"Only references within the schema are allowed, not {reference!r}")
    for part in reference[2:].split("/"):
        if not isinstance(node, Mapping) or part not in node:
            raise InvalidInputError(f"The schema has no {reference!r}")
        node = node[part]
    return node


def _equal(a: Any, b: Any) -> bool:
    """Whether two values of JSON are the same: true is not 1 there, while 1 is 1.0."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _mismatch(path: str, message: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"{path}: {message}" if path else message)
