"""How far a run is: a bar on the terminal or in Jupyter, or a function of the user's."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Nobody looks any more: the pipe is broken, the terminal closed.
_GONE = (OSError, ValueError)


@dataclass(frozen=True)
class Progress:
    """Where a run is.

    Args:
        done: Examples with all their cells, those taken over from an earlier run included.
        total: Examples of the set.
        reused: Examples that were taken over whole.
        calls: Model calls of this run.
        tokens: Tokens of this run.
        money: What they cost; ``None`` where no price is known.
        seconds: Seconds since the run began.
        seconds_left: Seconds that the rest will take at this rate; ``None`` before the first example is done.
    """

    done: int
    total: int
    reused: int
    calls: int
    tokens: int
    money: float | None
    seconds: float
    seconds_left: float | None

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
        parts = [f"{self.calls} calls", f"{_short(self.tokens)} tokens"]
        return ", ".join(parts if self.money is None else [*parts, f"{self.money:.4g} money"])


class Reporter:
    """Tells how far the run is, after each example.

    Args:
        progress: ``True`` for a bar where somebody looks (a terminal, Jupyter), ``False`` for none, or a function that
            gets a `Progress`.
        name: What stands before the bar.
        total: Examples of the set.
        reused: Those of which nothing is to be done.
    """

    def __init__(
        self, progress: bool | Callable[[Progress], None], name: str, total: int, reused: int
    ) -> None:
        self._call = None if isinstance(progress, bool) else progress
        self._bar: Any = None
        self._total, self._reused = total, reused
        self._started = time.monotonic()
        if progress is True and reused < total:
            from tqdm import tqdm

            tqdm.monitor_interval = 0  # its watching thread is not needed
            looked_at = "ipykernel" in sys.modules or _is_terminal(sys.stderr)
            with contextlib.suppress(*_GONE):
                if looked_at and sys.stderr is not None:
                    sys.stderr.write(
                        ""
                    )  # told before: a bar that fails while it is made leaves half of itself
                    sys.stderr.flush()
                self._bar = tqdm(
                    total=total, initial=reused, desc=name, unit="q", file=sys.stderr, disable=not looked_at,
                    mininterval=0.2, dynamic_ncols=True,
                )  # fmt: skip

    def tell(self, done: int, calls: int, tokens: int, money: float | None) -> None:
        """Report the state after an example."""
        seconds = time.monotonic() - self._started
        fresh = done - self._reused
        left = seconds / fresh * (self._total - done) if fresh > 0 else None
        state = Progress(done, self._total, self._reused, calls, tokens, money, seconds, left)
        if self._bar is not None:
            try:
                self._bar.set_postfix_str(state.cost(), refresh=False)
                self._bar.update(done - self._bar.n)
            except _GONE:
                self._bar = None
        if self._call is not None:
            self._call(state)

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            with contextlib.suppress(*_GONE):
                self._bar.close()


def _is_terminal(stream: Any) -> bool:
    """Whether somebody looks; a program without a terminal may have no such stream, or a closed one."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        return False


def _short(count: int) -> str:
    return f"{count / 1000:.1f}k" if count >= 1000 else str(count)
