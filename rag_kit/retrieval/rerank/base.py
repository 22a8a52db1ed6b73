"""Base of rerankers: those of the kit, which score documents, and LangChain's document compressors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from langchain_core.documents import BaseDocumentCompressor, Document

from rag_kit.concurrency.steps import Logic
from rag_kit.documents.identity import ORIGINAL_ID_KEY, copy_document, document_key
from rag_kit.documents.provenance import PROVENANCE_KEY, peek_score
from rag_kit.errors import ModelOutputError
from rag_kit.retrieval.base import HasRunnables
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import check_count

SCORE_KEY = "relevance_score"


@dataclass(frozen=True)
class Ranking:
    """Result of a reranker.

    Attributes:
        order: Positions in the given list of documents, best first; each exactly once.
        scores: One a document, in the order of the given list; higher is better. ``None`` for a document without one.
        details: Fields for the provenance of each document, in the order of the given list; or nothing.
        failed: Positions that could not be judged; they stay in their place, and no threshold drops them.
        notes: Notes for every result.
    """

    order: Sequence[int]
    scores: Sequence[float | None]
    details: Sequence[Mapping[str, Any]] = ()
    failed: frozenset[int] = frozenset()
    notes: Sequence[str] = ()


class Reranker(HasRunnables):
    """Base of rerankers; implement ``rank``.

    Args:
        depth: How many documents, from the first, are looked at; the others stay behind these in their order.
            ``None`` for all.

    Attributes:
        name: Stands in the provenance as ``rerank:<name>``.
        scored: Whether it gives scores that a threshold or a gap can be looked for in.
    """

    name: str = "reranker"
    scored: ClassVar[bool] = True

    def __init__(self, *, depth: int | None = None) -> None:
        self.depth = None if depth is None else check_count("depth", depth)

    @abstractmethod
    def rank(self, query: str, documents: Sequence[Document], call: Call) -> Logic[Ranking]:
        """Order documents, of which there is at least one: a coroutine that does all waiting through ``call``.

        The documents come best first as far as known, and are not to be changed. What is raised leaves their order.
        """


def check_scores(scores: Any, count: int) -> list[float | None]:
    """Return the scores that a third party gave for ``count`` documents; ``None`` in place of one that is no number.

    Raises ``ModelOutputError`` if there are not ``count`` of them: it is unknown which belongs to which document.
    """
    listed = scores.tolist() if hasattr(scores, "tolist") else scores
    if not isinstance(listed, (list, tuple)):
        raise ModelOutputError(f"The reranker gave {type(scores).__name__}; it must give a list of scores.")
    if len(listed) != count:
        raise ModelOutputError(
            f"The reranker gave {len(listed)} scores for {count} documents; it must give one each."
        )
    return [_score(value) for value in listed]


def _score(value: Any) -> float | None:
    """Return a score as a finite number (``[0.5] -> 0.5``); ``None`` for anything else, texts and booleans too."""
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]  # models with one output give a column
    if isinstance(value, (bool, str)):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def by_scores(
    scores: Sequence[float | None], *, details: Sequence[Mapping[str, Any]] = (), notes: Sequence[str] = ()
) -> Ranking:
    """Rank documents by score, ties in the order given; a document without a score keeps its position.

    Raises ``ModelOutputError`` if there is no score at all.
    """
    scored = [(score, position) for position, score in enumerate(scores) if score is not None]
    failed = frozenset(position for position, score in enumerate(scores) if score is None)
    if scores and not scored:
        raise ModelOutputError("The reranker gave no usable score.")
    order = [position for score, position in sorted(scored, key=lambda pair: -pair[0])]
    for position in sorted(failed):  # each goes in at its own position, and the next one behind it
        order.insert(position, position)
    if failed and not notes:
        notes = [f"degraded: {len(failed)} of {len(scores)} passages got no score and stay in their place"]
    return Ranking(order, list(scores), details, failed, list(notes))


class DocumentCompressor(HasRunnables):
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

    async def compressed(self, documents: Sequence[Document], call: Call, *, stage: str) -> list[Document]:
        """Have the LangChain compressor work on documents; return its result with ids and provenance put back."""
        marked = [_with_position(doc, position) for position, doc in enumerate(documents)]
        name = f"{stage}:{self.name}"
        arguments: Any = {"query": call.query, "callbacks": call.child("compressor").get("callbacks")}
        blocking = partial(self.compressor.compress_documents, marked, **arguments)
        native = None
        if type(self.compressor).acompress_documents is not BaseDocumentCompressor.acompress_documents:
            native = partial(self.compressor.acompress_documents, marked, **arguments)
        result = await call.do(name, blocking, native)
        return self._restore(result, documents, call, stage)

    def _restore(self, result: Any, documents: Sequence[Document], call: Call, stage: str) -> list[Document]:
        """Copy each document of a compressor's result, with id, score and provenance of its original put back."""
        if not isinstance(result, Sequence) or not all(isinstance(doc, Document) for doc in result):
            raise ModelOutputError(
                f"{self.name} gave {type(result).__name__}; it must give a list of documents."
            )
        positions = [_original_position(doc, documents) for doc in result]
        piece_counts = Counter(positions)
        kept_count = len(piece_counts.keys() - {None})  # None: a document whose original is unknown
        if kept_count < len(documents):
            call.note(f"{self.name} kept {kept_count} of {len(documents)} passages")
        results = []
        for rank, (doc, position) in enumerate(zip(result, positions, strict=True), start=1):
            score = _score(doc.metadata.get(SCORE_KEY))
            original = score_before = rank_before = None
            if position is not None:
                original, rank_before = documents[position], position + 1
                score_before = peek_score(original)
            if score is None and stage == "compress":
                score = score_before  # the shortened text keeps the score of the whole
            restored = _with_origin(doc, original, is_only_piece=piece_counts[position] == 1)
            before = {"score_before": score_before, "rank_before": rank_before}
            results.append(call.with_stage(restored, f"{stage}:{self.name}", rank, score, **before))
        return results


def _with_position(doc: Document, position: int) -> Document:
    """Copy a document with its position in place of its provenance; compressors keep metadata, but not always ids."""
    return copy_document(doc).model_copy(update={"metadata": {**doc.metadata, PROVENANCE_KEY: position}})


def _original_position(doc: Document, documents: Sequence[Document]) -> int | None:
    """Return the position of the document that a returned one comes from; ``None`` if that is unknown.

    The metadata hold it (`_with_position`); if not, the first document whose text or id, or best both, are the same.
    """
    position = doc.metadata.get(PROVENANCE_KEY)
    if type(position) is int and 0 <= position < len(documents):
        return position
    agreements = []  # for each document: 0, 1 or 2 of text and id are the same
    for candidate in documents:
        has_same_id = bool(doc.id and doc.id == candidate.id)
        agreements.append((doc.page_content == candidate.page_content) + has_same_id)
    return agreements.index(max(agreements)) if any(agreements) else None


def _with_origin(doc: Document, original: Document | None, *, is_only_piece: bool) -> Document:
    """Copy a returned document with the provenance of its original, and with the id if it is the only piece of it.

    A score in the metadata becomes a Python number.
    """
    metadata = {key: value for key, value in doc.metadata.items() if key != PROVENANCE_KEY}
    if (score := _score(metadata.get(SCORE_KEY))) is not None:
        metadata[SCORE_KEY] = score
    if original is None:
        return Document(doc.page_content, metadata=metadata, id=doc.id)
    if PROVENANCE_KEY in original.metadata:
        metadata[PROVENANCE_KEY] = original.metadata[PROVENANCE_KEY]
    if doc.page_content != original.page_content:
        metadata.setdefault(ORIGINAL_ID_KEY, document_key(original))
    document_id = doc.id or (original.id if is_only_piece else None)
    return Document(doc.page_content, metadata=metadata, id=document_id)
