"""Families as they are stored: places of children, parents by id, neighbours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.indexing.document_index.families.model import Place
from rag_kit.indexing.document_index.families.rows import load_path
from rag_kit.indexing.document_index.sql import Connection, has_table, in_groups, marks
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
        # an index that an earlier version wrote, and no writer has opened since, lacks both tables
        self._there = has_table(connection, "parents", "children")

    def places(self, ids: Sequence[str]) -> dict[str, Place]:
        """Where children belong; ids of what is no child, or is gone, are left out."""
        found: dict[str, Place] = {}
        for group in in_groups(ids) if self._there else ():
            query = (
                'SELECT c.id, p.id, c.ordinal, c.start, c."end", c.path, p.size FROM children c '
                f"JOIN parents p ON p.n = c.parent WHERE c.id IN ({marks(group)})"
            )
            for key, parent, ordinal, start, end, path, size in self._connection.execute(query, group):
                found[key] = Place(parent, ordinal, start, end, load_path(path), size)
        return found

    def rows(self, ids: Sequence[str]) -> set[str]:
        """Which of some ids are of rows that can be found."""
        found: set[str] = set()
        for group in in_groups(ids):
            query = f"SELECT id FROM chunks WHERE id IN ({marks(group)})"
            found.update(key for (key,) in self._connection.execute(query, group))
        return found

    def parents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Parents by id; what is not there is left out."""
        from rag_kit.indexing.document_index.changes import document

        found = {}
        for group in in_groups(ids) if self._there else ():
            query = f"SELECT id, text, metadata FROM parents WHERE id IN ({marks(group)})"
            for key, text, metadata in self._connection.execute(query, group):
                found[key] = document(key, text, metadata)
        return found

    def metadata(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Metadata of parents by id, without their texts."""
        found = {}
        for group in in_groups(ids) if self._there else ():
            query = f"SELECT id, metadata FROM parents WHERE id IN ({marks(group)})"
            for key, metadata in self._connection.execute(query, group):
                found[key] = json.loads(metadata)
        return found

    def siblings(self, parent: str, first: int, last: int) -> list[Sibling]:
        """The children of a document from one number to another, both included, in order."""
        if not self._there:
            return []
        query = (
            'SELECT c.ordinal, c.start, c."end", r.metadata FROM children c JOIN chunks r ON r.id = c.id '
            "WHERE c.parent = (SELECT n FROM parents WHERE id = ?) AND c.ordinal BETWEEN ? AND ? "
            "ORDER BY c.ordinal"
        )
        return [
            Sibling(ordinal, start, end, json.loads(metadata))
            for ordinal, start, end, metadata in self._connection.execute(query, (parent, first, last))
        ]

    def parent_ids(self, source: str | None = None) -> list[str]:
        """Ids of all parents, or of one source's, by source and position."""
        if not self._there:
            return []
        query = (
            "SELECT id FROM parents WHERE CAST(? AS TEXT) IS NULL OR source = ? ORDER BY source, ordinal, id"
        )
        return [key for (key,) in self._connection.execute(query, (source, source))]

    def child_ids(self, parent: str) -> list[str]:
        """Ids of a document's children, in their order."""
        if not self._there:
            return []
        query = "SELECT id FROM children WHERE parent = (SELECT n FROM parents WHERE id = ?) ORDER BY ordinal"
        return [key for (key,) in self._connection.execute(query, (parent,))]


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
