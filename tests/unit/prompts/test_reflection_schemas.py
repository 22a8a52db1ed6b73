"""What counts as a label."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rag_kit.prompts.grading import Critique, RetrieveNeeded, Usefulness


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
