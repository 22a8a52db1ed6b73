"""The arguments that constructors of retrievers hand on, for type checkers: a misspelt one is an error in its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


class AskingSettings(RetrieverSettings, total=False):
    """The arguments of retrievers that ask others, and models; those below a line are of some of them only."""

    fetch_k: int | None
    on_error: Literal["raise", "skip"]
    timeout: float | None
    max_concurrency: int | None
    max_calls: int | None
    max_tokens: int | None
    deadline: float | None
    # --- how lists are fused, and models asked
    fusion: Fusion
    rrf_k: float
    weights: Any
    language: Literal["auto", "en", "zh"]
    cache: JsonCache | str | PathLike[str] | None
    # --- rewriting
    include_original: bool
    n: int
    repeat: int
    separator: str
    max_history_chars: int
    templates: Any
    term_weight: float
    # --- reranking and compression
    blend: float | None
    max_query_tokens: int | None
    score_threshold: float | None
    score_gap: Any
    token_budget: int | None
    count_tokens: Callable[[str], int] | None
    lost_in_the_middle: bool
    context: int
    if_empty: Literal["original", "empty"]
    merge_threshold: float | None
    # --- routing
    most: int | None
    threshold: float | None
    fallback: str | None
    on_none: Literal["empty", "all", "raise"]
    allow: Callable[[RunnableConfig], Any] | None
    # --- self-query
    schema_: Any
    today: date | None
    enable_limit: bool
    use_original_query: bool
    relax: bool
    structured_query_translator: Any
    vectorstore: Any
    search_kwargs: Mapping[str, Any]
    search_type: str


class RewritingSettings(AskingSettings, total=False):
    """The arguments of retrievers that rewrite the question, route it, or read filters in it."""

    mode: str
    documents: Any
    embeddings: Embeddings | None


class FamilySettings(AskingSettings, total=False):
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
    represent: Any
    llm: Any
