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
        marked = [_with_position(doc, position) for position, doc in enumerate(documents)]
        name = f"{stage}:{self.name}"
        blocking = partial(self._call, self.compressor.compress_documents, marked, call, threaded=True)
        native = None
        if type(self.compressor).acompress_documents is not BaseDocumentCompressor.acompress_documents:
            native = partial(self._call, self.compressor.acompress_documents, marked, call)
        result = await call.do(name, blocking, native)
        return self._matched(result, documents, call, name, retriever)

    @staticmethod
    def _call(method: Any, documents: Sequence[Document], call: QueryCall, *, threaded: bool = False) -> Any:
        """Call a method of the compressor, with callbacks for what it runs."""
        manager = call.request.run_manager
        if threaded and isinstance(manager, AsyncCallbackManagerForRetrieverRun):
            manager = manager.get_sync()
        return method(documents, call.query, callbacks=manager.get_child("compressor"))

    def _matched(
        self, result: Any, documents: Sequence[Document], call: QueryCall, name: str, retriever: str
    ) -> list[Document]:
        """The returned documents, each with the id, the provenance and the score of the one it was made of."""
        if not isinstance(result, Sequence) or not all(isinstance(doc, Document) for doc in result):
            raise ModelOutputError(
                f"{self.name} gave {type(result).__name__}; it must give a list of documents."
            )
        positions = [_original_position(doc, documents) for doc in result]
        times = Counter(positions)
        if dropped := len(documents) - len(times.keys() - {None}):
            call.note(f"{self.name} kept {len(documents) - dropped} of {len(documents)} passages")
        results = []
        for rank, (doc, position) in enumerate(zip(result, positions, strict=True), start=1):
            original = None if position is None else documents[position]
            score_before = None if original is None else peek_score(original)
            score = _score(doc)
            if score is None and name.startswith("compress:"):
                score = score_before  # a shorter text was found with the score of the whole
            results.append(
                with_provenance(
                    _restored(doc, original, whole=times[position] == 1),
                    score=score,
                    rank=rank,
                    stage=name,
                    retriever=retriever,
                    query=call.query,
                    score_before=score_before,
                    rank_before=None if position is None else position + 1,
                )
            )
        return results


def _with_position(doc: Document, position: int) -> Document:
    """A copy with its position in its metadata, which compressors copy, while they may drop ids and change texts."""
    return copy_document(doc).model_copy(update={"metadata": {**doc.metadata, PROVENANCE_KEY: position}})


def _original_position(doc: Document, documents: Sequence[Document]) -> int | None:
    """The position of the document that this was made of: by what `_with_position` wrote, else by id or text."""
    position = doc.metadata.get(PROVENANCE_KEY)
    if type(position) is int and 0 <= position < len(documents):
        return position
    for number, candidate in enumerate(documents):
        if (doc.id and doc.id == candidate.id) or doc.page_content == candidate.page_content:
            return number
    return None


def _restored(doc: Document, original: Document | None, *, whole: bool) -> Document:
    """A returned document with its earlier provenance and its id, and its score as a Python number."""
    metadata = {key: value for key, value in doc.metadata.items() if key != PROVENANCE_KEY}
    if SCORE_KEY in metadata and (score := _score(doc)) is not None:
        metadata[SCORE_KEY] = score
    if original is None:
        return Document(doc.page_content, metadata=metadata, id=doc.id)
    if PROVENANCE_KEY in original.metadata:
        metadata[PROVENANCE_KEY] = original.metadata[PROVENANCE_KEY]
    if doc.page_content != original.page_content:
        metadata.setdefault(ORIGINAL_ID_KEY, original.id or content_hash(original.page_content))
    # Pieces of one document cannot share its id.
    return Document(doc.page_content, metadata=metadata, id=doc.id or (original.id if whole else None))


def _score(doc: Document) -> float | None:
    return check_scores([doc.metadata.get(SCORE_KEY)], 1)[0]
