"""Postings, term by term in flat arrays: which term occurs how often in which document; and what that adds to scores.

The two BM25 formulas are evaluated once per posting of the terms that are searched for. ``lucene``: Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the idf that Lucene uses, ln(1 + (N - df
+ .5) / (df + .5)), never negative. ``okapi``: as rank_bm25's ``BM25Okapi``, with its epsilon floor for frequent terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.uint16] | NDArray[np.float32]

_MAX_COUNT = np.iinfo(np.uint16).max
Variant = Literal["lucene", "okapi"]
VARIANTS = ("lucene", "okapi")
EPSILON = 0.25
Floats = NDArray[np.floating[Any]]


class Vocabulary(dict[str, int]):
    """Gives each new term the next number."""

    def __missing__(self, term: str) -> int:
        number = len(self)
        self[term] = number
        return number


@dataclass(frozen=True)
class Postings:
    """Postings sorted by term, within a term by document."""

    pointers: NDArray[np.int64]  # shape (terms + 1,); term t has the postings pointers[t]:pointers[t + 1]
    documents: NDArray[np.int32]  # shape (postings,); number of the document
    counts: Counts  # shape (postings,); how often the term is in it, at most 65,535; or its weight

    @classmethod
    def empty(cls) -> Postings:
        """No terms, no documents."""
        return cls(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint16))

    @property
    def terms(self) -> int:
        """Number of terms."""
        return len(self.pointers) - 1

    def frequencies(self) -> NDArray[np.int64]:
        """In how many documents each term occurs, shape (terms,)."""
        return np.diff(self.pointers)


class PostingRun(NamedTuple):
    """Postings of newly added documents, sorted by term, each array of shape (postings,).

    Without pointers, so that many small runs stay small.
    """

    terms: NDArray[np.int32]
    documents: NDArray[np.int32]
    counts: Counts


def count_terms(token_lists: Sequence[Sequence[str]], vocabulary: Vocabulary, first: int) -> PostingRun:
    """Count the terms of new documents, the first of which has a number; new terms enter the vocabulary."""
    size = len(token_lists)
    lengths = np.fromiter(map(len, token_lists), np.int64, size)
    total = int(lengths.sum())
    keys = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(token_lists)), np.int64, total)
    keys *= size
    keys += np.repeat(np.arange(size), lengths)
    # A key holds term and document; half the width sorts twice as fast.
    ordered = np.sort(keys.astype(np.uint32) if len(vocabulary) * size < 1 << 32 else keys)
    is_new = np.ones(total, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    at = np.flatnonzero(is_new)
    terms, documents = np.divmod(ordered[at], size)
    return PostingRun(
        terms.astype(np.int32),
        documents.astype(np.int32) + np.int32(first),
        np.minimum(np.diff(at, append=total), _MAX_COUNT).astype(np.uint16),
    )


def weighted_terms(vectors: Sequence[Mapping[str, float]], vocabulary: Vocabulary, first: int) -> PostingRun:
    """The weights of terms in new documents; arguments as for :func:`count_terms`."""
    lengths = [len(vector) for vector in vectors]
    total = sum(lengths)
    terms = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(vectors)), np.int32, total)
    weights = np.fromiter(chain.from_iterable(v.values() for v in vectors), np.float32, total)
    documents = np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths)
    order = np.argsort(terms, kind="stable")
    return PostingRun(terms[order], documents[order], weights[order])


def merge(
    base: Postings, added: Sequence[PostingRun], terms: int, new_numbers: NDArray[np.int32] | None = None
) -> Postings:
    """Put the postings of added documents behind the old ones, term by term.

    `terms` is how many there are now; `new_numbers` are the documents' new numbers, below 0 for dropped ones.
    """
    if not added and new_numbers is None and base.terms == terms:
        return base
    old_documents, old_counts, pointers = base.documents, base.counts, base.pointers
    run = _join([PostingRun(old_documents[:0], old_documents[:0], old_counts[:0]), *added])
    if new_numbers is not None:
        old_documents, documents = new_numbers[old_documents], new_numbers[run.documents]
        stays, new = old_documents >= 0, documents >= 0
        pointers = pointers - np.searchsorted(np.flatnonzero(~stays), pointers)
        old_documents, old_counts = old_documents[stays], old_counts[stays]
        run = PostingRun(run.terms[new], documents[new], run.counts[new])
    ends = np.append(pointers[1:], np.repeat(pointers[-1:], terms - base.terms))
    places = ends[run.terms]
    pointers = np.zeros(terms + 1, np.int64)
    pointers[1:] = ends + np.cumsum(np.bincount(run.terms, minlength=terms))
    if not len(old_counts):
        return Postings(pointers, run.documents, run.counts)
    counts: Any = np.insert(old_counts, places, run.counts)
    return Postings(pointers, np.insert(old_documents, places, run.documents), counts)


def _join(runs: Sequence[PostingRun]) -> PostingRun:
    """One run of several: a stable sort of runs that are sorted is a merge."""
    terms, documents, counts = (np.concatenate(arrays) for arrays in zip(*runs, strict=True))
    order = np.argsort(terms, kind="stable")
    return PostingRun(terms[order], documents[order], counts[order])


class Formula(NamedTuple):
    """The parameters of BM25; see ``BM25Index``."""

    k1: float
    b: float
    variant: Variant


class Weights(NamedTuple):
    """The scores that postings add to their documents."""

    kind: np.dtype[Any]  # type of the scores
    highest: NDArray[np.float64]  # what each term adds at most, and last one in no document: (terms + 1,)
    of: Callable[[int], Floats]  # those of a term's postings, in their order, by the number of the term


def bm25_weights(postings: Postings, lengths: NDArray[np.int64], formula: Formula) -> Weights:
    """Weigh each posting by BM25, for documents of some lengths: float32 for ``lucene``, float64 for ``okapi``."""
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
        """Give the weight that each posting of a term adds to a score."""
        part = slice(postings.pointers[term], postings.pointers[term + 1])
        count = postings.counts[part].astype(np.float64)
        below = saturation[postings.documents[part]]
        below += count
        count /= below
        count *= idf[term]
        return count.astype(kind, copy=False)

    # a document nears the idf as the term fills it
    return Weights(kind, np.maximum(idf, 0), of)


def inverse_frequencies(holders: NDArray[np.int64], documents: int, variant: Variant) -> NDArray[np.float64]:
    """The idf of each term, shape (terms,), by the number of documents that hold it, of so many in all.

    Terms that occur in none do not count.
    """
    df = holders.astype(np.float64)
    if variant == "lucene":
        idf: NDArray[np.float64] = np.log1p((documents - df + 0.5) / (df + 0.5))
        return idf
    idf = np.log(documents - df + 0.5) - np.log(df + 0.5)
    present = idf[holders > 0]
    if len(present):
        # fsum does not depend on the order, so an index that grew has the mean of one built at once.
        idf[idf < 0] = EPSILON * math.fsum(present) / len(present)
    return idf
