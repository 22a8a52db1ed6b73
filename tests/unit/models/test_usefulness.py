"""How surely passages help, measured beside many others."""

from __future__ import annotations

import sys

import pytest

from rag_kit.models.extractive import usefulness
from rag_kit.models.extractive.evidence import PassageText
from rag_kit.models.extractive.usefulness import measure


def test_many_passages_take_their_number_not_its_square() -> None:
    """Each added passage costs as much as the one before it; thousands held up a run for a minute."""

    def steps(count: int) -> int:
        lines = 0

        def counted(*_: object) -> object:
            nonlocal lines
            lines += 1
            return counted

        texts = [PassageText(number, f"The fan {number} starts at noon.") for number in range(count)]
        before = sys.gettrace()
        sys.settrace(counted)  # type: ignore[arg-type]
        try:
            measure("When does the fan start?", texts)
        finally:
            sys.settrace(before)
        return lines

    steps(2)  # what is loaded once
    assert steps(400) < 2.5 * steps(200)


def test_scores_added_up_once_are_those_added_up_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside many passages sums are shared; the measures stay what they are beside few."""
    said = [
        "The fan starts at noon.",
        "The fan starts at midnight.",
        "A pump of the north was sold.",
        "No fan.",
    ]
    texts = [PassageText(number, said[number % 4]) for number in range(30)]
    each = measure("When does the fan start?", texts)
    monkeypatch.setattr(usefulness, "_FEW", 0)
    once = measure("When does the fan start?", texts)
    assert any(one["repeated"] for one in each)
    for one, other in zip(each, once, strict=True):
        assert one == pytest.approx(other, abs=1e-12)
