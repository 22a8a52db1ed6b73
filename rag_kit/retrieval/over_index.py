"""Make a retriever over an index: by keyword, by vector or both, with its representations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.retrieval.base import RagKitRetriever
from rag_kit.retrieval.indexed import Pipeline, rows_retriever
from rag_kit.retrieval.representations import SETTING, MultiRepresentationRetriever
from rag_kit.retrieval.rerank.retriever import RerankRetriever

_MAX_QUERY_TOKENS = 64  # on longer queries cross-encoders made results worse


def index_retriever(
    index: DocumentIndex,
    pipeline: Pipeline = "hybrid",
    k: int = 5,
    filter: Mapping[str, Any] | None = None,
    *,
    fetch_k: int | None = None,
    reranker: Any = None,
    **ensemble: Any,
) -> RagKitRetriever:
    """Make a retriever over an index; if it has representations, a `MultiRepresentationRetriever`.

    Args:
        index: An open index; it must stay open as long as the retriever is used.
        pipeline: ``"bm25"``, ``"dense"``, or ``"hybrid"``: both, fused as `HybridRetriever` does. Over an index without
            vectors, and with ``on_error="skip"`` over one opened without its model, ``"hybrid"`` is keyword search,
            and says so in the provenance of what it finds. ``"trigram"`` and ``"sparse"`` search those legs of an
            index that has them (``DocumentIndex.create(legs=...)``); beside others, put them into an ensemble.
        k: Most documents to return.
        filter: Metadata filter for every call.
        fetch_k: How many documents each half of a hybrid fetches; default: ten times ``k``, at least 100.
        reranker: What `RerankRetriever` takes, such as ``"cross-encoder"``; its scores are blended half and half with
            those of the search over the first 20, and a question of more than 64 tokens is not reranked.
        **ensemble: Further arguments of `EnsembleRetriever`: ``timeout``, ``on_error``... With ``weights``, ``fusion``
            or ``rrf_k`` the two halves are fused as these say, without feedback.

    Raises:
        InvalidInputError: The pipeline is unknown, or needs vectors, a leg or a model that are not there.

    Example:
        >>> import tempfile
        >>> from langchain_core.documents import Document
        >>> index = DocumentIndex.create(tempfile.mkdtemp())
        >>> _ = index.upsert([Document("The pump starts at 40 degrees.", id="pump")])
        >>> [doc.id for doc in index_retriever(index).invoke("pump")]
        ['pump']
        >>> index.close()
    """
    if not isinstance(index, DocumentIndex):
        raise InvalidInputError(f"index is {index!r:.60}; give DocumentIndex.open(folder).")
    limits = {name: ensemble[name] for name in ("on_error", "timeout", "max_concurrency") if name in ensemble}
    if reranker is not None:
        inner = index_retriever(index, pipeline, k, filter, fetch_k=fetch_k, **ensemble)
        return RerankRetriever(
            retriever=inner, reranker=reranker, k=k, blend=0.5, max_query_tokens=_MAX_QUERY_TOKENS, **limits
        )
    if SETTING not in index.settings:  # it has no representations
        return rows_retriever(index, pipeline, k, filter, fetch_k=fetch_k, **ensemble)
    rows = rows_retriever(index, pipeline, k, filter=None, fetch_k=fetch_k, **ensemble)
    return MultiRepresentationRetriever(index=index, retriever=rows, k=k, filter=filter, **limits)
