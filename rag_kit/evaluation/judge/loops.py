"""What belongs to one event loop: its slots for requests, and the questions that are being asked on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One object for each event loop, made when that loop first asks; a judge may live through several loops."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._found: dict[asyncio.AbstractEventLoop, T] = {}

    def here(self) -> T:
        """The object of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            found = self._found.get(loop)
            if found is None:
                # a semaphore holds on to its loop, so weak references would never let go
                self._found = {each: kept for each, kept in self._found.items() if not each.is_closed()}
                found = self._found[loop] = self._make()
            return found
