"""The result schemas: bounds that hold, and a JSON schema that strict providers accept."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import ValidationError

from rag_kit.prompts.grading import Critiques, Grade
from rag_kit.prompts.schemas import MAX_ITEMS, MAX_QUERY, SCHEMAS, Passages, Queries, Query


def test_texts_are_stripped_and_numbers_read() -> None:
    """Blanks around texts go; numbers and truth values may come as text, as models write them."""
    assert Query(query=" x ").query == "x"
    assert Queries(queries=[" a", "b "]).queries == ["a", "b"]
    assert Passages.model_validate_json('{"passages": ["p"]}').passages == ["p"]
    grade = Grade.model_validate({"relevant": "true", "score": "0.5", "reason": "r"})
    assert (grade.relevant, grade.score) == (True, 0.5)
    read = Critiques.model_validate(critiques(relevance="[Relevant]", support="Fully supported"))
    assert (read.labels[0].relevance, read.labels[0].support) == ("relevant", "full")


def critiques(**fields: Any) -> dict[str, Any]:
    """Labels of one statement, with other fields."""
    return {"labels": [{"id": 1, "relevance": "relevant", "support": "full", "usefulness": 5, **fields}]}


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
        *(("Usefulness", {"usefulness": each}) for each in (0, 6, 4.5, "high", True, None, float("nan"), [5], "55")),
        ("Critiques", critiques(relevance="maybe")),
        ("Critiques", critiques(support="mostly")),
        ("Critiques", critiques(usefulness=None)),
        ("Critiques", critiques(next="retrieve")),
        ("Critiques", critiques(relevance=["relevant"])),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused(name: str, data: dict[str, Any]) -> None:
    """Empty, too long, too many, unknown and missing fields, other labels and ratings: nothing is guessed."""
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
    assert not re.search('"(?:(?:min|max)(?:Length|Items|imum)|default|pattern)"', json.dumps(schema))


@pytest.mark.parametrize(
    ("name", "field", "given", "read"),
    [
        ("RetrieveNeeded", "retrieve", "Yes", "yes"),
        ("RetrieveNeeded", "retrieve", "no.", "no"),
        ("RetrieveNeeded", "retrieve", True, "yes"),
        ("RetrieveNeeded", "retrieve", "[No]", "no"),
        ("RetrieveNeeded", "retrieve", False, "no"),
        ("CitedSupport", "support", "full", "full"),
        ("CitedSupport", "support", "Fully supported", "full"),
        ("CitedSupport", "support", "Partially supported", "partial"),
        ("CitedSupport", "support", "No support", "none"),
        ("CitedSupport", "support", "[No support / Contradictory]", "none"),
        ("Usefulness", "usefulness", 4, 4),
        ("Usefulness", "usefulness", "4", 4),
        ("Usefulness", "usefulness", 4.0, 4),
        ("Usefulness", "usefulness", "[5]", 5),
    ],
)
def test_a_label_is_read_in_any_spelling(name: str, field: str, given: Any, read: Any) -> None:
    """Case, brackets, truth values, numbers as texts, and the paper's names of its tokens."""
    reason = {"reason": None} if name == "CitedSupport" else {}
    assert getattr(SCHEMAS[name].model_validate({field: given, **reason}), field) == read
