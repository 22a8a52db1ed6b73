"""Notes of a run: what was degraded, skipped, guessed or repaired, collected in a context variable as budgets are."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LOG_EVERY = 60.0  # seconds between two warnings about one part
_MAX_PARTS = 1_024

_active: ContextVar[tuple[Notes, ...]] = ContextVar("rag_kit_notes", default=())


class Notes:
    """Collects the notes written inside a block, each once, in order; threads and tasks may write at the same time.

    Attributes:
        texts: All notes.
        unsearched: Those of them that name something that was to be searched and was not: a store, an arm of an
            ensemble, the questions that a model was to write. While there is one, an empty result does not mean that
            the documents lack the answer.

    Example:
        >>> with use_notes() as notes:
        ...     write_note("degraded: dense failed: ConnectionError", unsearched=True)
        ...     write_note("1 repeated passage left out")
        >>> notes.unsearched
        ['degraded: dense failed: ConnectionError']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.texts: list[str] = []
        self.unsearched: list[str] = []

    def add(self, text: str, *, unsearched: bool = False) -> None:
        """Write a note down, unless it is there already."""
        with self._lock:
            if text not in self.texts:
                self.texts.append(text)
            if unsearched and text not in self.unsearched:
                self.unsearched.append(text)


@contextmanager
def use_notes(notes: Notes | None = None) -> Iterator[Notes]:
    """Collect the notes written in the block and its fan-outs; the collectors of blocks around it get them too."""
    notes = Notes() if notes is None else notes
    token = _active.set((*_active.get(), notes))
    try:
        yield notes
    finally:
        _active.reset(token)


def write_note(text: str, *, unsearched: bool = False) -> None:
    """Write a note into every collector around this code; without one it is dropped.

    Args:
        text: What happened, such as ``"degraded: dense failed: ConnectionError"``.
        unsearched: Whether something that was to be searched was not.
    """
    for notes in _active.get():
        notes.add(text, unsearched=unsearched)


class Outages:
    """Logs outages of parts, such as a branch or a model; one begins with the first failure after a success."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.failing: set[str] = set()
        self._warned: dict[str, float] = {}  # part -> when it was last warned of

    def failed(self, log: logging.Logger, part: str, text: str) -> None:
        """Log that a part failed: a warning if an outage begins and none was logged for a minute, else a debug line."""
        now = time.monotonic()
        with self._lock:
            outage_begins = part not in self.failing
            warned_recently = now - self._warned.get(part, -_LOG_EVERY) < _LOG_EVERY
            if len(self.failing) >= _MAX_PARTS or len(self._warned) >= _MAX_PARTS:  # bounds the memory
                self.failing.clear()
                self._warned.clear()
            self.failing.add(part)
            level = logging.DEBUG
            if outage_begins and not warned_recently:
                level = logging.WARNING
                self._warned[part] = now
        log.log(level, "%s: %s", part, text)

    def worked(self, part: str) -> None:
        """Record that a part works again: its next failure begins a new outage."""
        with self._lock:
            self.failing.discard(part)

    def clear(self) -> None:
        """Forget all outages."""
        with self._lock:
            self.failing.clear()
            self._warned.clear()


#: The outages of this process.
outages = Outages()
