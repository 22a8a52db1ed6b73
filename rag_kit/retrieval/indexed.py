"""Retrievers over a `DocumentIndex`: by keyword, by vector, or both fused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal

from langchain_core.documents import Document

from rag_kit.documents import Filter, add_note, compile_filter
from rag_kit.documents.provenance import add_first_stage, first_stage
from rag_kit.errors import InvalidInputError, ModelError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.views import KeywordView, SparseView
from rag_kit.models.clients import embed_logic
from rag_kit.models.runnables import has_listeners
from rag_kit.retrieval.base import RagKitRetriever, blocking_step
from rag_kit.retrieval.bm25 import BM25Retriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.ensemble import EnsembleRetriever
from rag_kit.retrieval.fusion import RankedIds
from rag_kit.retrieval.hybrid import IDS_ONLY, HybridRetriever
from rag_kit.retrieval.vectors import ByVectorRetriever, encode_query

PIPELINES = ("hybrid", "bm25", "dense", "trigram", "sparse")
Pipeline = Literal["hybrid", "bm25", "dense", "trigram", "sparse"]
Hits = list[tuple[Document, float]]


def _ids_only(call: Call) -> bool:
    """Tell whether ids and scores suffice: listeners to a run see whole documents."""
    return bool(call.arguments.get(IDS_ONLY)) and not has_listeners(call.config)


class KeywordIndexRetriever(RagKitRetriever):
    """BM25 over an open index; ``note`` is put into the provenance of every document."""

    call_arguments: ClassVar[frozenset[str]] = frozenset({IDS_ONLY})

    index: DocumentIndex
    note: str | None = None

    async def _search(self, query: str, call: Call) -> list[Document]:
        documents: list[Document] = await blocking_step("search", self._find, query, call)
        if self.note is None:
            return documents
        call.note(self.note)
        return [add_note(document, self.note) for document in documents]

    def _find(self, query: str, call: Call) -> Sequence[Document]:
        """Search the index, which may block; return the documents, or their ids and scores alone if these suffice."""
        if _ids_only(call):
            ids, maximum = self.index.keyword_view().search_ids(query, call.k, call.filter)
            return RankedIds(ids, first_stage("bm25", self.get_name(), query, max_score=maximum))
        hits = self._hits(query, call)
        return add_first_stage(hits, "bm25", self.get_name(), query, max_score=hits.maximum)

    def _hits(self, query: str, call: Call) -> Any:
        return self.index.keyword_view().search(query, call.k, call.filter)


class LegIndexRetriever(RagKitRetriever):
    """Search over one further part of an open index (a leg): its character trigrams or its sparse vectors."""

    index: DocumentIndex
    leg: Literal["trigram", "sparse"]

    async def _search(self, query: str, call: Call) -> list[Document]:
        view: Any = await blocking_step("search", self.index.leg_view, self.leg)
        if isinstance(view, SparseView):
            weights = await encode_query(view, query)
            hits: Any = await blocking_step("search", view.search_weighted, weights, call.k, call.filter)
        else:
            hits = await blocking_step("search", view.search, query, call.k, call.filter)
        return add_first_stage(hits, self.leg, self.get_name(), query, max_score=hits.maximum)


KeywordIndex = BM25Index | DocumentIndex
KeywordRetriever = BM25Retriever | KeywordIndexRetriever


def reader_of(index: KeywordIndex) -> BM25Index | KeywordView:
    """Return the object that searches the terms of an index: a ``BM25Index`` itself, or a view of a stored index."""
    return index if isinstance(index, BM25Index) else index.keyword_view()


class WeightedTermsRetriever(KeywordIndexRetriever):
    """Search a keyword index for given terms with weights; the query is for the provenance alone."""

    index: KeywordIndex  # type: ignore[assignment]
    terms: Mapping[str, float]
    call_arguments: ClassVar[frozenset[str]] = frozenset()

    def _hits(self, query: str, call: Call) -> Any:
        return reader_of(self.index).search_weighted(self.terms, call.k, call.filter)


class DenseIndexRetriever(ByVectorRetriever):
    """Vector search over an index that was opened with its embedding model; scores are cosines."""

    call_arguments: ClassVar[frozenset[str]] = frozenset({IDS_ONLY})

    index: DocumentIndex

    def vectors_of(self, documents: Sequence[Document]) -> list[Any]:
        """Return the stored vectors of documents of the index, as arrays."""
        return list(self.index.vector_rows([document.id or "" for document in documents]).values())

    def stored(self, ids: Sequence[str], filter: Filter | None) -> dict[str, Document]:
        """Return documents by id; without those that no longer pass the filter, changed since they were found."""
        passes = compile_filter(filter)
        return {document.id or "": document for document in self.index.get(ids) if passes(document.metadata)}

    def nearest(
        self,
        query: str,
        vector: str | Sequence[float],
        k: int,
        filter: Filter | None,
        *,
        ids_only: bool = False,
        name: str = "feedback",
    ) -> Sequence[Document]:
        """Return the documents nearest to a vector, with their cosines; without text and metadata if ``ids_only``.

        ``name`` stands for the retriever in the provenance.
        """
        if ids_only:
            found = self.index.search_dense_ids(vector, k, filter)
            return RankedIds(found, first_stage("dense", name, query))
        return add_first_stage(self.index.search_dense(vector, k, filter), "dense", name, query)

    async def _search(self, query: str, call: Call) -> list[Document]:
        if self.index.embeddings is not None:
            return await super()._search(query, call)
        # without a model the index is searched for the text itself, which raises the error that says what is missing
        documents: list[Document] = await blocking_step("search", self._nearest, query, query, call)
        return documents

    def _nearest(self, query: str, vector: str | Sequence[float], call: Call) -> Sequence[Document]:
        name = self.get_name()
        return self.nearest(query, vector, call.k, call.filter, ids_only=_ids_only(call), name=name)


async def embed_first(retriever: Any, query: str) -> None:
    """Embed a query once, before several searches need its vector; the dense retrievers inside keep it."""
    retrievers = retriever.retrievers if isinstance(retriever, EnsembleRetriever) else [retriever]
    for one in retrievers:
        if isinstance(one, DenseIndexRetriever) and one.index.embeddings is not None and one.reads(query):
            model = one.index.embeddings
            with suppress(ModelError):  # then each search embeds the query itself, and reports the failure
                vector = await embed_logic(model, "query", query)
                one.query_vectors.keep(model, query, vector)


def rows_retriever(
    index: DocumentIndex,
    pipeline: Pipeline = "hybrid",
    k: int = 5,
    filter: Mapping[str, Any] | None = None,
    *,
    fetch_k: int | None = None,
    **ensemble: Any,
) -> RagKitRetriever:
    """Make a retriever over the rows of an index; see ``rag_kit.retrieval.index_retriever``."""
    if pipeline not in PIPELINES:
        raise InvalidInputError(f"pipeline={pipeline!r} is unknown; allowed: {', '.join(PIPELINES)}.")
    single: dict[str, Any] = {"name": "bm25" if pipeline == "hybrid" else pipeline, "k": k, "filter": filter}
    single |= {name: ensemble[name] for name in ("id_key", "metadata", "name", "tags") if name in ensemble}
    if pipeline == "bm25":
        return KeywordIndexRetriever(index=index, **single)
    if pipeline == "trigram" or pipeline == "sparse":
        index.leg_view(pipeline)  # raises now if the index has no such leg
        return LegIndexRetriever(index=index, leg=pipeline, **single)
    degradation = _check_vectors(index, pipeline, ensemble.get("on_error") == "skip")
    if degradation is not None:
        return KeywordIndexRetriever(index=index, note=degradation, **single)
    if pipeline == "dense":
        return DenseIndexRetriever(index=index, **single)
    keyword = KeywordIndexRetriever(index=index, k=k, name="bm25")
    dense = DenseIndexRetriever(index=index, k=k, name="dense")
    fetch_k = fetch_k if fetch_k is not None else max(100, 10 * k)
    settings: dict[str, Any] = {"k": k, "filter": filter, "fetch_k": fetch_k, **ensemble}
    settings["retrievers"] = [keyword, dense]
    if not {"fusion", "rrf_k", "weights"} & ensemble.keys():
        return HybridRetriever(**settings)
    return EnsembleRetriever(**{"fusion": "rrf" if "rrf_k" in ensemble else "convex", **settings})


def _check_vectors(index: DocumentIndex, pipeline: Pipeline, may_skip: bool) -> str | None:
    """Return None if an index can be searched by vector, else the note that hybrid search goes by keyword alone.

    Raises ``InvalidInputError`` if ``"dense"`` search has no vectors or no embedding model, and if ``"hybrid"`` search
    has vectors but no model, unless it ``may_skip`` them.
    """
    model = index.embedding  # the name of the model that made the vectors
    if model is None:
        if pipeline == "dense":
            raise InvalidInputError(
                f"The index in {index.folder} has no vectors, which pipeline='dense' needs. Use 'bm25', or add "
                f"them: rag-kit ingest PATH --index {index.folder} --embedding-model NAME"
            )
        return "degraded: keyword search only, for the index has no vectors"
    if index.embeddings is not None:
        return None
    if pipeline == "dense" or not may_skip:
        raise InvalidInputError(
            f"pipeline={pipeline!r} needs the embedding model {model!r} of the index: "
            "DocumentIndex.open(folder, embeddings=embedding_model(...)); or search by keyword alone: "
            "index_retriever(index, 'bm25')."
        )
    return f"degraded: keyword search only, for the index was opened without its embedding model {model!r}"
