"""ROC curve, cuts and bootstrap intervals of confidences with labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np

Interval = tuple[float, float]

_BLOCK = 2_000_000
"""Weights in memory at once, whatever the number of pairs: 16 MB of float64."""


def check_labelled(scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Confidences and labels as arrays.

    Raises:
        InvalidInputError: Their lengths differ, a confidence is no number from -1 to 1, a label is neither true nor
            false, or all labels are the same.
    """
    import numpy as np

    given = scores.tolist() if hasattr(scores, "tolist") else scores
    wanted = labels.tolist() if hasattr(labels, "tolist") else labels
    for name, value in (("scores", given), ("labels", wanted)):
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise InvalidInputError(f"{name} is a {type(value).__name__}; give a list, one entry a pair.")
    if len(given) != len(wanted):
        raise InvalidInputError(
            f"{len(given)} scores and {len(wanted)} labels were given; give one of each for every pair."
        )
    for place, score in enumerate(given):
        # NaN fails the comparison too
        if not isinstance(score, (int, float)) or isinstance(score, bool) or not -1 <= score <= 1:
            raise InvalidInputError(f"Score {place} is {score!r:.40}; a confidence is a number from -1 to 1.")
    for place, label in enumerate(wanted):
        if not isinstance(label, (bool, int)) or label not in (0, 1):
            raise InvalidInputError(f"Label {place} is {label!r:.40}; give true (relevant) or false.")
    truth = np.asarray(wanted, dtype=bool)
    if truth.all() or not truth.any():
        which = "relevant" if truth.size and truth.all() else "not relevant"
        raise InvalidInputError(
            f"All {truth.size} pairs are {which}; thresholds need pairs of both kinds, relevant and not."
            if truth.size
            else "No pairs were given; thresholds need pairs of both kinds, relevant and not."
        )
    return np.asarray(given, dtype=np.float64), truth


def roc_auc(scores: np.ndarray, truth: np.ndarray) -> float:
    """How often a relevant one is above one that is not; ties count half.

    Example:
        >>> import numpy as np
        >>> roc_auc(np.array([0.1, 0.2, 0.2, 0.4]), np.array([False, True, False, True]))
        0.875
    """
    import numpy as np

    return float(_aucs(scores, truth, np.ones((1, truth.size)))[0])


def best_cut(scores: np.ndarray, truth: np.ndarray) -> float:
    """The threshold with the most pairs on their right side; of equal ones the middle one.

    Example:
        >>> import numpy as np
        >>> best_cut(np.array([-0.5, 0.5]), np.array([False, True]))
        0.0
    """
    import numpy as np

    cuts = _cuts(scores)
    order = np.argsort(scores, kind="stable")
    positives = np.concatenate([[0], np.cumsum(truth[order])])
    below = np.searchsorted(scores[order], cuts, side="right")
    right = (positives[-1] - positives[below]) + (below - positives[below])
    best = np.flatnonzero(right == right.max())
    return float(cuts[best[len(best) // 2]])


def lowest_upper(scores: np.ndarray, truth: np.ndarray, precision: float) -> float | None:
    """The lowest threshold above which at least that share is relevant; None where there is none.

    Example:
        >>> import numpy as np
        >>> lowest_upper(np.array([-0.5, 0.0, 0.5]), np.array([False, True, True]), 0.9)
        -0.25
    """
    import numpy as np

    cuts = _cuts(scores)
    order = np.argsort(scores, kind="stable")
    positives = np.concatenate([[0], np.cumsum(truth[order])])
    below = np.searchsorted(scores[order], cuts, side="right")
    above = truth.size - below
    share = (positives[-1] - positives[below]) / np.maximum(above, 1)
    fine = np.flatnonzero((above > 0) & (share >= precision))
    return float(cuts[fine[0]]) if fine.size else None


def kept_above(scores: np.ndarray, truth: np.ndarray, share: float) -> float:
    """The highest confidence below which at most ``1 - share`` of the relevant ones lie.

    Example:
        >>> import numpy as np
        >>> kept_above(np.array([-0.5, 0.1, 0.2, 0.6]), np.array([True, True, False, True]), 0.6)
        0.1
    """
    import numpy as np

    relevant = np.sort(scores[truth])
    lost = int(np.floor((1 - share) * relevant.size + 1e-9))
    return float(relevant[min(lost, relevant.size - 1)])


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

    Raises:
        InvalidInputError: A setting is out of range, or there is not one group a pair.
    """
    import numpy as np

    if not 0 < level < 1:
        raise InvalidInputError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    if isinstance(resamples, bool) or not isinstance(resamples, int) or not 1 <= resamples <= 100_000:
        raise InvalidInputError(f"resamples is {resamples!r}; give a whole number from 1 to 100000.")
    if groups is not None and len(groups) != truth.size:
        raise InvalidInputError(f"{len(groups)} groups were given for {truth.size} pairs; give one a pair.")
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
    import numpy as np

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


def _cuts(scores: np.ndarray) -> np.ndarray:
    """Thresholds between neighbouring confidences, and one at each end."""
    import numpy as np

    distinct = np.unique(scores)
    return np.concatenate([[-1.0], (distinct[:-1] + distinct[1:]) / 2, [1.0]])
