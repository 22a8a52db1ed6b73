"""The tail of the sign-flip test, where random patterns are too few to say how small a p-value is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rag_kit.errors import MissingExtraError

if TYPE_CHECKING:
    import numpy as np

_HALVINGS = 100
"""Steps of the search for the saddlepoint: more than the digits of a double."""
_SAME = 1e-7
"""Two sizes nearer than this, relative to the greatest, are one size."""


def sign_flip_tail(differences: np.ndarray) -> float:
    """Two-sided p-value of the sign-flip test by a saddlepoint approximation.

    The sum of the differences with random signs has the cumulant generating function ``sum(log(cosh(t * d)))``;
    its tail follows by Lugannani and Rice's formula (1980), as Robinson proposed for permutation tests (1982). Where
    all differences are multiples of one step, the sum stands on a lattice and the tail begins half a step earlier.

    Args:
        differences: Non-zero, finite, more than a few; shape ``(n,)``.

    Raises:
        MissingExtraError: If SciPy is not installed.

    Example:
        >>> import numpy as np
        >>> sign_flip_tail(np.array([1.0, 2.0] * 10)) == 2 / 2**20  # two patterns of all are as far from zero
        True
    """
    import numpy as np

    try:
        from scipy.stats import norm
    except ImportError:
        raise MissingExtraError("eval", "testing the difference between pipelines") from None
    sizes = np.abs(differences) / np.abs(differences).max()
    seen = abs(float(differences.sum())) / float(np.abs(differences).max())
    least = 2.0 ** (1 - len(sizes))
    if seen >= float(sizes.sum()) * (1 - _SAME):
        return least
    step = _step(sizes)
    wanted = seen - step
    if wanted <= 0:
        return 1.0

    def slope(t: float) -> float:
        return float((sizes * np.tanh(t * sizes)).sum())

    low, high = 0.0, 1.0
    while slope(high) < wanted and high < 1e6:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < wanted else (low, middle)
    t = (low + high) / 2
    cumulant = float((np.logaddexp(t * sizes, -t * sizes) - math.log(2)).sum())
    curvature = float((sizes**2 * (1 - np.tanh(t * sizes) ** 2)).sum())
    signed = math.sqrt(max(0.0, 2 * (t * wanted - cumulant)))
    scaled = (math.sinh(t * step) / step if step else t) * math.sqrt(curvature)
    if signed < 1e-4 or scaled <= 0:
        return 1.0
    tail = norm.sf(signed) + norm.pdf(signed) * (1 / scaled - 1 / signed)
    return float(min(1.0, max(least, 2 * tail)))


def _step(sizes: np.ndarray) -> float:
    """The step of which all sizes are multiples; 0 if there is none."""
    import numpy as np

    distinct = np.unique(np.round(sizes, 9))
    gaps = np.concatenate([distinct, np.diff(distinct)])
    step = float(gaps[gaps > _SAME].min())
    multiples = sizes / step
    return step if np.allclose(multiples, np.round(multiples), rtol=0, atol=1e-5) else 0.0
