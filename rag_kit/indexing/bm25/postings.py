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
EPSILON = 0.25  # share of the mean idf that a negative one becomes
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
        """Return the number of documents with each term, shape (terms,)."""
        return np.diff(self.pointers)


class PostingRun(NamedTuple):
    """Postings of newly added documents, sorted by term, each array of shape (postings,); small, without pointers."""

    terms: NDArray[np.int32]
    documents: NDArray[np.int32]
    counts: Counts


def count_terms(token_lists: Sequence[Sequence[str]], vocabulary: Vocabulary, first: int) -> PostingRun:
    """Count the terms of new documents, numbered from ``first``; return postings by term. New terms get numbers."""
    size = len(token_lists)
    lengths = np.fromiter(map(len, token_lists), np.int64, size)
    total = int(lengths.sum())
    # a key for each occurrence, term * size + document, so that sorting brings the occurrences of a posting together
    keys = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(token_lists)), np.int64, total)
    keys *= size
    keys += np.repeat(np.arange(size), lengths)
    if len(vocabulary) * size < 1 << 32:  # the keys fit 32 bits
        keys = keys.astype(np.uint32)  # half the width sorts twice as fast
    keys.sort()
    # where runs of equal keys start; the first key starts one, for the number that is put before it differs from it
    starts = np.flatnonzero(np.diff(keys, prepend=keys[:1] + 1))
    terms, documents = np.divmod(keys[starts], size)
    counts = np.minimum(np.diff(starts, append=total), _MAX_COUNT)
    documents = documents.astype(np.int32) + np.int32(first)
    return PostingRun(terms.astype(np.int32), documents, counts.astype(np.uint16))


def weighted_terms(vectors: Sequence[Mapping[str, float]], vocabulary: Vocabulary, first: int) -> PostingRun:
    """Return the postings of new documents, given as weights by term and numbered from ``first``, sorted by term."""
    lengths = [len(vector) for vector in vectors]
    total = sum(lengths)
    terms = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(vectors)), np.int32, total)
    weights = np.fromiter(chain.from_iterable(vector.values() for vector in vectors), np.float32, total)
    documents = np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths)
    return _sort_by_term(terms, documents, weights)


def merge(
    old: Postings, added: Sequence[PostingRun], term_count: int, new_numbers: NDArray[np.int32] | None = None
) -> Postings:
    """Put the postings of added documents behind the old ones, term by term.

    ``term_count`` counts all terms now. ``new_numbers`` renumbers documents: below 0 are deleted ones.
    """
    if not added and new_numbers is None and old.terms == term_count:
        return old
    empty_run = PostingRun(old.documents[:0], old.documents[:0], old.counts[:0])
    runs = [empty_run, *added]  # `np.concatenate` needs one
    new = _sort_by_term(*(np.concatenate(arrays) for arrays in zip(*runs, strict=True)))
    if new_numbers is not None:
        documents = new_numbers[new.documents]
        is_kept = documents >= 0
        new = PostingRun(new.terms[is_kept], documents[is_kept], new.counts[is_kept])
        documents = new_numbers[old.documents]
        is_kept = documents >= 0
        # for each term, how many postings are dropped before its first one
        dropped_before = np.searchsorted(np.flatnonzero(~is_kept), old.pointers)
        old = Postings(old.pointers - dropped_before, documents[is_kept], old.counts[is_kept])
    # new postings of a term are inserted where its old ones end; those of a new term at the end of all old ones
    ends = np.append(old.pointers[1:], np.repeat(old.pointers[-1:], term_count - old.terms))
    pointers = np.zeros(term_count + 1, np.int64)
    pointers[1:] = ends + np.cumsum(np.bincount(new.terms, minlength=term_count))
    if not len(old.counts):  # the new counts may be of another type, which `np.insert` would not keep
        return Postings(pointers, new.documents, new.counts)
    insert_at = ends[new.terms]
    counts: Any = np.insert(old.counts, insert_at, new.counts)
    return Postings(pointers, np.insert(old.documents, insert_at, new.documents), counts)


def _sort_by_term(terms: NDArray[np.int32], documents: NDArray[np.int32], counts: Counts) -> PostingRun:
    """Sort postings by term; those of a term stay in their order, which is by document."""
    order = np.argsort(terms, kind="stable")
    return PostingRun(terms[order], documents[order], counts[order])


class Formula(NamedTuple):
    """The parameters of BM25; see ``BM25Index``."""

    k1: float
    b: float
    variant: Variant


class Weights(NamedTuple):
    """The scores that postings add to their documents."""

    dtype: np.dtype[Any]  # of the scores
    highest: NDArray[np.float64]  # most that each term adds, at the end a term in no document; (terms + 1,)
    of_term: Callable[[int], Floats]  # by a term's number the scores of its postings, in their order


def bm25_weights(postings: Postings, lengths: NDArray[np.int64], formula: Formula) -> Weights:
    """Weigh each posting by BM25; ``lengths`` are the documents' numbers of terms, shape (documents,)."""
    k1, b, variant = formula
    mean = lengths.sum() / len(lengths) if lengths.any() else 1.0
    saturation = k1 * (1 - b + b * lengths / mean)
    # with a last element for all unknown terms, which have the frequency 0 and so count as rarest
    idf = inverse_frequencies(np.append(postings.frequencies(), 0), len(lengths), variant)
    if variant == "okapi":
        idf *= k1 + 1
    # okapi in double precision, for parity with its reference within 1e-9
    dtype = np.dtype(np.float64 if variant == "okapi" else np.float32)

    def weights_of_term(term: int) -> Floats:
        of_term = slice(postings.pointers[term], postings.pointers[term + 1])
        counts = postings.counts[of_term].astype(np.float64)
        weights: Floats = counts / (saturation[postings.documents[of_term]] + counts) * idf[term]
        return weights.astype(dtype, copy=False)

    # counts / (saturation + counts) stays below 1, so no weight exceeds the idf
    return Weights(dtype, np.maximum(idf, 0), weights_of_term)


def inverse_frequencies(df: NDArray[np.int64], total: int, variant: Variant) -> NDArray[np.float64]:
    """Return the idf of each term, shape (terms,), from its document frequency and the total of documents."""
    if variant == "lucene":
        idf: NDArray[np.float64] = np.log1p((total - df + 0.5) / (df + 0.5))
        return idf
    idf = np.log(total - df + 0.5) - np.log(df + 0.5)
    present = idf[df > 0]
    if len(present):
        # as rank_bm25 does; fsum gives the same sum in whatever order the index grew
        idf[idf < 0] = EPSILON * math.fsum(present) / len(present)
    return idf
