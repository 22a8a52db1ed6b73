"""Replies kept between runs: only JSON, only good ones, and the same question is asked once at a time."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import CacheError
from rag_kit.models.rewrite_cache import RewriteCache

_log = logging.getLogger(__name__)
_MAX_ENTRIES = 100_000
_MAX_KEYS = 500
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


class Replies:
    """The cache of a judge, off the event loop; without a file it keeps nothing.

    A cache that cannot be read or written is said once in the log and costs requests, never a run.
    """

    def __init__(self, path: str | os.PathLike[str] | RewriteCache | None) -> None:
        made = RewriteCache(path, max_entries=_MAX_ENTRIES) if isinstance(path, str | os.PathLike) else path
        self.cache: RewriteCache | None = made
        self._asked: PerLoop[dict[str, asyncio.Event]] = PerLoop(dict)
        self._failed = False

    async def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """What is kept under the keys."""
        if self.cache is None:
            return {}
        found: dict[str, Any] = {}
        for start in range(0, len(keys), _MAX_KEYS):
            try:
                found |= await run_in_thread(self.cache.get, list(keys[start : start + _MAX_KEYS]))
            except CacheError as error:
                self._complain(error)
        return found

    async def put(self, replies: Mapping[str, Any]) -> None:
        """Keep plain JSON."""
        if self.cache is None or not replies:
            return
        try:
            await run_in_thread(self.cache.put, dict(replies))
        except CacheError as error:
            self._complain(error)

    async def once(
        self,
        key: str | None,
        read: Callable[[Any], T | None],
        ask: Callable[[], Awaitable[tuple[T, Any]]],
    ) -> tuple[T, bool]:
        """The reply that is kept, else the one that is asked for now.

        Args:
            key: Its key; ``None`` if it cannot be kept.
            read: From plain JSON to the reply; ``None`` if it does not fit any more.
            ask: Gives the reply and the plain JSON to keep, ``None`` to keep nothing. What it raises is kept nowhere;
                others who wait for the same reply then ask for themselves.

        Returns:
            The reply, and whether it was kept.
        """
        if self.cache is None or key is None:
            return (await ask())[0], False
        asked = self._asked.here()
        while (other := asked.get(key)) is not None:
            await other.wait()
        done = asked[key] = asyncio.Event()
        try:
            kept = await self.get([key])
            if key in kept and (found := read(kept[key])) is not None:
                return found, True
            reply, plain = await ask()
            if plain is not None:
                await self.put({key: plain})
            return reply, False
        finally:
            del asked[key]
            done.set()

    def _complain(self, error: CacheError) -> None:
        if not self._failed:
            self._failed = True
            _log.warning("The judge goes on without its cache: %s", error)
