"""Keyword and vector search fused, weighed for each query, with feedback on the vectors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Self

from langchain_core.documents import Document
from pydantic import Field, model_validator

from rag_kit.concurrency.branches import describe_failure
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.errors import DocumentIndexError, InvalidInputError, LockedError
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import Weights
from rag_kit.retrieval.ensemble import EnsembleRetriever
from rag_kit.retrieval.fusion import Search
from rag_kit.text.language import detect_language

# docs/decisions/0011
_FIRST = 3  # results that the query is moved towards
_SHARE = 0.5  # of their mean vector
_WEIGHT = 0.45  # of the dense side's weight that the second dense list has
_REMEMBERED = 256  # as many branches as run at a time in a process

Vector = Sequence[float]


class QueryVectors:
    """The vectors of the last queries of a retriever, so that none is embedded twice for one question."""

    def __init__(self) -> None:
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    def keep(self, queries: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Remember vectors, and forget all but the last 256; threads may do so at once."""
        for query, vector in zip(queries, vectors, strict=True):
            self._vectors.pop(query, None)  # to the end
            self._vectors[query] = vector
        while len(self._vectors) > _REMEMBERED:
            self._vectors.popitem(last=False)

    def get(self, query: str) -> Vector | None:
        """The vector of a query, if it is one of the last."""
        return self._vectors.get(query)


class HybridRetriever(EnsembleRetriever):
    """Keyword and vector search over the same documents, weighed for each query, with feedback on the vectors.

    The two lists are fused as ``fusion="auto"`` does; then the vector of the query is moved towards those of the first
    three results and searched again, which costs no call to the embedding model, and the three lists are fused: the
    second dense list has .45 of the dense side's weight. A question in a language that the embedding model does not
    read is searched by keyword alone, and a note says so. ``index_retriever`` makes one over an index.

    Rocchio: Relevance feedback in information retrieval, 1971; what it gains stands in ``docs/decisions/0011``.

    Args:
        retrievers: The keyword retriever (`BM25Retriever`) and the one over vectors (`ExactVectorRetriever`).
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

    fusion: str = "auto"
    weights: Weights = Field(default_factory=lambda: [1.0, 1 - _WEIGHT])

    @model_validator(mode="after")
    def _second_searches_vectors(self) -> Self:
        needs = ("query_vectors", "reads", "vectors_of", "nearest")
        if len(self.retrievers) != 2 or not all(hasattr(self.retrievers[1], name) for name in needs):
            raise InvalidInputError(
                "retrievers must be a keyword retriever and one that searches by a vector, such as "
                "[BM25Retriever, ExactVectorRetriever]; for any others use EnsembleRetriever."
            )
        return self

    @property
    def _dense(self) -> Any:
        return self.retrievers[1]

    def _branches(self, query: str) -> list[Any]:
        branches = super()._branches(query)
        return branches if self._dense.reads(query) else branches[:1]

    async def _afuse(self, *arguments: Any) -> list[Document]:
        return await run_in_thread(self._fuse, *arguments)  # it searches

    def _extra_rankings(
        self, query: str, request: Request, answered: Sequence[Search]
    ) -> tuple[list[Search], list[str]]:
        """A third ranking: by the question's vector moved towards the best documents of the first fusion."""
        dense = self._dense
        vector = dense.query_vectors.get(query)
        if vector is None or len(answered) < 2:
            only = "degraded: keyword search only, for the embedding model reads English only"
            return [], [] if dense.reads(query) else [only]
        keys, fused = self._fused_keys(answered, self._depth(request))
        by_key = {
            key: document
            for search, list_keys in zip(answered, keys, strict=True)
            for key, document in zip(list_keys, search.documents, strict=True)
        }
        stored = dense.vectors_of([by_key[key] for key, _ in fused[:_FIRST]])
        # an index that was given other vectors meanwhile (`reembed`) still has the answers above
        moved = _move_towards(vector, [row for row in stored if len(row) == len(vector)])
        if moved is None:
            return [], []
        try:
            documents = dense.nearest(query, moved, self._depth(request) or request.k, request.filter)
        except (DocumentIndexError, LockedError) as error:
            return [], [f"degraded: {describe_failure('feedback', error)}"]
        name = f"{answered[1].name}, feedback"
        return [Search(query, "feedback", None, _WEIGHT, documents, name, len(answered) + 1)], []


def reads(embeddings: object, query: str) -> bool:
    """Whether an embedding model reads the language of a query, as far as it says so."""
    return not getattr(embeddings, "english_only", False) or detect_language(query) == "en"


def _move_towards(vector: Vector, targets: Sequence[Vector]) -> list[float] | None:
    """A query's vector and half of the mean of the results' vectors, all of length 1."""
    import numpy as np

    if not len(targets):
        return None
    rows = np.array([vector, *targets], np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    moved: list[float] = (rows[0] + _SHARE * rows[1:].mean(axis=0)).tolist()
    return moved
