"""From questions to metadata filters: schema, construction by model or by rule, checking, search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.query_construction.constructed import ConstructedQuery, Sort
    from rag_kit.query_construction.discovery import adiscover_schema, discover_schema
    from rag_kit.query_construction.fields import MetadataField, Schema
    from rag_kit.query_construction.rules import RuleConstructor
    from rag_kit.query_construction.self_query import SelfQueryRetriever

__all__ = [
    "ConstructedQuery",
    "MetadataField",
    "RuleConstructor",
    "Schema",
    "SelfQueryRetriever",
    "Sort",
    "adiscover_schema",
    "discover_schema",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "ConstructedQuery": ".constructed",
        "MetadataField": ".fields",
        "RuleConstructor": ".rules",
        "Schema": ".fields",
        "SelfQueryRetriever": ".self_query",
        "Sort": ".constructed",
        "adiscover_schema": ".discovery",
        "discover_schema": ".discovery",
    },
)
