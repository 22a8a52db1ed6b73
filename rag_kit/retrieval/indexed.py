"""Retrievers over a `DocumentIndex`: by keyword, by vector, or both fused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from langchain_core.documents import Document
from pydantic import Field

from rag_kit.documents import add_note, first_stage
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index import DocumentIndex
from rag_kit.retrieval.base import RagKitRetriever, Request
from rag_kit.retrieval.batching_vectors import asearch_by_vector, search_by_vector
from rag_kit.retrieval.ensemble import EnsembleRetriever
from rag_kit.retrieval.hybrid import HybridRetriever, QueryVectors, reads

PIPELINES = ("hybrid", "bm25", "dense")
Hits = list[tuple[Document, float]]


class KeywordIndexRetriever(RagKitRetriever):
    """BM25 over an index.

    Args:
        index: An open index.
        k: Most documents to return.
        filter: Metadata filter for every call.
        note: Put into the provenance of every document.

    Example:
        >>> import tempfile
        >>> index = DocumentIndex.create(tempfile.mkdtemp())
        >>> _ = index.upsert([Document("The pump starts at 40 degrees.", id="pump")])
        >>> [doc.id for doc in KeywordIndexRetriever(index=index).invoke("pump")]
        ['pump']
        >>> index.close()
    """

    index: DocumentIndex
    note: str | None = None

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        # On a thread when called asynchronously: both calls read the store.
        hits = self.index.search_keyword(query, request.k, request.filter)
        highest = self.index.keyword_maximum(query) if hits else 0.0
        found = first_stage(hits, "bm25", self.get_name(), query, max_score=highest)
        return found if self.note is None else [add_note(document, self.note) for document in found]


class DenseIndexRetriever(RagKitRetriever):
    """Vector search over an index that was opened with its embedding model; scores are cosines.

    Args:
        index: An open index.
        k: Most documents to return.
        filter: Metadata filter for every call.

    Example:
        >>> import tempfile
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> index = DocumentIndex.create(tempfile.mkdtemp(), embeddings=DeterministicFakeEmbedding(size=8))
        >>> _ = index.upsert([Document("lake", id="1"), Document("pump", id="2")])
        >>> [doc.id for doc in DenseIndexRetriever(index=index, k=1).invoke("pump")]
        ['2']
        >>> index.close()
    """

    index: DocumentIndex
    query_vectors: QueryVectors = Field(default_factory=QueryVectors, exclude=True, repr=False)

    def reads(self, query: str) -> bool:
        """Whether the embedding model reads the query's language."""
        return reads(self.index.embeddings, query)

    def vectors_of(self, documents: Sequence[Document]) -> list[list[float]]:
        """The stored vectors of documents of the index."""
        return list(self.index.vectors([document.id or "" for document in documents]).values())

    def nearest(
        self, query: str, vector: Sequence[float], k: int, filter: Mapping[str, Any] | None
    ) -> list[Document]:
        """The documents nearest to a vector, with their cosines in the provenance."""
        return first_stage(self.index.search_dense(vector, k, filter), "dense", "feedback", query)

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        model = self.index.embeddings
        if model is None:
            hits = self.index.search_dense(query, request.k, request.filter)  # says what is missing
        else:
            find = partial(self._nearest, request=request)
            hits = search_by_vector(self.index, model, query, request, find)
        return first_stage(hits, "dense", self.get_name(), query)

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        model = self.index.embeddings
        if model is None:
            hits = await self.index.asearch_dense(query, request.k, request.filter)
        else:
            find = partial(self._nearest, request=request)
            hits = await asearch_by_vector(self.index, model, query, request, find)
        return first_stage(hits, "dense", self.get_name(), query)

    def _nearest(
        self, queries: Sequence[str], vectors: Sequence[Sequence[float]], request: Request
    ) -> dict[str, Hits]:
        self.query_vectors.keep(queries, vectors)
        return {
            query: self.index.search_dense(vector, request.k, request.filter)
            for query, vector in zip(queries, vectors, strict=True)
        }


def index_retriever(
    index: DocumentIndex,
    pipeline: Literal["hybrid", "bm25", "dense"] = "hybrid",
    k: int = 5,
    filter: Mapping[str, Any] | None = None,
    *,
    fetch_k: int | None = None,
    **ensemble: Any,
) -> RagKitRetriever:
    """A retriever over an index.

    Args:
        index: An open index.
        pipeline: ``"bm25"``, ``"dense"``, or ``"hybrid"``: both, fused as `HybridRetriever` does.
            Over an index without vectors ``"hybrid"`` is keyword search, and says so in the provenance of what
            it finds.
        k: Most documents to return.
        filter: Metadata filter for every call.
        fetch_k: How many documents each half of a hybrid fetches; default: ten times ``k``, at least 100.
        **ensemble: Further arguments of `EnsembleRetriever`: ``timeout``, ``on_error``... With ``weights``,
            ``fusion``, ``normalisation`` or ``rrf_k`` the two halves are fused as these say, without feedback.

    Returns:
        The retriever. The index must stay open as long as it is used.

    Raises:
        InvalidInputError: The pipeline is unknown, or needs vectors or a model that are not there.

    Example:
        >>> import tempfile
        >>> index = DocumentIndex.create(tempfile.mkdtemp())
        >>> _ = index.upsert([Document("The pump starts at 40 degrees.", id="pump")])
        >>> from rag_kit.documents import get_provenance
        >>> [found] = index_retriever(index).invoke("pump")
        >>> get_provenance(found)["notes"]
        ['degraded: keyword search only, for the index has no vectors']
        >>> index.close()
    """
    if pipeline not in PIPELINES:
        raise InvalidInputError(f"pipeline={pipeline!r} is unknown; allowed: {', '.join(PIPELINES)}.")
    if pipeline == "bm25":
        return KeywordIndexRetriever(index=index, k=k, filter=filter, name="bm25")
    recorded = index.embedding
    if recorded is None:
        if pipeline == "dense":
            raise InvalidInputError(
                f"The index in {index.folder} has no vectors, which pipeline='dense' needs. Use 'bm25', or add "
                f"them: rag-kit ingest PATH --index {index.folder} --embedding-model NAME"
            )
        note = "degraded: keyword search only, for the index has no vectors"
        return KeywordIndexRetriever(index=index, k=k, filter=filter, name="bm25", note=note)
    if index.embeddings is None:
        raise InvalidInputError(
            f"pipeline={pipeline!r} needs the embedding model {recorded!r} of the index: "
            "DocumentIndex.open(folder, embeddings=embedding_model(...)); or use pipeline='bm25'."
        )
    if pipeline == "dense":
        return DenseIndexRetriever(index=index, k=k, filter=filter, name="dense")
    given: dict[str, Any] = {
        "retrievers": [
            KeywordIndexRetriever(index=index, k=k, name="bm25"),
            DenseIndexRetriever(index=index, k=k, name="dense"),
        ],
        "k": k,
        "filter": filter,
        "fetch_k": fetch_k if fetch_k is not None else max(100, 10 * k),
        **ensemble,
    }
    if not {"fusion", "rrf_k", "weights", "normalisation"} & ensemble.keys():
        return HybridRetriever(**given)
    if not {"fusion", "rrf_k"} & ensemble.keys():
        given = {"fusion": "convex", "normalisation": "z-score", **given}
    return EnsembleRetriever(**given)
