"""Run a statement on SQLite: on a read-only connection of its own, whose authorizer permits only some tables."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError, StatementError
from rag_kit.query_construction.statements.asking import (
    MAX_COLUMNS,
    MAX_STATEMENT,
    Limits,
    QueryResult,
    fold_name,
    statement_words,
)

FUNCTIONS = statement_words("sqlite", "functions")
_STEPS = 100  # of SQLite's virtual machine between two looks at the clock
# A call of a function cannot be interrupted: on values of this length the slowest takes a quarter of a second.
_BOUNDS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_STATEMENT,
    sqlite3.SQLITE_LIMIT_COLUMN: MAX_COLUMNS,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
}


class SqliteDatabase:
    """Runs statements on the database behind a SQLAlchemy engine; they may read the given tables and views.

    A file is opened a second time, read-only; an in-memory database is copied for each statement. A view is read
    through its tables: SQLite cannot tell it from a WITH query of its name.
    """

    dialect = "SQLite"

    def __init__(self, engine: Any, tables: Collection[str]) -> None:
        self._engine = engine
        self._tables = frozenset(map(fold_name, tables))

    def run(self, statement: str, limits: Limits) -> QueryResult:
        """Run one statement; raises ``StatementError`` where it was refused, or failed."""
        refused: list[str] = []
        connection = self._open_read_only(limits.seconds)
        try:
            for pragma in ("query_only = ON", "trusted_schema = OFF", "temp_store = FILE"):
                connection.execute(f"PRAGMA {pragma}")
            # the schema is read before the bounds hold: a table that nobody asks for may have more columns
            names = {fold_name(str(row[0])) for row in connection.execute("SELECT name FROM sqlite_master")}
            names |= {"sqlite_master", "sqlite_schema"}
            for bound, value in _BOUNDS.items():
                connection.setlimit(bound, value)

            def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
                if reason := self._refusal(action, first or "", second or "", names):
                    refused.append(reason)
                return sqlite3.SQLITE_DENY if reason else sqlite3.SQLITE_OK

            connection.set_authorizer(authorize)
            end = time.monotonic() + limits.seconds
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)  # true interrupts
            cursor = connection.execute(statement)
            if cursor.description is None:
                raise StatementError("The statement is no query; write one SELECT.", statement, refused=True)
            columns = [column[0] for column in cursor.description]
            return QueryResult.from_rows(statement, columns, cursor, limits)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            message = refused[0] if refused else str(error)
            if message == "interrupted":
                message = f"interrupted: the statement took longer than {limits.seconds:g} s"
            stacked = "one statement at a time" in message
            raise StatementError(message, statement, refused=bool(refused) or stacked) from error
        finally:
            connection.close()

    def _open_read_only(self, seconds: float) -> sqlite3.Connection:
        """Open a connection that cannot write; for a database in memory, to a copy."""
        with self._engine.connect() as engine_connection:
            databases = engine_connection.exec_driver_sql("PRAGMA database_list").all()
            file = next((path for _, name, path in databases if name == "main"), "")
            uri = f"{Path(file).absolute().as_uri()}?mode=ro" if file else ":memory:"
            try:
                connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=seconds)
            except sqlite3.Error as error:
                raise InvalidInputError(f"The SQLite file cannot be opened for reading: {error}.") from error
            if not file:
                engine_connection.connection.driver_connection.backup(connection)
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        return connection

    def _refusal(self, action: int, first: str, second: str, names: Collection[str]) -> str:
        """Return why an action is refused, "" if it is allowed; its arguments are those of SQLite's authorizer."""
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return ""
        if action == sqlite3.SQLITE_FUNCTION:
            if second.lower() in FUNCTIONS:
                return ""
            return f"The function {second!r} is not allowed; use one of: {', '.join(sorted(FUNCTIONS))}."
        if action == sqlite3.SQLITE_READ:
            # without a column, the rows of a table, or of a WITH query, are counted
            name = fold_name(first)
            if name in self._tables or (not second and name not in names):
                return ""
            return f"The table {first!r} may not be read; allowed: {', '.join(sorted(self._tables))}."
        return "The statement does more than read tables; write one SELECT."
