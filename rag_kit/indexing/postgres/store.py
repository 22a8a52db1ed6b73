"""The store of an index in PostgreSQL: a pool of connections, one transaction for each view and each write."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from rag_kit.errors import DocumentIndexError, IndexMissingError, InvalidInputError
from rag_kit.indexing.document_index.sql import Connection
from rag_kit.indexing.document_index.store import State, Store
from rag_kit.indexing.postgres.connection import PostgresConnection, explanation
from rag_kit.indexing.postgres.location import Location

logger = logging.getLogger(__name__)

_MOST = 16  # connections of one index in one process
_WAIT = 30.0  # seconds for one of them
_PLAIN = (
    "The role that opens {} skips row-level security (a superuser, or BYPASSRLS), so it would read and change the rows "
    "of all tenants. Connect as a plain role."
)
_CONNECT = {
    "connect_timeout": 10,
    "client_encoding": "utf8",
    "application_name": "rag_kit",
    "autocommit": True,
}


class PostgresStore(Store):
    """Transactions in a schema of a database, which see and write the rows of one tenant alone.

    Readers have a snapshot each and never wait; writers of one tenant, in all processes, take turns.
    """

    path: Location

    def __init__(
        self, location: Location, *, writable: bool, before_commit: Callable[[Connection], None]
    ) -> None:
        super().__init__(location)
        self._writable = writable
        self._before_commit = before_commit
        self._views = threading.local()
        self._pools: dict[int, ConnectionPool[psycopg.Connection[Any]]] = {}
        with self.explained(), self._probe() as probe:
            self._skips_policies = _skips_policies(probe, location)
            types = _schema_of_types(probe)
        # to compile a search takes longer than to run it
        local = sql.SQL(
            "SET LOCAL search_path = {}, {}; SET LOCAL rag_kit.tenant = {}; SET LOCAL jit = off"
        ).format(sql.Identifier(location.index), sql.Identifier(types), sql.Literal(location.tenant))
        key = hashlib.sha256(f"{location.index}\0{location.tenant}".encode()).digest()[:8]
        turn = sql.SQL("SELECT pg_advisory_xact_lock({})").format(int.from_bytes(key, signed=True))
        # each is one round trip
        self._read = sql.SQL("; ").join([sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"), local])
        self._separate = sql.SQL("; ").join([sql.SQL("BEGIN"), local])
        self._write = sql.SQL("; ").join([sql.SQL("BEGIN ISOLATION LEVEL READ COMMITTED"), local, turn])

    @property
    def _pool(self) -> ConnectionPool[psycopg.Connection[Any]]:
        """The connections of this process: one that was forked must not speak on those of its parent."""
        process = os.getpid()
        if process not in self._pools:
            made: ConnectionPool[psycopg.Connection[Any]] = ConnectionPool(
                self.path.conninfo,
                min_size=0,
                max_size=_MOST,
                timeout=_WAIT,
                open=False,
                kwargs=dict(_CONNECT),
            )
            made.open()
            if self._pools.setdefault(process, made) is not made:  # another thread was quicker
                made.close()
        return self._pools[process]

    @contextmanager
    def explained(self) -> Iterator[None]:
        """See `Store`."""
        try:
            yield
        except PoolClosed as error:
            raise DocumentIndexError(f"The index in {self.path} was closed. Open it again.") from error
        except psycopg.Error as error:
            raise explanation(error, self.path) from error

    def _probe(self) -> psycopg.Connection[Any]:
        """A connection made by hand: a pool would hide why there is none, and wait."""
        return psycopg.connect(self.path.conninfo, **_CONNECT)  # type: ignore[arg-type]

    def _refuse_tenants(self, native: psycopg.Connection[Any]) -> None:
        """Raise InvalidInputError where the role would see rows of tenants, which policies do not keep from it."""
        there = native.execute("SELECT to_regclass(%s)", (f"{self.path.index}.meta",)).fetchone()
        if there and there[0] and native.execute("SELECT 1 FROM meta WHERE tenant <> ''").fetchone():
            raise InvalidInputError(_PLAIN.format(self.path))

    def _begun(self, statement: sql.Composed) -> psycopg.Connection[Any]:
        """A connection of the pool in a new transaction; one that the server has dropped is replaced."""
        while True:
            try:
                native = self._pool.getconn()
            except PoolTimeout:
                self._probe().close()
                raise
            try:
                native.execute(statement)
                if self._skips_policies:
                    self._refuse_tenants(native)
                return native
            except psycopg.OperationalError:
                lost = native.closed
                self._give_back(native)
                if not lost:
                    raise
                self._probe().close()
            except BaseException:
                self._give_back(native)
                raise

    def _give_back(self, native: psycopg.Connection[Any]) -> None:
        """Return a connection to the pool, out of whatever transaction it is in."""
        try:
            if not native.closed and native.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                native.execute("ROLLBACK")
        except psycopg.Error as error:
            logger.debug("a connection to %s was lost: %s", self.path, error)
        finally:
            self._pool.putconn(native)

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        """See `Store`; inside another one of the same thread, the same."""
        with self.explained():
            if (outer := getattr(self._views, "open", None)) is not None:
                yield outer
                return
            native = self._begun(self._read)
            self._views.open = PostgresConnection(native)
            try:
                yield self._views.open
            finally:
                self._views.open = None
                self._give_back(native)

    @contextmanager
    def separate_transaction(self) -> Iterator[Connection]:
        """A transaction on a connection of its own, which does not wait for other writers.

        It is committed at the end of the block, also if an open write transaction is rolled back later.
        """
        with self.explained():
            native = self._begun(self._separate)
            try:
                yield PostgresConnection(native)
                native.execute("COMMIT")
            finally:
                self._give_back(native)

    def _begin(self) -> Connection:
        if not self._writable:
            raise DocumentIndexError(
                f"The index in {self.path} was opened for reading. Open it with DocumentIndex.open(url, mode='w')."
            )
        return PostgresConnection(self._begun(self._write))

    def _commit(self, connection: Connection) -> None:
        """Commit; the connection goes back to the pool in any case, rolled back where an error left it open."""
        assert isinstance(connection, PostgresConnection)
        try:
            self._before_commit(connection)
            # a transaction in which a statement failed answers COMMIT with ROLLBACK
            if connection.native.execute("COMMIT").statusmessage != "COMMIT":
                raise DocumentIndexError(
                    f"{self.path} has undone the write, after an error in it. Nothing was changed."
                )
        finally:
            self._give_back(connection.native)

    def _rollback(self, connection: Connection) -> None:
        assert isinstance(connection, PostgresConnection)
        self._give_back(connection.native)

    def state(self, connection: Connection | None = None) -> State:
        """See `Store`."""
        if connection is None or connection.execute("SELECT 1 FROM meta").fetchone():
            return super().state(connection)
        raise IndexMissingError(
            f"There is no index in {self.path}. Make one: rag-kit ingest PATH --index '{self.path}'"
        )

    def damage(self, connection: Connection) -> str:
        """See `Store`; a server looks after its files itself."""
        return ""

    def close(self) -> None:
        """See `Store`."""
        self._pool.close()


def _skips_policies(probe: psycopg.Connection[Any], location: Location) -> bool:
    """Whether the role of a connection skips row-level security; such a one is refused where a tenant is named."""
    query = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    skips = probe.execute(query).fetchone() != (False,)
    if skips and location.tenant:
        raise InvalidInputError(_PLAIN.format(location))
    return skips


def _schema_of_types(probe: psycopg.Connection[Any]) -> str:
    """The schema that pgvector is in, or will be."""
    query = "SELECT extnamespace::regnamespace::name FROM pg_extension WHERE extname = 'vector'"
    row = probe.execute(query).fetchone()
    return "public" if row is None else str(row[0])
