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
from rag_kit.graphs.evaluators.coerce import as_evaluator
from rag_kit.graphs.evaluators.fitting import Pair, afit_thresholds
from rag_kit.graphs.evaluators.measuring import intervals, roc_auc
from rag_kit.graphs.evaluators.thresholds import Thresholds


def test_by_hand() -> None:
    """Six pairs: AUC 8/9; above 0.25 all are relevant, below -0.3 none is."""
    fitted = fit_thresholds(
        [-0.9, -0.5, -0.1, 0.1, 0.4, 0.8], [False, False, True, False, True, True], precision=0.9
    )
    assert fitted.auc == pytest.approx(8 / 9)
    assert fitted.thresholds.lower == pytest.approx(-0.3)
    assert fitted.thresholds.upper == pytest.approx(0.25)
    assert fitted.accuracy == pytest.approx(5 / 6)
    assert (fitted.precision, fitted.negative_precision) == (1.0, 1.0)
    assert (fitted.pairs, fitted.relevant, fitted.notes) == (6, 3, ())


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


def test_recall_lowers_the_lower_threshold() -> None:
    """No more relevant pairs than allowed lie below it."""
    scores = [-0.9, -0.8, -0.7, -0.6, -0.5, 0.2, 0.5, 0.6, 0.7, 0.8]
    labels = [0, 0, 1, 0, 0, 0, 1, 1, 1, 1]
    free = fit_thresholds(scores, labels).thresholds
    kept = fit_thresholds(scores, labels, recall=1.0).thresholds
    assert kept.lower == -0.7 < free.lower
    assert kept.upper >= kept.lower
    assert fit_thresholds(scores, labels, recall=0.8).thresholds == free


def test_intervals_hold_the_value_and_shrink() -> None:
    """Seeded, inside 0 to 1, around the value, and narrower with more pairs."""
    pick = np.random.default_rng(1)
    widths = []
    for count in (60, 2_000):
        labels = pick.random(count) < 0.5
        scores = np.clip(pick.normal(labels * 0.4, 0.3), -1, 1)
        fitted = fit_thresholds(scores.tolist(), labels.tolist(), resamples=300)
        low, high = fitted.auc_interval
        assert 0 <= low <= fitted.auc <= high <= 1
        assert fitted == fit_thresholds(scores.tolist(), labels.tolist(), resamples=300)
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_pairs_of_one_question_are_drawn_together() -> None:
    """Ten copies of a pair are no ten pairs: the interval stays as wide."""
    scores = np.array([-0.5, 0.4, -0.2, 0.1, 0.3, -0.1])
    truth = np.array([False, True, True, False, True, False])
    wide, _ = intervals(scores, truth, 0.0, None, resamples=2_000)
    copied, _ = intervals(
        np.repeat(scores, 10), np.repeat(truth, 10), 0.0, np.repeat(range(6), 10).tolist(), resamples=2_000
    )
    assert copied == pytest.approx(wide, abs=1e-9)


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
    fitted = fit_thresholds(scores, labels, resamples=5)
    assert -1 <= fitted.thresholds.lower <= fitted.thresholds.upper <= 1
    if fitted.precision is not None and fitted.thresholds.lower < fitted.thresholds.upper:
        assert fitted.precision >= 0.8 - 1e-9


@pytest.mark.parametrize(
    ("scores", "labels", "settings", "what"),
    [
        ([0.1, 0.2], [True, True], {}, "both kinds"),
        ([0.1, 0.2], [False, False], {}, "both kinds"),
        ([], [], {}, "both kinds"),
        ([0.1], [True, False], {}, "1 scores and 2 labels"),
        ([math.nan, 0.1], [True, False], {}, "Score 0"),
        ([1.5, 0.1], [True, False], {}, "Score 0"),
        (["a", 0.1], [True, False], {}, "Score 0"),
        ([0.5, 0.1], ["yes", "no"], {}, "Label 0"),
        ([0.5, 0.1], [True, 2], {}, "Label 1"),
        ("ab", [True, False], {}, "scores is a str"),
        ([0.5, 0.1], [True, False], {"precision": 0.5}, "precision"),
        ([0.5, 0.1], [True, False], {"precision": 1}, "precision"),
        ([0.5, 0.1], [True, False], {"recall": 0}, "recall"),
        ([0.5, 0.1], [True, False], {"level": 2}, "level"),
        ([0.5, 0.1], [True, False], {"resamples": 0}, "resamples"),
        ([0.5, 0.1], [True, False], {"groups": [1]}, "groups"),
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


async def test_an_evaluator_and_its_pairs() -> None:
    """The evaluator judges pairs of one question together; both forms agree."""
    seen: list[int] = []

    def judge(question: str, passages: list[Document]) -> list[float]:
        seen.append(len(passages))
        return [0.9 if "Jane" in one.page_content or "1932" in one.page_content else -0.9 for one in passages]

    fitted = fit_thresholds(as_evaluator(judge), PAIRS, resamples=50)
    assert seen == [2, 2]
    assert fitted.auc == 1.0
    assert fitted == await afit_thresholds(as_evaluator(judge), PAIRS, resamples=50)
    assert fit_thresholds(as_evaluator(), PAIRS, resamples=50).auc == 1.0


def test_pairs_that_cannot_be_judged_are_left_out_and_told() -> None:
    """Their number is in the result; with none left there is nothing to fit on."""

    def judge(question: str, passages: list[Document]) -> list[float]:
        return [0.5 if "Jane" in one.page_content else float("nan") for one in passages]

    half = as_evaluator(lambda q, docs: [0.5, -0.5] if "Emma" in q else [float("nan")] * 2)
    fitted = fit_thresholds(half, PAIRS, resamples=20)
    assert (fitted.pairs, fitted.ungraded) == (2, 2)
    assert "2 pairs" in fitted.notes[0]
    with pytest.raises(InvalidInputError, match="none of the 4 pairs"):
        fit_thresholds(as_evaluator(lambda q, docs: [float("nan")] * len(docs)), PAIRS)
    wrongs: list[Any] = [[("a", "b")], [("a", 3, True)], [(1, "b", True)], "ab"]
    for wrong in wrongs:
        with pytest.raises(InvalidInputError, match=r"[Pp]air|passage"):
            fit_thresholds(as_evaluator(judge), wrong)
