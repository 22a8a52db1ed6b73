"""The result schemas: bounds that hold, and a JSON schema that strict providers accept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from rag_kit.prompts.grading import Grade
from rag_kit.prompts.schemas import MAX_ITEMS, MAX_QUERY, SCHEMAS, Passages, Queries, Query


def test_texts_are_stripped_and_numbers_read() -> None:
    """Blanks around texts go; numbers and truth values may come as text, as models write them."""
    assert Query(query=" x ").query == "x"
    assert Queries(queries=[" a", "b "]).queries == ["a", "b"]
    assert Passages.model_validate_json('{"passages": ["p"]}').passages == ["p"]
    grade = Grade.model_validate({"relevant": "true", "score": "0.5", "reason": "r"})
    assert (grade.relevant, grade.score) == (True, 0.5)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("Query", {"query": "  "}),
        ("Query", {"query": "x" * (MAX_QUERY + 1)}),
        ("Query", {"query": ["x"]}),
        ("Query", {"query": "x", "extra": 1}),
        ("Query", {}),
        ("Queries", {"queries": []}),
        ("Queries", {"queries": ["x"] * (MAX_ITEMS + 1)}),
        ("Passages", {"passages": [None]}),
        ("Grade", {"relevant": True, "score": 1.1, "reason": "r"}),
        ("Grade", {"relevant": True, "score": float("nan"), "reason": "r"}),
        ("Grade", {"relevant": "perhaps", "score": 1, "reason": "r"}),
        ("Grade", {"relevant": True, "score": 1}),
    ],
)
def test_what_is_out_of_bounds_is_refused(name: str, data: dict[str, Any]) -> None:
    """Empty, too long, too many, unknown and missing fields do not pass."""
    with pytest.raises(ValidationError):
        SCHEMAS[name].model_validate(data)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_suit_strict_structured_output(name: str) -> None:
    """Every field described and required, nothing else allowed, no keyword that strict modes refuse."""
    schema = SCHEMAS[name].model_json_schema()
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])
    assert schema["description"]
    assert all(field["description"] for field in schema["properties"].values())
    text = json.dumps(schema)
    for keyword in (
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "default",
        "pattern",
    ):
        assert f'"{keyword}"' not in text
