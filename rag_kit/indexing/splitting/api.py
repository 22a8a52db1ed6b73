"""`split`: documents to chunks with exact offsets."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.splitting.named import named_splitter
from rag_kit.indexing.splitting.packing import check_sizes, split_spans
from rag_kit.indexing.splitting.parts import Part, Splitter, check_splitter, spans_of
from rag_kit.indexing.splitting.structure import NOT_MARKDOWN, Headings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from rag_kit.indexing.splitting.named import Tokenizer


def split(
    documents: Iterable[Document],
    *,
    chunk_size: int = 1000,
    chunk_overlap: int = 100,
    splitter: Splitter | str = "structure",
    embeddings: Embeddings | None = None,
    tokenizer: Tokenizer | None = None,
) -> list[Document]:
    """Cut documents into chunks, by default at headings, then between blocks, then between sentences.

    With ``splitter="structure"`` a chunk never crosses a heading or the end of its document. Tables, code and list
    items stay whole where they fit, and are cut between lines where they do not. A sentence is cut only if it is
    longer than ``chunk_size``, and then at a clause, a word, or between whole characters. English and Chinese
    sentences alike.

    Args:
        documents: As `read` gives them, or any others; their text is taken as markdown unless metadata ``format``
            is ``txt``, ``json`` or ``jsonl``. They are not changed.
        chunk_size: Most characters of a chunk; 20 or more. Tokens, for ``"tokens"``.
        chunk_overlap: Most characters repeated from the chunk before, in whole sentences of the same section;
            at most half of ``chunk_size``. Rows of tables and lines of code are not repeated.
        splitter: ``"structure"``, ``"tokens"``, ``"sentence"``, ``"paragraph"``, ``"semantic"`` or ``"recursive"``; any
            LangChain text splitter (which has its own sizes), or a function from documents to documents.
        embeddings: The embedding model, for ``"semantic"``.
        tokenizer: What counts, for ``"tokens"``: a function from a text to a number, or a ``tokenizer.json``.

    Returns:
        Chunks in order. Metadata is the document's, and ``chunk`` (number within the source, from 0), ``start``
        and ``end`` (``chunk.page_content == document.page_content[start:end]``; not where the splitter rewrites the
        text), ``heading`` (``"A > B"``, where there is one), ``table_header`` (where a chunk goes on with a table
        whose header is in an earlier one), and what the splitter adds.

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
    check_sizes(chunk_size, chunk_overlap)
    cut = chosen_splitter(
        splitter,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        embeddings=embeddings,
        tokenizer=tokenizer,
    )
    return list(iter_chunks(documents, chunk_size, chunk_overlap, cut))


def chosen_splitter(splitter: Splitter | str, **settings: Any) -> Splitter | None:
    """A splitter that was named or given, checked; ``None`` for the one by structure, which needs no function."""
    if splitter == "structure" and settings.get("tokenizer") is None:
        return None
    return check_splitter(named_splitter(splitter, **settings) if isinstance(splitter, str) else splitter)


def iter_chunks(
    documents: Iterable[Document], chunk_size: int, chunk_overlap: int, splitter: Splitter | None = None
) -> Iterator[Document]:
    """The chunks of `split`, one at a time, so that a caller can stop at a limit."""
    numbers: dict[Any, int] = {}
    for position, document in enumerate(documents):
        if not isinstance(document, Document):
            raise InvalidInputError(
                f"documents[{position}] must be a Document, not {type(document).__name__}."
            )
        given = document.metadata
        source = given.get("source", document.id if document.id is not None else f"\x00{position}")
        number = numbers.get(source, 0)
        nested = any(isinstance(value, dict | list | set) for value in given.values())
        parts = (
            _by_structure(document, chunk_size, chunk_overlap)
            if splitter is None
            else _by(splitter, document)
        )
        for part in parts:
            metadata = copy.deepcopy(given) if nested else dict(given)
            for key in ("heading", "start", "end"):
                metadata.pop(key, None)
            metadata["chunk"] = number
            if part.start is not None:
                metadata |= {"start": part.start, "end": part.end}
            yield Document(page_content=part.text, metadata={**metadata, **part.metadata})
            number += 1
        numbers[source] = number


def _by_structure(document: Document, chunk_size: int, chunk_overlap: int) -> Iterator[Part]:
    text, heading = document.page_content, document.metadata.get("heading")
    for span in split_spans(
        text,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        heading=heading if isinstance(heading, str) else "",
        markdown=document.metadata.get("format") not in NOT_MARKDOWN,
    ):
        more = {"heading": span.heading, "table_header": span.table_header}
        yield Part(text[span.start : span.end], span.start, span.end, {k: v for k, v in more.items() if v})


def _by(splitter: Splitter, document: Document) -> Iterator[Part]:
    headings = Headings(document)
    for part in spans_of(document, splitter):
        if part.text.strip():
            heading = "" if part.start is None else headings.at(part.start)
            more: Mapping[str, Any] = {"heading": heading} if heading else {}
            yield part._replace(metadata={**more, **part.metadata})
