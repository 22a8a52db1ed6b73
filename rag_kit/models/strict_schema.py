"""A JSON schema as OpenAI's strict mode wants it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any


def strictly(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as OpenAI's strict mode wants it: every field required, no others allowed, no defaults.

    Args:
        schema: A JSON schema.

    Returns:
        A changed copy, or None where an object is open by design, which strict mode cannot express.

    Example:
        >>> strictly({"type": "object", "properties": {"a": {"type": "string", "default": ""}}})["required"]
        ['a']
    """
    node = copy.deepcopy(dict(schema))
    return node if _make_strict(node) else None


def _make_strict(node: Any) -> bool:
    if isinstance(node, list):
        return all(_make_strict(each) for each in node)
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
    return all(_make_strict(each) for each in below)
