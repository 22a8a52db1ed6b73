"""Postings: which term occurs how often in which document, term by term in flat arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.uint16] | NDArray[np.float32]

_MAX_COUNT = np.iinfo(np.uint16).max


class Vocabulary(dict[str, int]):
    """Gives each new term the next number."""

    def __missing__(self, term: str) -> int:
        number = len(self)
        self[term] = number
        return number


@dataclass(frozen=True)
class Postings:
    """Postings sorted by term, within a term by document.

    Attributes:
        pointers: Shape (terms + 1,), int64; term t has the postings ``pointers[t]:pointers[t + 1]``.
        documents: Shape (postings,), int32; number of the document.
        counts: Shape (postings,); how often the term occurs in it, at most 65,535; or the weight that an encoder gave.
    """

    pointers: NDArray[np.int64]
    documents: NDArray[np.int32]
    counts: Counts

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


class Run(NamedTuple):
    """Postings of newly added documents, sorted by term; without pointers, so that many small runs stay small.

    Attributes:
        terms: Shape (postings,), int32.
        documents: Shape (postings,), int32.
        counts: Shape (postings,).
    """

    terms: NDArray[np.int32]
    documents: NDArray[np.int32]
    counts: Counts


def count_terms(token_lists: Sequence[Sequence[str]], vocabulary: Vocabulary, first: int) -> Run:
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
    return Run(
        terms.astype(np.int32),
        documents.astype(np.int32) + np.int32(first),
        np.minimum(np.diff(at, append=total), _MAX_COUNT).astype(np.uint16),
    )


def weighted_terms(vectors: Sequence[Mapping[str, float]], vocabulary: Vocabulary, first: int) -> Run:
    """The weights of terms in new documents; arguments as for :func:`count_terms`."""
    lengths = [len(vector) for vector in vectors]
    total = sum(lengths)
    terms = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(vectors)), np.int32, total)
    weights = np.fromiter(chain.from_iterable(v.values() for v in vectors), np.float32, total)
    documents = np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths)
    order = np.argsort(terms, kind="stable")
    return Run(terms[order], documents[order], weights[order])


def merge(
    base: Postings, added: Sequence[Run], terms: int, new_numbers: NDArray[np.int32] | None = None
) -> Postings:
    """Put the postings of added documents behind the old ones, term by term.

    Args:
        base: The old postings.
        added: Those of added documents.
        terms: Number of terms.
        new_numbers: Shape (documents,); the new number of each document, below 0 where it is dropped.
    """
    if not added and new_numbers is None and base.terms == terms:
        return base
    old_documents, old_counts, pointers = base.documents, base.counts, base.pointers
    run = _join([Run(old_documents[:0], old_documents[:0], old_counts[:0]), *added])
    if new_numbers is not None:
        old_documents, documents = new_numbers[old_documents], new_numbers[run.documents]
        stays, new = old_documents >= 0, documents >= 0
        pointers = pointers - np.searchsorted(np.flatnonzero(~stays), pointers)
        old_documents, old_counts = old_documents[stays], old_counts[stays]
        run = Run(run.terms[new], documents[new], run.counts[new])
    ends = np.append(pointers[1:], np.repeat(pointers[-1:], terms - base.terms))
    places = ends[run.terms]
    pointers = np.zeros(terms + 1, np.int64)
    pointers[1:] = ends + np.cumsum(np.bincount(run.terms, minlength=terms))
    if not len(old_counts):
        return Postings(pointers, run.documents, run.counts)
    counts: Any = np.insert(old_counts, places, run.counts)
    return Postings(pointers, np.insert(old_documents, places, run.documents), counts)


def _join(runs: Sequence[Run]) -> Run:
    """One run of several: a stable sort of runs that are sorted is a merge."""
    terms, documents, counts = (np.concatenate(arrays) for arrays in zip(*runs, strict=True))
    order = np.argsort(terms, kind="stable")
    return Run(terms[order], documents[order], counts[order])
