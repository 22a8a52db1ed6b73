"""A JSON schema with bounds on its texts and lists, so that a model which decodes by it comes to an end."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

_LEAST_TEXT = 80  # characters
_MOST_TEXT = 1_500  # llama.cpp refuses a grammar in which a character is repeated 2,000 times
_LEAST_VALUE = 10  # characters of a number, a boolean, or one of several words
_MOST_ITEMS = 32
_MAX_DEPTH = 16
_TENTHS = [number / 10 for number in range(11)]


def ending_schema(
    schema: Mapping[str, Any], chars: int, form: type[BaseModel] | None = None
) -> dict[str, Any]:
    """Copy a schema with bounds, so that what is decoded by it has about so many characters at most.

    A number from 0 to 1 becomes one of the tenths, for grammars made of a schema know no largest number. The checks of
    a ``form``, which its schema does not name, are added: several providers refuse them, so first requests lack them.

    Example:
        >>> queries = {"type": "array", "items": {"type": "string"}}
        >>> bounded = ending_schema({"type": "object", "properties": {"queries": queries}}, 512)
        >>> bounded["properties"]["queries"]
        {'type': 'array', 'items': {'type': 'string', 'maxLength': 170}, 'maxItems': 3}
    """
    copied = copy.deepcopy(dict(schema))
    for name, field in form.model_fields.items() if form else ():
        node = copied["properties"].get(name, {})
        if any(getattr(check, "le", None) == 1 for check in field.metadata):
            node.update(minimum=0, maximum=1)
        if node.get("type") == "array" and any(getattr(check, "min_length", 0) for check in field.metadata):
            node["minItems"] = 1
    _bind(copied, chars, copied.get("$defs", {}), 0)
    return copied


def _bind(node: Any, room: int, definitions: Mapping[str, Any], depth: int) -> None:
    """Bound a part of a schema in place, so that it takes about ``room`` characters."""
    node = _resolve(node, definitions)
    if depth > _MAX_DEPTH:
        return
    if node.get("type") == "array":
        items = room // (2 * _least_chars(node.get("items"), definitions, depth))
        node["maxItems"] = max(1, min(items, node.get("maxItems", _MOST_ITEMS)))
        _bind(node.get("items"), room // node["maxItems"], definitions, depth + 1)
    elif _is_text(node):
        node["maxLength"] = min(max(room, _LEAST_TEXT), node.get("maxLength", _MOST_TEXT), _MOST_TEXT)
    elif node.get("type") == "number" and (node.get("minimum"), node.get("maximum")) == (0, 1):
        node["enum"] = _TENTHS
    parts = [*node.get("properties", {}).values(), *node.get("anyOf", [])]
    for part in parts:
        _bind(part, room // len(parts), definitions, depth + 1)


def _least_chars(node: Any, definitions: Mapping[str, Any], depth: int) -> int:
    """Return about how many characters a part of a schema needs; a list, those of one entry."""
    node = _resolve(node, definitions)
    if depth > _MAX_DEPTH:
        return _LEAST_TEXT
    if node.get("type") == "array":
        return _least_chars(node.get("items"), definitions, depth + 1)
    if properties := node.get("properties"):
        return sum(
            len(name) + _least_chars(part, definitions, depth + 1) for name, part in properties.items()
        )
    return _LEAST_TEXT if _is_text(node) else _LEAST_VALUE


def _is_text(node: Mapping[str, Any]) -> bool:
    """Tell whether a part of a schema is a text that may say anything."""
    return node.get("type") == "string" and "enum" not in node


def _resolve(node: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Follow a reference to the definition that it names; nothing is said of what is no schema."""
    if not isinstance(node, dict):
        return {}
    name = str(node.get("$ref", "")).removeprefix("#/$defs/")
    found = definitions.get(name, node)
    return found if isinstance(found, dict) else {}
