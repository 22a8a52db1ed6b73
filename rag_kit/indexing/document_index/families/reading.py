"""Families as they are stored: places of children, parents by id, neighbours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.indexing.document_index.changes import documents
from rag_kit.indexing.document_index.families.model import Place
from rag_kit.indexing.document_index.families.rows import load_path
from rag_kit.indexing.document_index.sql import Connection, chosen
from rag_kit.indexing.document_index.store import Store

if TYPE_CHECKING:
    from langchain_core.documents import Document


class Sibling(NamedTuple):
    """A child of a document, by its number.

    Attributes:
        ordinal: Its number, from 0.
        start: Offset in the document's text, or ``None``.
        end: Offset, excluded, or ``None``.
        metadata: Its metadata.
    """

    ordinal: int
    start: int | None
    end: int | None
    metadata: Mapping[str, Any]


class FamilyView:
    """Families in one committed state; good inside `Families.view` only."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def places(self, ids: Sequence[str]) -> dict[str, Place]:
        """Where children belong; ids of what is no child, or is gone, are left out."""
        query = (
            'SELECT c.id, p.id, c.ordinal, c.start, c."end", c.path, p.size FROM children c '
            "JOIN parents p ON p.n = c.parent WHERE c.id IN ({})"
        )
        return {
            key: Place(parent, ordinal, start, end, load_path(path), size)
            for key, parent, ordinal, start, end, path, size in chosen(self._connection, query, ids)
        }

    def rows(self, ids: Sequence[str]) -> set[str]:
        """Which of some ids are of rows that can be found."""
        return {key for (key,) in chosen(self._connection, "SELECT id FROM chunks WHERE id IN ({})", ids)}

    def parents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Parents by id; what is not there is left out."""
        return documents(self._connection, ids, "parents")

    def metadata(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Metadata of parents by id, without their texts."""
        query = "SELECT id, metadata FROM parents WHERE id IN ({})"
        return {key: json.loads(metadata) for key, metadata in chosen(self._connection, query, ids)}

    def siblings(self, parent: str, first: int, last: int) -> list[Sibling]:
        """The children of a document from one number to another, both included, in order."""
        query = (
            'SELECT c.ordinal, c.start, c."end", r.metadata FROM children c JOIN chunks r ON r.id = c.id '
            "WHERE c.parent = (SELECT n FROM parents WHERE id = ?) AND c.ordinal BETWEEN ? AND ? ORDER BY c.ordinal"
        )
        return [
            Sibling(ordinal, start, end, json.loads(metadata))
            for ordinal, start, end, metadata in self._connection.execute(query, (parent, first, last))
        ]

    def parent_ids(self, source: str | None = None) -> list[str]:
        """Ids of all parents, or of one source's, by source and position."""
        return listed_ids(self._connection, "parents", source)

    def child_ids(self, parent: str) -> list[str]:
        """Ids of a document's children, in their order."""
        query = "SELECT id FROM children WHERE parent = (SELECT n FROM parents WHERE id = ?) ORDER BY ordinal"
        return [key for (key,) in self._connection.execute(query, (parent,))]


def listed_ids(connection: Connection, table: str, source: str | None) -> list[str]:
    """Ids of all documents of a table, or of one source's, by source and position."""
    where = "" if source is None else "WHERE source = ?"
    rows = connection.execute(
        f"SELECT id FROM {table} {where} ORDER BY source, ordinal, id", () if source is None else (source,)
    )
    return [key for (key,) in rows]


class Families:
    """The families of an index, for reading.

    Example:
        >>> import tempfile
        >>> from langchain_core.documents import Document
        >>> from rag_kit.indexing import DocumentIndex
        >>> from rag_kit.indexing.document_index.families.model import Child, Family
        >>> lake = Document("The lake is deep. It is cold.", id="lake")
        >>> parts = [Child("The lake is deep.", 0, 17), Child("It is cold.", 18, 29)]
        >>> with DocumentIndex.create(tempfile.mkdtemp()) as index:
        ...     report = index.upsert_families([Family(lake, parts)])
        ...     [(hit, _)] = index.search_keyword("cold")
        ...     with index.families.view() as view:
        ...         place = view.places([hit.id])[hit.id]
        >>> report.parents.added, place.parent, place.ordinal
        (['lake'], 'lake', 1)
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @contextmanager
    def view(self) -> Iterator[FamilyView]:
        """One consistent view of the committed state; other threads wait."""
        with self._store.reading() as connection:
            yield FamilyView(connection)
