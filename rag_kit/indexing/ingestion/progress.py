"""How far an ingest is, for its caller's progress bar."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Progress:
    """Counts the files that are done; threads take turns to tell the caller's function.

    Args:
        call: Called as ``call(name, done, total, bytes=n)``; ``None`` for nobody.
        total: Files in all.
    """

    def __init__(self, call: Callable[..., object] | None, total: int) -> None:
        self._call = call
        self._total = total
        self._done = self._bytes = 0
        self._lock = threading.Lock()

    def tell(self, name: str) -> None:
        """Name what is worked on now."""
        with self._lock:
            if self._call is not None:
                self._call(name, self._done, self._total, bytes=self._bytes)

    def calls(self, done: int, total: int) -> None:
        """Tell how many calls of the model are done."""
        self.tell(f"{done} of {total} calls of the model")

    def count(self, size: int = 0) -> None:
        """Count one more file as done."""
        with self._lock:
            self._done += 1
            self._bytes += size
