"""Vectors of queries: several in one request where the model embeds questions as it embeds documents."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.branches import FanOut
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import Step
from rag_kit.errors import BranchTimeoutError, BudgetExceededError
from rag_kit.models.clients import (
    QueryVectors,
    aembed_documents,
    aembed_query,
    embed_documents,
    embed_query,
)

Vector = Sequence[float]

# Share of a vector's length: an instruction for queries moves it by some hundredths, another batch by less than this.
_MAX_DISTANCE = 1e-3
# by a model's id: whether it embeds questions as it embeds documents
_embeds_alike: dict[int, tuple[weakref.ref[Embeddings], bool]] = {}


class _Prepared(QueryVectors):
    """The vectors that the searches of one call share; ``awaited`` are being made, or took too long: the error."""

    def __init__(self) -> None:
        super().__init__(sys.maxsize)
        self.awaited: dict[tuple[int, str], Exception | None] = {}


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
    awaited = prepared.awaited
    keys = {query: (id(model), query) for query in queries if prepared.get(model, query) is None}
    missing = [query for query, key in keys.items() if awaited.get(key) is None]
    if not missing:
        return
    awaited.update({keys[query]: None for query in missing})
    vectors = await embed_together(model, missing)
    for number, query in enumerate(missing):
        if vectors is not None:
            prepared.keep(model, query, vectors[number])
        if vectors is not None or awaited.get(keys[query]) is None:  # not replaced by an error meanwhile
            awaited.pop(keys[query], None)


def give_up_vectors(queries: Sequence[str], error: BaseException | None) -> None:
    """Keep a time-out in place of the vectors of these queries, so that no search waits for them again."""
    prepared = _prepared.get()
    if prepared is not None and isinstance(error, BranchTimeoutError | BudgetExceededError):
        for key, earlier in [*prepared.awaited.items()]:
            if earlier is None and key[1] in queries:
                prepared.awaited[key] = error


def prepared_vector(model: Any, query: str) -> list[float] | None:
    """Return the vector that `prepare_vectors` made of a query, None if none; raise if that took too long."""
    if (prepared := _prepared.get()) is None:
        return None
    if error := prepared.awaited.get((id(model), query)):
        raise copy(error)  # several threads may raise it
    return prepared.get(model, query)


def embed_query_step(model: Embeddings, query: str) -> Step[list[float]]:
    """Make a step that embeds one query."""
    return Step("embedding", lambda _: embed_query(model, query), lambda _: aembed_query(model, query))


async def embed_together(model: Embeddings | None, queries: list[str]) -> Sequence[Vector] | None:
    """Embed queries in one request; ``None`` if each must be embedded by itself.

    That is so without a model, if the request fails, and if the model embeds queries in another way than documents: the
    first query is embedded both ways once to find out. A model with a method ``embed_queries`` is asked by that. A
    time-out or a used-up deadline is raised.
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
    reference, is_alike = _embeds_alike.get(id(model), (None, None))
    if reference is None or reference() is not model:
        is_alike = None  # not compared yet: there is no entry, or that of a deleted model with the same id
    if callable(embed_queries):
        embed = partial(embed_queries, queries)
        vectors = await Step[Sequence[Vector]]("embed", lambda _: embed(), lambda _: run_in_thread(embed))
    elif is_alike is False:
        return None
    else:
        tasks: list[Any] = [partial(embed_documents, model, queries)]
        atasks: list[Any] = [partial(aembed_documents, model, queries)]
        if is_alike is None:
            tasks.append(partial(embed_query, model, queries[0]))
            atasks.append(partial(aembed_query, model, queries[0]))
        step = Step[FanOut[Any]]("embeddings", lambda _: fan_out(tasks), lambda _: afan_out(atasks))
        vectors, *as_query = (await step).values  # as documents; perhaps the first one as a query
        if as_query and not _compare(model, vectors[0], as_query[0]):
            return None
    return vectors if len(vectors) == len(queries) else None


def _compare(model: Embeddings, as_document: Any, as_query: Any) -> bool:
    """Compare a model's vectors of one text as question and as document, and remember whether they are alike."""
    import numpy as np

    first, second = (np.asarray(vector, np.float64) for vector in (as_document, as_query))
    distance = np.linalg.norm(first - second) if first.shape == second.shape else np.inf
    is_alike = bool(distance <= _MAX_DISTANCE * np.linalg.norm(second))
    key = id(model)
    try:
        _embeds_alike[key] = (weakref.ref(model, lambda _: _embeds_alike.pop(key, None)), is_alike)
    except TypeError:
        return False  # it cannot be remembered, and comparing each time would save nothing
    return is_alike
