"""The keyword legs that a search with weighted terms can be made in: an index in memory, or a stored one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.keyword_view import KeywordView
from rag_kit.retrieval.bm25 import BM25Retriever
from rag_kit.retrieval.indexed import KeywordIndexRetriever

KeywordIndex = BM25Index | DocumentIndex
KeywordRetriever = BM25Retriever | KeywordIndexRetriever


def reader_of(index: KeywordIndex) -> BM25Index | KeywordView:
    """What to read terms and search with weights by; reads the store if the index is a stored one."""
    return index if isinstance(index, BM25Index) else index.keyword_view()


def terms_of(index: KeywordIndex, texts: Sequence[str]) -> list[list[str]]:
    """Each text's terms, as the index makes them."""
    analyzer = reader_of(index).analyzer
    return [analyzer(text) for text in texts]


def keyword_retriever(given: Any) -> KeywordRetriever:
    """A retriever over an index, or the one that was given.

    Raises:
        InvalidInputError: Neither was given.
    """
    if isinstance(given, KeywordRetriever):
        return given
    if isinstance(given, DocumentIndex):
        return KeywordIndexRetriever(index=given, name="bm25")
    return BM25Retriever(index=check_index(given))


def check_index(index: Any) -> Any:
    """Refuse what has no keyword leg.

    Raises:
        InvalidInputError: So it is.
    """
    if not isinstance(index, KeywordIndex):
        raise InvalidInputError(
            f"index is {type(index).__name__}; feedback needs a BM25Index or a DocumentIndex, "
            "or a retriever by keywords over one."
        )
    return index
