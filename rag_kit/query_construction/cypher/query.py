"""Text to Cypher: a model writes one statement for a question, which reads a graph database."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.bridge import blocking, run_in_thread
from rag_kit.query_construction.cypher.database import GraphDatabase
from rag_kit.query_construction.statements.asking import TextToStatement
from rag_kit.query_construction.statements.result import QueryResult
from rag_kit.query_construction.statements.uses import StatementRetriever


class TextToCypher(TextToStatement):
    """Answer questions from a graph database: a model writes one Cypher statement, which runs under guards.

    The statement is checked against a list of clauses and functions, written anew, and runs on the file opened
    read-only, in a process of its own whose rights, time and memory the operating system bounds (Linux, macOS).

    Args:
        llm: A language model.
        database: File of a Ladybug database, such as one that ``graph_database`` made.
        **settings: ``sample_rows``, ``max_rows``, ``timeout``, ``answer``...: see ``TextToStatement``.

    Raises:
        RagKitError: As ``TextToStatement``.
        MissingExtraError: Ladybug is not installed (extra ``graph``).
    """

    kind = "cypher"
    task = "Text to Cypher"
    prompt = "graph_query"

    def _open(self, database: Any, sample_rows: int, seconds: float) -> tuple[Any, str]:
        graph = GraphDatabase(database)
        return graph, graph.describe(sample_rows, seconds)


class CypherRetriever(StatementRetriever):
    """The rows of a graph database that answer a question, as documents: see ``StatementRetriever``."""

    writer = TextToCypher


async def agraph_query(
    question: str,
    database: str | os.PathLike[str],
    llm: Runnable[Any, Any],
    *,
    config: RunnableConfig | None = None,
    **settings: Any,
) -> QueryResult:
    """Answer one question from a graph database; ``TextToCypher`` reads the schema once for many.

    The arguments are those of ``sql_query``, with the file of a Ladybug database, such as ``graph_database`` makes.
    """
    query = await run_in_thread(partial(TextToCypher, llm, database, **settings))
    return await query.ainvoke(question, config)


graph_query = blocking(agraph_query, "graph_query")
