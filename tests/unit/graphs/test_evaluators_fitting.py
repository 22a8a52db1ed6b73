"""Thresholds fitted on labelled pairs: by hand, at the edges, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import fit_thresholds
from rag_kit.graphs.evaluators.base import Thresholds
from rag_kit.graphs.evaluators.fitting import Pair, roc_auc
from rag_kit.graphs.evaluators.function import as_evaluator


@pytest.mark.parametrize("kind", [list, np.array, np.float32])
def test_by_hand(kind: Any) -> None:
    """Six pairs: AUC 8/9; above 0.25 all are relevant, below -0.3 none is; a model's array of 32 bits will do."""
    scores = kind([-0.9, -0.5, -0.1, 0.1, 0.4, 0.8])
    fitted = fit_thresholds(scores, [False, False, True, False, True, True], precision=0.9)
    assert fitted.auc == pytest.approx(8 / 9)
    assert fitted.thresholds.lower == pytest.approx(-0.3)
    assert fitted.thresholds.upper == pytest.approx(0.25)
    assert fitted.accuracy == pytest.approx(5 / 6)
    assert (fitted.pairs, fitted.notes) == (6, ())


def test_thresholds_that_cross_meet() -> None:
    """An evaluator without faults gets one threshold for both."""
    fitted = fit_thresholds([-0.8, -0.6, 0.6, 0.8], [0, 0, 1, 1])
    assert fitted.thresholds.lower == fitted.thresholds.upper == 0.0
    assert fitted.auc == fitted.accuracy == 1.0


def test_a_precision_out_of_reach_is_told() -> None:
    """An evaluator that is upside down is never sure: all is ambiguous."""
    fitted = fit_thresholds([-0.8, -0.6, 0.6, 0.8], [1, 1, 0, 0])
    assert fitted.thresholds == Thresholds(-1.0, 1.0)
    assert fitted.thresholds.action([-0.8, 0.8]) == "ambiguous"
    assert fitted.auc == 0.0
    assert len(fitted.notes) == 2


@given(st.lists(st.tuples(st.integers(-10, 10), st.booleans()), min_size=2, max_size=40))
def test_auc_is_the_share_of_ordered_pairs(rows: list[tuple[int, bool]]) -> None:
    """The quick way equals counting; thresholds are always in order."""
    scores = [value / 10 for value, _ in rows]
    labels = [label for _, label in rows]
    if len(set(labels)) < 2:
        return
    wins = [
        (one > other) + 0.5 * (one == other)
        for one, mine in zip(scores, labels, strict=True)
        for other, yours in zip(scores, labels, strict=True)
        if mine and not yours
    ]
    assert roc_auc(np.array(scores), np.array(labels)) == pytest.approx(sum(wins) / len(wins))
    fitted = fit_thresholds(scores, labels)
    assert -1 <= fitted.thresholds.lower <= fitted.thresholds.upper <= 1
    above = [label for score, label in zip(scores, labels, strict=True) if score > fitted.thresholds.upper]
    if above and fitted.thresholds.lower < fitted.thresholds.upper:
        assert sum(above) / len(above) >= 0.8 - 1e-9


@pytest.mark.parametrize(
    ("scores", "labels", "settings", "what"),
    [
        ([0.1, 0.2], [True, True], {}, "both kinds"),
        ([], [], {}, "both kinds"),
        ([0.1], [True, False], {}, "1 scores and 2 labels"),
        ([math.nan, 0.1], [True, False], {}, "A score is nan"),
        ([0.5, 0.1], [True, 2], {}, "its label 2"),
        ([0.5, 0.1], [True, False], {"precision": 0.5}, "precision"),
        ([0.5, 0.1], [True, False], {"precision": 1}, "precision"),
    ],
)
def test_what_is_refused(scores: Any, labels: Any, settings: dict[str, Any], what: str) -> None:
    """Labels of one kind, NaN, lengths that differ, settings out of range: a message that names it."""
    with pytest.raises(InvalidInputError, match=what):
        fit_thresholds(scores, labels, **settings)


PAIRS: list[Pair] = [
    ("Who wrote Emma?", "Jane Austen wrote Emma in 1815.", True),
    ("Who wrote Emma?", "Cats sleep all day.", False),
    ("When was the bridge opened?", Document("The bridge was opened in 1932."), True),
    ("When was the bridge opened?", "A bridge of another kind is a card game.", False),
]


def test_an_evaluator_and_its_pairs() -> None:
    """The evaluator judges pairs of one question together."""
    seen: list[int] = []

    def judge(question: str, passages: list[Document]) -> list[float]:
        seen.append(len(passages))
        return [0.9 if "Jane" in one.page_content or "1932" in one.page_content else -0.9 for one in passages]

    fitted = fit_thresholds(as_evaluator(judge), PAIRS)
    assert seen == [2, 2]
    assert fitted.auc == 1.0
    assert fit_thresholds(as_evaluator(), PAIRS).auc == 1.0


def test_pairs_that_cannot_be_judged_are_left_out_and_told() -> None:
    """Their number is in the result; with none left there is nothing to fit on."""

    def judge(question: str, passages: list[Document]) -> list[float]:
        return [0.5 if "Jane" in one.page_content else float("nan") for one in passages]

    half = as_evaluator(lambda q, docs: [0.5, -0.5] if "Emma" in q else [float("nan")] * 2)
    fitted = fit_thresholds(half, PAIRS)
    assert fitted.pairs == 2
    assert "2 pairs" in fitted.notes[0]
    with pytest.raises(InvalidInputError, match="none of the 4 pairs"):
        fit_thresholds(as_evaluator(lambda q, docs: [float("nan")] * len(docs)), PAIRS)
    wrongs: list[Any] = [[("a", "b")], [("a", 3, True)], [(1, "b", True)]]
    for wrong in wrongs:
        with pytest.raises(InvalidInputError, match=r"[Pp]air|passage"):
            fit_thresholds(as_evaluator(judge), wrong)
