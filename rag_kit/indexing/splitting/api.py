"""`split`: documents to chunks with exact offsets."""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.splitting.named import named_splitter
from rag_kit.indexing.splitting.packing import check_sizes, split_spans
from rag_kit.indexing.splitting.structure import heading_lookup, is_markdown

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_text_splitters import TextSplitter

    from rag_kit.indexing.splitting.named import Tokenizer

#: A LangChain text splitter, or a function from documents to documents.
Splitter: TypeAlias = "TextSplitter | Callable[[Sequence[Document]], Sequence[Document]]"
_CHANGED_FIELDS = ("heading", "start", "end")  # a chunk has its own
_SPACE = re.compile(r"\s*")


class SplitPart(NamedTuple):
    """A part of a document; ``start`` and ``end`` are ``None`` where its text does not stand there verbatim."""

    text: str
    start: int | None
    end: int | None
    metadata: Mapping[str, Any]  # what the splitter added to the document's


def split(
    documents: Iterable[Document],
    *,
    chunk_size: int = 1000,
    chunk_overlap: int | None = None,
    splitter: Splitter | str = "structure",
    embeddings: Embeddings | None = None,
    tokenizer: Tokenizer | None = None,
) -> list[Document]:
    """Cut documents into chunks, by default at headings, then between blocks, then between sentences.

    With ``splitter="structure"`` a chunk never crosses a heading or the end of its document. Tables, code and list
    items stay whole where they fit, and are cut between lines where they do not. A sentence is cut only if it is longer
    than ``chunk_size``, and then at a clause, a word, or between whole characters. English and Chinese sentences alike.

    Args:
        documents: Any; their text counts as markdown unless metadata ``format`` is ``txt``, ``json`` or ``jsonl``. They
            are not changed.
        chunk_size: Most characters of a chunk; 20 or more. Tokens, for ``"tokens"``.
        chunk_overlap: Most characters repeated from the chunk before, in whole sentences of the same section; at most
            half of ``chunk_size``, and by default 100 if that is not less. Rows and lines of code are not repeated.
        splitter: ``"structure"``, ``"tokens"``, ``"sentence"``, ``"paragraph"``, ``"semantic"`` or ``"recursive"``; any
            LangChain text splitter (which has its own sizes), or a function from documents to documents.
        embeddings: The embedding model, for ``"semantic"``.
        tokenizer: What counts, for ``"tokens"``: a function from a text to a number, or a ``tokenizer.json``.

    Returns:
        Chunks in order, with the document's metadata and ``chunk`` (number within the source, from 0), ``start`` and
        ``end`` (``chunk.page_content == document.page_content[start:end]``; not where the splitter rewrites the text),
        ``heading`` (``"A > B"``), ``table_header`` (of a table begun earlier), and what the splitter adds.

    Raises:
        InvalidInputError: A size is not allowed, the splitter is none, or something is not a `Document`.
        ConfigurationError: The splitter needs what is not there.

    Example:
        >>> from langchain_core.documents import Document
        >>> lake = Document("# 湖\\n\\n湖水很深。湖水很冷，没有人敢在冬天游泳。")
        >>> chunks = split([lake], chunk_size=20, chunk_overlap=0)
        >>> [(chunk.page_content, chunk.metadata["heading"]) for chunk in chunks]
        [('# 湖\\n\\n湖水很深。', '湖'), ('湖水很冷，没有人敢在冬天游泳。', '湖')]
    """
    cut = choose_splitter(splitter, chunk_size, chunk_overlap, embeddings, tokenizer)
    return list(iter_chunks(documents, cut))


def choose_splitter(
    splitter: Splitter | str,
    chunk_size: int,
    chunk_overlap: int | None,
    embeddings: Embeddings | None = None,
    tokenizer: Tokenizer | None = None,
) -> Callable[[Document], Iterator[SplitPart]]:
    """Return a function that cuts a document into parts by a splitter, which may be given by name."""
    chunk_overlap = check_sizes(chunk_size, chunk_overlap)
    if splitter == "structure" and tokenizer is None:  # with one, `named_splitter` raises
        return partial(_split_by_structure, chunk_size=chunk_size, chunk_overlap=chunk_overlap)
    if isinstance(splitter, str):
        splitter = named_splitter(splitter, chunk_size, chunk_overlap, embeddings, tokenizer)
    return partial(_split_by, check_splitter(splitter))


def iter_chunks(
    documents: Iterable[Document], cut: Callable[[Document], Iterator[SplitPart]]
) -> Iterator[Document]:
    """Yield the chunks of `split` one at a time, so that a caller can stop at a limit."""
    counts: defaultdict[Any, int] = defaultdict(int)  # of chunks so far, by source
    for position, document in enumerate(documents):
        if not isinstance(document, Document):
            raise InvalidInputError(f"documents[{position}] is {type(document).__name__}; give Documents.")
        # a document without source and id is numbered by itself, under a name that no other has
        source = document.metadata.get("source", document.id or f"\x00{position}")
        fields = {key: value for key, value in document.metadata.items() if key not in _CHANGED_FIELDS}
        for part in cut(document):
            offsets = {} if part.start is None else {"start": part.start, "end": part.end}
            metadata = {**copy.deepcopy(fields), "chunk": counts[source], **offsets, **part.metadata}
            counts[source] += 1
            yield Document(page_content=part.text, metadata=metadata)


def _split_by_structure(document: Document, *, chunk_size: int, chunk_overlap: int) -> Iterator[SplitPart]:
    """Yield the parts of a document, cut along its headings, paragraphs and sentences."""
    text, heading = document.page_content, document.metadata.get("heading")
    spans = split_spans(
        text,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        heading=heading if isinstance(heading, str) else "",
        markdown=is_markdown(document),
    )
    for span in spans:
        fields = {"heading": span.heading, "table_header": span.table_header}
        metadata = {name: value for name, value in fields.items() if value}
        yield SplitPart(text[span.start : span.end], span.start, span.end, metadata)


def _split_by(splitter: Splitter, document: Document) -> Iterator[SplitPart]:
    """Yield the parts of a document by any splitter, each with the heading above it; blank ones are left out."""
    heading_at = heading_lookup(document)
    for part in spans_of(document, splitter):
        if part.text.strip():
            yield part._replace(metadata={**heading_at(part.start), **part.metadata})


def spans_of(document: Document, splitter: Any, start: int = 0, end: int | None = None) -> list[SplitPart]:
    """Cut a document, or its span from ``start`` to ``end``, with any splitter, and find where each piece begins."""
    text = document.page_content[start:end]
    pieces: Any = check_splitter(splitter)([Document(text, metadata=dict(document.metadata))])
    if isinstance(pieces, Document) or not isinstance(pieces, Iterable):
        pieces = [pieces]
    parts: list[SplitPart] = []
    last_offset, found_to = -1, 0  # where the piece before begins, and how far the pieces go so far
    for piece in pieces:
        if not isinstance(piece, Document):
            raise InvalidInputError(
                f"A splitter gave {type(piece).__name__}; it gets a list of documents and must give documents, such "
                "as [Document(text), ...]."
            )
        added_metadata = {
            key: value
            for key, value in piece.metadata.items()
            if key not in ("start", "end", "start_index") and (key, value) not in document.metadata.items()
        }
        content = piece.page_content
        offset = _find_offset(text, piece, last_offset, found_to)
        if offset < 0:  # the splitter has rewritten the text
            parts.append(SplitPart(content, None, None, added_metadata))
            continue
        end_offset = offset + len(content)
        last_offset, found_to = offset, max(found_to, end_offset)
        parts.append(SplitPart(content, start + offset, start + end_offset, added_metadata))
    return parts


def check_splitter(splitter: Any) -> Callable[[Sequence[Document]], Sequence[Document]]:
    """Return a splitter as a function from documents to documents; InvalidInputError if it is none."""
    cut = getattr(splitter, "split_documents", splitter)
    if not callable(cut):
        raise InvalidInputError(
            f"A splitter must be a LangChain text splitter or a function from documents to documents, not "
            f"{type(splitter).__name__}."
        )
    return cast("Callable[[Sequence[Document]], Sequence[Document]]", cut)


def _find_offset(text: str, piece: Document, last_offset: int, found_to: int) -> int:
    """Return the offset of a piece in its text, -1 if the splitter has rewritten it.

    It is the one in the piece's metadata, else one after the pieces before, the last of which begins at ``last_offset``
    (-1: there is none) and which go up to ``found_to``, else any.
    """
    content = piece.page_content
    for key in ("start_index", "start"):
        stated = piece.metadata.get(key)
        if type(stated) is int and stated >= 0 and text.startswith(content, stated):
            return stated
    blank = _SPACE.match(text, found_to)
    latest_offset = blank.end() if blank else found_to
    # text may repeat: take the last place that leaves nothing visible between this piece and those before
    offset = text.rfind(content, last_offset + 1, latest_offset + len(content))
    if offset < 0:
        offset = text.find(content, max(last_offset, 0))
    return offset if offset >= 0 else text.rfind(content)
