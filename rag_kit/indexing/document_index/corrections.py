"""Chunks that were corrected by hand, as the store remembers them: what was read, and what shall stand there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rag_kit.indexing.document_index.sql import Connection, chosen, replacing


class Correction(NamedTuple):
    """A corrected chunk.

    Attributes:
        id: Its id, made from the text that was read.
        source: Its source.
        ordinal: Its place in the source.
        text: The text that was read.
        metadata: Its metadata then, as JSON.
        corrected: The text that stands in its place; ``None`` for a chunk that was taken out.
    """

    id: str
    source: str
    ordinal: int
    text: str
    metadata: str
    corrected: str | None


def stored_corrections(connection: Connection) -> list[Correction]:
    """All corrections, by source and place."""
    query = f"SELECT {', '.join(Correction._fields)} FROM corrections ORDER BY source, ordinal, id"
    return [Correction(*row) for row in connection.execute(query)]


def present_chunks(connection: Connection, ids: Iterable[str]) -> dict[str, tuple[Correction, bool]]:
    """Documents by id, and whether each is searched by children; a child is not among them.

    Each is a `Correction` to the text that it has.
    """
    ids, found = list(ids), {}
    for table in ("chunks", "parents"):
        query = f"SELECT id, source, ordinal, text, metadata, text FROM {table} t WHERE id IN ({{}})"
        query += " AND NOT EXISTS (SELECT 1 FROM children c WHERE c.id = t.id)"
        for row in chosen(connection, query, ids):
            found[row[0]] = (Correction(*row), table == "parents")
    return found


def write_corrections(
    connection: Connection,
    corrections: Sequence[Correction],
    uncorrected: Iterable[str],
    removed_sources: Iterable[str],
) -> None:
    """Remember corrections, and forget those that are taken back, or of sources that go."""
    connection.executemany("DELETE FROM corrections WHERE source = ?", [(s,) for s in removed_sources])
    connection.executemany("DELETE FROM corrections WHERE id = ?", [(key,) for key in uncorrected])
    connection.executemany(replacing("corrections", *Correction._fields), corrections)
