"""Checks of what a caller hands to an index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.postings import VARIANTS, Formula

DEFAULT_K1 = 0.9
DEFAULT_B = 0.5
_MAX_WEIGHT = 1e15  # sums of the products of 10**8 such weights stay finite in float32


def formula_of(k1: Any, b: Any, variant: Any) -> Formula:
    """Return the parameters of BM25; raise InvalidInputError for one outside its range."""
    for name, value, highest, default in (("k1", k1, math.inf, DEFAULT_K1), ("b", b, 1, DEFAULT_B)):
        if not _is_number(value) or not 0 <= value <= highest or math.isinf(value):
            raise InvalidInputError(
                f"{name}={value!r} is not allowed; give a number from 0 to {highest:g} ({default} is the default)."
            )
    if variant not in VARIANTS:
        raise InvalidInputError(f"variant={variant!r} is not known; use one of {', '.join(VARIANTS)}.")
    return Formula(float(k1), float(b), variant)


def check_terms(terms: Any) -> Sequence[str]:
    """Return an analyzer's result; raise InvalidInputError unless it is a list (a string would be single letters)."""
    if not isinstance(terms, (list, tuple)):
        raise InvalidInputError(
            f"The analyzer returned {type(terms).__name__}; it must return a list of terms (str)."
        )
    return terms


def documents_of(documents: Any) -> list[Document]:
    """Return a collection of Documents as a list; raise InvalidInputError for anything else."""
    return _list_of("documents", documents, Document, "LangChain Documents (from_texts takes plain texts)")


def documents_of_texts(texts: Any, metadatas: Any) -> list[Document]:
    """Make a document of each text and the metadata at its position; ``metadatas`` may be None."""
    texts = _list_of("texts", texts, str, "strings (from_documents takes Documents)")
    if metadatas is None:
        metadatas = [None] * len(texts)
    metadatas = _list_of("metadatas", metadatas, (Mapping, type(None)), "dicts, one a text")
    if len(metadatas) != len(texts):
        raise InvalidInputError(f"{len(texts)} texts but {len(metadatas)} metadatas; give one each.")
    pairs = zip(texts, metadatas, strict=True)
    return [Document(page_content=text, metadata=dict(metadata or {})) for text, metadata in pairs]


def check_ids(ids: Any, count: int | None = None) -> list[str]:
    """Return ids as a list; raise InvalidInputError unless they are strings, ``count`` of them if that is given."""
    checked = _list_of("ids", ids, str, "ids (str)")
    if count is not None and len(checked) != count:
        raise InvalidInputError(
            f"{count} documents need as many ids, not {len(checked)}; give one each, or leave ids out."
        )
    return checked


def _list_of(name: str, values: Any, kind: type | tuple[type, ...], wanted: str) -> list[Any]:
    """Return a collection as a list; raise InvalidInputError for a string or mapping, or elements of another type."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidInputError(f"{name} is {type(values).__name__}; give a list of {wanted}.")
    listed = list(values)
    for value in listed:
        if not isinstance(value, kind):
            raise InvalidInputError(f"{name} holds {type(value).__name__}; give a list of {wanted}.")
    return listed


def check_query(query: Any) -> str:
    """Return a query; raise InvalidInputError unless it is a string."""
    if not isinstance(query, str):
        raise InvalidInputError(f"A query must be a str, not {type(query).__name__}.")
    return query


def check_k(k: Any) -> int:
    """Return a number of results as an int; raise InvalidInputError unless it is a whole number of 1 or more."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInputError(f"k={k!r} is not allowed; give a whole number of 1 or more.")
    return int(k)


def check_weights(terms: Any) -> dict[str, float]:
    """Return terms with weights above 0; raise InvalidInputError for anything but a dict of allowed weights.

    Terms are strings or whole numbers, each once: 7 and "7" are the same.

    Example:
        >>> check_weights({"cat": 0.5, 7: 2, "dog": 0})
        {'cat': 0.5, '7': 2.0}
    """
    if not isinstance(terms, Mapping):
        raise InvalidInputError(f"Weights are {type(terms).__name__}; give a dict from term to weight.")
    checked: dict[str, float] = {}
    for term, weight in terms.items():
        if not _is_number(weight) or not 0 <= weight <= _MAX_WEIGHT:
            raise InvalidInputError(
                f"The weight of {term!r} is {weight!r}; give numbers from 0 to {_MAX_WEIGHT:g}."
            )
        if isinstance(term, bool) or not isinstance(term, str | Integral) or str(term) in checked:
            raise InvalidInputError(
                f"The term {term!r} has a weight; give strings or whole numbers, each once."
            )
        if np.float32(weight) > 0:  # a weight too small for float32 could only make hits of score 0
            checked[str(term)] = float(weight)
    return checked


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
