"""From documents to rows (deterministic ids, plain metadata, hashes) and back, and what changed since a generation."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.documents.identity import to_plain
from rag_kit.documents.provenance import strip_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.parameters import documents_of
from rag_kit.indexing.document_index.state import Connection, select_in

if TYPE_CHECKING:
    from langchain_core.documents import Document


class Row(NamedTuple):
    """A chunk, or a document with children, as it is stored."""

    id: str
    source: str  # or empty
    ordinal: int  # among the chunks of its source, or among the children of its document
    text: str  # what is returned
    metadata: str  # as canonical JSON
    hash: bytes  # `text_hash` of the text
    parent: str = ""  # of a child: the id of its document
    place: str = ""  # of a child: start, end, and the spans that hold it, as JSON


def text_hash(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).digest()


def chunk_id(source: str, text: str, occurrence: int) -> str:
    """The id of a chunk that brings none: from its source, its text, and which of equal texts it is.

    The position in the file is not part of it, so a paragraph put in at the top does not rename the rest.
    """
    return hashlib.sha256(f"{source}\0{occurrence}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def dump_metadata(metadata: Mapping[str, Any]) -> str:
    """Metadata as JSON; see ``to_plain`` for what becomes of values that JSON does not know."""
    return json.dumps(to_plain(metadata), ensure_ascii=False, separators=(",", ":"))


def make_row(what: str, key: str, source: str, ordinal: int, text: str, metadata: Mapping[str, Any]) -> Row:
    """A row of a text; `what` names it in the error."""
    try:
        row = Row(key, source, ordinal, text, dump_metadata(metadata), text_hash(text))
        (key + source + row.metadata).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{what} ({source or 'no source'}) holds half a surrogate pair, which is no text ({error.reason}). Decode "
            "its source properly, or with errors='replace'."
        ) from None
    return row


def make_rows(
    documents: Sequence[Document], ids: Sequence[str] | None = None, *, source: str | None = None
) -> list[Row]:
    """Turn documents into rows; refuses ids that are wrong in number or kind, or name two different documents."""
    return [row for row, _ in merge_equal((row, []) for row in document_rows(documents, ids, source))]


def merge_equal(documents: Iterable[tuple[Row, list[Row]]]) -> list[tuple[Row, list[Row]]]:
    """Rows with those of their children, without what is given twice in one call; its place there does not count."""
    first_of: dict[str, tuple[Row, list[Row]]] = {}
    for row, children in documents:
        first, its_children = first_of.setdefault(row.id, (row, children))
        if first != row._replace(ordinal=first.ordinal) or children != its_children:
            raise InvalidInputError(
                f"The id {row.id!r} names two different documents in one call. Give each its own id."
            )
    return list(first_of.values())


def document_rows(
    documents: Sequence[Document],
    ids: Sequence[str] | None = None,
    sources: str | Sequence[str] | None = None,
) -> list[Row]:
    """As `make_rows`, with one row for each document, so that an id may occur twice; or a source for each."""
    documents = documents_of(documents)
    if ids is not None and len(ids) != len(documents):
        raise InvalidInputError(f"{len(ids)} ids were given for {len(documents)} documents; give one each.")
    rows: list[Row] = []
    counts: Counter[tuple[str, str]] = Counter()
    position: Counter[str] = Counter()
    for number, with_provenance in enumerate(documents):
        document = strip_provenance(with_provenance)
        if sources is None:
            source = str(document.metadata.get("source") or "")
        else:
            source = sources if isinstance(sources, str) else sources[number]
        text = document.page_content
        key = ids[number] if ids is not None else document.id
        if key is None:
            key = chunk_id(source, text, counts[source, text])
            counts[source, text] += 1
        elif not isinstance(key, str) or not key:
            raise InvalidInputError(
                f"Document {number} has the id {key!r}; an id is a text that is not empty."
            )
        chunk = document.metadata.get("chunk")
        ordinal = chunk if type(chunk) is int and abs(chunk) < 2**62 else position[source]
        rows.append(make_row(f"Document {number}", key, source, ordinal, text, document.metadata))
        position[source] += 1
    return rows


def document(key: str, text: str, metadata: str) -> Document:
    """A stored row as a document."""
    from langchain_core.documents import Document

    return Document(id=key, page_content=text, metadata=json.loads(metadata))


def read_documents(connection: Connection, ids: Sequence[str], table: str = "chunks") -> dict[str, Document]:
    """Documents of a table by id; what is not there is left out."""
    query = f"SELECT id, text, metadata FROM {table} WHERE id IN ({{}})"
    return {row[0]: document(*row) for row in select_in(connection, query, ids)}


def read_changed_documents(connection: Connection, since: int) -> list[Document]:
    """Documents that were added or changed after a generation, source by source."""
    # by an expression, which keeps SQLite from reading all rows in the order of the sources
    query = "SELECT id, text, metadata FROM chunks WHERE generation > ? ORDER BY source || '', ordinal, id"
    return [document(*row) for row in connection.execute(query, (since,))]
