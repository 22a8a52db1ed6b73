"""The documents and postings of a BM25 index: writes are appended, then merged into the next readable view."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import PROVENANCE_KEY, Filter, content_hash
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.parameters import check_id_list
from rag_kit.indexing.bm25.postings import Postings, Run, Vocabulary, merge
from rag_kit.indexing.bm25.scoring import Weights
from rag_kit.indexing.bm25.view import Columns, Passes, Query, View, copied, documents_at

if TYPE_CHECKING:
    from langchain_core.documents import Document

_BATCH = 2048  # documents analysed between two turns of the lock


class Store:
    """The state behind an index; its methods are explained at :class:`~rag_kit.indexing.bm25.BM25Index`.

    Documents are appended; deleted and replaced ones stay, marked, until :meth:`current` builds the next
    :class:`View`. One lock guards everything but the analysis of texts and the searches on a view.

    Args:
        score: Gives the scores of the postings, from these and the lengths of the documents.
        count: Makes postings of what was analysed of some texts, the first of which has the given number.

    Attributes:
        view: The state after all finished writes; ``None`` until :meth:`current` builds it.
    """

    def __init__(
        self,
        score: Callable[[Postings, NDArray[np.int64]], Weights],
        count: Callable[[Any, Vocabulary, int], Run],
    ) -> None:
        self._score, self._count = score, count
        self._lock = threading.RLock()
        self._vocabulary = Vocabulary()
        self._base = Postings.empty()
        self._pending: list[Run] = []
        self._columns = Columns()
        self._moved: dict[int, int] = {}  # position of an updated document: the one that it replaced
        self._where: dict[str, int] = {}  # position of the document with an id
        self._dead: set[int] = set()  # positions of deleted and replaced documents
        self.view: View | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle or copy, without the lock and the view, which the copy builds anew."""
        with self._lock:
            kept = {name: value for name, value in vars(self).items() if name not in ("_lock", "view")}
            return {name: copy.copy(value) for name, value in kept.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self.view = None

    def __len__(self) -> int:
        with self._lock:
            return len(self._where)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self._where

    def find(self, ids: Iterable[str]) -> tuple[Columns, list[int]]:
        """The documents, and the positions of those with these ids."""
        with self._lock:
            return self._columns, [self._where[key] for key in ids if key in self._where]

    def positions(self, ids: Iterable[str]) -> list[int]:
        """The positions of the documents with these ids, -1 for what is not there."""
        with self._lock:
            return list(map(self._where.get, ids, repeat(-1)))

    def best_counts(
        self, terms: Query, k: int, passes: Passes | None, most: float
    ) -> list[tuple[dict[str, int], float]]:
        """The best documents for a query: the counts of their terms, and their scores."""
        view = self.current()
        with self._lock:
            view.open_documents()
        positions, scores = view.top(terms, k, passes)
        return list(zip(view.counts(positions, most), scores.tolist(), strict=True))

    def spread(
        self, seeds: Mapping[str, float], k: int, where: Filter | None, damping: float, max_df: int
    ) -> list[tuple[Document, float, list[str]]]:
        """The documents that a walk from some of them comes to most often."""
        with self._lock:
            view = self.current()
            graph = view.term_graph(max_df)
            start = np.zeros(len(view))
            for key, weight in seeds.items():
                if key in self._where:
                    start[self._where[key]] = weight
        allowed = view.passing(where) if where else None
        if allowed is not None:
            start[~allowed] = 0
        if not start.any():
            return []
        mass, terms = graph.spread(start / start.sum(), damping, allowed)
        best = np.lexsort((np.arange(len(mass)), -mass))[:k]
        best = best[mass[best] > 0]
        return [
            (doc, float(mass[place]), graph.through(place, terms))
            for doc, place in zip(documents_at(view.columns, best.tolist()), best.tolist(), strict=True)
        ]

    def snapshot(self) -> tuple[View, list[str]]:
        """The current view and its terms, in the order of their numbers."""
        with self._lock:
            view = self.current()
            return view, list(self._vocabulary)[: view.postings.terms]

    def restore(self, columns: Columns, postings: Postings, vocabulary: Sequence[str]) -> None:
        """Take over documents and postings loaded from a file; the store must be new."""
        with self._lock:
            used = postings.frequencies() > 0  # terms of deleted documents are forgotten here
            kept = (term for term, occurs in zip(vocabulary, used.tolist(), strict=True) if occurs)
            self._vocabulary = Vocabulary((term, number) for number, term in enumerate(kept))
            pointers = np.append(postings.pointers[:-1][used], postings.pointers[-1:])
            self._base = Postings(pointers, postings.documents, postings.counts)
            self._columns = columns
            self._where = {key: position for position, key in enumerate(columns.ids)}
            self.view = None

    def delete(self, ids: Iterable[str]) -> int:
        """Mark documents as gone; returns how many."""
        removed = 0
        with self._lock:
            for key in ids:
                position = self._where.pop(key, None)
                if position is not None:
                    self._dead.add(position)
                    removed += 1
            if removed:
                self.view = None
        return removed

    def write(
        self,
        documents: Sequence[Document],
        ids: Iterable[str] | None,
        analyse: Callable[[slice], Sequence[Sized]],
        *,
        replace: bool,
    ) -> list[str]:
        """Add or replace documents: all or, on an error, none; ``analyse`` is called without the lock."""
        given = None if ids is None else check_id_list(ids, len(documents))
        new = Columns(
            # what is returned has the id that was given for it; without one no id is made up
            document_ids=list(given) if given is not None else [doc.id for doc in documents],
            texts=[doc.page_content for doc in documents],
            metadata=[copied(doc.metadata, without=PROVENANCE_KEY) for doc in documents],
        )
        runs = self._analysed(new, analyse)
        with self._lock:
            return self._commit(new, runs, replace)

    def _analysed(self, new: Columns, analyse: Callable[[slice], Sequence[Sized]]) -> list[Run]:
        """Analyse outside of the lock, so that searches go on; count inside, since the vocabulary is shared."""
        runs: list[Run] = []
        for start in range(0, len(new.texts), _BATCH):
            analysed = analyse(slice(start, start + _BATCH))
            new.lengths.extend(map(len, analysed))
            with self._lock:
                runs.append(self._count(analysed, self._vocabulary, start))
        return runs

    def _commit(self, new: Columns, runs: list[Run], replace: bool) -> list[str]:
        """Append documents and their postings, and mark those that they replace. Holds the lock."""
        keys = self._keys(new, replace)
        old = self._columns
        first = len(old.ids)
        for position, key in enumerate(keys, first):
            before = self._where.get(key)
            if before is not None:
                self._dead.add(before)
                self._moved[position] = self._moved.get(before, before)
            self._where[key] = position
        old.document_ids.extend(new.document_ids)
        old.texts.extend(new.texts)
        old.metadata.extend(new.metadata)
        old.lengths.extend(new.lengths)
        old.ids.extend(keys)
        self._pending.extend(run.shifted(first) for run in runs)
        if keys:
            self.view = None
        return keys

    def _keys(self, new: Columns, replace: bool) -> list[str]:
        keys: list[str] = []
        taken: set[str] = set()
        repeats: dict[str, int] = {}
        for key, text in zip(new.document_ids, new.texts, strict=True):
            if key is None:
                key = hashed = content_hash(text)
                number = repeats.get(hashed, 1)
                while key in taken or (not replace and key in self._where):
                    number += 1
                    key = f"{hashed}#{number}"
                repeats[hashed] = number
            elif not isinstance(key, str) or not key:
                raise InvalidInputError(f"id {key!r} is not allowed; ids are non-empty strings.")
            elif key in taken:
                raise InvalidInputError(f"id {key!r} comes twice; ids must differ.")
            elif not replace and key in self._where:
                raise InvalidInputError(f"id {key!r} is in the index already; use update() to replace it.")
            taken.add(key)
            keys.append(key)
        return keys

    def current(self) -> View:
        """The state after all finished writes."""
        view = self.view
        if view is not None:
            return view
        with self._lock:
            if self.view is None:
                self.view = self._build_view()
            return self.view

    def _build_view(self) -> View:
        """Drop deleted documents, merge the postings of the last writes, and make a view of it. Holds the lock.

        This mostly copies arrays: the scores of a term are computed when it is first searched for.
        """
        base, runs = self._base, self._pending
        size = len(self._columns.ids)
        if self._dead:
            alive = np.ones(size, bool)
            alive[list(self._dead)] = False
            order = np.arange(size)
            order[list(self._moved)] = list(self._moved.values())
            kept = np.flatnonzero(alive)
            kept = kept[np.argsort(order[kept], kind="stable")]
            new_positions = np.full(size, -1, np.int32)
            new_positions[kept] = np.arange(len(kept), dtype=np.int32)
            base = base.renumbered(new_positions)
            runs = [run.renumbered(new_positions) for run in runs]
            self._columns, changed = self._columns.taken(kept)
            self._dead, self._moved = set(), {}
            self._where.update((self._columns.ids[position], position) for position in changed)
        self._base, self._pending = merge(base, runs, len(self._vocabulary)), []
        scores = self._score(self._base, np.array(self._columns.lengths, np.int64))
        return View(self._columns, self._base, scores, self._vocabulary)
