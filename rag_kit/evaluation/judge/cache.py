"""The cache of a judge: replies and vectors as JSON, kept between runs, each asked for once at a time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.errors import ConfigurationError
from rag_kit.models.json_cache import JsonCache, model_identity

_log = logging.getLogger(__name__)
_VERSION = 1  # raise it when an entry of the same key would be read in another way
_MAX_ENTRIES = 100_000

T = TypeVar("T")


def cache_key(kind: str, *parts: Any) -> str:
    """Return the key of a ``"reply"`` or a ``"vector"``: a hash, so that the file holds no question."""
    return _hash([kind, _VERSION, *parts])


def identity_of(model: Any) -> str | None:
    """Hash class, name, endpoint and settings of a model; ``None`` for an object that is no model."""
    identity = model_identity(model)
    if identity is None:
        return None
    parts: list[Any] = [identity]
    if isinstance(identity, Mapping) and identity.get("name") is None:
        # its fields instead, but no int, with which a scripted model may count its calls
        fields = {name: getattr(model, name, None) for name in getattr(type(model), "model_fields", {})}
        parts.append({name: value for name, value in fields.items() if isinstance(value, str | float)})
    return _hash(parts)


class PerLoop(Generic[T]):
    """One object for each event loop, made at its first use: a judge may outlive a loop."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, T] = {}

    def for_running_loop(self) -> T:
        """Return the object of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._by_loop:
                # drop those of closed loops: a semaphore refers to its loop, so weak references would keep both
                for closed in [other for other in self._by_loop if other.is_closed()]:
                    del self._by_loop[closed]
                self._by_loop[loop] = self._make()
            return self._by_loop[loop]


class JudgeCache:
    """The kit's JSON cache, off the event loop; without a file it keeps nothing.

    A cache that cannot be read or written is said once in the log and costs requests, never a run.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.file = None if path is None else JsonCache(path, max_entries=_MAX_ENTRIES)
        self._in_progress: PerLoop[dict[str, asyncio.Event]] = PerLoop(dict)
        self._failed = False

    async def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return the stored values of those keys that have one; none if the file cannot be read."""
        if self.file is None:
            return {}
        return await self._call_file("get", list(keys)) or {}

    async def put(self, values: Mapping[str, Any]) -> None:
        """Store values, which are plain JSON, by their keys."""
        if self.file is not None and values:
            await self._call_file("put", dict(values))

    @asynccontextmanager
    async def exclusive(self, key: str) -> AsyncIterator[None]:
        """Let only one task of an event loop at a time run the block for a key."""
        in_progress = self._in_progress.for_running_loop()
        while (other := in_progress.get(key)) is not None:
            await other.wait()
        finished = in_progress[key] = asyncio.Event()
        try:
            yield
        finally:
            del in_progress[key]
            finished.set()

    async def _call_file(self, name: str, argument: Any) -> Any:
        """Call the cache file on a thread; a failing cache is logged once, and gives ``None``."""
        try:
            return await run_in_thread(getattr(self.file, name), argument)
        except ConfigurationError as error:
            if not self._failed:
                self._failed = True
                _log.warning("The judge goes on without its cache: %s", error)
            return None


def _hash(parts: list[Any]) -> str:
    # what JSON does not know counts by its type, so that no secret and no address does
    text = json.dumps(parts, sort_keys=True, default=lambda other: type(other).__qualname__)
    return hashlib.sha256(text.encode()).hexdigest()
