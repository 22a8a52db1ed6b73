"""From tokens to money, by the prices that the user gives; what has no price costs an unknown sum, not none."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_kit.errors import InvalidInputError

#: Model -> ``calls``, ``input_tokens``, ``output_tokens``.
Usage = dict[str, dict[str, int]]

_FIELDS = ("input", "output", "call")
_ALLOWED = (
    "give {'model': {'input': 0.15, 'output': 0.6}} for a million tokens each (and 'call' for a request), '*' for "
    "any other model, or one number for a million tokens of any kind"
)


@dataclass(frozen=True)
class Prices:
    """Prices of models.

    Args:
        table: Model name (or ``"*"``) -> ``input`` and ``output`` for a million tokens, ``call`` for a request.
    """

    table: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any) -> Prices:
        """Read what a user gave.

        Raises:
            InvalidInputError: If it is no table of prices.

        Example:
            >>> Prices.of({"gpt": {"input": 1.0, "output": 4.0}}).cost(
            ...     {"gpt": {"calls": 1, "input_tokens": 1000, "output_tokens": 500}})
            0.003
        """
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        if _is_price(value):
            return cls({"*": {"input": float(value), "output": float(value)}})
        if not isinstance(value, Mapping):
            raise InvalidInputError(f"prices is {value!r:.80}; {_ALLOWED}")
        table: dict[str, Mapping[str, float]] = {}
        for model, price in value.items():
            if _is_price(price):
                price = {"input": price, "output": price}
            right = isinstance(price, Mapping) and price and set(price) <= set(_FIELDS)
            if not isinstance(model, str) or not right or not all(map(_is_price, price.values())):
                raise InvalidInputError(f"the price of {model!r:.80} is {price!r:.80}; {_ALLOWED}")
            table[model] = {name: float(number) for name, number in price.items()}
        return cls(table)

    def cost(
        self, usage: Mapping[str, Mapping[str, int]], *, tokens: int = 0, calls: int = 0
    ) -> float | None:
        """Money for what was used.

        Args:
            usage: By model.
            tokens: In and out together, where nothing is known by model.
            calls: Requests, likewise.

        Returns:
            The sum; 0 where nothing was used; ``None`` where the price of something that was used is unknown.
        """
        if not usage:
            if not tokens and not calls:
                return 0.0 if self.table else None
            usage = {"*": {"calls": calls, "input_tokens": tokens, "output_tokens": 0}}
            price = self.table.get("*", {})
            if price.get("input") != price.get("output"):
                return None  # which of the tokens went in and which came out is not known
        total = 0.0
        for model, counts in usage.items():
            row = self._row(model)
            if row is None:
                return None
            total += row.get("call", 0.0) * counts.get("calls", 0)
            total += row.get("input", 0.0) * counts.get("input_tokens", 0) / 1e6
            total += row.get("output", 0.0) * counts.get("output_tokens", 0) / 1e6
        return total

    def _row(self, model: str) -> Mapping[str, float] | None:
        """The model's own price; that of the longest name it begins with (``gpt-x`` for ``gpt-x-2026-01-01``)."""
        if model in self.table:
            return self.table[model]
        begun = [name for name in self.table if name != "*" and model.startswith(f"{name}-")]
        return self.table[max(begun, key=len)] if begun else self.table.get("*")


def _is_price(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= sys.float_info.max
