"""From questions to structured queries: metadata filters, by model or by rule, SQL and Cypher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.query_construction.constructed import ConstructedQuery, Sort
    from rag_kit.query_construction.cypher import CypherRetriever, agraph_query, graph_database, graph_query
    from rag_kit.query_construction.discovery import adiscover_schema, discover_schema
    from rag_kit.query_construction.fields import MetadataField, Schema
    from rag_kit.query_construction.rules import RuleConstructor
    from rag_kit.query_construction.self_query import SelfQueryRetriever
    from rag_kit.query_construction.sql import SqlRetriever, asql_query, sql_query

__all__ = [
    "ConstructedQuery",
    "CypherRetriever",
    "MetadataField",
    "RuleConstructor",
    "Schema",
    "SelfQueryRetriever",
    "Sort",
    "SqlRetriever",
    "adiscover_schema",
    "agraph_query",
    "asql_query",
    "discover_schema",
    "graph_database",
    "graph_query",
    "sql_query",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "ConstructedQuery": ".constructed",
        "CypherRetriever": ".cypher",
        "MetadataField": ".fields",
        "RuleConstructor": ".rules",
        "Schema": ".fields",
        "SelfQueryRetriever": ".self_query",
        "Sort": ".constructed",
        "SqlRetriever": ".sql",
        "adiscover_schema": ".discovery",
        "agraph_query": ".cypher",
        "asql_query": ".sql",
        "discover_schema": ".discovery",
        "graph_database": ".cypher",
        "graph_query": ".cypher",
        "sql_query": ".sql",
    },
)
