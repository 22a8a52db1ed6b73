"""An index in PostgreSQL: any number of writers and readers, tenants apart by row-level security."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rag_kit.errors import IndexFormatError, IndexMissingError, InvalidInputError, MissingExtraError
from rag_kit.indexing.document_index.backend import Backend, Leg
from rag_kit.indexing.document_index.embedding import check_model
from rag_kit.indexing.document_index.keyword import KeywordView
from rag_kit.indexing.document_index.sql import Connection, replacing
from rag_kit.indexing.document_index.store import State

try:
    from psycopg import sql

    from rag_kit.indexing.postgres.filters import where_sql
    from rag_kit.indexing.postgres.keyword import PostgresKeywordLeg
    from rag_kit.indexing.postgres.keyword_view import PostgresKeywordView
    from rag_kit.indexing.postgres.store import PostgresStore
    from rag_kit.indexing.postgres.vectors import PostgresVectorLeg
except ImportError as error:
    raise MissingExtraError("postgres", "An index in PostgreSQL") from error

if TYPE_CHECKING:
    import psycopg

    from rag_kit.documents import Filter
    from rag_kit.indexing.postgres.location import Location

VERSION = 4  # of the tables


class PostgresBackend(Backend):
    """See `Backend`."""

    location: Location

    def __init__(self, location: Location, *, writable: bool) -> None:
        self.location = location
        self.writable = writable
        self.store: PostgresStore = PostgresStore(location, writable=writable, before_commit=self._follow)
        self.keyword = PostgresKeywordLeg()
        self.vectors = PostgresVectorLeg()
        self.legs: tuple[Leg, ...] = (self.vectors, self.keyword)

    @classmethod
    def create(
        cls, location: Location, embedding: str | None, settings: Mapping[str, Any]
    ) -> PostgresBackend:
        """Make an index; see ``DocumentIndex.create``."""
        backend = cls(location, writable=True)
        try:
            with backend.store.writing() as connection:
                make_schema(connection.native, location.index)  # type: ignore[attr-defined]
                if connection.execute("SELECT 1 FROM meta").fetchone():
                    raise InvalidInputError(
                        f"There is an index in {location} already. Open it: DocumentIndex.open(url, mode='w')."
                    )
                facts = {"uid": uuid.uuid4().hex, "embedding": embedding, "settings": dict(settings)}
                backend.store.set_meta(generation=0, derived=False, **facts)
            return backend
        except BaseException:
            backend.close()
            raise

    @classmethod
    def open(
        cls, location: Location, embedding: str | None, *, writable: bool, check: bool
    ) -> PostgresBackend:
        """Open an index; see ``DocumentIndex.open``."""
        backend = cls(location, writable=writable)
        try:
            backend._check_version()
            state = backend.store.state()
            if state.embedding is not None:
                check_model(location, state.embedding, embedding, writing=check and writable)
            return backend
        except BaseException:
            backend.close()
            raise

    def _check_version(self) -> None:
        """Refuse what is no index, or one of another version."""
        with self.store.reading() as connection:
            found = version(connection.native, self.location.index)
        if found < 0:
            raise IndexMissingError(
                f"There is no index in {self.location}. Make one: rag-kit ingest PATH --index '{self.location}'"
            )
        if found != VERSION:
            raise IndexFormatError(
                f"The index in {self.location} has format version {found}; this rag_kit reads {VERSION}. Take the "
                "rag_kit that wrote it, or build the index again under another name."
            )

    def _follow(self, connection: Connection) -> None:
        """Let the legs follow what the open transaction has written; then nobody needs the removals any more."""
        if not connection.execute("SELECT 1 FROM meta").fetchone():
            return  # the index itself was removed
        state = self.store.state(connection)
        if state.floor == state.generation:
            return
        for leg in self.legs:
            leg.apply(connection, state)
        for table in ("removed", "gone"):
            connection.execute(f"DELETE FROM {table}")
        connection.execute(replacing("meta", "key", "value"), ("floor", json.dumps(state.generation)))

    def keyword_view(self) -> KeywordView:
        """See `Backend`."""
        return PostgresKeywordView(self.store, self.keyword.analyzer)

    def passes(self, connection: Connection, state: State, where: Filter) -> Callable[[int], bool]:
        """See `Backend`."""
        condition, values = where_sql(where)
        query = f"SELECT c.n FROM chunks AS c WHERE {condition}"
        rows = connection.native.execute(query, values).fetchall()  # type: ignore[attr-defined]
        return frozenset(n for (n,) in rows).__contains__

    def rebuild(self) -> list[str]:
        """See `Backend`."""
        with self.store.writing() as connection:
            state = self.store.state(connection)
            return [what for leg in self.legs if (what := leg.rebuild(connection, state))]

    def size(self, connection: Connection) -> int:
        """See `Backend`: of the whole schema, for all its tenants."""
        query = (
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
            "JOIN pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = ? AND c.relkind = 'r'"
        )
        return int(connection.execute(query, (self.location.index,)).fetchone()[0])

    @property
    def replies(self) -> PostgresReplies:
        """See `Backend`."""
        return PostgresReplies(self.store)

    def flush(self) -> None:
        """See `Backend`; nothing: the legs follow inside each transaction."""

    def close(self, keep: Collection[str] | None = None) -> None:
        """See `Backend`; an index that holds something is not removed, for other writers may have come in."""
        try:
            if keep is not None:
                with self.store.writing() as connection:
                    if self.store.state(connection).generation == 0:
                        connection.execute("DELETE FROM meta")
        finally:
            self.store.close()


class PostgresReplies:
    """Replies by key, as ``rag_kit.models.JsonCache`` in a file; of one tenant, and kept also when a write fails."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """The replies there are, by key."""
        with self._store.reading() as connection:
            query = "SELECT key, answer FROM replies WHERE key = ANY(?)"
            rows = connection.execute(query, (list(keys),))
            return {key: json.loads(answer) for key, answer in rows}

    def put(self, answers: Mapping[str, Any]) -> None:
        """Keep replies, which must be plain JSON."""
        rows = [(key, json.dumps(answer)) for key, answer in sorted(answers.items())]
        with self._store.separate_transaction() as connection:
            connection.executemany(
                "INSERT INTO replies (key, answer) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", rows
            )

    def close(self) -> None:
        """Nothing to do: the store is the index's."""


def version(connection: psycopg.Connection[Any], schema: str) -> int:
    """The number of the last file that was run in a schema; -1 where there is no index."""
    there = connection.execute("SELECT to_regclass(%s)", (f"{schema}.migrations",)).fetchone()
    if there is None or there[0] is None:
        return -1
    query = sql.SQL("SELECT coalesce(max(number), -1) FROM {}").format(sql.Identifier(schema, "migrations"))
    row = connection.execute(query).fetchone()
    return -1 if row is None else int(row[0])


def make_schema(connection: psycopg.Connection[Any], schema: str) -> None:
    """Make a schema if it is not there, inside the open transaction; other processes wait."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"rag_kit {schema}",))
    if version(connection, schema) >= 0:
        return
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        connection.execute("CREATE EXTENSION vector SCHEMA public")
    connection.execute("CREATE TABLE migrations (number integer PRIMARY KEY)")
    connection.execute("INSERT INTO migrations VALUES (%s)", (VERSION,))
    folder = files(__package__) / "migrations"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        connection.execute(file.read_text(encoding="utf-8"))
