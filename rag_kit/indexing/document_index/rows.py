"""From documents and families (a document and the parts that are searched in its place) to rows, and back."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from langchain_core.documents import Document

from rag_kit.documents.identity import to_plain
from rag_kit.documents.provenance import strip_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.parameters import check_ids, documents_of
from rag_kit.indexing.document_index.state import Connection, select_in

#: Metadata key of a stored child that holds the id of its parent.
PARENT_KEY = "parent_id"


class StoredRow(NamedTuple):
    """A chunk, or a document with children, as it is stored."""

    id: str
    source: str  # or empty
    ordinal: int  # among the chunks of its source, or among the children of its document
    text: str  # what is returned
    metadata: str  # as canonical JSON
    hash: bytes  # `text_hash` of the text
    parent: str = ""  # of a child: the id of its document
    place: str = ""  # of a child: start, end, and a list of the span that holds it, if any, as JSON


_RowWithChildren: TypeAlias = tuple[StoredRow, list[StoredRow]]


def text_hash(text: str) -> bytes:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).digest()


def chunk_id(source: str, text: str, occurrence: int) -> str:
    """Return the id of a chunk that has none: made of its source, its text, and which of equal texts it is.

    The position in the file is not part of it, so a paragraph put in at the top does not rename the rest.
    """
    return hashlib.sha256(f"{source}\0{occurrence}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def make_row(
    name: str, key: str, source: str, ordinal: int, text: str, metadata: Mapping[str, Any]
) -> StoredRow:
    """Make the row of a text; ``name`` is what the error calls it, as in "Document 3"."""
    # `to_plain` says what becomes of values that JSON does not know
    metadata_json = json.dumps(to_plain(metadata), ensure_ascii=False, separators=(",", ":"))
    try:
        row = StoredRow(key, source, ordinal, text, metadata_json, text_hash(text))
        (key + source + row.metadata).encode()  # as for the text, raises for what is no valid Unicode
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{name} ({source or 'no source'}) holds half a surrogate pair, which is no text ({error.reason}). Decode "
            "its source properly, or with errors='replace'."
        ) from None
    return row


def make_rows(
    documents: Sequence[Document], ids: Sequence[str] | None = None, *, source: str | None = None
) -> list[StoredRow]:
    """Turn documents into rows; refuses ids that are wrong in number or kind, or name two different documents."""
    return [row for row, _ in _merge_equal((row, []) for row in document_rows(documents, ids, source))]


def _merge_equal(documents: Iterable[_RowWithChildren]) -> list[_RowWithChildren]:
    """Drop rows (each with its children) given twice in one call; refuse two different ones with one id."""
    first_of: dict[str, _RowWithChildren] = {}
    for row, children in documents:
        first, first_children = first_of.setdefault(row.id, (row, children))
        # the second of two equal rows has another position
        if first != row._replace(ordinal=first.ordinal) or children != first_children:
            raise InvalidInputError(
                f"The id {row.id!r} names two different documents in one call. Give each its own id."
            )
    return list(first_of.values())


def document_rows(
    documents: Sequence[Document],
    ids: Sequence[str] | None = None,
    sources: str | Sequence[str] | None = None,
) -> list[StoredRow]:
    """Turn documents into one row each; ``sources`` is one for all, one for each, or ``None`` for the metadata's."""
    documents = [strip_provenance(document) for document in documents_of(documents)]
    keys = [document.id for document in documents] if ids is None else check_ids(ids, len(documents))
    if sources is None:
        sources = [str(document.metadata.get("source") or "") for document in documents]
    elif isinstance(sources, str):
        sources = [sources] * len(documents)
    rows: list[StoredRow] = []
    occurrences: Counter[tuple[str, str]] = Counter()  # by source and text
    positions: Counter[str] = Counter()  # by source
    for number, (document, source, key) in enumerate(zip(documents, sources, keys, strict=True)):
        text = document.page_content
        if key is None:
            key = chunk_id(source, text, occurrences[source, text])
            occurrences[source, text] += 1
        elif not isinstance(key, str) or not key:  # a document's id that was set later may be of any type
            raise InvalidInputError(f"Document {number} has the id {key!r}; an id is a text, not empty.")
        chunk = document.metadata.get("chunk")  # its number in the source; below, one that fits 64 bits
        ordinal = chunk if type(chunk) is int and abs(chunk) < 2**62 else positions[source]
        rows.append(make_row(f"Document {number}", key, source, ordinal, text, document.metadata))
        positions[source] += 1
    return rows


def document(key: str, text: str, metadata: str) -> Document:
    """Return a stored row as a document."""
    return Document(id=key, page_content=text, metadata=json.loads(metadata))


def read_documents(connection: Connection, ids: Sequence[str], table: str = "chunks") -> dict[str, Document]:
    """Return documents of a table by id; what is not there is left out."""
    query = f"SELECT id, text, metadata FROM {table} WHERE id IN ({{}})"
    return {row[0]: document(*row) for row in select_in(connection, query, ids)}


def read_changed_documents(connection: Connection, since: int) -> list[Document]:
    """Return documents that were added or changed after a generation, source by source."""
    # source || '' is no column, so SQLite cannot read all rows by the index of sources, and uses that of generations
    query = "SELECT id, text, metadata FROM chunks WHERE generation > ? ORDER BY source || '', ordinal, id"
    return [document(*row) for row in connection.execute(query, (since,))]


class ParentSpan(NamedTuple):
    """A span of the document, by its offsets in the text, that is returned for the children in it."""

    start: int
    end: int  # excluded
    leaves: int = 0  # how many children lie in it
    heading: str = ""  # the headings above its beginning


@dataclass(frozen=True, slots=True)
class Child:
    """A part of a document that is searched in its place."""

    text: str  # what is indexed
    start: int | None = None  # offset in the document's text; None for a text that stands nowhere in it
    end: int | None = None  # excluded
    span: ParentSpan | None = None  # its `leaves` are counted on writing; None for the whole document
    metadata: Mapping[str, Any] = field(default_factory=dict)  # more; the document's is added on writing


@dataclass(frozen=True, slots=True)
class Family:
    """A document, which is had by its id and not searched itself, and the children that are searched in its place."""

    parent: Document
    children: Sequence[Child]  # in their order; their ids are made from the parent's id and their text


class ChildPlace(NamedTuple):
    """Place of a child in its document and among its siblings."""

    parent: str  # the id of its document
    ordinal: int  # from 0
    start: int | None  # offset in the document's text; None for what stands nowhere in it
    end: int | None  # excluded
    span: ParentSpan | None  # None for the whole document
    size: int  # how many children the document has


class Sibling(NamedTuple):
    """A child of a document, by its number."""

    ordinal: int  # from 0
    start: int | None  # offset in the document's text; None for what stands nowhere in it
    end: int | None  # excluded
    metadata: Mapping[str, Any]


def family_rows(
    families: Sequence[Family], ids: Sequence[str] | None = None, sources: Sequence[str] | None = None
) -> tuple[list[StoredRow], list[StoredRow]]:
    """Return the rows of the families' documents, and those of all their children; equal families count once."""
    parents = document_rows([family.parent for family in families], ids, sources)
    children = [list(_child_rows(family, row)) for family, row in zip(families, parents, strict=True)]
    merged = _merge_equal(zip(parents, children, strict=True))
    return [parent for parent, _ in merged], [row for _, rows in merged for row in rows]


def _child_rows(family: Family, parent: StoredRow) -> Iterator[StoredRow]:
    """Yield the rows of a document's children, each with its place and the span that holds it, if any."""
    inherited: dict[str, Any] = json.loads(parent.metadata)
    shift = offset_in_source(inherited, len(parent.text))
    inherited = {key: value for key, value in inherited.items() if key not in ("start", "end")}
    leaf_counts = Counter(child.span[:2] for child in family.children if child.span)  # by start and end
    occurrences: Counter[str] = Counter()  # by text
    for ordinal, child in enumerate(family.children):
        start, end = child.start, child.end
        if start is not None and (start < 0 or end is None or parent.text[start:end] != child.text):
            raise InvalidInputError(
                f"A child of {parent.id!r} is not what stands at {start}:{end} of its document (it starts "
                f"{child.text[:60]!r}). Give its true place, or start=None."
            )
        metadata = {**inherited, **child.metadata, PARENT_KEY: parent.id}
        if start is not None and end is not None:  # offsets in the source; `place` has those in the document
            metadata |= {"start": start + shift, "end": end + shift}
        key = chunk_id(f"child\0{parent.id}", child.text, occurrences[child.text])
        occurrences[child.text] += 1
        row = make_row(f"A child of {parent.id!r}", key, parent.source, ordinal, child.text, metadata)
        span = child.span and child.span._replace(leaves=leaf_counts[child.span[:2]])
        yield row._replace(parent=parent.id, place=json.dumps([start, end, [span] if span else []]))


def offset_in_source(metadata: dict[str, Any], length: int) -> int:
    """Return where a document begins in its source: at metadata ``start``; 0 if ``end`` is not ``length`` behind it."""
    start, end = metadata.get("start"), metadata.get("end")
    if type(start) is not int or type(end) is not int:
        return 0
    return start if start >= 0 and end - start == length else 0


class FamilyView:
    """Families in one committed state; to be used inside ``with DocumentIndex.families()`` only."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def places(self, ids: Sequence[str]) -> dict[str, ChildPlace]:
        """Return the places of children by id; ids of other rows, or of none, are left out."""
        count_siblings = "(SELECT count(*) FROM chunks s WHERE s.parent != '' AND s.parent = c.parent)"
        columns = f"id, parent, ordinal, place, {count_siblings}"
        query = f"SELECT {columns} FROM chunks c WHERE parent != '' AND id IN ({{}})"
        places = {}
        for key, parent, ordinal, place, size in select_in(self._connection, query, ids):
            start, end, spans = json.loads(place)  # at most one span
            span = ParentSpan(*spans[0]) if spans else None
            places[key] = ChildPlace(parent, ordinal, start, end, span, size)
        return places

    def rows(self, ids: Sequence[str]) -> set[str]:
        """Return those of some ids that the index has as chunks."""
        return {key for (key,) in select_in(self._connection, "SELECT id FROM chunks WHERE id IN ({})", ids)}

    def parents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return parents by id; what is not there is left out."""
        return read_documents(self._connection, ids, "parents")

    def metadata(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return metadata of parents by id, without their texts."""
        query = "SELECT id, metadata FROM parents WHERE id IN ({})"
        return {key: json.loads(metadata) for key, metadata in select_in(self._connection, query, ids)}

    def siblings(self, parent: str, first: int, last: int) -> list[Sibling]:
        """Return the children of a document with the numbers ``first`` to ``last`` (included), in order."""
        query = (
            "SELECT ordinal, place, metadata FROM chunks WHERE parent != '' AND parent = ? "
            "AND ordinal BETWEEN ? AND ? ORDER BY ordinal"
        )
        siblings = list[Sibling]()
        for ordinal, place, metadata in self._connection.execute(query, (parent, first, last)):
            start, end, _ = json.loads(place)
            siblings.append(Sibling(ordinal, start, end, json.loads(metadata)))
        return siblings
