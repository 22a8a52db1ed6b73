"""JSON schemas: checked before a model is asked, compared with its answer, and in the form of OpenAI's strict mode."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.json_schema import schema_problem

_MOST_CHARS = 200_000
_MOST_PROBLEMS = 5


class SchemaMismatchError(ValueError):
    """A value does not fit the schema; the message says where and what was expected."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """See that a schema describes an object with fields, before a model is asked.

    Raises:
        InvalidInputError: It does not.
    """
    if (problem := schema_problem(dict(schema), most_chars=_MOST_CHARS)) is not None:
        raise InvalidInputError(
            f"The JSON schema for a structured call is wrong: {problem}. Given: {str(dict(schema))[:200]}"
        )


def validate_json(value: Any, schema: Mapping[str, Any]) -> Any:
    """Validate a plain value; strings are converted where the schema wants a number or a boolean.

    Args:
        value: JSON-plain value; converted in place.
        schema: The schema; references may point to its ``$defs``.

    Returns:
        The value.

    Raises:
        SchemaMismatchError: It does not fit.

    Example:
        >>> validate_json({"n": "3"}, {"type": "object", "properties": {"n": {"type": "integer"}}})
        {'n': 3}
    """
    from jsonschema import Draft202012Validator  # 0.13 s, needed for schemas that are no classes alone

    validator = Draft202012Validator(schema, registry=_no_registry())
    try:
        problems = list(validator.iter_errors(value))
        if problems and _convert(value, problems):
            problems = list(validator.iter_errors(value))
    except RecursionError:
        raise SchemaMismatchError("nested too deeply") from None
    if problems:
        raise SchemaMismatchError("; ".join(map(_told, problems[:_MOST_PROBLEMS])))
    return value


@lru_cache(maxsize=1)
def _no_registry() -> Any:
    """Without it, a reference to another place would be fetched from the network."""
    from referencing import Registry

    return Registry()


def _told(problem: Any) -> str:
    place = ".".join(map(str, problem.absolute_path))
    return f"{place}: {problem.message}" if place else str(problem.message)


def _convert(value: Any, problems: list[Any]) -> bool:
    """Convert the strings that should be something else; whether there were any."""
    done = False
    for each in (one for problem in problems for one in (problem, *problem.context)):
        path = list(each.absolute_path)
        if each.validator == "type" and isinstance(each.instance, str) and path:
            found = _read(each.instance.strip().lower(), each.validator_value)
            if found is not None:
                parent = value
                for key in path[:-1]:
                    parent = parent[key]
                parent[path[-1]] = found
                done = True
    return done


def _read(text: str, kinds: Any) -> Any:
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        try:
            if kind in ("integer", "number"):
                return int(text) if kind == "integer" else float(text)
        except ValueError:
            continue
        if kind == "boolean" and text in ("true", "false"):
            return text == "true"
    return None


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
