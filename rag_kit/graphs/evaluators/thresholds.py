"""From confidences to CRAG's three actions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_kit.errors import InvalidInputError

Action = Literal["correct", "incorrect", "ambiguous"]


@dataclass(frozen=True)
class Thresholds:
    """Where an evaluator's confidence is enough, and where it is too little.

    They belong to one evaluator's scale; ``fit_thresholds`` finds them on labelled pairs.

    Args:
        lower: All confidences below it: what was found is of no use.
        upper: Any confidence above it: what was found is enough.

    Raises:
        InvalidInputError: Not ``-1 <= lower <= upper <= 1``.

    Example:
        >>> Thresholds(-0.5, 0.5).action([-0.9, 0.7])
        'correct'
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        numbers = all(isinstance(each, (int, float)) for each in (self.lower, self.upper))
        if not numbers or not -1 <= self.lower <= self.upper <= 1:
            raise InvalidInputError(
                f"lower={self.lower!r} and upper={self.upper!r} were given; give numbers from -1 to 1, "
                "lower not above upper."
            )

    def action(self, scores: Sequence[float]) -> Action:
        """What the confidences of all passages call for (section 4.3 of the paper).

        Returns:
            ``"correct"`` if any is above ``upper``; ``"incorrect"`` if all are below ``lower``, or there are none;
            else ``"ambiguous"``.

        Raises:
            InvalidInputError: A confidence is no finite number.
        """
        if any(not math.isfinite(score) for score in scores):
            raise InvalidInputError("A confidence is not a finite number; each must be from -1 to 1.")
        if any(score > self.upper for score in scores):
            return "correct"
        return "incorrect" if all(score < self.lower for score in scores) else "ambiguous"
