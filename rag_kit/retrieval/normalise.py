"""Bring the scores of different retrievers to one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Literal, get_args

from rag_kit.errors import InvalidInputError

Normalisation = Literal["min-max", "z-score", "maximum"]
NORMALISATIONS: tuple[str, ...] = get_args(Normalisation)


@dataclass(frozen=True)
class Normalised:
    """Scores of one list on a common scale.

    Attributes:
        values: One a score, in their order.
        absent: What a document counts that the list does not hold: as little as the list's last.
        note: What stood in for evidence that was not there, or ``None``.
    """

    values: list[float]
    absent: float
    note: str | None = None


def normalise(
    scores: Sequence[float | None],
    method: str = "min-max",
    *,
    maximum: float | None = None,
    depth: int | None = None,
) -> Normalised:
    """Normalise the scores of one list.

    - ``"min-max"``: the lowest score becomes 0, the highest 1; equal scores all become 1.
    - ``"z-score"``: mean 0, standard deviation 1; equal scores all become 0. A document that is absent counts
      the list's lowest value, at most -1. With ``depth``, mean and deviation are those of the list filled up
      with zeros to that length, and absence counts as 0 does: for keyword scores, where a list is short because
      all other documents score 0.
    - ``"maximum"``: divided by the highest score possible (BM25: the sum of the idf of the query's terms).
      Without ``maximum``, scores within -1 and 1 are taken as they are (cosines); others are divided by the
      list's best score, with a note. Negative scores stay negative.

    A list with a score missing is scored by its ranks, from 1 down to near 0, with a note.

    Args:
        scores: Higher is better, best first where some are ``None``.
        method: One of the three.
        maximum: The highest score possible, above 0.
        depth: How many results were asked for, if a document that is not found would score 0.

    Returns:
        The values, and what absence counts.

    Raises:
        InvalidInputError: If the method is unknown, a score is not finite or ``maximum`` not above 0.

    Example:
        >>> normalise([9.0, 6.0, 3.0]).values
        [1.0, 0.5, 0.0]
        >>> normalise([9.0, 6.0, 3.0], "maximum", maximum=12.0).values
        [0.75, 0.5, 0.25]
    """
    if method not in NORMALISATIONS:
        raise InvalidInputError(
            f"normalisation={method!r} was given; allowed: {', '.join(map(repr, NORMALISATIONS))}."
        )
    if maximum is not None and not (math.isfinite(maximum) and maximum >= 0):
        raise InvalidInputError(f"maximum={maximum!r} was given; it must be a number above 0.")
    note = None
    known = [float(score) for score in scores if score is not None]
    if not all(map(math.isfinite, known)):
        bad = next(score for score in known if not math.isfinite(score))
        raise InvalidInputError(f"A retriever gave the score {bad!r}; scores must be finite numbers.")
    if len(known) < len(scores):
        note = "no scores, so its ranks were used"
        known = [1 - place / len(scores) for place in range(len(scores))]
        maximum = None
    if not known:
        return Normalised([], 0.0)
    if method == "min-max":
        values, absent = _min_max(known), 0.0
    elif method == "z-score":
        padding = max(0, (depth or 0) - len(known)) if note is None else 0
        values = _z_scores([*known, *[0.0] * padding])
        absent = values[-1] if padding else min(-1.0, min(values))
        values = values[: len(known)]
    else:
        values, absent, guess = _by_maximum(known, maximum)
        note = note or guess
    return Normalised(values, absent, note)


def _min_max(scores: list[float]) -> list[float]:
    low, high = min(scores), max(scores)
    if not high > low:
        return [1.0] * len(scores)
    return [_share(score, low, high) for score in scores]


def _share(score: float, low: float, high: float) -> float:
    width = high - low
    if math.isinf(width):  # the ends are near the limits of a float
        return (score / 2 - low / 2) / (high / 2 - low / 2)
    return (score - low) / width


def _z_scores(scores: list[float]) -> list[float]:
    size = max(map(abs, scores)) or 1.0
    scaled = [score / size for score in scores]
    mean, deviation = fmean(scaled), pstdev(scaled)
    if not deviation > 1e-12:  # equal but for rounding
        return [0.0] * len(scores)
    return [(score - mean) / deviation for score in scaled]


def _by_maximum(scores: list[float], maximum: float | None) -> tuple[list[float], float, str | None]:
    if maximum:
        return [score / maximum for score in scores], 0.0, None
    if all(-1 <= score <= 1 for score in scores):
        return list(scores), min(scores), None
    best = max(scores)
    if best <= 0:
        return _min_max(scores), 0.0, "no highest possible score, so min-max was used"
    note = "no highest possible score, so the best of the list stood in for it"
    return [score / best for score in scores], min(0.0, min(scores) / best), note
