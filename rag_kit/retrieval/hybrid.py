"""Keyword and vector search fused, with feedback on the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from pydantic import Field, model_validator

from rag_kit.errors import DocumentIndexError, InvalidInputError, LockedError
from rag_kit.indexing.document_index.vectors import unit
from rag_kit.retrieval.base import blocking_step
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.ensemble import EnsembleRetriever
from rag_kit.retrieval.fields import Fusion, Weights
from rag_kit.retrieval.fusion import Fused, RankedIds, Search, fuse, identify, join_documents, note_empty

# docs/decisions/0011
DENSE_WEIGHT = 0.5
"""The weight of the dense side; the keyword list has the rest."""
_FEEDBACK_SHARE = 0.45  # of the dense side's weight, for the second dense list, which feedback finds
_FEEDBACK_DOCUMENTS = 3  # first results that the query's vector is moved towards
_FEEDBACK_STEP = 0.5  # of their mean vector, added to the query's

IDS_ONLY = "ids_only"
"""Argument of a call: give ids and scores alone. Text and metadata are read later, of the documents returned."""


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

    fusion: Fusion = "convex"
    weights: Weights = Field(default_factory=lambda: [1 - DENSE_WEIGHT, DENSE_WEIGHT])

    @model_validator(mode="after")
    def _check_retrievers(self) -> Self:
        methods = ("kept_vector", "reads", "vectors_of", "nearest")
        if len(self.retrievers) != 2 or not all(hasattr(self.retrievers[1], name) for name in methods):
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
        """Tell whether texts can be read after the fusion: both retrievers return ids alone, of one stored index."""
        keyword: Any = self.retrievers[0]
        give_ids = all(IDS_ONLY in getattr(type(one), "call_arguments", ()) for one in self.retrievers)
        return give_ids and keyword.index is self._dense.index and self.id_key is None

    def _branches(self, query: str) -> list[Search]:
        branches = super()._branches(query)
        return branches if self._dense.reads(query) else branches[:1]

    async def _search(self, query: str, call: Call) -> list[Document]:
        """Run the keyword and the vector search; then fuse them, and search once more with feedback, on a thread."""
        arguments = {IDS_ONLY: True} if self._reads_later else {}
        answered = await self._search_branches(query, call, **arguments)
        if not self._dense.reads(query):
            call.note("degraded: keyword search only, for the embedding model reads English only")
        documents: list[Document] = await blocking_step("fusion", self._fuse_with_feedback, call, answered)
        return documents

    def _fuse_with_feedback(self, call: Call, answered: Sequence[Search]) -> list[Document]:
        """Fuse the two searches; search again near the vectors of the best documents, and fuse all three."""
        first_keys, _ = self._identify(answered)
        depth = self._depth(call)
        first = fuse(answered, first_keys, self.fusion, rrf_k=self.rrf_k, depth=depth)
        searches = self._with_feedback(call, answered, first)
        keys, notes = self._identify(searches)
        # if the feedback found another text under the id of a first result, the keys of the first lists are others
        before = first if keys[: len(first_keys)] == first_keys else None
        fused = fuse(searches, keys, self.fusion, rrf_k=self.rrf_k, depth=depth, before=before)
        # no note if the search with feedback, which alone has a role, is empty
        notes += [note_empty(search) for search in searches if not search.documents and not search.role]
        best_keys = [key for key, _ in fused.ranking[: call.k]]
        stored = self._dense.stored(best_keys, call.filter) if self._reads_later else None
        return join_documents(searches, fused, call, f"fusion:{self.fusion}", notes, stored=stored)

    def _identify(self, searches: Sequence[Search]) -> tuple[list[list[str]], list[str]]:
        """Return the keys of each search's documents, and notes on ids with several texts (none within one index)."""
        if self._reads_later:
            return [_ids_of(search.documents) for search in searches], []
        return identify(searches, self.id_key)

    def _with_feedback(self, call: Call, answered: Sequence[Search], fused: Fused) -> Sequence[Search]:
        """Search by the query's vector moved towards those of the best documents, and add this to the searches.

        The searches come back unchanged if one failed, the query was not embedded, or the documents have no vectors.
        """
        vector = self._dense.kept_vector(call.query)
        if vector is None or len(answered) < 2:
            return answered
        lists = [(search.documents, found) for search, found in zip(answered, fused.positions, strict=True)]
        best = [
            next(documents[positions[key]] for documents, positions in lists if key in positions)
            for key, _ in fused.ranking[:_FEEDBACK_DOCUMENTS]
        ]
        best_vectors = self._dense.vectors_of(best)
        # the index may have been given vectors of another length (`reembed`) since it was searched
        best_vectors = [best for best in best_vectors if len(best) == len(vector)]
        if not best_vectors:
            return answered
        moved = _move_towards(vector, best_vectors)
        depth = self._depth(call) or call.k
        try:
            found = self._dense.nearest(call.query, moved, depth, call.filter, ids_only=self._reads_later)
        except (DocumentIndexError, LockedError) as error:
            call.note_failure("feedback", error)
            return answered
        keyword, by_vector = answered
        weight = by_vector.weight * _FEEDBACK_SHARE  # taken from the first search by vector
        name = f"{by_vector.name}, feedback"
        feedback = Search(call.query, "feedback", weight=weight, documents=found, name=name, branch=3)
        return [keyword, replace(by_vector, weight=by_vector.weight - weight), feedback]


def _ids_of(documents: Sequence[Document]) -> list[str]:
    if isinstance(documents, RankedIds):
        return documents.ids
    return [document.id or "" for document in documents]


def _move_towards(vector: Sequence[float], targets: Sequence[Any]) -> list[float]:
    """Add half of the mean of the targets to a vector, all of them scaled to length 1."""
    rows = unit(np.array([vector, *targets], np.float64))
    moved: list[float] = (rows[0] + _FEEDBACK_STEP * rows[1:].mean(axis=0)).tolist()
    return moved
