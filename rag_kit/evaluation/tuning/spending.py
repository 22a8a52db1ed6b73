"""What a search has used, over all of its sittings, and when it has to end so that its winner can still be judged."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from rag_kit.errors import InvalidInputError

_KINDS = ("calls", "seconds", "money")


class Spending:
    """Calls, seconds and money of a search, against its caps.

    Args:
        max_calls: Most model calls, of pipelines and judge together.
        max_seconds: Most seconds.
        max_money: Most money, in the unit of the prices.

    Raises:
        InvalidInputError: If a cap is no number above 0.

    Example:
        >>> spending = Spending(max_calls=100)
        >>> spending.add({"calls": 20, "money": 0.0}, questions=10, seconds=1.0)
        >>> spending.ended(questions=10, reserve=40), spending.ended(questions=10, reserve=20)
        ('max_calls=100: 20 are used, 80 are kept to judge the winner', None)
    """

    def __init__(
        self,
        *,
        max_calls: int | None = None,
        max_seconds: float | None = None,
        max_money: float | None = None,
    ) -> None:
        for name, cap, whole in (
            ("max_calls", max_calls, True), ("max_seconds", max_seconds, False), ("max_money", max_money, False)
        ):  # fmt: skip
            right = type(cap) is int or (not whole and type(cap) is float and math.isfinite(cap))
            if cap is not None and not (right and cap > 0):
                raise InvalidInputError(
                    f"{name} is {cap!r:.80}; give a {'whole ' * whole}number above 0, or None for no cap"
                )
        self.caps: dict[str, float | None] = {"calls": max_calls, "seconds": max_seconds, "money": max_money}
        self.used: dict[str, float] = dict.fromkeys(_KINDS, 0.0)
        self.tokens = 0
        self.money_known = True
        self._questions = 0
        self._asking: dict[str, float] = dict.fromkeys(_KINDS, 0.0)
        self._since = time.monotonic()
        self._before = 0.0

    def begin(self, elapsed: float = 0.0) -> None:
        """The clock of this sitting starts; ``elapsed`` seconds were used in earlier ones."""
        self._since, self._before = time.monotonic(), elapsed

    @property
    def elapsed(self) -> float:
        """Seconds of all sittings."""
        return self._before + time.monotonic() - self._since

    @property
    def measured(self) -> bool:
        """Whether anything is known of what a question costs."""
        return self._questions > 0

    def add(self, cost: Mapping[str, Any], *, questions: int, seconds: float) -> None:
        """Count what some questions took: ``calls``, ``tokens``, ``money`` (``None`` where it is not known)."""
        self._questions += questions
        self._asking["seconds"] += seconds
        self.tokens += int(cost.get("tokens", 0))
        for kind in ("calls", "money"):
            amount = cost.get(kind)
            self.money_known &= amount is not None
            self.used[kind] += amount or 0
            self._asking[kind] += amount or 0

    def left(self, kind: str) -> float | None:
        """What may still be used of a kind; ``None`` without a cap."""
        cap = self.caps[kind]
        self.used["seconds"] = self.elapsed
        return None if cap is None else max(0.0, cap - self.used[kind])

    def ended(self, questions: int, reserve: int) -> str | None:
        """Why no further ``questions`` can be asked, when ``reserve`` must stay possible; else ``None``."""
        for kind in _KINDS:
            left, each = self.left(kind), self._asking[kind] / max(1, self._questions)
            if left is not None and (left <= 0 or left < each * (questions + reserve)):
                used = _shown(self.used[kind], kind)
                kept = (
                    f", {_shown(min(left, each * reserve), kind)} are kept to judge the winner"
                    if reserve
                    else ""
                )
                return f"max_{kind}={self.caps[kind]:g}: {used} are used{kept}"
        return None


def _shown(amount: float, kind: str) -> str:
    return f"{amount:.0f}" if kind == "calls" else f"{amount:.3g}"
