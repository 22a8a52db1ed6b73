"""Prices of models, and the progress of a run with its bar."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_kit.errors import InvalidInputError

#: Model -> ``calls``, ``input_tokens``, ``output_tokens``.
Usage = dict[str, dict[str, int]]

_ALLOWED = (
    "give {'model': {'input': 0.15, 'output': 0.6}} for a million tokens each (and 'call' for a request), '*' for "
    "any other model, or one number for a million tokens of any kind"
)
#: Nobody looks any more: the pipe is broken, the terminal closed.
_GONE = (OSError, ValueError)


@dataclass(frozen=True)
class Prices:
    """Prices by model, and what usage costs at them.

    Args:
        table: Model name (or ``"*"``) -> ``input`` and ``output`` for a million tokens, ``call`` for a request.
    """

    table: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any) -> Prices:
        """Read the argument ``prices`` of `evaluate`: a table, one number, or ``None``.

        Raises:
            InvalidInputError: If it is no table of prices.

        Example:
            >>> Prices.of({"gpt": {"input": 1.0, "output": 4.0}}).cost(
            ...     {"gpt": {"calls": 1, "input_tokens": 1000, "output_tokens": 500}})
            0.003
        """
        given = {} if value is None else {"*": value} if _is_price(value) else value
        if not isinstance(given, Mapping):
            raise InvalidInputError(f"prices is {value!r:.80}; {_ALLOWED}")
        table: dict[str, Mapping[str, float]] = {}
        for model, price in given.items():
            one = {"input": price, "output": price} if _is_price(price) else price
            right = isinstance(one, Mapping) and one and set(one) <= {"input", "output", "call"}
            if not isinstance(model, str) or not right or not all(map(_is_price, one.values())):
                raise InvalidInputError(f"the price of {model!r:.80} is {price!r:.80}; {_ALLOWED}")
            table[model] = {name: float(number) for name, number in one.items()}
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
        if not usage and (tokens or calls):
            price = self.table.get("*", {})
            if price.get("input") != price.get("output"):
                return None  # which of the tokens went in and which came out is not known
            usage = {"*": {"calls": calls, "input_tokens": tokens, "output_tokens": 0}}
        if not self.table:
            return None
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


@dataclass(frozen=True)
class Progress:
    """How far a run is, what it cost so far, and how long it will take.

    Args:
        done: Examples with all their cells, those taken over from an earlier run included.
        total: Examples of the set.
        reused: Examples that were taken over whole.
        calls: Model calls of this run.
        tokens: Tokens of this run.
        money: What they cost; ``None`` where no price is known.
        seconds: Seconds since the run began.
        seconds_left: Seconds that the rest will take at this rate.
    """

    done: int
    total: int
    reused: int
    calls: int
    tokens: int
    money: float | None
    seconds: float
    seconds_left: float

    @property
    def rate(self) -> float:
        """Examples a second, those taken over left out."""
        return (self.done - self.reused) / self.seconds if self.seconds > 0 else 0.0

    def cost(self) -> str:
        """Cost so far, in a few words.

        Example:
            >>> Progress(1, 2, 0, 12, 34_500, 0.0123, 1.0, 1.0).cost()
            '12 calls, 34.5k tokens, 0.0123 money'
        """
        tokens = f"{self.tokens / 1000:.1f}k" if self.tokens >= 1000 else str(self.tokens)
        money = "" if self.money is None else f", {self.money:.4g} money"
        return f"{self.calls} calls, {tokens} tokens{money}"


class Reporter:
    """Reports a `Progress` after each example.

    Args:
        progress: ``True`` for a bar where somebody looks (a terminal, Jupyter), ``False`` for none, or a function that
            gets a `Progress`.
        name: What stands before the bar.
        total: Examples of the set.
        reused: Examples taken over whole from an earlier run.
    """

    def __init__(self, progress: Any, name: str, total: int, reused: int) -> None:
        self._on_progress = progress if callable(progress) else None
        self._bar = _bar(name, total, reused) if progress is True and reused < total else None
        self._total, self._reused = total, reused
        self._started = time.monotonic()

    def report(self, done: int, calls: int, tokens: int, money: float | None) -> None:
        """Move the bar and call the user's function, after an example."""
        seconds = time.monotonic() - self._started
        left = seconds / (done - self._reused) * (self._total - done)
        state = Progress(done, self._total, self._reused, calls, tokens, money, seconds, left)
        if self._bar is not None:
            with contextlib.suppress(*_GONE):
                self._bar.set_postfix_str(state.cost(), refresh=False)
                self._bar.update(done - self._bar.n)
        if self._on_progress is not None:
            self._on_progress(state)

    def close(self) -> None:
        """End the bar."""
        with contextlib.suppress(*_GONE):
            if self._bar is not None:
                self._bar.close()


def _bar(name: str, total: int, reused: int) -> Any:
    """A tqdm bar on stderr; ``None`` where that is no terminal (nor Jupyter), is missing or is closed."""
    with contextlib.suppress(*_GONE):
        if sys.stderr is None or not ("ipykernel" in sys.modules or sys.stderr.isatty()):
            return None
        sys.stderr.write("")  # a bar that fails while it is made would leave half of itself
        sys.stderr.flush()
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # its watching thread is not needed
        return tqdm(
            total=total,
            initial=reused,
            desc=name,
            unit="q",
            file=sys.stderr,
            mininterval=0.2,
            dynamic_ncols=True,
        )
    return None
