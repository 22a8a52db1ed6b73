"""Keyword and vector search fused, with feedback on the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from langchain_core.documents import Document
from pydantic import Field, model_validator

from rag_kit.errors import DocumentIndexError, InvalidInputError, LockedError
from rag_kit.retrieval.base import blocking_step
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.ensemble import EnsembleRetriever
from rag_kit.retrieval.fields import Weights
from rag_kit.retrieval.fusion import (
    Fused,
    Search,
    first_positions,
    fuse,
    identify,
    join_documents,
    nothing_found,
)

# docs/decisions/0011
DENSE_WEIGHT = 0.5
"""The weight of the dense side; the keyword list has the rest."""
_FEEDBACK = 0.45  # of the dense side's weight that the second dense list has
_FIRST = 3  # results that the query is moved towards
_SHARE = 0.5  # of their mean vector

IDS_ONLY = "ids_only"
"""Argument of a call: give ids and scores alone, since text and metadata are read of what is returned."""

Vector = Sequence[float]


class HybridRetriever(EnsembleRetriever):
    """Keyword and vector search over the same documents, fused by scores, with feedback on the vectors.

    The two lists are fused by z-scores; then the vector of the query is moved towards those of the first three results
    and searched again, which costs no call to the embedding model, and the three lists are fused: the second dense list
    has .45 of the dense side's weight. A question in a language that the embedding model does not read is searched by
    keyword alone, and a note says so. ``index_retriever`` makes one over an index.

    Rocchio: Relevance feedback in information retrieval, 1971; what it gains stands in ``docs/decisions/0011``.

    Args:
        retrievers: The keyword retriever (`BM25Retriever`) and the one over vectors (`ExactVectorRetriever`).
        weights: Their weights, .5 each by default.
        k: Most documents to return.
        fetch_k: How many each of them is asked for; 100 if not given.

    Raises:
        InvalidInputError: The second retriever cannot search by a vector.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from rag_kit.retrieval import BM25Retriever, ExactVectorRetriever
        >>> documents = [Document("The pump starts at 40 degrees.", id="pump"), Document("Deep water.", id="lake")]
        >>> dense = ExactVectorRetriever.from_documents(documents, DeterministicFakeEmbedding(size=8))
        >>> both = HybridRetriever(retrievers=[BM25Retriever.from_documents(documents), dense], k=1)
        >>> [doc.id for doc in both.invoke("When does the pump start?")]
        ['pump']
    """

    fusion: str = "convex"
    weights: Weights = Field(default_factory=lambda: [1 - DENSE_WEIGHT, DENSE_WEIGHT])

    @model_validator(mode="after")
    def _second_searches_vectors(self) -> Self:
        needs = ("kept_vector", "reads", "vectors_of", "nearest")
        if len(self.retrievers) != 2 or not all(hasattr(self.retrievers[1], name) for name in needs):
            raise InvalidInputError(
                "retrievers must be a keyword retriever and one that searches by a vector, such as "
                "[BM25Retriever, ExactVectorRetriever]; for any others use EnsembleRetriever."
            )
        return self

    @property
    def _dense(self) -> Any:
        return self.retrievers[1]

    @property
    def _reads_later(self) -> bool:
        """Tell whether both retrievers may return ids alone, since both search one stored index."""
        indexes = [getattr(retriever, "index", None) for retriever in self.retrievers]
        return hasattr(self._dense, "stored") and indexes[0] is indexes[1] and self.id_key is None

    def _branches(self, query: str) -> list[Search]:
        branches = super()._branches(query)
        return branches if self._dense.reads(query) else branches[:1]

    def _arguments(self) -> dict[str, Any]:
        return {IDS_ONLY: True} if self._reads_later else {}

    async def _merge(self, call: Call, answered: Sequence[Search]) -> list[Document]:
        """Search by the moved vector, fuse, and read what is returned."""
        if not self._dense.reads(call.query):
            call.note("degraded: keyword search only, for the embedding model reads English only")
        documents: list[Document] = await blocking_step("fusion", self._merged, call, answered)
        return documents

    def _merged(self, call: Call, answered: Sequence[Search]) -> list[Document]:
        """Fuse the searches, and again with one by feedback on the vectors; make the documents of the best keys."""
        keys, notes = self._identify(answered)
        fused = self._fuse(call, answered, keys)
        searches = self._with_feedback(call, answered, keys, fused.ranking[:_FIRST])
        if len(searches) > len(answered):
            first_keys = keys
            keys, notes = self._identify(searches)
            fused = self._fuse(call, searches, keys, fused.tables if keys[:2] == first_keys else ())
        ranking = fused.ranking[: call.k]
        empty = [nothing_found(search) for search in searches if not search.documents and not search.role]
        return join_documents(
            searches,
            [first_positions(list_keys) for list_keys in keys],
            ranking,
            call,
            f"fusion:{self.fusion}",
            [*notes, *empty, *fused.notes],
            fused=fused,
            stored=self._dense.stored([key for key, _ in ranking]) if self._reads_later else None,
        )

    def _identify(self, searches: Sequence[Search]) -> tuple[list[list[str]], list[str]]:
        """Return the keys of each search's documents, and notes; in one index the ids tell documents apart."""
        if self._reads_later:
            return [[document.id or "" for document in search.documents] for search in searches], []
        return identify(searches, self.id_key)

    def _fuse(
        self,
        call: Call,
        searches: Sequence[Search],
        keys: Sequence[Sequence[str]],
        tables: Sequence[Any] = (),
    ) -> Fused:
        depth = self._depth(call)
        return fuse(searches, keys, self.fusion, rrf_k=self.rrf_k, depth=depth, tables=tables)

    def _with_feedback(
        self,
        call: Call,
        answered: Sequence[Search],
        keys: Sequence[Sequence[str]],
        best: Sequence[tuple[str, float]],
    ) -> Sequence[Search]:
        """Add a search by the question's vector moved towards the best documents of the fused searches."""
        dense, vector = self._dense, self._dense.kept_vector(call.query)
        if vector is None or len(answered) < 2:
            return answered
        positions = [*zip(answered, map(first_positions, keys), strict=True)]
        first = [
            next(search.documents[first[key]] for search, first in positions if key in first)
            for key, _ in best
        ]
        # an index that was given other vectors meanwhile (`reembed`) still has the answers above
        moved = _move_towards(vector, [row for row in dense.vectors_of(first) if len(row) == len(vector)])
        if moved is None:
            return answered
        depth = self._depth(call) or call.k
        try:
            documents = dense.nearest(call.query, moved, depth, call.filter, ids_only=self._reads_later)
        except (DocumentIndexError, LockedError) as error:
            call.note_failure("feedback", error)
            return answered
        keyword, by_vector = answered
        share, name = by_vector.weight * _FEEDBACK, f"{by_vector.name}, feedback"
        feedback = Search(call.query, "feedback", None, share, documents, name, len(answered) + 1)
        return [keyword, replace(by_vector, weight=by_vector.weight - share), feedback]


def _move_towards(vector: Vector, targets: Sequence[Vector]) -> list[float] | None:
    """Add half of the mean of the results' vectors to a query's vector; all have length 1."""
    import numpy as np

    if not len(targets):
        return None
    rows = np.array([vector, *targets], np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    moved: list[float] = (rows[0] + _SHARE * rows[1:].mean(axis=0)).tolist()
    return moved
