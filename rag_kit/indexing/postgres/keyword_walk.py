"""The walk of ``BM25Index.spread`` over the tables of the keyword leg, as far as it can come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.term_graph import TermGraph
from rag_kit.indexing.postgres.keyword_postings import frequencies, postings
from rag_kit.indexing.postgres.keyword_scores import counted_terms, counts, passing

if TYPE_CHECKING:
    from psycopg import Connection

Slots = NDArray[np.int64]


def spread(
    native: Connection[Any],
    seeds: Mapping[str, float],
    k: int,
    where: Filter | None,
    *,
    damping: float,
    max_df: int,
) -> list[tuple[str, float, list[str]]]:
    """Ids, masses and terms of the k documents that a walk from some documents comes to most often.

    Two rounds: from the seeds to what shares a term with them, and from there to what shares a term with these.
    """
    query = "SELECT slot, id FROM keyword_documents JOIN chunks USING (n) WHERE id = ANY(%b::text[])"
    weights = {slot: seeds[key] for slot, key in native.execute(query, (list(seeds),))}
    begun = [slot for _, slot in passing(native, list(weights), where)]
    total = sum(weights[slot] for slot in begun)
    if not total > 0:
        return []
    near = _slots(_edges(native, begun, max_df))
    edges = _edges(native, [slot for _, slot in passing(native, near.tolist(), where)], max_df)
    places = np.union1d(_slots(edges), np.array(begun, np.int64))
    ids = {slot: key for key, slot in passing(native, places.tolist(), where)}
    size = counts(native).documents  # not fewer than the places, and what the rarity of a term is counted by
    start, allowed = np.zeros(size), np.zeros(size, bool)
    start[np.searchsorted(places, begun)] = [weights[slot] / total for slot in begun]
    allowed[: len(places)] = np.isin(places, list(ids))
    mass, terms = (graph := _graph(edges, places, size, max_df)).spread(start, damping, allowed)
    best = np.argsort(-mass[: len(places)], kind="stable")[:k]
    return [
        (ids[slot], float(mass[at]), graph.through(at, terms))
        for at, slot in zip(best.tolist(), places[best].tolist(), strict=True)
        if mass[at] > 0
    ]


def _edges(native: Connection[Any], slots: Sequence[int], max_df: int) -> dict[str, Slots]:
    """The documents of each term of some documents that joins them to others."""
    held = {term for terms in counted_terms(native, slots).values() for term in terms}
    joining = sorted(term for term, count in frequencies(native, held).items() if 1 < count <= max_df)
    found = dict(postings(native, joining))
    return {term: found[term].slots for term in joining}


def _slots(edges: Mapping[str, Slots]) -> Slots:
    return np.unique(np.concatenate([np.zeros(0, np.int64), *edges.values()]))


def _graph(edges: Mapping[str, Slots], places: Slots, size: int, max_df: int) -> TermGraph:
    """The graph of these edges, in which a document is called by its place."""
    documents = np.searchsorted(places, np.concatenate([np.zeros(0, np.int64), *edges.values()]))
    pointers = np.cumsum([0, *map(len, edges.values())])
    held = Postings(pointers, documents.astype(np.int32), np.ones(len(documents), np.uint8))
    return TermGraph(held, size, list(edges), max_df)
