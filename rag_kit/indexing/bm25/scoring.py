"""The two BM25 formulas, evaluated once per posting of the terms that are searched for.

``lucene``: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the
idf that Lucene uses, ln(1 + (N - df + .5) / (df + .5)), which is never negative. ``okapi``: what rank_bm25's
``BM25Okapi`` computes, its epsilon floor for frequent terms included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_kit.indexing.bm25.postings import Postings

Variant = Literal["lucene", "okapi"]
VARIANTS = ("lucene", "okapi")
EPSILON = 0.25
Floats = NDArray[np.floating[Any]]


class Formula(NamedTuple):
    """The parameters of the scores.

    Attributes:
        k1: How slowly repeats of a term stop counting.
        b: How much long documents are penalised, 0 to 1.
        variant: Which formula.
    """

    k1: float
    b: float
    variant: Variant


class Weights(NamedTuple):
    """The scores that postings add to their documents.

    Attributes:
        kind: Type of the scores.
        highest: Shape (terms + 1,); what each term adds to no score more than. The last one is that of a term in no
            document.
        of: Those of a term's postings, in their order, by the number of the term.
    """

    kind: np.dtype[Any]
    highest: NDArray[np.float64]
    of: Callable[[int], Floats]


def bm25_weights(postings: Postings, lengths: NDArray[np.int64], formula: Formula) -> Weights:
    """What each posting adds by BM25, computed term by term: float32 for ``lucene``, float64 for ``okapi``.

    Args:
        postings: The postings.
        lengths: Shape (documents,); number of terms of each document.
        formula: The parameters.
    """
    k1, b, variant = formula
    mean = lengths.sum() / len(lengths) if lengths.any() else 1.0
    saturation = k1 * (1 - b + b * lengths / mean)
    # an unknown term counts as rarest
    idf = inverse_frequencies(np.append(postings.frequencies(), 0), len(lengths), variant)
    if variant == "okapi":
        idf *= k1 + 1
    # okapi in double precision, for parity with its reference within 1e-9
    kind = np.dtype(np.float64 if variant == "okapi" else np.float32)

    def of(term: int) -> Floats:
        part = slice(postings.pointers[term], postings.pointers[term + 1])
        count = postings.counts[part].astype(np.float64)
        below = saturation[postings.documents[part]]
        below += count
        count /= below
        count *= idf[term]
        return count.astype(kind, copy=False)

    # a document nears the idf as the term fills it
    return Weights(kind, np.maximum(idf, 0), of)


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
