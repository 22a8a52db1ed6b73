"""From questions to structured queries: metadata filters, by model or by rule, SQL and Cypher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_names

if TYPE_CHECKING:
    from rag_kit.query_construction.cypher.query import agraph_query as agraph_query
    from rag_kit.query_construction.cypher.query import graph_query as graph_query
    from rag_kit.query_construction.fields import MetadataField as MetadataField
    from rag_kit.query_construction.self_query import SelfQueryRetriever as SelfQueryRetriever
    from rag_kit.query_construction.sql.query import asql_query as asql_query
    from rag_kit.query_construction.sql.query import sql_query as sql_query

__all__, __getattr__, __dir__ = lazy_names(__name__)
