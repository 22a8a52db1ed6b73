"""Run a statement on PostgreSQL: rewritten, in a transaction that only reads and has a time limit."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rag_kit.errors import ConfigurationError, StatementError
from rag_kit.query_construction.sql.checking import rewrite_statement
from rag_kit.query_construction.statements.result import MAX_COLUMNS, Limits, QueryResult

_NUMBERS = frozenset(
    {16, 20, 21, 23, 26, 700, 701, 1700}
)  # bool, int8, int2, int4, oid, float4, float8, numeric


class PostgresDatabase:
    """Runs statements on the PostgreSQL database behind a SQLAlchemy engine, which reads these tables and views.

    Nothing bounds the memory of the server: give the engine a role that may read these tables and nothing else.
    """

    dialect = "PostgreSQL"

    def __init__(self, engine: Any, tables: Collection[str], schema: str) -> None:
        self._engine = engine
        self._tables = frozenset(tables)
        self._schema = schema
        rewrite_statement("SELECT 1", (), schema)  # raises where sqlglot is not installed

    def run(self, statement: str, limits: Limits) -> QueryResult:
        """Run one statement.

        Raises:
            StatementError: It was refused, or it failed.
            ConfigurationError: The database cannot be reached, or its transactions not be made read-only.
        """
        from sqlalchemy.exc import DBAPIError

        rewritten = rewrite_statement(statement, self._tables, self._schema)
        try:
            with self._engine.connect().execution_options(isolation_level="READ COMMITTED") as connection:
                _guard(connection, limits.seconds)
                try:
                    return _fetch_rows(connection, rewritten, limits)
                except DBAPIError as error:
                    if error.connection_invalidated:
                        raise
                    raise StatementError(str(error.orig).strip(), statement) from error
                finally:
                    connection.rollback()
        except DBAPIError as error:
            raise ConfigurationError(f"The database cannot be reached: {str(error.orig).strip()}") from error


def _guard(connection: Any, seconds: float) -> None:
    """Make the transaction read-only, its statements end in time, and names without a schema the system's own."""
    connection.exec_driver_sql("SET TRANSACTION READ ONLY")
    time = str(max(1, round(seconds * 1000)))
    settings = {"statement_timeout": time, "lock_timeout": time, "standard_conforming_strings": "on"}
    for name, value in {**settings, "search_path": "pg_catalog, pg_temp"}.items():
        connection.exec_driver_sql("SELECT set_config(%s, %s, true)", (name, value))
    if connection.exec_driver_sql("SHOW transaction_read_only").scalar() != "on":
        raise ConfigurationError("The engine's transactions cannot be made read-only; make it anew.")


def _fetch_rows(connection: Any, rewritten: str, limits: Limits) -> QueryResult:
    """The rows, whose long cells the server cuts."""
    query = f"({rewritten}) AS q".replace("%", "%%")
    # a statement with a parameter goes by the extended protocol, which takes one statement alone
    described = connection.exec_driver_sql(f"SELECT * FROM {query} LIMIT %s", (0,)).cursor.description
    if len(described) > MAX_COLUMNS:
        raise StatementError(f"There are {len(described)} columns; select at most {MAX_COLUMNS}.", rewritten)
    names = [f"c{number}" for number in range(len(described))]
    cells = [
        name if column[1] in _NUMBERS else f"left(CAST({name} AS text), {limits.chars + 1})"
        for name, column in zip(names, described, strict=True)
    ]
    statement = f"SELECT {', '.join(cells)} FROM {query}({', '.join(names)}) LIMIT %s"
    rows = connection.exec_driver_sql(statement, (limits.rows + 1,)).all()
    return QueryResult.from_rows(rewritten, (column[0] for column in described), rows, limits)
