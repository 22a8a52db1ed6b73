"""Calls of embedding models with the kit's errors, on any event loop."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.concurrency.steps import Step, arun, run
from rag_kit.errors import InvalidInputError, RagKitError

from .failures import map_model_error
from .runnables import connections_of

_MAX_KEPT = 20_000  # vectors


class KeptVectors:
    """Vectors of queries, kept for a block, by model and text; ``saved`` counts the seconds not spent again."""

    def __init__(self) -> None:
        self.saved = 0.0
        self._vectors: dict[tuple[int, str], tuple[Embeddings, array[float], float]] = {}

    def get(self, model: Embeddings, text: str) -> list[float] | None:
        """Return the vector of a query that this very model has embedded; ``None`` if it has not."""
        if (id(model), text) not in self._vectors:
            return None
        _, vector, seconds = self._vectors[id(model), text]
        self.saved += seconds
        return vector.tolist()

    def put(self, model: Embeddings, text: str, vector: list[float], seconds: float) -> None:
        """Keep a vector, and how long it took."""
        if len(self._vectors) < _MAX_KEPT:  # the model too, so that its id is no other's
            self._vectors[id(model), text] = model, array("d", vector), seconds


_kept: ContextVar[KeptVectors | None] = ContextVar("rag_kit_query_vectors", default=None)


def keeps_query_vectors() -> bool:
    """Tell whether this runs inside `keep_query_vectors`, which measures how long embedding takes."""
    return _kept.get() is not None


@contextmanager
def keep_query_vectors() -> Iterator[KeptVectors]:
    """Embed each query at most once a model in the block, also on threads and in tasks started there."""
    token = _kept.set(kept := KeptVectors())
    try:
        yield kept
    finally:
        _kept.reset(token)


def check_embeddings(embeddings: Any) -> Embeddings:
    """See that something is an embedding model."""
    if not isinstance(embeddings, Embeddings):
        raise InvalidInputError(
            f"embeddings is {type(embeddings).__name__}; it must be a LangChain Embeddings, such as "
            "rag_kit.models.embedding_model('minilm')."
        )
    return embeddings


def embed_query(embeddings: Embeddings, text: str) -> list[float]:
    """As ``embeddings.embed_query``, with the kit's errors; no key stands in their messages."""
    return run(_embed(embeddings, "query", text))


def embed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``embeddings.embed_documents``, with the kit's errors."""
    return run(_embed(embeddings, "documents", texts))


async def aembed_query(embeddings: Embeddings, text: str) -> list[float]:
    """As ``embed_query``, without blocking; a model that has no ``aembed_query`` of its own runs on the shared pool."""
    return await arun(_embed(embeddings, "query", text))


async def aembed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``embed_documents``, without blocking; see ``aembed_query``."""
    return await arun(_embed(embeddings, "documents", texts))


async def _embed(embeddings: Embeddings, what: str, texts: Any) -> Any:
    """Embed; inside `keep_query_vectors` a query only once; a provider's error becomes one of the kit."""
    kept = _kept.get() if what == "query" else None
    if kept is not None and (vector := kept.get(embeddings, texts)) is not None:
        return vector
    started, saved = time.perf_counter(), 0.0 if kept is None else kept.saved
    blocking = partial(getattr(embeddings, f"embed_{what}"), texts)
    failure: Exception | None = None
    try:
        vectors = await Step("embed", lambda _: blocking(), lambda _: aembed_bare(embeddings, what, texts))
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - raised below, outside of this block: it holds the request
        failure = error
    if failure is not None:
        raise map_model_error(failure, model=embeddings)
    if kept is not None and isinstance(vectors, list):
        kept.put(embeddings, texts, vectors, time.perf_counter() - started + kept.saved - saved)
    return vectors


async def aembed_bare(embeddings: Embeddings, what: str, texts: Any) -> Any:
    """Embed ``"documents"`` or a ``"query"`` by the model's own coroutine, else on a thread; raises its own errors."""
    blocking = partial(getattr(embeddings, f"embed_{what}"), texts)
    native = f"aembed_{what}"
    # LangChain's default runs on asyncio's small pool.
    if getattr(type(embeddings), native) is getattr(Embeddings, native):
        return await run_in_thread(blocking)
    call = partial(getattr(embeddings, native), texts)
    return await call_client(call, blocking, connections_of(embeddings))
