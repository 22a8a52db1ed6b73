"""Text to SQL: a model writes one SELECT statement for a question, which runs under guards."""

from __future__ import annotations

from rag_kit.query_construction.sql.query import SqlRetriever, TextToSql, asql_query, sql_query

__all__ = ["SqlRetriever", "TextToSql", "asql_query", "sql_query"]
