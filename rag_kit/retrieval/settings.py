"""The further arguments of constructors such as ``from_llm``, as typed dictionaries: a type checker sees a slip.

The fields are those of the classes, which say what they mean and refuse what is not allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from os import PathLike
from typing import Any, Literal, TypedDict

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig

from rag_kit.models import JsonCache
from rag_kit.retrieval.fields import Fusion


class RetrieverSettings(TypedDict, total=False):
    """The arguments of every retriever but ``k``."""

    filter: Mapping[str, Any] | None
    id_key: str | None
    name: str | None
    tags: list[str] | None
    metadata: dict[str, Any] | None


class LeafSettings(RetrieverSettings, total=False):
    """The arguments of retrievers that search an index of their own."""

    k: int


class TextSettings(LeafSettings, total=False):
    """The arguments of ``from_texts``, with those of ``from_documents``."""

    ids: Iterable[str] | None
    k1: float
    b: float
    variant: Literal["lucene", "okapi"]
    analyzer: Callable[[str], list[str]] | None
    preprocess_func: Callable[[str], list[str]] | None
    bm25_params: Mapping[str, Any] | None
    encoder: Any
    query_encoder: Any
    min_match: float


class CallSettings(RetrieverSettings, total=False):
    """The arguments of retrievers that ask others, and models."""

    fetch_k: int | None
    on_error: Literal["raise", "skip"]
    timeout: float | None
    max_concurrency: int | None
    max_calls: int | None
    max_tokens: int | None
    deadline: float | None


class FamilySettings(CallSettings, total=False):
    """The arguments of retrievers that write documents with their parts; many are of one of them only."""

    k: int
    pipeline: Literal["hybrid", "bm25", "dense"]
    retriever: Any
    max_fetch_k: int
    parent_size: int | None
    child_size: int
    child_overlap: int
    parent_splitter: Any
    child_splitter: Any
    window: int
    max_sentence: int
    kinds: Any
    weights: Mapping[str, float] | None
    fusion: Fusion
    represent: Any
    llm: Any
    cache: str | PathLike[str] | None


class RewritingSettings(CallSettings, total=False):
    """The arguments of retrievers that rewrite the question; those below the line are of some of them only."""

    language: Literal["auto", "en", "zh"]
    include_original: bool
    fusion: Fusion
    rrf_k: float
    weights: Sequence[float] | None
    cache: JsonCache | str | PathLike[str] | None
    # ---
    n: int
    mode: str
    embeddings: Embeddings | None
    repeat: int
    separator: str
    max_history_chars: int
    templates: Any
    term_weight: float


class RerankSettings(CallSettings, total=False):
    """The arguments of ``RerankRetriever``."""

    k: int
    blend: float | None
    max_query_tokens: int | None
    score_threshold: float | None
    score_gap: Any
    token_budget: int | None
    count_tokens: Callable[[str], int] | None
    lost_in_the_middle: bool


class CompressionSettings(CallSettings, total=False):
    """The arguments of ``CompressionRetriever``."""

    context: int
    separator: str
    if_empty: Literal["original", "empty"]
    merge_threshold: float | None


class RoutingSettings(CallSettings, total=False):
    """The arguments of ``RoutingRetriever``."""

    embeddings: Any
    language: Literal["auto", "en", "zh"]
    most: int | None
    threshold: float | None
    fallback: str | None
    on_none: Literal["empty", "all", "raise"]
    allow: Callable[[RunnableConfig], Any] | None
    fusion: Fusion
    rrf_k: float


class SelfQuerySettings(CallSettings, total=False):
    """The arguments of ``SelfQueryRetriever``."""

    schema_: Any
    documents: Any
    language: Literal["auto", "en", "zh"]
    today: date | None
    enable_limit: bool
    use_original_query: bool
    relax: bool
    structured_query_translator: Any
    vectorstore: Any
    search_kwargs: Mapping[str, Any]
    search_type: str
