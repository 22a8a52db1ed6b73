"""Thresholds fitted on labelled pairs, and how good an evaluator is on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from langchain_core.documents import Document

from rag_kit.concurrency.steps import run
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import UNGRADED, Evaluator, Thresholds, judge_passages
from rag_kit.graphs.evaluators.function import as_evaluator

Pair = tuple[str, "Document | str", bool]


@dataclass(frozen=True)
class Fitted:
    """Fitted thresholds, and their figures on the pairs that they were fitted on, which flatter them."""

    thresholds: Thresholds  # for the evaluator whose confidences these were
    cut: float  # the one threshold with the best accuracy; a confidence above it says relevant
    auc: float  # area under the ROC curve: how often a relevant passage is above one that is not
    accuracy: float  # share of pairs on the right side of ``cut``
    pairs: int  # how many pairs, without those that could not be judged
    notes: tuple[str, ...] = ()  # pairs that could not be judged, a precision that could not be reached


def fit_thresholds(
    scores: Any, labels: Sequence[int] | Sequence[Pair], *, precision: float = 0.8, language: str = "en"
) -> Fitted:
    """Find the thresholds of an evaluator on labelled pairs, with its AUC and accuracy on them.

    ``upper`` is the lowest confidence above which the share of relevant passages is at least ``precision``;
    ``lower`` the highest below which the share of passages that are not is at least that. Where an evaluator separates
    so well that the two would cross, both lie at the cut of best accuracy between them.

    Args:
        scores: Confidences from -1 to 1; or an evaluator (or what `build_crag` takes as one), which judges the pairs.
        labels: Whether each is relevant; or pairs ``(question, passage, relevant)``. Pairs of one question that
            follow each other are judged together, in the order given, as a graph would.
        precision: Share of "correct", and of "incorrect", verdicts that must be right; above 0.5 and below 1.
        language: Language of an evaluator's prompts.

    Raises:
        InvalidInputError: The lengths differ, a confidence is not a finite number, all labels are the same, a setting
            is out of range, or no pair could be judged.

    Example:
        >>> fitted = fit_thresholds([-0.9, -0.5, -0.1, 0.1, 0.4, 0.8], [False, False, True, False, True, True])
        >>> fitted.thresholds, round(fitted.auc, 2)
        (Thresholds(lower=-0.3, upper=0.25), 0.89)
    """
    if not 0.5 < precision < 1:
        raise InvalidInputError(f"precision={precision!r} was given; give one above 0.5 and below 1.")
    if hasattr(scores, "tolist"):  # an array; numpy's numbers of 32 bits are no floats of Python's
        scores = scores.tolist()
    elif not isinstance(scores, Sequence):
        scores, labels = run(_judge(as_evaluator(scores), labels, language), {})
    values, truth = _as_arrays(scores, labels)
    left_out = len(labels) - truth.size
    notes = [f"{left_out} pairs could not be judged and were left out"] if left_out else []
    distinct = np.unique(values)
    cuts = np.concatenate([[-1.0], (distinct[:-1] + distinct[1:]) / 2, [1.0]])  # the possible thresholds
    # at each cut: how many pairs, and how many relevant ones, lie above and below it
    above, below = _count_above_and_below(np.sort(values), cuts)
    relevant_above, relevant_below = _count_above_and_below(np.sort(values[truth]), cuts)
    precise_above = cuts[(above > 0) & (relevant_above >= precision * above)]
    precise_below = cuts[(below > 0) & (below - relevant_below >= precision * below)]
    problem = f"no confidence is right in {precision:.0%} of the pairs"
    if not precise_above.size:
        notes.append(f"{problem} above it: nothing is 'correct'")
    if not precise_below.size:
        notes.append(f"{problem} below it: nothing is 'incorrect'")
    upper = float(precise_above[0]) if precise_above.size else 1.0
    lower = float(precise_below[-1]) if precise_below.size else -1.0
    gains = 2 * relevant_above - above  # pairs rightly above a cut, less those wrongly above
    best_cuts = cuts[gains == gains.max()]
    cut = float(best_cuts[len(best_cuts) // 2])  # of equal ones the middle one
    if lower > upper:  # they would cross: both become the cut, or the nearest to it between them
        lower = upper = min(max(cut, upper), lower)
    accuracy, auc = float(((values > cut) == truth).mean()), roc_auc(values, truth)
    return Fitted(Thresholds(lower, upper), cut, auc, accuracy, int(truth.size), tuple(notes))


def _count_above_and_below(ascending: np.ndarray, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    above = ascending.size - np.searchsorted(ascending, cuts, "right")
    return above, np.searchsorted(ascending, cuts, "left")


async def _judge(evaluator: Evaluator, pairs: Any, language: str) -> tuple[list[float | None], list[bool]]:
    """Judge all pairs; return their confidences (None for one that could not be judged) and their labels."""
    for pair in pairs:
        is_triple = isinstance(pair, (tuple, list)) and len(pair) == 3
        if not is_triple or not isinstance(pair[0], str) or not isinstance(pair[1], (str, Document)):
            raise InvalidInputError(
                f"A pair is {pair!r:.60}; give (question, passage, relevant), the passage as a text or a Document."
            )
    scores: list[float | None] = []
    for question, group in groupby(pairs, key=itemgetter(0)):
        documents = [Document(passage) if isinstance(passage, str) else passage for _, passage, _ in group]
        gradings = await judge_passages(evaluator, question, documents, language)
        scores += [None if grading.reason.startswith(UNGRADED) else grading.score for grading in gradings]
    if scores and all(score is None for score in scores):
        raise InvalidInputError(f"{evaluator.name} could judge none of the {len(scores)} pairs.")
    return scores, [label for _, _, label in pairs]


def _as_arrays(scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return confidences and labels as arrays, without pairs that could not be judged."""
    if len(scores) != len(labels):
        raise InvalidInputError(
            f"{len(scores)} scores and {len(labels)} labels were given; give one label a score."
        )
    pairs = [(score, label) for score, label in zip(scores, labels, strict=True) if score is not None]
    for score, label in pairs:
        is_score = isinstance(score, (int, float)) and -1 <= score <= 1  # NaN fails the comparison too
        if not is_score or label not in (0, 1):
            raise InvalidInputError(
                f"A score is {score!r:.40} and its label {label!r:.40}; a score is a number from -1 to 1, a label "
                "true (relevant) or false."
            )
    truth = np.asarray([label for _, label in pairs], dtype=bool)
    if truth.all() or not truth.any():
        raise InvalidInputError(
            f"{int(truth.sum())} of {truth.size} pairs are relevant; thresholds need pairs of both kinds."
        )
    return np.asarray([score for score, _ in pairs], dtype=np.float64), truth


def roc_auc(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return how often a relevant confidence is above an irrelevant one; ties count half."""
    relevant, irrelevant = scores[truth][:, np.newaxis], scores[~truth]
    return float((relevant > irrelevant).mean() + (relevant == irrelevant).mean() / 2)
