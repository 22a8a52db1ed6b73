"""Retrievers over a `DocumentIndex`: by keyword, by vector, or both fused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

from langchain_core.documents import Document
from pydantic import Field

from rag_kit.documents import add_note
from rag_kit.documents.provenance import add_first_stage
from rag_kit.errors import InvalidInputError, ModelError
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.retrieval.base import RagKitRetriever, Request
from rag_kit.retrieval.batching import SteppedRetriever, blocking_step, embedding_step, search_by_vector
from rag_kit.retrieval.ensemble import EnsembleRetriever
from rag_kit.retrieval.hybrid import HybridRetriever, QueryVectors, reads

PIPELINES = ("hybrid", "bm25", "dense")
Hits = list[tuple[Document, float]]


class KeywordIndexRetriever(RagKitRetriever):
    """BM25 over an open index; ``note`` is put into the provenance of every document."""

    index: DocumentIndex
    note: str | None = None

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        # On a thread when called asynchronously: both calls read the store.
        hits = self.index.search_keyword(query, request.k, request.filter)
        highest = self.index.keyword_view().maximum(query) if hits else 0.0
        documents = add_first_stage(hits, "bm25", self.get_name(), query, max_score=highest)
        return documents if self.note is None else [add_note(document, self.note) for document in documents]


class DenseIndexRetriever(SteppedRetriever):
    """Vector search over an index that was opened with its embedding model; scores are cosines."""

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
        return add_first_stage(self.index.search_dense(vector, k, filter), "dense", "feedback", query)

    async def _search_in_steps(self, query: str, request: Request) -> list[Document]:
        """Search by the query's vector, made before (`embed_first`) or now."""
        model = self.index.embeddings
        if model is None:
            # says what is missing
            hits = await blocking_step("search", self.index.search_dense, query, request.k, request.filter)
        else:
            find = partial(self._nearest, request=request)
            cached = self.query_vectors.get(query)
            if cached is None:
                hits = await search_by_vector(self.index, model, query, request, find)
            else:
                hits = (await blocking_step("search", find, [query], [cached]))[query]
        return add_first_stage(hits, "dense", self.get_name(), query)

    def _nearest(
        self, queries: Sequence[str], vectors: Sequence[Sequence[float]], request: Request
    ) -> dict[str, Hits]:
        """The hits of each query; its vector is kept for a search by feedback."""
        self.query_vectors.keep(queries, vectors)
        return {
            query: self.index.search_dense(vector, request.k, request.filter)
            for query, vector in zip(queries, vectors, strict=True)
        }


async def embed_first(retriever: Any, query: str) -> None:
    """Embed a query before several searches of one retriever need its vector at the same time."""
    parts = retriever.retrievers if isinstance(retriever, EnsembleRetriever) else [retriever]
    dense = next((part for part in parts if isinstance(part, DenseIndexRetriever)), None)
    model = None if dense is None else dense.index.embeddings
    if dense is None or model is None or not dense.reads(query):
        return
    with suppress(ModelError):  # then each search asks, and fails or is skipped by itself
        dense.query_vectors.keep([query], [await embedding_step(model, query)])


def rows_retriever(
    index: DocumentIndex,
    pipeline: Literal["hybrid", "bm25", "dense"] = "hybrid",
    k: int = 5,
    filter: Mapping[str, Any] | None = None,
    *,
    fetch_k: int | None = None,
    **ensemble: Any,
) -> RagKitRetriever:
    """A retriever over the rows of an index, as searches return them; see ``rag_kit.retrieval.index_retriever``."""
    if pipeline not in PIPELINES:
        raise InvalidInputError(f"pipeline={pipeline!r} is unknown; allowed: {', '.join(PIPELINES)}.")
    if pipeline == "bm25":
        return KeywordIndexRetriever(index=index, k=k, filter=filter, name="bm25")
    recorded, note = index.embedding, None
    if recorded is None:
        if pipeline == "dense":
            raise InvalidInputError(
                f"The index in {index.folder} has no vectors, which pipeline='dense' needs. Use 'bm25', or add "
                f"them: rag-kit ingest PATH --index {index.folder} --embedding-model NAME"
            )
        note = "degraded: keyword search only, for the index has no vectors"
    elif index.embeddings is None:
        if pipeline == "dense" or ensemble.get("on_error") != "skip":
            raise InvalidInputError(
                f"pipeline={pipeline!r} needs the embedding model {recorded!r} of the index: "
                "DocumentIndex.open(folder, embeddings=embedding_model(...)); or search by keyword alone: "
                "index_retriever(index, 'bm25')."
            )
        note = f"degraded: keyword search only, for the index was opened without its embedding model {recorded!r}"
    if note is not None:
        return KeywordIndexRetriever(index=index, k=k, filter=filter, name="bm25", note=note)
    if pipeline == "dense":
        return DenseIndexRetriever(index=index, k=k, filter=filter, name="dense")
    settings: dict[str, Any] = {
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
        return HybridRetriever(**settings)
    if not {"fusion", "rrf_k"} & ensemble.keys():
        settings = {"fusion": "convex", "normalisation": "z-score", **settings}
    return EnsembleRetriever(**settings)
