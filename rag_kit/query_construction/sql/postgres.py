"""Run a statement on PostgreSQL: checked and rewritten, in a transaction that only reads and has a time limit.

A read-only transaction stops no function: ``pg_read_file`` reads the server's files in it. So a statement is parsed
with sqlglot, each node looked up in a list of what is allowed, and the tree written anew with every name quoted, which
is parsed and checked once more and alone runs: PostgreSQL never sees a text that it would read differently.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from rag_kit.errors import ConfigurationError, MissingExtraError, StatementError
from rag_kit.query_construction.statements.asking import (
    MAX_COLUMNS,
    MAX_STATEMENT,
    Limits,
    QueryResult,
    RefusalError,
    fold_name,
    say_refusal,
    statement_words,
)

_ALLOWED = statement_words("postgres", "nodes", "functions")
_TYPES = statement_words("postgres", "types")
_FUNCTIONS_BY_NAME = statement_words("postgres", "functions_by_name")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_]+")
# oids of bool, int8, int2, int4, oid, float4, float8, numeric
_NUMERIC = frozenset({16, 20, 21, 23, 26, 700, 701, 1700})


class PostgresDatabase:
    """Runs statements on the PostgreSQL database behind a SQLAlchemy engine; they may read the given tables and views.

    Nothing bounds the memory of the server: give the engine a role that may read these tables and nothing else.
    """

    dialect = "PostgreSQL"

    def __init__(self, engine: Any, tables: Collection[str], schema: str) -> None:
        self._engine = engine
        self._tables = frozenset(tables)
        self._schema = schema
        rewrite_statement("SELECT 1", (), schema)  # raises where sqlglot is not installed

    def run(self, statement: str, limits: Limits) -> QueryResult:
        """Run one statement; raises ``StatementError`` where it was refused, or failed."""
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
    """Make the transaction read-only, with a time limit, and let names without a schema be the system's own."""
    connection.exec_driver_sql("SET TRANSACTION READ ONLY")
    limit = str(max(1, round(seconds * 1000)))  # milliseconds
    settings = {"statement_timeout": limit, "lock_timeout": limit, "standard_conforming_strings": "on"}
    for setting in {**settings, "search_path": "pg_catalog, pg_temp"}.items():
        connection.exec_driver_sql("SELECT set_config(%s, %s, true)", setting)
    if connection.exec_driver_sql("SHOW transaction_read_only").scalar() != "on":
        raise ConfigurationError("The engine's transactions cannot be made read-only; make it anew.")


def _fetch_rows(connection: Any, rewritten: str, limits: Limits) -> QueryResult:
    """Run a rewritten statement and fetch its rows; the server cuts long cells that are not numbers."""
    query = f"({rewritten}) AS q".replace("%", "%%")
    # a statement with a parameter goes by the extended protocol, which takes one statement alone
    columns = connection.exec_driver_sql(f"SELECT * FROM {query} LIMIT %s", (0,)).cursor.description
    if len(columns) > MAX_COLUMNS:
        raise StatementError(f"There are {len(columns)} columns; select at most {MAX_COLUMNS}.", rewritten)
    aliases = [f"c{number}" for number in range(len(columns))]
    cells = [  # column[1] is the oid of the column's type, column[0] its name
        alias if column[1] in _NUMERIC else f"left(CAST({alias} AS text), {limits.chars + 1})"
        for alias, column in zip(aliases, columns, strict=True)
    ]
    statement = f"SELECT {', '.join(cells)} FROM {query}({', '.join(aliases)}) LIMIT %s"
    rows = connection.exec_driver_sql(statement, (limits.rows + 1,)).all()
    return QueryResult.from_rows(rewritten, (column[0] for column in columns), rows, limits)


def rewrite_statement(statement: str, tables: Collection[str], schema: str) -> str:
    """Quote the names of a statement and qualify its tables, if it is one query that only reads these tables.

    The tables (and views) are named as the catalogue spells them.

    Raises:
        StatementError: The statement is something else; the message says what is not allowed.
    """
    with say_refusal(statement, "Write one SELECT with common functions."):
        written = _qualified_select(statement, tables, schema)
        # a name that sqlglot writes without the quotes it needs gives another statement when it is parsed again
        if _qualified_select(written, tables, schema) != written:
            raise RefusalError("A text that is read in two ways")
        return written


def _qualified_select(statement: str, tables: Collection[str], schema: str) -> str:
    """Return the statement as one SELECT with each table in its schema; refuse everything else."""
    try:
        import sqlglot
        from sqlglot import exp
    except ImportError:
        raise MissingExtraError("sql", "Text to SQL on PostgreSQL") from None
    if len(statement) > 2 * MAX_STATEMENT or "\0" in statement:
        raise RefusalError(f"A statement of {len(statement)} characters, or with a NUL,")
    try:
        trees = [tree for tree in sqlglot.parse(statement, dialect="postgres") if tree is not None]
        selects = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)
        if len(trees) != 1 or not isinstance(trees[0], selects):
            raise RefusalError("Anything but one SELECT")
        for node in list(trees[0].walk()):
            if reason := _refusal(node):
                raise RefusalError(reason)
            if isinstance(node, exp.Identifier) and not node.args.get("quoted"):
                node.set("this", fold_name(node.name))  # as PostgreSQL folds a name without quotes
                node.set("quoted", True)
        _qualify(trees[0], tables, schema)
        return str(trees[0].sql(dialect="postgres", comments=False))
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError, TypeError, AttributeError) as error:
        raise StatementError(f"The statement cannot be parsed: {error}", statement) from error


def _refusal(node: Any) -> str:
    """Return the part of one node of the tree that is not allowed; "" if all of it is."""
    node_type = type(node).__name__
    if node_type == "Anonymous":  # a function without a class of its own
        is_allowed = isinstance(node.this, str) and node.this.lower() in _FUNCTIONS_BY_NAME
        return "" if is_allowed else str(node.name)
    if node_type == "DataType" and (node.args.get("kind") or node.this.name not in _TYPES):
        return f"The type {node.sql(dialect='postgres')}"
    if node_type == "Literal" and not node.is_string and not _NUMBER.fullmatch(node.name):
        return f"The number {node.name}"
    # sqlglot writes these two without quoting them
    is_odd_path = node_type == "JSONPathKey" and "'" in str(node.this)
    if is_odd_path or (node_type == "Var" and not _WORD.fullmatch(node.name)):
        return f"The word {node.this}"
    return "" if node_type in _ALLOWED else str(node.key)


def _qualify(tree: Any, tables: Collection[str], schema: str) -> None:
    """Put the schema before the names of tables, but not of WITH queries; refuse other tables."""
    from sqlglot import exp

    with_queries = {cte.alias for cte in tree.find_all(exp.CTE)}
    if any(name.startswith("pg_") for name in with_queries):
        raise RefusalError("A WITH query whose name begins with pg_")
    for table in tree.find_all(exp.Table):
        is_name = isinstance(table.this, exp.Identifier)  # else a function, which is checked as a node
        if not is_name or (table.name in with_queries and not table.db and not table.catalog):
            continue
        if table.catalog or table.db not in ("", schema) or table.name not in tables:
            names = ", ".join(f'"{name}"' for name in sorted(tables))
            raise RefusalError(f"The table {table.sql(dialect='postgres')} (there are, spelled so: {names})")
        table.set("db", exp.to_identifier(schema, quoted=True))
