"""Text to Cypher: a model writes one statement for a question, which reads a graph database under guards."""

from __future__ import annotations

from rag_kit.query_construction.cypher.query import CypherRetriever, TextToCypher, agraph_query, graph_query
from rag_kit.query_construction.cypher.triples import graph_database

__all__ = ["CypherRetriever", "TextToCypher", "agraph_query", "graph_database", "graph_query"]
