"""What a stored index must fulfil before it is searched: types, sizes, pointers, document numbers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.view import Columns


def columns_of(rows: Sequence[Any], documents: Any) -> Columns:
    """The documents of a file.

    Args:
        rows: One ``[id, document id, text, metadata, length]`` a document.
        documents: How many there should be.

    Raises:
        ValueError: Something is not as it must be.
    """
    if type(documents) is not int or len(rows) != documents:
        raise ValueError(f"{len(rows)} documents where {documents!r} are announced")
    for number, row in enumerate(rows):
        fits = (
            isinstance(row, list)
            and len(row) == 5
            and isinstance(row[0], str)
            and row[0]
            and (row[1] is None or isinstance(row[1], str))
            and isinstance(row[2], str)
            and isinstance(row[3], dict)
            and type(row[4]) is int
            and 0 <= row[4] < 1 << 53
        )
        if not fits:
            raise ValueError(f"document {number} is not [id, document id, text, metadata, length]")
    ids, document_ids, texts, metadata, lengths = ([row[place] for row in rows] for place in range(5))
    columns = Columns(ids, document_ids, texts, metadata, array("q", lengths))
    if len(set(columns.ids)) != len(columns.ids):
        raise ValueError("an id comes twice")
    return columns


def terms_of(vocabulary: Any, terms: int) -> list[str]:
    """The terms of a file.

    Raises:
        ValueError: They are not that many different strings.
    """
    if not isinstance(vocabulary, list) or not all(isinstance(term, str) for term in vocabulary):
        raise ValueError("the vocabulary is not a list of strings")
    if len(vocabulary) != terms or len(set(vocabulary)) != terms:
        raise ValueError(f"{len(set(vocabulary))} different terms where {terms} are announced")
    return vocabulary


def check_postings(postings: Postings, documents: int) -> None:
    """Check that pointers rise from 0 to the end and that each term names each document at most once.

    Raises:
        ValueError: They do not.
    """
    pointers, size = postings.pointers, len(postings.documents)
    if not len(pointers) or pointers[0] != 0 or pointers[-1] != size or (np.diff(pointers) < 0).any():
        raise ValueError("the pointers do not rise from 0 to the number of postings")
    if len(postings.counts) != size:
        raise ValueError("array lengths differ")
    if not size:
        return
    if postings.documents.min() < 0 or postings.documents.max() >= documents:
        raise ValueError(f"a posting names a document that is not there ({documents} are)")
    if not np.isfinite(postings.counts).all() or postings.counts.min() <= 0:
        raise ValueError("a posting has no weight above 0")
    rising = np.diff(postings.documents) > 0
    starts = pointers[1:-1]
    rising[starts[(starts > 0) & (starts < size)] - 1] = True
    if not rising.all():  # after updates in place they need not rise, but must differ
        keys = np.repeat(np.arange(postings.terms), postings.frequencies()) * documents + postings.documents
        if len(np.unique(keys)) != size:
            raise ValueError("a term names a document twice")
