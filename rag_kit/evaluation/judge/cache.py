"""The cache of a judge: replies and vectors as JSON, kept between runs, each asked for once at a time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Generic, TypeVar, cast

from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import time_limit
from rag_kit.errors import ConfigurationError, InvalidInputError, ModelOutputError
from rag_kit.models.calls import seconds_before_retry
from rag_kit.models.clients import aembed_bare
from rag_kit.models.embedding import embedding_name, sending_text
from rag_kit.models.failures import map_model_error
from rag_kit.models.json_cache import JsonCache, model_identity, plain_endpoint
from rag_kit.models.runnables import base_url
from rag_kit.retrieval.vectors import checked_vectors

_log = logging.getLogger(__name__)
# Raise it when an entry of the same key would be read in another way.
_VERSION = 1
_MAX_ENTRIES = 100_000
_BATCH = 64

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


class Vectors:
    """Embeds within the limits of a judge: in batches, each distinct text once, cached."""

    def __init__(self, judge: Any, cache: JudgeCache) -> None:
        self._judge, self._cache = judge, cache
        self._model = sending_text(judge.embeddings)
        # the model's name leaves out port and path, by which alone two models may differ
        self._name = f"{embedding_name(judge.embeddings)} {plain_endpoint(base_url(judge.embeddings))}"
        self.embedded = 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts in their order: from the cache, else from the model; each distinct text once."""
        if self._model is None:
            raise ConfigurationError(
                "the judge has no embedding model; give Judge(embeddings=...) one, set RAG_KIT_EMBEDDING_MODEL, or "
                "install one: rag-kit models install e5"
            )
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError("embed takes a list of texts; put the single one into a list")
        keys = {text: cache_key("vector", self._name, text) for text in texts}
        cached = await self._cache.get(list(keys.values()))
        vectors = {text: cached[key] for text, key in keys.items() if _is_vector(cached.get(key))}
        new = await self._embed_and_store([text for text in keys if text not in vectors], keys)
        if len({len(vector) for vector in (*vectors.values(), *new.values())}) > 1:
            new |= await self._embed_and_store(list(vectors), keys)  # the cached ones are of another model
        vectors |= new
        return [vectors[text] for text in texts]

    async def _embed_and_store(self, texts: list[str], keys: Mapping[str, str]) -> dict[str, list[float]]:
        """Embed texts in batches, store the vectors under their ``keys``, and return them by text."""
        vectors: dict[str, list[float]] = {}
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            found = checked_vectors(await self._embed_batch(batch), len(batch), self._model).tolist()
            if not all(map(_is_vector, found)):
                raise ModelOutputError("the embedding model gave a vector of zeros, which has no cosine")
            new = dict(zip(batch, found, strict=True))
            self.embedded += len(batch)
            await self._cache.put({keys[text]: vector for text, vector in new.items()})
            vectors |= new
        return vectors

    async def _embed_batch(self, batch: list[str]) -> Any:
        """Return the embedding model's reply for one batch; retry a failure that may pass, with longer pauses."""
        for attempt in count():
            async with self._judge.slots.for_running_loop():
                seconds, _ = time_limit(self._judge.timeout)  # of what is left after waiting for the slot
                try:
                    async with asyncio.timeout(seconds):
                        return await aembed_bare(cast(Embeddings, self._model), "documents", batch)
                except Exception as error:  # noqa: BLE001 - raised below, or retried
                    failure = error
            mapped = map_model_error(failure, model=self._model)
            may_retry = attempt < self._judge.max_retries
            await asyncio.sleep(seconds_before_retry(failure, mapped, attempt, may_retry=may_retry))


def _is_vector(value: Any) -> bool:
    """Tell whether a value is a vector with a cosine: a list of numbers whose sum of squares is neither 0 nor inf."""
    are_numbers = isinstance(value, list) and all(type(number) in (int, float) for number in value)
    return are_numbers and 0 < sum(number * number for number in value) < math.inf


def _hash(parts: list[Any]) -> str:
    # what JSON does not know counts by its type, so that no secret and no address does
    text = json.dumps(parts, sort_keys=True, default=lambda other: type(other).__qualname__)
    return hashlib.sha256(text.encode()).hexdigest()
