"""Calls of embedding models with the kit's errors, on any event loop."""

from __future__ import annotations

import time
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.concurrency.steps import Step, arun, run
from rag_kit.errors import InvalidInputError, RagKitError

from .failures import map_model_error
from .runnables import connections_of

_MEASURED = 20_000  # vectors kept while time is measured


class QueryVectors:
    """Vectors of queries, by model and text, so that none is embedded twice; threads may use it at once.

    Beyond ``most``, by default as many as branches run at a time in a process, the oldest are forgotten. ``saved``
    counts the seconds that embedding them again would have taken.
    """

    def __init__(self, most: int = 256) -> None:
        self.saved = 0.0
        self._most = most
        # beside each vector its model, so that the id is no other's, and the seconds that it took
        self._vectors: OrderedDict[tuple[int, str], tuple[Any, array[float], float]] = OrderedDict()

    def get(self, model: Any, text: str) -> list[float] | None:
        """Return the vector of a query that this very model has embedded; ``None`` if none is kept."""
        if (entry := self._vectors.get((id(model), text))) is None:
            return None
        self.saved += entry[2]
        return entry[1].tolist()

    def keep(self, model: Any, text: str, vector: Iterable[float], seconds: float = 0.0) -> None:
        """Keep a vector, and how long it took."""
        key = id(model), text
        self._vectors.pop(key, None)  # so that it moves to the end
        self._vectors[key] = model, array("d", vector), seconds
        while len(self._vectors) > self._most:
            self._vectors.popitem(last=False)


_kept: ContextVar[QueryVectors | None] = ContextVar("rag_kit_query_vectors", default=None)


def keeps_query_vectors() -> bool:
    """Tell whether this runs inside `keep_query_vectors`, which measures how long embedding takes."""
    return _kept.get() is not None


@contextmanager
def keep_query_vectors() -> Iterator[QueryVectors]:
    """Have each query embedded at most once by each model in the block, also on threads and tasks started there."""
    token = _kept.set(kept := QueryVectors(_MEASURED))
    try:
        yield kept
    finally:
        _kept.reset(token)


def check_embeddings(embeddings: Any) -> Embeddings:
    """Return an embedding model; `InvalidInputError` if it is none."""
    if not isinstance(embeddings, Embeddings):
        raise InvalidInputError(
            f"embeddings is {type(embeddings).__name__}; it must be a LangChain Embeddings, such as "
            "rag_kit.models.embedding_model('minilm')."
        )
    return embeddings


def embed_query(embeddings: Embeddings, text: str) -> list[float]:
    """Embed a query by ``embeddings.embed_query``; raise the kit's errors, whose messages hold no key."""
    return run(_embed(embeddings, "query", text))


def embed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """Embed texts by ``embeddings.embed_documents``; raise the kit's errors, whose messages hold no key."""
    return run(_embed(embeddings, "documents", texts))


async def aembed_query(embeddings: Embeddings, text: str) -> list[float]:
    """Embed a query without blocking: by the model's own ``aembed_query``, else on the kit's pool of threads."""
    return await arun(_embed(embeddings, "query", text))


async def aembed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """Embed texts without blocking: by the model's own ``aembed_documents``, else on the kit's pool of threads."""
    return await arun(_embed(embeddings, "documents", texts))


async def _embed(embeddings: Embeddings, kind: Literal["query", "documents"], texts: Any) -> Any:
    """Embed a query or documents; inside a `keep_query_vectors` block each query once. Raises the kit's errors."""
    kept = _kept.get() if kind == "query" else None
    if kept is not None and (vector := kept.get(embeddings, texts)) is not None:
        return vector
    started, saved_before = time.perf_counter(), kept.saved if kept else 0.0
    blocking = partial(getattr(embeddings, f"embed_{kind}"), texts)
    failure: Exception | None = None
    try:
        vectors = await Step("embed", lambda _: blocking(), lambda _: aembed_bare(embeddings, kind, texts))
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - raised below, outside of this block: it holds the request
        failure = error
    if failure is not None:
        raise map_model_error(failure, model=embeddings)
    if kept is not None and isinstance(vectors, list):
        # a model around another one may have saved the inner one's time
        saved_inside = kept.saved - saved_before
        kept.keep(embeddings, texts, vectors, time.perf_counter() - started + saved_inside)
    return vectors


async def aembed_bare(embeddings: Embeddings, kind: Literal["query", "documents"], texts: Any) -> Any:
    """Embed a query or documents by the model's own coroutine, else on a thread; raises the model's own errors."""
    blocking = partial(getattr(embeddings, f"embed_{kind}"), texts)
    name = f"aembed_{kind}"
    if getattr(type(embeddings), name) is getattr(Embeddings, name):
        return await run_in_thread(blocking)  # LangChain's default would run on asyncio's small pool
    return await call_client(partial(getattr(embeddings, name), texts), blocking, connections_of(embeddings))
