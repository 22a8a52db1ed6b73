"""The result schemas: bounds that hold, and a JSON schema that strict providers accept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from rag_kit.prompts.grading import Critique, Grade, RetrieveNeeded, Usefulness
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


@pytest.mark.parametrize(
    ("given", "label"), [("Yes", "yes"), ("no.", "no"), (True, "yes"), ("[No]", "no"), (False, "no")]
)
def test_a_decision_is_read_in_any_spelling(given: Any, label: str) -> None:
    """Case, brackets, booleans."""
    assert RetrieveNeeded(retrieve=given).retrieve == label


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ("full", "full"),
        ("Fully supported", "full"),
        ("Partially supported", "partial"),
        ("No support", "none"),
        ("[No support / Contradictory]", "none"),
    ],
)
def test_support_is_read_in_the_paper_s_words(given: str, label: str) -> None:
    """The names of the paper's tokens."""
    assert Critique(id=1, relevance="[Relevant]", support=given, usefulness=5).support == label


@pytest.mark.parametrize(("given", "rating"), [(4, 4), ("4", 4), (4.0, 4), ("[5]", 5)])
def test_ratings_are_read(given: Any, rating: int) -> None:
    """Numbers and their texts."""
    assert Usefulness(usefulness=given).usefulness == rating


@pytest.mark.parametrize("given", [0, 6, 4.5, "high", True, None, float("nan"), [5], "55"])
def test_other_ratings_are_refused(given: Any) -> None:
    """Nothing is rounded or guessed."""
    with pytest.raises(ValidationError):
        Usefulness(usefulness=given)


@pytest.mark.parametrize(
    "given",
    [
        {"relevance": "maybe", "support": "full", "usefulness": 5},
        {"relevance": "relevant", "support": "mostly", "usefulness": 5},
        {"relevance": "relevant", "support": "full"},
        {"relevance": "relevant", "support": "full", "usefulness": 5, "next": "retrieve"},
        {"relevance": ["relevant"], "support": "full", "usefulness": 5},
    ],
)
def test_other_labels_and_fields_are_refused(given: dict[str, Any]) -> None:
    """A label out of the closed list alone, and no field beside."""
    with pytest.raises(ValidationError):
        Critique(id=1, **given)
