"""Text to SQL: a model writes one SELECT statement for a question, on SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.bridge import blocking, run_in_thread
from rag_kit.query_construction.sql.database import open_database
from rag_kit.query_construction.statements.asking import TextToStatement
from rag_kit.query_construction.statements.result import QueryResult
from rag_kit.query_construction.statements.uses import StatementRetriever


class TextToSql(TextToStatement):
    """Answer questions from a database: a model writes one SELECT statement, which runs under guards.

    SQLite: a connection of its own, opened read-only, whose authorizer permits these tables and a list of functions.
    PostgreSQL: the statement is parsed, checked and written anew, and runs in a read-only transaction. Both bound time
    and size.

    Args:
        llm: A language model.
        database: An ``SQLDatabase`` of langchain-community, a SQLAlchemy engine or URL; SQLite or PostgreSQL.
        tables: The tables and views that may be read; ``None``: those of the ``SQLDatabase``, else all.
        **settings: ``sample_rows``, ``max_rows``, ``timeout``, ``answer``...: see ``TextToStatement``.

    Raises:
        RagKitError: As ``TextToStatement``.
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
