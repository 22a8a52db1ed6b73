"""How far decisions and scores agree with labels: balanced accuracy, ROC-AUC, Cohen's kappa, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

RESAMPLES = 2_000


def agreement(
    scores: np.ndarray, decided: np.ndarray, truth: np.ndarray, groups: Sequence[str], *, seed: int = 0
) -> dict[str, Any]:
    """Three measures, each with value, low and high (95%, percentile bootstrap that draws groups)."""
    names, place = np.unique(np.array(groups), return_inverse=True)
    order = np.argsort(scores, kind="stable")
    ties = np.unique(scores[order], return_inverse=True)[1]
    value = _measures(np.ones(len(scores)), decided, truth, order, ties)
    draw = np.random.default_rng(seed)
    drawn = []
    for _ in range(RESAMPLES):
        times = np.bincount(draw.integers(0, len(names), len(names)), minlength=len(names))
        drawn.append(_measures(times[place].astype(float), decided, truth, order, ties))
    low, high = np.nanquantile(np.array(drawn), [0.025, 0.975], axis=0)
    measures = ("balanced_accuracy", "auc", "kappa")
    found: dict[str, Any] = {
        name: {"value": value[number], "low": float(low[number]), "high": float(high[number])}
        for number, name in enumerate(measures)
    }
    found["true_positive_rate"] = float(decided[truth].mean())
    found["true_negative_rate"] = float((~decided[~truth]).mean())
    return found


def _measures(
    weight: np.ndarray, decided: np.ndarray, truth: np.ndarray, order: np.ndarray, ties: np.ndarray
) -> tuple[float, float, float]:
    """Balanced accuracy, AUC and kappa where each row counts as often as its weight says."""
    total, positive = weight.sum(), weight[truth].sum()
    negative = total - positive
    if not positive or not negative:
        return float("nan"), float("nan"), float("nan")
    hits = weight[truth & decided].sum()
    right_no = weight[~truth & ~decided].sum()
    yes = weight[decided].sum()
    seen = (hits + right_no) / total
    chance = (yes * positive + (total - yes) * negative) / total**2
    kappa = (seen - chance) / (1 - chance) if chance < 1 else 0.0
    # AUC: of each positive, the negatives below it and half of those beside it
    sorted_truth, sorted_weight = truth[order], weight[order]
    below = np.bincount(ties, np.where(sorted_truth, 0.0, sorted_weight))
    good = np.bincount(ties, np.where(sorted_truth, sorted_weight, 0.0))
    auc = float((good * (np.cumsum(below) - below / 2)).sum() / (positive * negative))
    return float((hits / positive + right_no / negative) / 2), auc, float(kappa)
