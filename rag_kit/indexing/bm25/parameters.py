"""Checks of what a caller hands to an index, each with a message that says what was given and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.scoring import VARIANTS, Formula

if TYPE_CHECKING:
    from langchain_core.documents import Document

DEFAULT_K1 = 0.9
DEFAULT_B = 0.5
_MOST = 1e30  # a weight times a score stays a finite float32


def formula_of(k1: Any, b: Any, variant: Any) -> Formula:
    """The parameters of BM25, each in its range."""
    if not _is_number(k1) or not 0 <= k1 < math.inf:
        raise InvalidInputError(
            f"k1={k1!r} is not allowed; give a number of 0 or more ({DEFAULT_K1} is the default)."
        )
    if not _is_number(b) or not 0 <= b <= 1:
        raise InvalidInputError(
            f"b={b!r} is not allowed; give a number from 0 to 1 ({DEFAULT_B} is the default)."
        )
    if variant not in VARIANTS:
        raise InvalidInputError(f"variant={variant!r} is not known; use one of {', '.join(VARIANTS)}.")
    return Formula(float(k1), float(b), variant)


def check_analyzer(analyzer: Any) -> Callable[[str], list[str]]:
    """An analyzer, which can be called."""
    if not callable(analyzer):
        raise InvalidInputError(
            f"analyzer is {_kind(analyzer)}; give a function from a text to the list of its terms, or None for "
            "the default analyzer."
        )
    function: Callable[[str], list[str]] = analyzer
    return function


def check_terms(terms: Any) -> list[str]:
    """What an analyzer gave for one text: not one string, which would count as a term per character."""
    if not isinstance(terms, (list, tuple)):
        raise InvalidInputError(
            f"The analyzer returned {_kind(terms)}; it must return a list of terms (str)."
        )
    return terms  # type: ignore[return-value]


def documents_of(documents: Any) -> list[Document]:
    """The documents to write, in a collection."""
    from langchain_core.documents import Document

    return _list_of("documents", documents, Document, "LangChain Documents (from_texts takes plain texts)")


def documents_of_texts(texts: Any, metadatas: Any) -> list[Document]:
    """Texts and their metadata, one each, as documents."""
    from langchain_core.documents import Document

    texts = _list_of("texts", texts, str, "strings (from_documents takes Documents)")
    if metadatas is None:
        metadatas = [None] * len(texts)
    given = _list_of("metadatas", metadatas, (Mapping, type(None)), "dicts, one a text")
    if len(given) != len(texts):
        raise InvalidInputError(f"{len(texts)} texts but {len(given)} metadatas; give one each.")
    return [Document(page_content=t, metadata=dict(m or {})) for t, m in zip(texts, given, strict=True)]


def check_id_list(ids: Any, documents: int | None = None) -> list[str]:
    """Some ids, or one for each of so many documents."""
    found = _list_of("ids", ids, str, "ids (str)")
    if documents is not None and len(found) != documents:
        raise InvalidInputError(
            f"{documents} documents need as many ids, not {len(found)}; give one each, or leave ids out."
        )
    return found


def _list_of(name: str, given: Any, kind: type | tuple[type, ...], what: str) -> list[Any]:
    """The elements of a collection, each of a type; one string or mapping is no collection."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidInputError(f"{name} is {_kind(given)}; give a list of {what}.")
    found = list(given)
    for number, one in enumerate(found):
        if not isinstance(one, kind):
            raise InvalidInputError(f"{name}[{number}] is {_kind(one)}; give a list of {what}.")
    return found


def check_query(query: Any) -> str:
    """A query, which is a string."""
    if not isinstance(query, str):
        raise InvalidInputError(f"A query must be a str, not {_kind(query)}.")
    return query


def check_k(k: Any) -> int:
    """A number of results: a whole number of 1 or more."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInputError(f"k={k!r} is not allowed; give a whole number of 1 or more.")
    return int(k)


def check_weights(terms: Any) -> dict[str, float]:
    """The weighted terms of a query, finite numbers of 0 or more, without those of weight 0."""
    if not isinstance(terms, Mapping):
        raise InvalidInputError(f"terms is {_kind(terms)}; give a dict from index term to weight.")
    for term, weight in terms.items():
        if not isinstance(term, str) or not _is_number(weight) or not 0 <= weight <= _MOST:
            raise InvalidInputError(
                f"The weight of {term!r} is {weight!r}; give strings with finite numbers from 0 to {_MOST:g}."
            )
    return {term: float(weight) for term, weight in terms.items() if weight > 0}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    short = repr(value[:40]) if isinstance(value, (str, bytes)) else ""
    return f"{type(value).__name__} {short}".rstrip()
