"""Postings: which term occurs how often in which document, term by term in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.uint16] | NDArray[np.float32]

_MOST = np.iinfo(np.uint16).max
_GROUP = 1 << 17  # postings that small runs are gathered to


class Vocabulary(dict[str, int]):
    """Gives each new term the next number."""

    def __missing__(self, term: str) -> int:
        number = len(self)
        self[term] = number
        return number


@dataclass(frozen=True)
class Postings:
    """Postings sorted by term, within a term in the order in which the documents came.

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

    def renumbered(self, new: NDArray[np.int32]) -> Postings:
        """Give the documents new numbers, and drop those that have none.

        Args:
            new: Shape (documents,); the new number of each old one, below 0 where it goes.
        """
        documents = new[self.documents]
        keep = documents >= 0
        pointers = self.pointers - np.searchsorted(np.flatnonzero(~keep), self.pointers)
        return Postings(pointers, documents[keep], self.counts[keep])


@dataclass(frozen=True)
class Run:
    """Postings of newly added documents, sorted by term; without pointers, so that many small runs stay small.

    Attributes:
        terms: Shape (postings,), int32.
        documents: Shape (postings,), int32.
        counts: Shape (postings,).
    """

    terms: NDArray[np.int32]
    documents: NDArray[np.int32]
    counts: Counts

    def shifted(self, by: int) -> Run:
        """The same with higher document numbers."""
        return Run(self.terms, self.documents + np.int32(by), self.counts)

    def renumbered(self, new: NDArray[np.int32]) -> Run:
        """Give the documents new numbers, and drop those that have none (as :meth:`Postings.renumbered`)."""
        documents = new[self.documents]
        keep = documents >= 0
        return Run(self.terms[keep], documents[keep], self.counts[keep])


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
        np.minimum(np.diff(at, append=total), _MOST).astype(np.uint16),
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


def merge(base: Postings, runs: Sequence[Run], terms: int) -> Postings:
    """Put new postings behind the old ones, term by term."""
    runs = list(_consolidated(runs))
    if not runs and base.terms == terms:
        return base
    old = base.frequencies()
    frequencies = [np.bincount(run.terms, minlength=terms) for run in runs]
    total = np.zeros(terms, np.int64)
    total[: base.terms] = old
    for frequency in frequencies:
        total += frequency
    pointers = np.zeros(terms + 1, np.int64)
    np.cumsum(total, out=pointers[1:])
    size = int(pointers[-1])
    documents = np.empty(size, np.int32)
    counts = np.empty(size, runs[0].counts.dtype if runs else base.counts.dtype)
    free = pointers[:-1].copy()

    untouched = np.ones(size, bool)
    free[: base.terms] += old
    for run, frequency in zip(runs, frequencies, strict=True):
        start = np.cumsum(frequency) - frequency
        target = (free - start)[run.terms]
        target += np.arange(len(target))
        documents[target], counts[target] = run.documents, run.counts
        untouched[target] = False
        free += frequency
    documents[untouched], counts[untouched] = base.documents, base.counts
    return Postings(pointers, documents, counts)


def _consolidated(runs: Sequence[Run]) -> Iterator[Run]:
    """Gather small neighbouring runs, since each one that is placed costs a pass over the vocabulary."""
    group: list[Run] = []
    size = 0
    for run in runs:
        group.append(run)
        size += len(run.terms)
        if size >= _GROUP:
            yield _joined(group)
            group, size = [], 0
    if size:
        yield _joined(group)


def _joined(runs: Sequence[Run]) -> Run:
    if len(runs) == 1:
        return runs[0]
    terms = np.concatenate([run.terms for run in runs])
    order = np.argsort(terms, kind="stable")
    return Run(
        terms[order],
        np.concatenate([run.documents for run in runs])[order],
        np.concatenate([run.counts for run in runs])[order],
    )
