"""What has changed since a generation, for bringing derived parts up to date; and reading rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.indexing.document_index.meta import State
from rag_kit.indexing.document_index.sql import Connection, has_table, in_groups, marks
from rag_kit.indexing.document_index.store import Store

if TYPE_CHECKING:
    from langchain_core.documents import Document


def document(key: str, text: str, metadata: str) -> Document:
    """A stored row as a document."""
    from langchain_core.documents import Document

    return Document(id=key, page_content=text, metadata=json.loads(metadata))


def documents(connection: Connection, ids: Sequence[str]) -> dict[str, Document]:
    """Documents by id; what is not there is left out."""
    found = {}
    for group in in_groups(ids):
        query = f"SELECT id, text, metadata FROM chunks WHERE id IN ({marks(group)})"
        for key, text, metadata in connection.execute(query, group):
            found[key] = document(key, text, metadata)
    return found


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


def records_numbers(connection: Connection) -> bool:
    """Whether row numbers of removed rows are recorded; not by versions before 2 of the format."""
    return has_table(connection, "gone")


def forget_removals(store: Store, upto: int) -> None:
    """Drop the record of removals that every saved part has followed."""
    with store.writing() as connection:
        if store.state(connection).floor < upto:
            connection.execute("DELETE FROM removed WHERE generation <= ?", (upto,))
            connection.execute("DELETE FROM gone WHERE generation <= ?", (upto,))
            store.set_meta(floor=upto)


def changes_since(connection: Connection, since: int) -> int:
    """How many rows were added, changed or removed after a generation."""
    queries = (f"SELECT count(*) FROM {table} WHERE generation > ?" for table in ("chunks", "removed"))
    return sum(connection.execute(query, (since,)).fetchone()[0] for query in queries)


def counts(connection: Connection) -> dict[str, Any]:
    """How many files, chunks, vectors."""
    return {
        "sources": connection.execute(
            "SELECT count(DISTINCT source) FROM chunks WHERE source != ''"
        ).fetchone()[0],
        "chunks": connection.execute("SELECT count(*) FROM chunks").fetchone()[0],
        "vectors": connection.execute("SELECT count(*) FROM vectors").fetchone()[0],
    }
