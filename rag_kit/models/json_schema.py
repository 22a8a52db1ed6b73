"""JSON schemas: compared with an answer, and in the form of OpenAI's strict mode."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

_MAX_PROBLEMS = 5


class UnreadableError(ValueError):
    """An answer holds no value that fits; the message says where and what was expected.

    Attributes:
        truncated: It is JSON that breaks off.
        refused: The model declined to answer.
    """

    def __init__(self, problem: str, *, truncated: bool = False, refused: bool = False) -> None:
        super().__init__(problem)
        self.truncated = truncated
        self.refused = refused


def validate_json(value: Any, schema: Mapping[str, Any]) -> Any:
    """Validate a plain value."""
    from jsonschema import Draft202012Validator  # 0.13 s, needed for schemas that are no classes alone

    validator = Draft202012Validator(schema, registry=_empty_registry())
    try:
        problems = list(islice(validator.iter_errors(value), _MAX_PROBLEMS))
    except RecursionError:
        raise UnreadableError("nested too deeply") from None
    if problems:
        places = (".".join(map(str, problem.absolute_path)) for problem in problems)
        lines = zip(places, (problem.message for problem in problems), strict=True)
        raise UnreadableError("; ".join(f"{place}: {text}" if place else text for place, text in lines))
    return value


@lru_cache(maxsize=1)
def _empty_registry() -> Any:
    """A registry that knows no other schema, so that no reference is fetched from the network."""
    from referencing import Registry

    return Registry()


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as OpenAI's strict mode wants it: every field required, no others allowed, no defaults.

    Returns:
        A changed copy, or None where an object is open by design, which strict mode cannot express.

    Example:
        >>> strict_schema({"type": "object", "properties": {"a": {"type": "string", "default": ""}}})["required"]
        ['a']
    """
    node = copy.deepcopy(dict(schema))
    return node if _make_strict(node) else None


def _make_strict(node: Any) -> bool:
    """Change a part of a schema; whether strict mode can express it."""
    if isinstance(node, list):
        return all(map(_make_strict, node))
    if not isinstance(node, dict):
        return True
    node.pop("default", None)
    if node.get("type") == "object" or "properties" in node:
        if not node.get("properties") or node.get("additionalProperties") not in (None, False):
            return False
        node["additionalProperties"] = False
        node["required"] = list(node["properties"])
    below = [node[key] for key in ("items", "anyOf", "allOf", "oneOf") if key in node]
    below += [child for key in ("properties", "$defs") for child in node.get(key, {}).values()]
    return all(map(_make_strict, below))
