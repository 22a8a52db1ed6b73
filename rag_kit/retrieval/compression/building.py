"""The shorter document: kept sentences verbatim, with their place in the passage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import (
    PROVENANCE_KEY,
    content_hash,
    copy_document,
    get_provenance,
    with_provenance,
)
from rag_kit.retrieval.compression.base import Passage
from rag_kit.retrieval.document_compressor import ORIGINAL_ID_KEY

KEPT_KEY = "kept"


def around(kept: Iterable[int], count: int, context: int) -> list[int]:
    """The positions kept and those up to ``context`` beside them, in order.

    Example:
        >>> around([0, 4], 6, 1)
        [0, 1, 3, 4, 5]
    """
    wide = {place for one in kept for place in range(one - context, one + context + 1)}
    return sorted(place for place in wide if 0 <= place < count)


def kept_spans(passage: Passage, kept: Sequence[int]) -> list[tuple[int, int]]:
    """Start and end of each run of sentences that follow one another.

    Example:
        >>> kept_spans(Passage.of(Document("One. Two. Three.")), [0, 1])
        [(0, 9)]
    """
    spans: list[tuple[int, int]] = []
    previous = None
    for place in kept:
        sentence = passage.sentences[place]
        if previous is not None and place == previous + 1:
            spans[-1] = (spans[-1][0], sentence.end)
        else:
            spans.append((sentence.start, sentence.end))
        previous = place
    return spans


def identity(doc: Document) -> str:
    """The id of the shorter document: the original's, else the hash of its text, by which it is known elsewhere."""
    return doc.id or content_hash(doc.page_content)


def shortened(doc: Document, spans: Sequence[tuple[int, int]], separator: str) -> Document:
    """The document with the spans alone; ``metadata["kept"]`` says where they stand in the original.

    Example:
        >>> short = shortened(Document("One. Two. Three.", id="a"), [(0, 4), (10, 16)], " … ")
        >>> short.page_content, short.metadata["kept"], short.metadata["original_id"]
        ('One. … Three.', [{'start': 0, 'end': 4}, {'start': 10, 'end': 16}], 'a')
    """
    text = doc.page_content
    metadata: dict[str, Any] = {
        **doc.metadata,
        KEPT_KEY: [{"start": start, "end": end} for start, end in spans],
        ORIGINAL_ID_KEY: identity(doc),
    }
    return doc.model_copy(
        update={
            "id": identity(doc),
            "page_content": separator.join(text[start:end] for start, end in spans),
            "metadata": metadata,
        }
    )


def ranked(doc: Document, rank: int) -> Document:
    """A copy with another rank; its stages keep theirs."""
    result = copy_document(doc)
    if record := get_provenance(doc):
        result.metadata[PROVENANCE_KEY] = {**record, "rank": rank}
    return result


def merged(doc: Document, others: Sequence[Document], *, name: str, query: str, rank: int) -> Document:
    """A document that stands for its near-duplicates too, with the stages and ids of all."""
    record = get_provenance(doc)
    stages: list[Mapping[str, Any]] = []
    for one in (doc, *others):
        stages += [{**stage, "document": identity(one)} for stage in get_provenance(one).get("stages", [])]
    return with_provenance(
        doc,
        score=record.get("score"),
        rank=rank,
        stage="merge:near-duplicates",
        retriever=name,
        query=query,
        sources=stages,
        merged=[
            {"id": identity(one), **{key: one.metadata.get(key) for key in ("source", "file", KEPT_KEY)}}
            for one in others
        ],
    )
