"""What has changed since a generation, for bringing derived parts up to date; and reading rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rag_kit.indexing.document_index.meta import State
from rag_kit.indexing.document_index.sql import Connection, chosen

if TYPE_CHECKING:
    from langchain_core.documents import Document


def document(key: str, text: str, metadata: str) -> Document:
    """A stored row as a document."""
    from langchain_core.documents import Document

    return Document(id=key, page_content=text, metadata=json.loads(metadata))


def documents(connection: Connection, ids: Sequence[str], table: str = "chunks") -> dict[str, Document]:
    """Documents of a table by id; what is not there is left out."""
    query = f"SELECT id, text, metadata FROM {table} WHERE id IN ({{}})"
    return {row[0]: document(*row) for row in chosen(connection, query, ids)}


def changed_documents(connection: Connection, since: int) -> list[Document]:
    """Documents that were added or changed after a generation, source by source."""
    # by an expression, which keeps SQLite from reading all rows in the order of the sources
    query = "SELECT id, text, metadata FROM chunks WHERE generation > ? ORDER BY source || '', ordinal, id"
    return [document(*row) for row in connection.execute(query, (since,))]


def removed_since(
    connection: Connection, state: State, since: int, known: Callable[[], Iterable[str]]
) -> list[str]:
    """Ids that a derived part holds although they are gone.

    Args:
        connection: Where to look.
        state: The present state.
        since: The generation at which the derived part stands.
        known: Its ids; asked only when removals that old are forgotten.
    """
    if since >= state.floor:
        query = "SELECT id FROM removed WHERE generation > ?"
        return [key for (key,) in connection.execute(query, (since,))]
    alive = all_ids(connection)
    return [key for key in known() if key not in alive]


def all_ids(connection: Connection) -> set[str]:
    """Ids of all rows."""
    return {key for (key,) in connection.execute("SELECT id FROM chunks")}


def count_since(connection: Connection, tables: Sequence[str], since: int) -> int:
    """How many rows of some tables are of a later generation."""
    queries = (f"SELECT count(*) FROM {table} WHERE generation > ?" for table in tables)
    return sum(connection.execute(query, (since,)).fetchone()[0] for query in queries)
