"""Text to SQL: a model writes one SELECT statement for a question, on SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.bridge import blocking, run_in_thread
from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError, StatementError
from rag_kit.query_construction.sql.postgres import PostgresDatabase
from rag_kit.query_construction.sql.sqlite import SqliteDatabase
from rag_kit.query_construction.statements.asking import Limits, QueryResult, TextToStatement
from rag_kit.query_construction.statements.uses import StatementRetriever

_SYSTEM = ("pg_", "information_schema", "sqlite_")
_SAMPLE_CHARS = 100


class TextToSql(TextToStatement):
    """Answer questions from a database: a model writes one SELECT statement, which runs under guards.

    SQLite: a read-only connection of its own, whose authorizer permits these tables and a list of functions.
    PostgreSQL: a read-only transaction of the statement parsed, checked and written anew. Both bound time and size.

    Args:
        llm: A language model.
        database: An ``SQLDatabase`` of langchain-community, a SQLAlchemy engine or URL; SQLite or PostgreSQL.
        tables: The tables and views that may be read; ``None``: those of the ``SQLDatabase``, else all.
        **settings: ``sample_rows``, ``max_rows``, ``timeout``, ``answer``...: see ``TextToStatement``.

    Raises:
        MissingExtraError: SQLAlchemy, or for PostgreSQL sqlglot, is not installed (extra ``sql``).
    """

    kind = "sql"
    task = "Text to SQL"
    prompt = "sql_query"

    def _open(
        self, database: Any, sample_rows: int, seconds: float, tables: Collection[str] | None = None
    ) -> tuple[Any, str]:
        return open_database(database, tables, sample_rows, seconds)


class SqlRetriever(StatementRetriever):
    """The rows of a database that answer a question, as documents: see ``StatementRetriever``."""

    writer = TextToSql


async def asql_query(
    question: str,
    database: Any,
    llm: Runnable[Any, Any],
    *,
    config: RunnableConfig | None = None,
    **settings: Any,
) -> QueryResult:
    """Answer one question from a database; ``TextToSql`` reads the schema once for many.

    Args:
        question: The question.
        database: An ``SQLDatabase``, a SQLAlchemy engine or URL; SQLite or PostgreSQL.
        llm: A language model.
        config: LangChain's config; all of it reaches the model.
        **settings: ``tables``, ``max_rows``, ``timeout``, ``answer``...: see ``TextToSql``.

    Returns:
        Statement, columns and rows, the rows as documents, and the answer if ``answer=True``.

    Example:
        >>> import sqlite3, tempfile
        >>> from langchain_core.language_models import FakeListChatModel
        >>> file = tempfile.mkdtemp() + "/shop.db"
        >>> with sqlite3.connect(file) as made:
        ...     _ = made.executescript("CREATE TABLE item (name TEXT, price REAL); INSERT INTO item VALUES ('pen', 2)")
        >>> model = FakeListChatModel(responses=['{"reason": "Its price.", "statement": "SELECT price FROM item"}'])
        >>> sql_query("What does a pen cost?", f"sqlite:///{file}", model).rows
        ((2.0,),)
    """
    query = await run_in_thread(partial(TextToSql, llm, database, **settings))
    return await query.ainvoke(question, config)


sql_query = blocking(asql_query, "sql_query")


def open_database(
    database: Any, tables: Collection[str] | None, sample_rows: int, seconds: float
) -> tuple[SqliteDatabase | PostgresDatabase, str]:
    """Open a database (see ``TextToSql``); also describe its tables by columns, keys and sample rows."""
    try:
        from sqlalchemy import inspect
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        raise MissingExtraError("sql", "Text to SQL") from None

    engine = _engine_of(getattr(database, "_engine", database))  # an SQLDatabase has no public name for it
    try:
        inspector = inspect(engine)
        schema = getattr(database, "_schema", None) or inspector.default_schema_name or ""
        if schema.startswith(_SYSTEM):
            raise InvalidInputError(f"The schema {schema!r} is a system catalogue; name another.")
        if hasattr(database, "get_usable_table_names"):
            usable = list(database.get_usable_table_names())
        else:
            usable = [*inspector.get_table_names(schema=schema), *inspector.get_view_names(schema=schema)]
        names = _choose_tables(tables, sorted(name for name in usable if not name.startswith(_SYSTEM)))
        sqlite = engine.dialect.name == "sqlite"
        opened = SqliteDatabase(engine, names) if sqlite else PostgresDatabase(engine, names, schema)
        limits = Limits(sample_rows, _SAMPLE_CHARS, seconds)
        return opened, "\n\n".join(_describe_table(opened, inspector, name, schema, limits) for name in names)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise ConfigurationError(f"The database cannot be read: {reason}") from error


def _describe_table(database: Any, inspector: Any, name: str, schema: str, limits: Limits) -> str:
    """Describe a table by columns, keys and sample rows, like a CREATE TABLE statement."""
    links: dict[str, str] = {}
    for key in inspector.get_foreign_keys(name, schema=schema):
        for column, target in zip(key["constrained_columns"], key["referred_columns"], strict=False):
            links[column] = f' REFERENCES "{key["referred_table"]}" ("{target}")'
    columns = inspector.get_columns(name, schema=schema)
    lines = [f'  "{column["name"]}" {column["type"]!s}{links.get(column["name"], "")}' for column in columns]
    if primary := inspector.get_pk_constraint(name, schema=schema)["constrained_columns"]:
        lines.append("  PRIMARY KEY ({})".format(", ".join(f'"{column}"' for column in primary)))
    text = f'TABLE "{name}" (\n' + ",\n".join(lines) + "\n)"
    if not limits.rows:
        return text
    try:
        quoted = name.replace('"', '""')
        sample = database.run(f'SELECT * FROM "{quoted}" LIMIT {limits.rows}', limits).rows
    except StatementError as error:  # a slow view, a cell that is too long: the columns are described
        return f"{text}\nNo sample rows: {error}"
    cells = (["NULL" if cell is None else " ".join(str(cell).split()) for cell in row] for row in sample)
    return "\n".join([text, *map(" | ".join, cells)])


def _engine_of(database: Any) -> Any:
    """Return the engine of a URL, or an engine as it is, if it can be kept from writing."""
    from sqlalchemy import Engine, create_engine, make_url
    from sqlalchemy.exc import ArgumentError
    from sqlalchemy.pool import StaticPool

    try:
        engine = create_engine(database) if isinstance(database, str) else database
    except ArgumentError:
        raise InvalidInputError("database is no SQLAlchemy URL; give e.g. 'sqlite:///shop.db'.") from None
    except ImportError as error:
        name = make_url(database).drivername
        if not name.startswith("postgresql"):
            raise _refusal(name) from None
        raise MissingExtraError("postgres", "PostgreSQL, as postgresql+psycopg://...,") from error
    if not isinstance(engine, Engine):
        raise InvalidInputError(
            f"database is a {type(engine).__name__}; give an SQLDatabase, a SQLAlchemy engine (not an async one), "
            "or a URL such as 'sqlite:///shop.db'."
        )
    dialect, driver = engine.dialect.name, engine.dialect.driver
    # the drivers of the psycopg family, whose sessions can be kept from writing
    if dialect == "postgresql" and engine.dialect.paramstyle in ("pyformat", "format"):
        return engine
    if (dialect, driver) != ("sqlite", "pysqlite"):
        raise _refusal(f"{dialect}+{driver}")
    file = engine.url.database or ""
    if file in ("", ":memory:"):
        if not isinstance(engine.pool, StaticPool):
            raise InvalidInputError(
                "database is an in-memory SQLite database, of which each thread has another; give a file, or an engine "
                "made with poolclass=StaticPool and connect_args={'check_same_thread': False}."
            )
    elif not file.startswith("file:") and not Path(file).is_file():
        raise InvalidInputError(f"There is no SQLite file {file!r}.")
    return engine


def _refusal(driver: str) -> InvalidInputError:
    return InvalidInputError(
        f"database is {driver}; allowed: sqlite (pysqlite) and postgresql (psycopg), the two on which a "
        "statement is kept from writing."
    )


def _choose_tables(tables: Collection[str] | None, usable: Sequence[str]) -> Sequence[str]:
    """Return the tables that may be read: those named, else all; refuse unknown names."""
    if isinstance(tables, str):
        raise InvalidInputError(f"tables is {tables!r}; give a list of names.")
    names = usable if tables is None else list(tables)
    for name in names:
        if name not in usable:
            hint = did_you_mean(str(name), usable)
            raise InvalidInputError(f"tables names {name!r}{hint}; there are: {', '.join(usable) or 'none'}.")
    if not names:
        raise InvalidInputError("The database has no table that may be read.")
    return names
