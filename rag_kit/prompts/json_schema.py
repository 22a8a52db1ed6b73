"""A light check of the JSON schemas that prompt files hold inline."""

from __future__ import annotations

import re
from typing import Any

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_MAX_NODES = 500
_NESTED = ("items", "additionalProperties")
_NESTED_MAPS = ("properties", "$defs", "definitions")
_NESTED_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


def schema_problem(schema: Any, *, max_nodes: int = _MAX_NODES) -> str | None:
    """Say what is wrong with an inline JSON schema.

    Args:
        schema: What stands under ``output.schema``.
        max_nodes: Most parts that it may have.

    Returns:
        One line for people, or None when a model can be asked to fill it in.

    Example:
        >>> schema_problem({"type": "object", "properties": {}})
        "'properties' is empty; name at least one field"
    """
    if not isinstance(schema, dict):
        return f"it is {type(schema).__name__}; write the name of a class, or a mapping with 'type: object'"
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        return "the top level needs 'type: object' and 'properties'"
    if not schema["properties"]:
        return "'properties' is empty; name at least one field"
    return _node_problem(schema, "", [0], max_nodes)


def _node_problem(node: Any, path: str, count: list[int], max_nodes: int) -> str | None:
    """The first problem at or below a node; `count` holds the number of nodes visited so far."""
    where = f"at {path}: " if path else ""
    count[0] += 1
    if count[0] > max_nodes:
        return f"it has more than {max_nodes} parts"
    if isinstance(node, bool):
        return None
    if not isinstance(node, dict):
        return f"{where}expected a mapping, not {node!r}"
    kinds = node.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind not in _TYPES:
            return f"{where}type {kind!r} is unknown; allowed: {', '.join(sorted(_TYPES))}"
    if (problem := _pattern_problem(node.get("pattern"))) is not None:
        return where + problem
    reference = node.get("$ref", "#/")
    if not (isinstance(reference, str) and reference.startswith("#/")):
        return f"{where}$ref must point into the same schema ('#/$defs/...')"
    required = node.get("required", [])
    known = node.get("properties", {})
    if not isinstance(required, list) or (
        isinstance(known, dict) and not set(map(str, required)) <= set(known)
    ):
        return f"{where}'required' must be a list of names out of 'properties'"
    below: list[tuple[str, Any]] = [(key, node[key]) for key in _NESTED if key in node]
    for key in _NESTED_MAPS:
        if key in node:
            if not isinstance(node[key], dict) or not all(isinstance(name, str) for name in node[key]):
                return f"{where}{key!r} must be a mapping whose keys are text"
            below += [(f"{key}.{name}", value) for name, value in node[key].items()]
    for key in _NESTED_LISTS:
        if key in node:
            if not isinstance(node[key], list) or not node[key]:
                return f"{where}{key!r} must be a list of schemas"
            below += [(f"{key}.{i}", value) for i, value in enumerate(node[key])]
    for name, value in below:
        problem = _node_problem(value, f"{path}.{name}" if path else name, count, max_nodes)
        if problem:
            return problem
    return None


def _pattern_problem(pattern: Any) -> str | None:
    if pattern is None:
        return None
    try:
        re.compile(pattern)
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        return f"'pattern' {pattern!r} is no regular expression ({error})"
    return None


def without_wording(schema: Any) -> Any:
    """A schema without its titles and descriptions, which differ from language to language.

    Args:
        schema: A JSON schema, a schema name, or None.

    Returns:
        The same structure; what is left must be equal in every language of a prompt.

    Example:
        >>> without_wording({"type": "string", "description": "in English"})
        {'type': 'string'}
    """
    if isinstance(schema, list):
        return [without_wording(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for key, value in schema.items():
        if key in _NESTED_MAPS and isinstance(value, dict):  # here the keys are field names, not keywords
            result[key] = {name: without_wording(part) for name, part in value.items()}
        elif key not in ("title", "description", "examples"):
            result[key] = without_wording(value)
    return result
