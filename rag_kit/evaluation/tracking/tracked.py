"""What a write-back did, counted."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Literal

OnError = Literal["raise", "skip"]
_MAX_PROBLEMS = 20


@dataclass(frozen=True)
class Tracked:
    """What was written to a tracker.

    Args:
        tool: ``"langsmith"``, ``"mlflow"`` or ``"phoenix"``.
        url: Where people find it; no key in it.
        run_id: The tracker's id of the experiment (LangSmith, Phoenix) or of the run (MLflow).
        written: Entries that are there now and were not before: examples, runs and scores; with MLflow params,
            metrics and files.
        skipped: Entries that were there already.
        failed: Entries that the tracker refused; above 0 only with ``on_error="skip"``.
        problems: Why, for the first of them.
    """

    tool: str
    url: str
    run_id: str
    written: int
    skipped: int = 0
    failed: int = 0
    problems: tuple[str, ...] = ()


@dataclass
class Tally:
    """Counts entries, from several threads."""

    tool: str
    url: str = ""
    run_id: str = ""
    written: int = 0
    skipped: int = 0
    failed: int = 0
    problems: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def wrote(self, count: int = 1) -> None:
        """Entries that the tracker took."""
        with self._lock:
            self.written += count

    def skip(self, count: int = 1) -> None:
        """Entries that were there already."""
        with self._lock:
            self.skipped += count

    def fail(self, problem: str, count: int = 1) -> None:
        """Entries that the tracker refused."""
        with self._lock:
            self.failed += count
            if len(self.problems) < _MAX_PROBLEMS:
                self.problems.append(problem)

    def result(self) -> Tracked:
        """The counts, frozen."""
        with self._lock:
            return Tracked(
                self.tool,
                self.url,
                self.run_id,
                self.written,
                self.skipped,
                self.failed,
                tuple(self.problems),
            )
