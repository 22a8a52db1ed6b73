"""An index in PostgreSQL: any number of writers and readers, tenants apart by row-level security."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rag_kit.documents import Filter, compile_filter
from rag_kit.errors import DocumentIndexError, InvalidInputError, MissingExtraError
from rag_kit.indexing.document_index.embedding import check_model
from rag_kit.indexing.document_index.state import Connection, IndexState, upsert_statement
from rag_kit.indexing.document_index.store import Access, Leg, Store
from rag_kit.indexing.document_index.views import KeywordView
from rag_kit.indexing.postgres.location import PostgresLocation
from rag_kit.models.wheels.files import cache_folder
from rag_kit.text import default_analyzer
from rag_kit.text.analysis import TERMS_VERSION, CharacterNgrams

try:
    import psycopg
    from psycopg import sql
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

    from rag_kit.indexing.postgres.connection import (
        PostgresConnection,
        check_schema,
        explanation,
        make_schema,
        make_trigram_tables,
        vector_schema,
    )
    from rag_kit.indexing.postgres.keyword import PostgresKeywordLeg
    from rag_kit.indexing.postgres.keyword_search import PostgresKeywordView
    from rag_kit.indexing.postgres.vectors import PostgresVectorLeg
except ImportError as error:
    raise MissingExtraError("postgres", "An index in PostgreSQL") from error

logger = logging.getLogger(__name__)

_MAX_CONNECTIONS = 16  # of one index in one process
_TIMEOUT = 30.0  # seconds to wait for one of them
_PROBE_AFTER = 2.0  # seconds after which the server itself is asked whether it takes connections
_WAIT_FOR_WRITERS = 300.0  # seconds that a write waits for those of others, which may make an HNSW index
_CONNECT = {
    "connect_timeout": 10,
    "client_encoding": "utf8",
    "application_name": "rag_kit",
    "autocommit": True,
}


class PostgresStore(Store):
    """Transactions in a schema of a database, which see and write the rows of one tenant alone.

    Readers have a snapshot each and never wait; all writers of a tenant take turns. The legs follow inside each write.
    """

    location: PostgresLocation
    max_source = 2_500  # that an index of the database takes, beside a tenant

    def __init__(self, location: PostgresLocation, access: Access) -> None:
        super().__init__(writable=access.writable)
        if access.connected is not None:
            raise InvalidInputError(
                "vector_store is for an index in a folder; PostgreSQL searches its vectors by itself."
            )
        if foreign := [leg for leg in access.legs or () if leg != "trigram"]:
            raise InvalidInputError(f"legs={foreign!r} is for a folder; PostgreSQL takes ['trigram'].")
        self.location = location
        self._wait = access.wait if access.wait > 0 else _WAIT_FOR_WRITERS
        self.keyword, self.vectors = PostgresKeywordLeg("keyword", default_analyzer()), PostgresVectorLeg()
        self._trigram = PostgresKeywordLeg("trigram", CharacterNgrams())
        self._views = threading.local()
        self._pools: dict[int, ConnectionPool[psycopg.Connection[Any]]] = {}
        with self.translate_errors(), self._probe() as probe:
            self._make_statements(vector_schema(probe))

    def _make_statements(self, pgvector: str) -> None:
        """Make the SQL that begins transactions to read and to write, sent at once; ``pgvector`` is its schema."""
        index, tenant = self.location.name, self.location.tenant
        # without JIT, for compiling a search takes longer than running it
        settings = sql.SQL(
            "SET LOCAL search_path = {}, {}; SET LOCAL rag_kit.tenant = {}; SET LOCAL jit = off"
        ).format(sql.Identifier(index), sql.Identifier(pgvector), tenant)
        lock_key = hashlib.sha256(f"{index}\0{tenant}".encode()).digest()[:8]
        # lock_timeout is in ms, below 2**31; 0 would wait for ever
        take_turn = sql.SQL("SET LOCAL lock_timeout = {}; SELECT pg_advisory_xact_lock({})").format(
            int(min(self._wait * 1000 + 1, 2**31 - 1)), int.from_bytes(lock_key, signed=True)
        )
        # asked in each transaction, for a role may get BYPASSRLS at any time; null where there are no tables yet
        self._ask_rls = sql.SQL("SELECT row_security_active(to_regclass({}))").format(f"{index}.meta")
        begin_read = sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        begin_write = sql.SQL("BEGIN ISOLATION LEVEL READ COMMITTED")
        self._begin_read = sql.SQL("; ").join([begin_read, settings, self._ask_rls])
        self._begin_write = sql.SQL("; ").join([begin_write, settings, take_turn, self._ask_rls])

    @classmethod
    def create(cls, location: PostgresLocation, access: Access, settings: Mapping[str, Any]) -> PostgresStore:
        """Make the tables of the schema, if there are none, and the tenant's index."""
        store = cls(location, access)
        with store.close_on_error(), store.writing() as connection:
            native: psycopg.Connection[Any] = connection.native  # type: ignore[attr-defined]
            make_schema(native, location)
            store._refuse_unrestricted_role(native.execute(store._ask_rls))
            if connection.execute("SELECT 1 FROM meta").fetchone():
                raise InvalidInputError(
                    f"There is an index in {location} already. Open it: DocumentIndex.open(url, mode='w')."
                )
            facts = {"uid": uuid.uuid4().hex, "embedding": access.embedding, "settings": dict(settings)}
            store.set_meta(generation=0, derived=False, terms=TERMS_VERSION, **facts)
            store._choose_legs(connection, access.legs or [])
        return store

    @classmethod
    def open(cls, location: PostgresLocation, access: Access) -> PostgresStore:
        """Open the tenant's index; raise IndexMissingError if there is none."""
        store = cls(location, access)
        with store.close_on_error():
            with store.reading() as connection:
                check_schema(connection.native, location)
                state = store.state(connection)
            check_model(location, state.embedding, access.embedding, writing=access.check and access.writable)
            if access.legs is not None and access.legs != state.legs:
                with store.writing() as connection:
                    store._choose_legs(connection, access.legs)
        return store

    def _choose_legs(self, connection: Any, legs: list[str]) -> None:
        """Make the trigram index in the open transaction, for ``["trigram"]``; remove it for an empty list."""
        if legs:
            make_trigram_tables(connection.native)
            self.set_meta(legs=legs)
            self._trigram.apply(connection, self.state(connection))
        elif self.state(connection).legs:
            self.set_meta(legs=[])
            self._trigram.clear(connection)

    def legs(self, state: IndexState) -> list[Leg]:
        """Return vectors, keyword and, where the index has it, the trigram leg."""
        return [self.vectors, self.keyword, *([self._trigram] if state.legs else [])]

    @property
    def _pool(self) -> ConnectionPool[psycopg.Connection[Any]]:
        """The connection pool of this process, opened at first use; a forked process must not use its parent's."""
        process = os.getpid()
        if process not in self._pools:
            pool: ConnectionPool[psycopg.Connection[Any]] = ConnectionPool(
                self.location.conninfo,
                min_size=0,
                max_size=_MAX_CONNECTIONS,
                timeout=_TIMEOUT,
                open=False,
                check=ConnectionPool.check_connection,
                kwargs=dict(_CONNECT),
            )
            pool.open()
            if self._pools.setdefault(process, pool) is not pool:  # another thread was quicker
                pool.close()
        return self._pools[process]

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn psycopg's errors into those of the kit, without passwords."""
        try:
            yield
        except PoolClosed as error:
            raise DocumentIndexError(f"The index in {self.location} was closed. Open it again.") from error
        except psycopg.Error as error:
            raise explanation(error, self.location, self._wait) from error

    def _probe(self) -> psycopg.Connection[Any]:
        """Connect to the server directly; an error says why there is no connection, which the pool would hide."""
        return psycopg.connect(self.location.conninfo, **_CONNECT)  # type: ignore[arg-type]

    def _refuse_unrestricted_role(self, answer: psycopg.Cursor[Any]) -> None:
        """Raise InvalidInputError if the role, by the answer to `_ask_rls`, sees all tenants; and there are any."""
        if answer.fetchone() != (False,):  # restricted, or null: no tables yet
            return
        if self.location.tenant or answer.execute("SELECT 1 FROM meta WHERE tenant <> ''").fetchone():
            raise InvalidInputError(
                f"The role that opens {self.location} skips row-level security (a superuser, or BYPASSRLS), so it "
                "would read and change the rows of all tenants. Connect as a plain role."
            )

    def _begin(self, statement: sql.Composed) -> psycopg.Connection[Any]:
        """Take a connection from the pool, which has checked that the server keeps it, and begin a transaction."""
        try:
            native = self._pool.getconn(timeout=_PROBE_AFTER)
        except PoolTimeout:
            self._probe().close()  # if the server is down, this raises at once and says so
            native = self._pool.getconn()
        try:
            answer = native.execute(statement)
            while answer.nextset():  # go to the last result, that of `self._ask_rls`
                pass
            self._refuse_unrestricted_role(answer)
            return native
        except BaseException:
            self._give_back(native)
            raise

    def _give_back(self, native: psycopg.Connection[Any]) -> None:
        """Return a connection to the pool, out of whatever transaction it is in."""
        try:
            if not native.closed and native.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                native.execute("ROLLBACK")
        except psycopg.Error as error:
            logger.debug("a connection to %s was lost: %s", self.location, error)
        finally:
            self._pool.putconn(native)

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        """Open a snapshot of the committed state; where this thread has one open, use that."""
        with self.translate_errors():
            if (outer := getattr(self._views, "open", None)) is not None:
                yield outer
                return
            native = self._begin(self._begin_read)
            self._views.open = PostgresConnection(native)
            try:
                yield self._views.open
            finally:
                self._views.open = None
                self._give_back(native)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Begin a transaction; after the block update the search indexes and commit. An error undoes all of it."""
        native = self._begin(self._begin_write)
        try:
            yield (connection := PostgresConnection(native))
            self._update_legs(connection)
            # a transaction in which a statement failed answers COMMIT with ROLLBACK
            if native.execute("COMMIT").statusmessage != "COMMIT":
                raise DocumentIndexError(
                    f"{self.location} has undone the write, after an error in it. Nothing was changed."
                )
        finally:
            self._give_back(native)

    def _update_legs(self, connection: Connection) -> None:
        """Bring the search indexes up to date with the open transaction, and forget which rows it removed."""
        state = self.state(connection)
        if state.floor == state.generation:  # nothing was written since they were last updated
            return
        for leg in self.legs(state):
            leg.apply(connection, state)
        connection.execute("DELETE FROM removed")
        connection.execute(upsert_statement("meta", "key", "value"), ("floor", json.dumps(state.generation)))

    def leg_view(self, name: str) -> KeywordView:
        """Return a leg over terms, which reads the newest state at each call."""
        if name == self.keyword.label:
            return PostgresKeywordView(self, name, self.keyword.analyzer)
        self.check_leg(name, self.state())
        return PostgresKeywordView(self, name, self._trigram.analyzer)

    def passes(self, connection: Connection, state: IndexState, where: Filter) -> Callable[[int], bool]:
        """Return a function that tells by a row's number whether the row passes a filter."""
        passes = compile_filter(where)
        rows = connection.execute("SELECT n, metadata FROM chunks").fetchall()
        passing = {n for n, metadata in rows if passes(json.loads(metadata))}
        return passing.__contains__

    @property
    def replies(self) -> Path:
        """Return the file of a model's replies, in the kit's cache on this machine."""
        folder = cache_folder() / "replies"
        with suppress(OSError):  # without it nothing is kept
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder / f"{self.state().uid}.sqlite"

    def flush(self) -> None:
        """Do nothing: the legs follow inside each transaction."""

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()
