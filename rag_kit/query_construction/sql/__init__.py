"""Text to SQL: a model writes one SELECT statement for a question, which runs under guards."""

from __future__ import annotations

from rag_kit.query_construction.sql.query import TextToSql, asql_query, sql_query
from rag_kit.query_construction.sql.result import SqlResult
from rag_kit.query_construction.sql.uses import SqlRetriever, sql_node, sql_tool

__all__ = ["SqlResult", "SqlRetriever", "TextToSql", "asql_query", "sql_node", "sql_query", "sql_tool"]
