"""The two BM25 formulas, evaluated once per posting.

``lucene``: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the
idf that Lucene uses, ln(1 + (N - df + .5) / (df + .5)), which is never negative. ``okapi``: what rank_bm25's
``BM25Okapi`` computes, its epsilon floor for frequent terms included.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_kit.indexing.bm25.postings import Postings

Variant = Literal["lucene", "okapi"]
VARIANTS = ("lucene", "okapi")
EPSILON = 0.25
_BLOCK = 1 << 19  # postings weighted at a time: bounds the float64 temporaries


class Formula(NamedTuple):
    """The parameters of the scores.

    Attributes:
        k1: How slowly repeats of a term stop counting.
        b: How much longer documents are held back, 0 to 1.
        variant: Which formula.
    """

    k1: float
    b: float
    variant: Variant


def score_type(variant: Variant) -> type[np.floating[Any]]:
    """Type of the scores: okapi in double precision, for parity with its reference within 1e-9."""
    return np.float64 if variant == "okapi" else np.float32


def inverse_frequencies(
    frequency: NDArray[np.int64], documents: int, variant: Variant
) -> NDArray[np.float64]:
    """The idf of each term.

    Args:
        frequency: Shape (terms,); in how many documents each occurs. Terms that occur in none do not count.
        documents: Number of documents.
        variant: Which formula.

    Returns:
        Shape (terms,).
    """
    df = frequency.astype(np.float64)
    if variant == "lucene":
        idf: NDArray[np.float64] = np.log1p((documents - df + 0.5) / (df + 0.5))
        return idf
    idf = np.log(documents - df + 0.5) - np.log(df + 0.5)
    present = idf[frequency > 0]
    if len(present):
        # fsum does not depend on the order, so an index that grew has the mean of one built at once.
        idf[idf < 0] = EPSILON * math.fsum(present) / len(present)
    return idf


def weights(postings: Postings, lengths: NDArray[np.int64], formula: Formula) -> NDArray[np.floating[Any]]:
    """The score that each posting adds to its document.

    Args:
        postings: The postings.
        lengths: Shape (documents,); tokens of each document.
        formula: How to score.

    Returns:
        Shape (postings,), float32 for ``lucene``, float64 for ``okapi``.
    """
    k1, b, variant = formula
    total = int(lengths.sum())
    result = np.empty(len(postings.documents), score_type(variant))
    if not total:
        return result
    saturation = k1 * (1 - b + b * lengths / (total / len(lengths)))
    frequency = postings.frequencies()
    idf = inverse_frequencies(frequency, len(lengths), variant)
    if variant == "okapi":
        idf *= k1 + 1
    pointers = postings.pointers
    first = 0
    while first < postings.terms:
        last = int(np.searchsorted(pointers, pointers[first] + _BLOCK, side="right")) - 1
        last = max(first + 1, min(last, postings.terms))
        a, z = int(pointers[first]), int(pointers[last])
        count = postings.counts[a:z].astype(np.float64)
        below = saturation[postings.documents[a:z]]
        below += count
        count /= below
        count *= np.repeat(idf[first:last], frequency[first:last])
        result[a:z] = count
        first = last
    return result
