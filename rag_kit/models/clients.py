"""Calls of embedding models with the kit's errors, on any event loop; queries that are embedded once, and together."""

from __future__ import annotations

import sys
import time
import weakref
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial
from typing import Any, Literal

from langchain_core.embeddings import Embeddings

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.branches import FanOut
from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.concurrency.steps import Step, both_forms, run
from rag_kit.errors import BranchTimeoutError, BudgetExceededError, InvalidInputError, RagKitError

from .failures import map_model_error
from .runnables import connections_of

_MEASURED = 20_000  # vectors kept while time is measured


class QueryVectors:
    """Vectors of queries, by model and text, so that none is embedded twice; threads may use it at once.

    Beyond ``most``, by default as many as branches run at a time in a process, the oldest are forgotten.
    ``saved_seconds`` is the time that embedding them again would have taken.
    """

    def __init__(self, most: int = 256) -> None:
        self.saved_seconds = 0.0
        self._most = most
        # vector, seconds, and the model: while that is kept, no other has its id
        self._vectors: OrderedDict[tuple[int, str], tuple[array[float], float, Any]] = OrderedDict()

    def get(self, model: Any, text: str) -> list[float] | None:
        """Return the vector of a query that this very model has embedded; ``None`` if none is kept."""
        kept = self._vectors.get((id(model), text))
        if kept is None:
            return None
        vector, seconds, _ = kept
        self.saved_seconds += seconds
        return vector.tolist()

    def keep(self, model: Any, text: str, vector: Iterable[float], seconds: float = 0.0) -> None:
        """Keep a vector, and how long it took."""
        key = id(model), text
        self._vectors.pop(key, None)  # so that it moves to the end
        self._vectors[key] = array("d", vector), seconds, model
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
    return run(embed_logic(embeddings, "query", text))


def embed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """Embed texts by ``embeddings.embed_documents``; raise the kit's errors, whose messages hold no key."""
    return run(embed_logic(embeddings, "documents", texts))


async def embed_logic(embeddings: Embeddings, kind: Literal["query", "documents"], texts: Any) -> Any:
    """Embed a query or documents; inside a `keep_query_vectors` block each query once. Raises the kit's errors."""
    kept = _kept.get() if kind == "query" else None
    if kept is not None and (vector := kept.get(embeddings, texts)) is not None:
        return vector
    started, saved_before = time.perf_counter(), kept.saved_seconds if kept else 0.0
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
        # a model that wraps another may have got the inner one's vector from here: its time counts as well
        saved_inside = kept.saved_seconds - saved_before
        kept.keep(embeddings, texts, vectors, time.perf_counter() - started + saved_inside)
    return vectors


async def aembed_bare(embeddings: Embeddings, kind: Literal["query", "documents"], texts: Any) -> Any:
    """Embed a query or documents without blocking, by the model alone: its errors stay as they are, nothing is kept."""
    blocking = partial(getattr(embeddings, f"embed_{kind}"), texts)
    name = f"aembed_{kind}"
    has_own_coroutine = getattr(type(embeddings), name) is not getattr(Embeddings, name)
    if not has_own_coroutine:  # LangChain's would run on asyncio's small pool
        return await run_in_thread(blocking)
    return await call_client(partial(getattr(embeddings, name), texts), blocking, connections_of(embeddings))


Vector = Sequence[float]

# Of two vectors of one text, as a share of their length: another batch moves a vector by less, an instruction that a
# model puts before questions by some hundredths.
_MAX_DISTANCE = 1e-3
# by the id of a model that lives: whether it embeds questions as it embeds documents
_embeds_alike: dict[int, bool] = {}


class _Prepared(QueryVectors):
    """The vectors that the searches of one call share; those pending or late are named by a model's id and the text."""

    def __init__(self) -> None:
        super().__init__(sys.maxsize)
        self.pending: set[tuple[int, str]] = set()
        self.late: dict[tuple[int, str], Exception] = {}  # the first errors of those that took too long


_prepared: ContextVar[_Prepared | None] = ContextVar("rag_kit_prepared_vectors", default=None)


@contextmanager
def share_vectors() -> Iterator[None]:
    """Let the searches in this block share the vectors that `prepare_vectors` embeds."""
    token = _prepared.set(_prepared.get() or _Prepared())
    try:
        yield
    finally:
        _prepared.reset(token)


async def prepare_vectors(model: Any, queries: Sequence[str]) -> None:
    """Embed queries in one request, if the model can, and keep the vectors for this `share_vectors`."""
    prepared = _prepared.get()
    if prepared is None or model is None:
        return
    lacking = [(id(model), query) for query in dict.fromkeys(queries) if prepared.get(model, query) is None]
    missing = [key for key in lacking if key not in prepared.late]
    if not missing:
        return
    prepared.pending.update(missing)
    vectors = await embed_together(model, [query for _, query in missing])
    prepared.pending.difference_update(missing)
    if vectors is not None:
        for (_, query), vector in zip(missing, vectors, strict=True):
            prepared.keep(model, query, vector)


def give_up_vectors(queries: Sequence[str], error: BaseException | None) -> None:
    """Keep a time-out in place of the vectors of these queries, so that no search waits for them again."""
    prepared = _prepared.get()
    if prepared is None or not isinstance(error, BranchTimeoutError | BudgetExceededError):
        return
    for model_id, query in [*prepared.pending]:
        if query in queries:
            prepared.late.setdefault((model_id, query), error)


def prepared_vector(model: Any, query: str) -> list[float] | None:
    """Return the vector that `prepare_vectors` made of a query, None if none; raise if that took too long."""
    if (prepared := _prepared.get()) is None:
        return None
    vector = prepared.get(model, query)
    if vector is None and (error := prepared.late.get((id(model), query))):
        raise copy(error)  # several threads may raise it
    return vector


async def embed_together(model: Embeddings | None, queries: list[str]) -> Sequence[Vector] | None:
    """Embed queries in one request; ``None`` if each must be embedded by itself.

    It is ``None`` without a model, if the request fails, and if the model embeds queries in another way than documents:
    the first query is embedded both ways once to find out. A model with a method ``embed_queries`` is asked by that.
    A time-out or a used-up deadline is raised.
    """
    try:
        return None if model is None else await _embed_together(model, queries)
    except (BranchTimeoutError, BudgetExceededError):
        raise
    except Exception:  # noqa: BLE001 - one of the queries may be at fault: each meets its error by itself
        return None


async def _embed_together(model: Embeddings, queries: list[str]) -> Sequence[Vector] | None:
    """Embed queries by the model's ``embed_queries``, else as documents if the model embeds both alike."""
    embed_queries = getattr(model, "embed_queries", None)
    is_alike = _embeds_alike.get(id(model))  # None: not compared yet
    if callable(embed_queries):
        embed = partial(embed_queries, queries)
        vectors = await Step[Sequence[Vector]]("embed", lambda _: embed(), lambda _: run_in_thread(embed))
    elif is_alike is False:
        return None
    else:
        calls = [both_forms(embed_logic, model, "documents", queries)]
        if is_alike is None:
            calls.append(both_forms(embed_logic, model, "query", queries[0]))
        blocking, native = zip(*calls, strict=True)
        step = Step[FanOut[Any]]("embeddings", lambda _: fan_out(blocking), lambda _: afan_out(native))
        vectors, *first_as_query = (await step).values
        if first_as_query and not _embeds_both_alike(model, vectors[0], first_as_query[0]):
            return None
    return vectors if len(vectors) == len(queries) else None


def _embeds_both_alike(model: Embeddings, as_document: Any, as_query: Any) -> bool:
    """Tell, by its vectors of one text, whether a model embeds questions as it embeds documents, and remember it.

    False, too, for a model that cannot be remembered.
    """
    import numpy as np

    document_vector, query_vector = (np.asarray(vector, np.float64) for vector in (as_document, as_query))
    is_same_size = document_vector.shape == query_vector.shape
    distance = np.linalg.norm(document_vector - query_vector) if is_same_size else np.inf
    is_alike = bool(distance <= _MAX_DISTANCE * np.linalg.norm(query_vector))
    try:
        weakref.finalize(model, _embeds_alike.pop, id(model), None)
    except TypeError:
        return False  # it takes no weak reference, and comparing each time would save nothing
    _embeds_alike[id(model)] = is_alike
    return is_alike
