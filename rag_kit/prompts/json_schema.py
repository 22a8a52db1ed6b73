"""A check of the JSON schemas that prompt files hold inline."""

from __future__ import annotations

import json
import re
from typing import Any

_WORDING = ("title", "description", "examples")
_MAX_CHARS = 200_000


def schema_problem(schema: Any) -> str | None:
    """Say in one line what is wrong with an inline JSON schema; None when a model can be asked to fill it in."""
    if not isinstance(schema, dict):
        return f"it is {type(schema).__name__}; write the name of a class, or a mapping with 'type: object'"
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        return "the top level needs 'type: object' and 'properties'"
    if not schema["properties"]:
        return "'properties' is empty; name at least one field"
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        return f"it is no JSON ({error})"
    if len(text) > _MAX_CHARS:
        return f"it has more than {_MAX_CHARS:,} characters"
    if json.loads(text) != schema:
        return "its keys are text, in quotes where they look like numbers"
    from jsonschema import Draft202012Validator, SchemaError  # 0.13 s, needed for inline schemas alone

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"at {'.'.join(map(str, error.absolute_path))}: {error.message}"
    if reference := re.search(r'"\$ref": "(?!#/)[^"]*', text):
        return f"$ref must point into the same schema ('#/$defs/...'), not to {reference[0][9:]!r}"
    return None


def without_wording(schema: Any) -> Any:
    """A schema without its titles and descriptions, which differ from language to language.

    Example:
        >>> without_wording({"type": "string", "description": "in English"})
        {'type': 'string'}
    """

    def without(node: dict[str, Any]) -> dict[str, Any]:
        # what stands under such a key as an object is the schema of a field of that name
        return {
            key: value
            for key, value in node.items()
            if key not in _WORDING or isinstance(value, (dict, bool))
        }

    return json.loads(json.dumps(schema), object_hook=without)
