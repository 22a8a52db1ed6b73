"""Families: a document, the parts of it that are searched in its place, and how both are read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.indexing.document_index.rows import documents
from rag_kit.indexing.document_index.sql import Connection, chosen

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: Metadata key of a stored child that holds the id of its parent.
PARENT_KEY = "parent_id"


class Ancestor(NamedTuple):
    """A larger span of the document in which a child lies.

    Attributes:
        start: Offset in the document's text.
        end: Offset, excluded.
        leaves: How many children lie in it.
        heading: The headings above its beginning.
    """

    start: int
    end: int
    leaves: int = 0
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Child:
    """A part of a document that is searched in its place.

    Attributes:
        text: What is indexed.
        start: Where it stands in the document's text; ``None`` for a text that stands nowhere in it.
        end: Offset, excluded.
        path: Spans of the document that hold it, largest first; empty for the whole document only. Their
            ``leaves`` are counted on writing.
        metadata: More metadata; those of the document are added on writing.
    """

    text: str
    start: int | None = None
    end: int | None = None
    path: tuple[Ancestor, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Family:
    """A document and its children, in their order.

    Attributes:
        parent: The document. It can be had by its id, and is not searched itself.
        children: What is searched; their ids are made from the parent's id and their text.
    """

    parent: Document
    children: Sequence[Child]


class Place(NamedTuple):
    """Where a child belongs.

    Attributes:
        parent: The id of its document.
        ordinal: Its number among the document's children, from 0.
        start: Offset in the document's text, or ``None``.
        end: Offset, excluded, or ``None``.
        path: Spans of the document that hold it, largest first.
        size: How many children the document has.
    """

    parent: str
    ordinal: int
    start: int | None
    end: int | None
    path: tuple[Ancestor, ...]
    size: int


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
    """Families in one committed state; good inside ``DocumentIndex.families`` only."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def places(self, ids: Sequence[str]) -> dict[str, Place]:
        """Where children belong; ids of what is no child, or is gone, are left out."""
        query = (
            'SELECT c.id, p.id, c.ordinal, c.start, c."end", c.path, p.size FROM children c '
            "JOIN parents p ON p.n = c.parent WHERE c.id IN ({})"
        )
        return {
            key: Place(parent, ordinal, start, end, tuple(Ancestor(*step) for step in json.loads(path)), size)
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
