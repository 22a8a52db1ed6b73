"""A model writes a statement for a question, a database runs it under guards: what SQL and Cypher share."""

from __future__ import annotations

from rag_kit.query_construction.statements.asking import TextToStatement
from rag_kit.query_construction.statements.result import QueryResult
from rag_kit.query_construction.statements.uses import StatementRetriever, statement_node, statement_tool

__all__ = ["QueryResult", "StatementRetriever", "TextToStatement", "statement_node", "statement_tool"]
