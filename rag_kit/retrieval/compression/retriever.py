"""Shorten what another retriever found to the sentences that matter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, Unpack

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable
from pydantic import Field, field_validator

from rag_kit.documents.identity import copy_document, document_key
from rag_kit.documents.provenance import PROVENANCE_KEY, get_provenance, peek_score
from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.retrieval.base import RefiningRetriever
from rag_kit.retrieval.call import Call, plural
from rag_kit.retrieval.compression.compressors import (
    KEPT_KEY,
    CompressedPassage,
    Compressor,
    EmbeddingCompressor,
    LexicalCompressor,
    ModelCompressor,
    Selection,
    shorten_to_spans,
)
from rag_kit.retrieval.rerank.base import DocumentCompressor
from rag_kit.retrieval.settings import CompressionSettings
from rag_kit.text import fold

_SHOWN_IDS = 5  # in a note
_SOURCE_KEYS = ("source", "file", KEPT_KEY)  # metadata of merged passages that the provenance shows
_WORD = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W_]+")  # a Chinese character counts as a word
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*|[一二三四五六七八九十百千万亿两零]+")
_NEGATION = re.compile(r"\b(?:not?|never|none|nor|without|cannot|\w+n['’]t)\b|[不没未无非否]")
_SHINGLE_WORDS = 3


class CompressionRetriever(RefiningRetriever):
    """Ask a retriever, and keep of each passage the sentences that matter for the query, word for word.

    Passages without such a sentence are left out, and near-duplicates are merged; the notes of those that remain
    say so. ``metadata["kept"]`` holds start and end of each kept span in the original text, and
    ``metadata["original_id"]`` its id; ``Document.id`` stays (without one it is the hash of the original text). If
    the compressor fails, the passages come back whole with a note ("degraded: ...").

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        compressor: ``LexicalCompressor`` (the default; needs no model), ``EmbeddingCompressor`` (or an embedding
            model), ``ModelCompressor``, your own ``Compressor``, or any LangChain document compressor, to which
            ``context``, ``separator`` and ``if_empty`` do not apply: what it drops is gone.
        k: Most documents to return.
        fetch_k: How many the inner retriever is asked for; ``None`` for ``k``.
        context: Sentences kept on either side of each chosen one.
        separator: Stands between spans that did not follow one another.
        if_empty: If no sentence matters, ``"original"`` returns the passages whole, with a note, ``"empty"`` nothing.
        merge_threshold: Likeness (Jaccard index of runs of three words, 0.5 to 1) from which passages are merged;
            ``None`` merges none. What is a part of an earlier text is merged into that too. Texts that differ in a
            number or a negation are never merged.
        **more: ``filter``, ``on_error``, ``timeout``, ``deadline``, ``max_calls``...: see ``RefiningRetriever``.

    Raises:
        InvalidInputError: On construction, for arguments that are unknown or not allowed.
        BranchError: On call, if the inner retriever fails, or (``on_error="raise"``) the compressor.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["It rains. The fan is loud. Tea is hot."])
        >>> [found] = CompressionRetriever(retriever=words).invoke("Is the fan loud?")
        >>> found.page_content, found.metadata["kept"]
        ('The fan is loud.', [{'start': 10, 'end': 26}])
    """

    other_names: ClassVar[Mapping[str, str]] = {"base_compressor": "compressor"}

    compressor: Any = Field(default=None, validate_default=True)
    context: int = Field(default=0, ge=0, strict=True)
    separator: str = " … "
    if_empty: Literal["original", "empty"] = "original"
    merge_threshold: float | None = Field(default=0.9, ge=0.5, le=1)

    @classmethod
    def from_llm(
        cls,
        llm: Runnable[Any, Any],
        retriever: Any,
        *,
        prompt: Any = None,
        k: int = 4,
        **settings: Unpack[CompressionSettings],
    ) -> Self:
        """Make the retriever with a ``ModelCompressor``; ``settings`` are any further arguments of the class."""
        return cls(retriever=retriever, compressor=ModelCompressor(llm, prompt=prompt), k=k, **settings)

    @field_validator("compressor", mode="before")
    @classmethod
    def _wrap_compressor(cls, value: Any) -> Any:
        """Wrap models and LangChain compressors; refuse what is not a compressor."""
        if value is None:
            return LexicalCompressor()
        if isinstance(value, Embeddings):
            return EmbeddingCompressor(value)
        if isinstance(value, BaseLanguageModel):
            return ModelCompressor(value)
        if isinstance(value, BaseDocumentCompressor):
            return DocumentCompressor(value)
        if not isinstance(value, (Compressor, DocumentCompressor)):
            raise InvalidInputError(
                f"compressor is {type(value).__name__}; it must be a compressor of rag_kit.retrieval.compression, a "
                "LangChain document compressor, an embedding model, a chat model, or None for the lexical one."
            )
        return value

    async def _refine(self, documents: list[Document], call: Call) -> list[Document]:
        """Shorten the passages, leave out those without a sentence that matters, and merge near-duplicates."""
        passages = [CompressedPassage.of(doc) for doc in documents]
        passages = [passage for passage in passages if passage.sentences]
        if empty_count := len(documents) - len(passages):
            call.note(f"{plural(empty_count, 'passage')} without text left out")
        if not passages:
            return []
        name, documents = f"compress:{self.compressor.name}", [passage.document for passage in passages]
        if isinstance(self.compressor, DocumentCompressor):
            work = self.compressor.compressed(documents, call, stage="compress")
            compressed = await call.attempt(name, work, "the passages are whole")
            return self._merge(documents if compressed is None else compressed, call)[: call.k]
        selections = await call.attempt(name, self._select(passages, call), "the passages are whole")
        if selections is None:  # the compressor failed
            return self._merge(documents, call)
        irrelevant = [doc for doc, selection in zip(documents, selections, strict=True) if selection == []]
        if len(irrelevant) == len(passages):
            note = f"no sentence of {len(passages)} passages matters for the query"
            if self.if_empty == "empty":
                call.note(f"{note}; nothing is returned")
                return []
            call.note(f"degraded: {note}; the passages are whole")
            selections = [None] * len(passages)  # None: whole
        elif irrelevant:
            ids = ", ".join(document_key(doc)[:80] for doc in irrelevant[:_SHOWN_IDS])
            ids += ", …" if len(irrelevant) > _SHOWN_IDS else ""
            count = f"{len(irrelevant)} of {len(passages)}"
            call.note(f"{count} passages had no sentence that matters: {ids}")
        kept = [pair for pair in zip(passages, selections, strict=True) if pair[1] != []]
        shortened = [self._shorten(*pair, rank, call) for rank, pair in enumerate(kept, start=1)]
        return self._merge(shortened, call)

    async def _select(self, passages: Sequence[CompressedPassage], call: Call) -> list[Selection]:
        """Ask the compressor for a selection of each passage; refuse positions of sentences that are not there."""
        selections: list[Selection] = await self.compressor.select(call.query, passages, call)
        is_valid = len(selections) == len(passages)
        for passage, selection in zip(passages, selections, strict=False):
            count = len(passage.sentences)
            is_valid = is_valid and all(position in range(count) for position in selection or ())
        if not is_valid:
            raise ModelOutputError(
                f"The compressor {self.compressor.name} gave {len(selections)} selections for {len(passages)} "
                "passages, or sentences that are not there."
            )
        return selections

    def _shorten(self, passage: CompressedPassage, selection: Selection, rank: int, call: Call) -> Document:
        """Cut a passage to the selected sentences, what these need, and ``context`` around each; ``None``: no cut."""
        doc, count = passage.document, len(passage.sentences)
        kept, spans = set(range(count)), [(0, len(doc.page_content))]
        if selection is not None:
            offsets = range(-self.context, self.context + 1)
            kept &= {position + offset for position in selection for offset in offsets}  # those that exist
            kept |= passage.context_of(selection)
            spans = passage.spans(sorted(kept))
        fields = {"sentences": f"{len(kept)} of {count}", "spans": [list(span) for span in spans]}
        short = shorten_to_spans(doc, spans, self.separator)
        return call.with_stage(short, f"compress:{self.compressor.name}", rank, peek_score(doc), **fields)

    def _merge(self, documents: list[Document], call: Call) -> list[Document]:
        """Merge near-duplicates into one document each; the ranks are counted anew."""
        originals: Sequence[int] = range(len(documents))
        if self.merge_threshold is not None:
            originals = near_duplicates([doc.page_content for doc in documents], self.merge_threshold)
        groups: dict[int, list[Document]] = {}
        for doc, original in zip(documents, originals, strict=True):
            groups.setdefault(original, []).append(doc)
        if repeat_count := len(documents) - len(groups):
            call.note(f"{plural(repeat_count, 'near-duplicate')} merged")
        return [self._merge_group(group, rank, call) for rank, group in enumerate(groups.values(), start=1)]

    def _merge_group(self, group: Sequence[Document], rank: int, call: Call) -> Document:
        """Merge near-duplicates into a copy of the first at ``rank``, with the stages and ids of all."""
        doc, *repeats = group
        if not repeats:  # nothing to merge: the rank alone is new
            result = copy_document(doc)
            if record := get_provenance(doc):
                result.metadata[PROVENANCE_KEY] = {**record, "rank": rank}
            return result
        stages = []
        for member in group:
            key = document_key(member)
            stages += [{**stage, "document": key} for stage in get_provenance(member).get("stages", [])]
        merged = []
        for repeat in repeats:
            sources = {key: repeat.metadata.get(key) for key in _SOURCE_KEYS}
            merged.append({"id": document_key(repeat), **sources})
        score = peek_score(doc)
        return call.with_stage(doc, "merge:near-duplicates", rank, score, sources=stages, merged=merged)


class _Fingerprint:
    """Features of a text for comparison: its runs of three words, its numbers and its negations."""

    def __init__(self, text: str) -> None:
        folded = fold(text)
        words = _WORD.findall(folded)
        starts = range(max(1, len(words) - _SHINGLE_WORDS + 1))  # a shorter text is one shingle
        self.shingles = frozenset(tuple(words[start : start + _SHINGLE_WORDS]) for start in starts)
        self.decisive = Counter(_NUMBER.findall(folded)) + Counter(_NEGATION.findall(folded))

    def repeats(self, other: _Fingerprint, threshold: float) -> bool:
        """Tell whether this text is a part of the other, or says the same: numbers and negations must agree."""
        if self.shingles <= other.shingles and self.decisive <= other.decisive:
            return True
        if self.decisive != other.decisive:  # "it rose in 2023" and "it rose in 2024"
            return False
        shared = len(self.shingles & other.shingles)
        total = len(self.shingles) + len(other.shingles) - shared
        return shared >= threshold * total  # shared / total is the Jaccard index


def near_duplicates(texts: Sequence[str], threshold: float) -> list[int]:
    """Return for each text the position of the first text that it repeats or is a part of, or its own."""
    fingerprints = [_Fingerprint(text) for text in texts]
    originals: list[int] = []
    for position, fingerprint in enumerate(fingerprints):
        distinct = dict.fromkeys(originals)  # positions of the texts that repeat none before them
        repeated = (earlier for earlier in distinct if fingerprint.repeats(fingerprints[earlier], threshold))
        originals.append(next(repeated, position))
    return originals
