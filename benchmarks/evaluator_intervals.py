"""Bootstrap intervals of an evaluator's AUC and accuracy; questions are drawn, not pairs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

Interval = tuple[float, float]

_BLOCK = 2_000_000
"""Weights in memory at once, whatever the number of pairs: 16 MB of float64."""


def intervals(
    scores: np.ndarray,
    truth: np.ndarray,
    cut: float,
    groups: Sequence[Hashable] | None,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> tuple[Interval, Interval]:
    """Percentile bootstrap intervals of the AUC and of the accuracy at a cut.

    Args:
        scores: Confidences.
        truth: Labels.
        cut: A confidence above it says relevant.
        groups: Pairs of one group are drawn together; None draws pairs.
        level: Share of the intervals.
        resamples: How many samples.
        seed: Seed of the draws.
    """
    numbers: dict[Hashable, int] = {}
    member = np.array([numbers.setdefault(key, len(numbers)) for key in groups or range(truth.size)])
    draw = np.random.default_rng(seed)
    correct = ((scores > cut) == truth).astype(np.float64)
    aucs, accuracies = [], []
    size = max(1, _BLOCK // truth.size)
    for start in range(0, resamples, size):
        count = min(size, resamples - start)
        share = np.full(len(numbers), 1 / len(numbers))
        weights = draw.multinomial(len(numbers), share, size=count)[:, member].astype(np.float64)
        aucs.append(_aucs(scores, truth, weights))
        accuracies.append(weights @ correct / np.maximum(weights.sum(axis=1), 1))
    tails = [(1 - level) / 2, (1 + level) / 2]
    # a sample of one kind alone has no AUC
    auc, accuracy = np.concatenate(aucs), np.concatenate(accuracies)
    defined = auc[np.isfinite(auc)]
    auc_low, auc_high = np.quantile(defined, tails) if defined.size else (0.0, 1.0)
    low, high = np.quantile(accuracy, tails)
    return (float(auc_low), float(auc_high)), (float(low), float(high))


def _aucs(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The AUC under each row of weights."""
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    positive = np.add.reduceat((weights * truth)[:, order], starts, axis=1)
    negative = np.add.reduceat((weights * ~truth)[:, order], starts, axis=1)
    below = np.cumsum(negative, axis=1) - negative / 2
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: np.ndarray = (positive * below).sum(axis=1) / pairs
    return found
