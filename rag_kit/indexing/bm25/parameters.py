"""Checks of what a caller makes an index of: documents, ids, the parameters of BM25."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.postings import VARIANTS, Formula
from rag_kit.indexing.bm25.view import is_number

DEFAULT_K1 = 0.9
DEFAULT_B = 0.5


def formula_of(k1: Any, b: Any, variant: Any) -> Formula:
    """Return the parameters of BM25; raise InvalidInputError for one outside its range."""
    for name, value, highest, default in (("k1", k1, math.inf, DEFAULT_K1), ("b", b, 1, DEFAULT_B)):
        if not is_number(value) or not 0 <= value <= highest or math.isinf(value):
            raise InvalidInputError(
                f"{name}={value!r} is not allowed; give a number from 0 to {highest:g} ({default} is the default)."
            )
    if variant not in VARIANTS:
        raise InvalidInputError(f"variant={variant!r} is not known; use one of {', '.join(VARIANTS)}.")
    return Formula(float(k1), float(b), variant)


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


def _list_of(name: str, values: Any, element_type: type | tuple[type, ...], wanted: str) -> list[Any]:
    """Return a collection as a list; raise InvalidInputError for a string or mapping, or elements of another type."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidInputError(f"{name} is {type(values).__name__}; give a list of {wanted}.")
    listed = list(values)
    for value in listed:
        if not isinstance(value, element_type):
            raise InvalidInputError(f"{name} holds {type(value).__name__}; give a list of {wanted}.")
    return listed
