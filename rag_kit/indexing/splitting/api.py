"""`split`: documents to chunks with exact offsets."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.splitting.packing import check_sizes, iter_spans

_NOT_MARKDOWN = frozenset({"txt", "json", "jsonl"})


def split(
    documents: Iterable[Document], *, chunk_size: int = 1000, chunk_overlap: int = 100
) -> list[Document]:
    """Cut documents into chunks: at headings, then between blocks, then between sentences.

    A chunk never crosses a heading or the end of its document. Tables, code and list items stay whole where they
    fit, and are cut between lines where they do not. A sentence is cut only if it is longer than ``chunk_size``,
    and then at a clause, a word, or between whole characters. English and Chinese sentences alike.

    Args:
        documents: As `read` gives them, or any others; their text is taken as markdown unless metadata ``format``
            is ``txt``, ``json`` or ``jsonl``. They are not changed.
        chunk_size: Most characters of a chunk; 20 or more.
        chunk_overlap: Most characters repeated from the chunk before, in whole sentences of the same section;
            at most half of ``chunk_size``. Rows of tables and lines of code are not repeated.

    Returns:
        Chunks in order. Metadata is the document's, and ``chunk`` (number within the source, from 0), ``start``
        and ``end`` (``chunk.page_content == document.page_content[start:end]``), ``heading`` (``"A > B"``, where
        there is one), ``table_header`` (where a chunk goes on with a table whose header is in an earlier one).

    Raises:
        InvalidInputError: A size is not allowed, or something is not a `Document`.

    Example:
        >>> from langchain_core.documents import Document
        >>> lake = Document("# 湖\\n\\n湖水很深。湖水很冷，没有人敢在冬天游泳。")
        >>> chunks = split([lake], chunk_size=20, chunk_overlap=0)
        >>> [(chunk.page_content, chunk.metadata["heading"]) for chunk in chunks]
        [('# 湖\\n\\n湖水很深。', '湖'), ('湖水很冷，没有人敢在冬天游泳。', '湖')]
    """
    check_sizes(chunk_size, chunk_overlap)
    return list(iter_chunks(documents, chunk_size, chunk_overlap))


def iter_chunks(documents: Iterable[Document], chunk_size: int, chunk_overlap: int) -> Iterator[Document]:
    """The chunks of `split`, one at a time, so that a caller can stop at a limit."""
    numbers: dict[Any, int] = {}
    for position, document in enumerate(documents):
        if not isinstance(document, Document):
            raise InvalidInputError(
                f"documents[{position}] must be a Document, not {type(document).__name__}."
            )
        text, given = document.page_content, document.metadata
        source = given.get("source", document.id if document.id is not None else f"\x00{position}")
        heading = given.get("heading")
        number = numbers.get(source, 0)
        nested = any(isinstance(value, dict | list | set) for value in given.values())
        for span in iter_spans(
            text,
            chunk_size,
            chunk_overlap,
            heading=heading if isinstance(heading, str) else "",
            markdown=given.get("format") not in _NOT_MARKDOWN,
        ):
            metadata = copy.deepcopy(given) if nested else dict(given)
            metadata.pop("heading", None)
            metadata["chunk"] = number
            metadata["start"] = span.start
            metadata["end"] = span.end
            if span.heading:
                metadata["heading"] = span.heading
            if span.table_header:
                metadata["table_header"] = span.table_header
            yield Document(page_content=text[span.start : span.end], metadata=metadata)
            number += 1
        numbers[source] = number
