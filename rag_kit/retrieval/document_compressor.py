"""LangChain's document compressors (Cohere, Jina, Voyage, FlashRank...) as a part of a retriever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun
from langchain_core.documents import BaseDocumentCompressor, Document

from rag_kit.documents import PROVENANCE_KEY, content_hash, copy_document, with_provenance
from rag_kit.documents.provenance import peek_score
from rag_kit.errors import ModelOutputError
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rerank.base import check_scores

SCORE_KEY = "relevance_score"
ORIGINAL_ID_KEY = "original_id"


class DocumentCompressor:
    """A LangChain ``BaseDocumentCompressor`` in the place of a reranker or a compressor of the kit.

    It may reorder, drop, shorten and split documents. What comes back is matched to what it was given, gets its
    provenance and, where the compressor made new documents, its id back. ``metadata["relevance_score"]``, where
    most rerankers put their score, becomes the document's score.

    Args:
        compressor: The compressor.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever, RerankRetriever
        >>> class Shortest(BaseDocumentCompressor):
        ...     def compress_documents(self, documents, query, callbacks=None):
        ...         return sorted(documents, key=lambda doc: len(doc.page_content))[:1]
        >>> words = BM25Retriever.from_texts(["a loud fan", "fan"])
        >>> [doc.page_content for doc in RerankRetriever(retriever=words, reranker=Shortest()).invoke("fan")]
        ['fan']
    """

    scored = True
    depth = None

    def __init__(self, compressor: BaseDocumentCompressor) -> None:
        self.compressor = compressor
        self.name = type(compressor).__name__

    async def compressed(
        self, documents: Sequence[Document], call: QueryCall, *, stage: str, retriever: str
    ) -> list[Document]:
        """Compress documents, best first; the call's notes say how many were dropped."""
        given = [_marked(doc, place) for place, doc in enumerate(documents)]
        name = f"{stage}:{self.name}"
        blocking = partial(self._call, self.compressor.compress_documents, given, call, threaded=True)
        native = None
        if type(self.compressor).acompress_documents is not BaseDocumentCompressor.acompress_documents:
            native = partial(self._call, self.compressor.acompress_documents, given, call)
        found = await call.do(name, blocking, native)
        return self._matched(found, documents, call, name, retriever)

    @staticmethod
    def _call(method: Any, documents: Sequence[Document], call: QueryCall, *, threaded: bool = False) -> Any:
        """Call a method of the compressor, with callbacks for what it runs."""
        manager = call.request.run_manager
        if threaded and isinstance(manager, AsyncCallbackManagerForRetrieverRun):
            manager = manager.get_sync()
        return method(documents, call.query, callbacks=manager.get_child("compressor"))

    def _matched(
        self, found: Any, documents: Sequence[Document], call: QueryCall, name: str, retriever: str
    ) -> list[Document]:
        if not isinstance(found, Sequence) or not all(isinstance(doc, Document) for doc in found):
            raise ModelOutputError(
                f"{self.name} gave {type(found).__name__}; it must give a list of documents."
            )
        places = [_place(doc, documents) for doc in found]
        times = Counter(places)
        if dropped := len(documents) - len(times.keys() - {None}):
            call.note(f"{self.name} kept {len(documents) - dropped} of {len(documents)} passages")
        results = []
        for rank, (doc, place) in enumerate(zip(found, places, strict=True), start=1):
            before = None if place is None else documents[place]
            score_before = None if before is None else peek_score(before)
            score = _score(doc)
            if score is None and name.startswith("compress:"):
                score = score_before  # a shorter text was found with the score of the whole
            results.append(
                with_provenance(
                    _restored(doc, before, whole=times[place] == 1),
                    score=score,
                    rank=rank,
                    stage=name,
                    retriever=retriever,
                    query=call.query,
                    score_before=score_before,
                    rank_before=None if place is None else place + 1,
                )
            )
        return results


def _marked(doc: Document, place: int) -> Document:
    """A copy with its place in its metadata, which compressors copy, while they may drop ids and change texts."""
    return copy_document(doc).model_copy(update={"metadata": {**doc.metadata, PROVENANCE_KEY: place}})


def _place(doc: Document, documents: Sequence[Document]) -> int | None:
    """The place of a returned document among those given, by its mark, its id or its text."""
    place = doc.metadata.get(PROVENANCE_KEY)
    if type(place) is int and 0 <= place < len(documents):
        return place
    for number, one in enumerate(documents):
        if (doc.id and doc.id == one.id) or doc.page_content == one.page_content:
            return number
    return None


def _restored(doc: Document, before: Document | None, *, whole: bool) -> Document:
    """A returned document with its earlier provenance and its id, and its score as a Python number."""
    metadata = {key: value for key, value in doc.metadata.items() if key != PROVENANCE_KEY}
    if SCORE_KEY in metadata and (score := _score(doc)) is not None:
        metadata[SCORE_KEY] = score
    if before is None:
        return Document(doc.page_content, metadata=metadata, id=doc.id)
    if PROVENANCE_KEY in before.metadata:
        metadata[PROVENANCE_KEY] = before.metadata[PROVENANCE_KEY]
    if doc.page_content != before.page_content:
        metadata.setdefault(ORIGINAL_ID_KEY, before.id or content_hash(before.page_content))
    # Pieces of one document cannot share its id.
    return Document(doc.page_content, metadata=metadata, id=doc.id or (before.id if whole else None))


def _score(doc: Document) -> float | None:
    return check_scores([doc.metadata.get(SCORE_KEY)], 1)[0]
