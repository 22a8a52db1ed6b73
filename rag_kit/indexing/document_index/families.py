"""Families: a document and the parts of it that are searched in its place; how they become rows, and are read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.rows import (
    Row,
    chunk_id,
    document_rows,
    make_row,
    merge_equal,
    read_documents,
)
from rag_kit.indexing.document_index.state import Connection, select_in

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: Metadata key of a stored child that holds the id of its parent.
PARENT_KEY = "parent_id"


class Ancestor(NamedTuple):
    """A span of the document, by its offsets in the text, in which a child lies."""

    start: int
    end: int  # excluded
    leaves: int = 0  # how many children lie in it
    heading: str = ""  # the headings above its beginning


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
    """A document, which is had by its id and not searched itself, and the children that are searched in its place."""

    parent: Document
    children: Sequence[Child]  # in their order; their ids are made from the parent's id and their text


class Place(NamedTuple):
    """Where a child belongs: in its document, and among its siblings."""

    parent: str  # the id of its document
    ordinal: int  # from 0
    start: int | None  # offset in the document's text; None for what stands nowhere in it
    end: int | None  # excluded
    path: tuple[Ancestor, ...]  # spans of the document that hold it, largest first
    size: int  # how many children the document has


class Sibling(NamedTuple):
    """A child of a document, by its number."""

    ordinal: int  # from 0
    start: int | None  # offset in the document's text; None for what stands nowhere in it
    end: int | None  # excluded
    metadata: Mapping[str, Any]


def family_rows(
    families: Sequence[Family], ids: Sequence[str] | None = None, sources: Sequence[str] | None = None
) -> tuple[list[Row], list[Row]]:
    """Turn families into the rows of their documents and those of their children."""
    parents = document_rows([family.parent for family in families], ids, sources)
    merged = merge_equal(
        (parent, list(_child_rows(family, parent))) for family, parent in zip(families, parents, strict=True)
    )
    return [parent for parent, _ in merged], [row for _, rows in merged for row in rows]


def _child_rows(family: Family, parent: Row) -> Iterator[Row]:
    """The rows of a document's children, each with its place and the spans above it."""
    inherited: dict[str, Any] = json.loads(parent.metadata)
    shift = offset_in_source(inherited, len(parent.text))
    inherited = {key: value for key, value in inherited.items() if key not in ("start", "end")}
    leaves = Counter((span.start, span.end) for child in family.children for span in set(child.path))
    counts: Counter[str] = Counter()
    for ordinal, child in enumerate(family.children):
        start, end = child.start, child.end
        if start is not None and (start < 0 or end is None or parent.text[start:end] != child.text):
            raise InvalidInputError(
                f"A child of {parent.id!r} is not what stands at {start}:{end} of its document (it starts "
                f"{child.text[:60]!r}). Give its true place, or start=None."
            )
        offsets = {} if start is None else {"start": start + shift, "end": (end or 0) + shift}
        metadata = {**inherited, **child.metadata, PARENT_KEY: parent.id, **offsets}
        key = chunk_id(f"child\0{parent.id}", child.text, counts[child.text])
        counts[child.text] += 1
        row = make_row(f"A child of {parent.id!r}", key, parent.source, ordinal, child.text, metadata)
        path = [[span.start, span.end, leaves[span.start, span.end], span.heading] for span in child.path]
        yield row._replace(parent=parent.id, place=json.dumps([start, end, path]))


def offset_in_source(metadata: dict[str, Any], length: int) -> int:
    """Where a document begins that is itself a verbatim span of its source (metadata ``start``, ``end``); else 0."""
    start, end = metadata.get("start"), metadata.get("end")
    return start if type(start) is int and type(end) is int and end - start == length and start >= 0 else 0


class FamilyView:
    """Families in one committed state; good inside ``DocumentIndex.families`` only."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def places(self, ids: Sequence[str]) -> dict[str, Place]:
        """Where children belong; ids of what is no child, or is gone, are left out."""
        query = (
            "SELECT id, parent, ordinal, place, (SELECT count(*) FROM chunks s WHERE s.parent != '' "
            "AND s.parent = c.parent) FROM chunks c WHERE parent != '' AND id IN ({})"
        )
        places = {}
        for key, parent, ordinal, place, size in select_in(self._connection, query, ids):
            start, end, path = json.loads(place)
            places[key] = Place(parent, ordinal, start, end, tuple(Ancestor(*span) for span in path), size)
        return places

    def rows(self, ids: Sequence[str]) -> set[str]:
        """Which of some ids are of rows that can be found."""
        return {key for (key,) in select_in(self._connection, "SELECT id FROM chunks WHERE id IN ({})", ids)}

    def parents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Parents by id; what is not there is left out."""
        return read_documents(self._connection, ids, "parents")

    def metadata(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Metadata of parents by id, without their texts."""
        query = "SELECT id, metadata FROM parents WHERE id IN ({})"
        return {key: json.loads(metadata) for key, metadata in select_in(self._connection, query, ids)}

    def siblings(self, parent: str, first: int, last: int) -> list[Sibling]:
        """The children of a document from one number to another, both included, in order."""
        query = (
            "SELECT ordinal, place, metadata FROM chunks WHERE parent != '' AND parent = ? "
            "AND ordinal BETWEEN ? AND ? ORDER BY ordinal"
        )
        siblings = list[Sibling]()
        for ordinal, place, metadata in self._connection.execute(query, (parent, first, last)):
            start, end, _ = json.loads(place)
            siblings.append(Sibling(ordinal, start, end, json.loads(metadata)))
        return siblings
