"""The keyword leg: a BM25 index that follows the store, kept in a file that names its generation; and its view."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter, compile_filter
from rag_kit.errors import IndexFormatError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.bm25.parameters import check_k, check_query, check_weights
from rag_kit.indexing.bm25.view import Hits, Query, term_weights
from rag_kit.indexing.document_index.file_leg import LoadedLeg
from rag_kit.indexing.document_index.rows import documents_of_ids, read_changed_documents, text_hash
from rag_kit.indexing.document_index.state import NO_GENERATION, Connection, IndexReport, IndexState
from rag_kit.indexing.document_index.vectors import TIE
from rag_kit.indexing.searched import passage_filter, searched_text

if TYPE_CHECKING:
    from langchain_core.documents import Document

Mask = NDArray[np.bool_]
_MASKS = 16  # filters that are remembered: each takes a byte a row
_TIES = 20  # further hits to look at, so that equal scores are ordered by id and not by who came first


class KeywordLeg(LoadedLeg[BM25Index]):
    """BM25 over the chunks of an index; see ``Leg``."""

    label = "keyword"
    tables = ("chunks", "removed")
    takes_newer = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._forget()

    def _forget(self) -> None:
        super()._forget()
        # positions in the index by row number, of a generation
        self._placed = NO_GENERATION, np.empty(0, np.int64)
        self._masks: dict[str, tuple[int, Mask]] = {}  # of recent filters, with their generations

    def _prefix(self, state: IndexState) -> str:
        return f"bm25-{state.uid[:8]}-"

    def _read(self, path: Path) -> BM25Index:
        return BM25Index.load(path)

    def _empty(self, state: IndexState) -> BM25Index:
        return BM25Index()

    def _follow(self, loaded: BM25Index, connection: Connection, since: int, state: IndexState) -> BM25Index:
        """The loaded index with what was written and removed after a generation."""
        changed = read_changed_documents(connection, since)
        if len(loaded):
            query = "SELECT id FROM removed WHERE generation > ?"
            loaded.delete([key for (key,) in connection.execute(query, (since,))])
        searched = [searched_text(document.page_content, document.metadata) for document in changed]
        loaded._write(changed, None, replace=True, texts=searched)
        return loaded

    def mask(self, connection: Connection, state: IndexState, where: Filter) -> Mask:
        """Whether the row of each number passes a filter, by number; arbitrary where there is no row."""
        key = state.uid + json.dumps(where, sort_keys=True, default=repr)
        with self._lock:
            since, mask = self._masks.pop(key, (NO_GENERATION, None))
            if mask is None or since > state.generation:  # new, or an older store was put in its place
                mask = self._new_mask(connection, state, where)
            elif since < state.generation:
                passes = compile_filter(where)
                query = "SELECT n, metadata FROM chunks WHERE generation > ?"
                changed = connection.execute(query, (since,)).fetchall()
                missing = max((n for n, _ in changed), default=0) + 1 - len(mask)
                mask = np.append(mask, np.zeros(max(0, missing), bool))
                for n, metadata in changed:
                    mask[n] = passes(json.loads(metadata))
            self._masks[key] = state.generation, mask  # as the last one
            if len(self._masks) > _MASKS:
                del self._masks[next(iter(self._masks))]
            return mask

    def _new_mask(self, connection: Connection, state: IndexState, where: Filter) -> Mask:
        """The mask of a filter by the metadata in memory: by position there, then by row number."""
        view = self.current(connection, state).current()
        if self._placed[0] != state.generation:
            numbers = dict(connection.execute("SELECT id, n FROM chunks").fetchall())
            places = np.full(max(numbers.values(), default=0) + 1, len(view), np.int64)
            places[list(numbers.values())] = [view.place_of.get(key, -1) for key in numbers]
            self._placed = state.generation, places
        return np.append(view.mask(where), False)[self._placed[1]]

    def _save(self, connection: Connection, state: IndexState, path: Path) -> None:
        self.current(connection, state).save(path)
        path.chmod(0o600)

    def verify(self, connection: Connection, state: IndexState, report: IndexReport) -> None:
        """Compare ids and texts of the file with the store's."""
        self.check_saved(connection, state, report)
        with self._lock:
            try:
                self.load(state)
            except IndexFormatError as error:
                report.problems.append(f"keyword: {error}")
                return
            if self._loaded is None:
                return
            view = self.current(connection, state).current()
        indexed = {row.key: text_hash(row.text) for row in view.rows}
        stored = dict(connection.execute("SELECT id, hash FROM chunks").fetchall())
        different = {key for key in indexed.keys() & stored if indexed[key] != stored[key]}
        for keys, what in (
            (stored.keys() - indexed.keys(), "are missing"),
            (indexed.keys() - stored.keys(), "should be gone"),
            (different, "are not what was written"),
        ):
            if keys:
                report.problems.append(f"keyword: {len(keys)} rows {what}, for example {min(keys)}")
        report.checked["keyword rows"] = len(indexed)


class KeywordView:
    """Read-only view of the keyword leg of a ``DocumentIndex``; its methods mean what those of ``BM25Index`` do.

    Take a new view for each search: a view does not look into the store for what was committed after it was made.
    """

    analyzer: Callable[[str], list[str]]  # gives the terms of a text, as the index makes them
    query_terms: Callable[[str], Sequence[str]]  # those that a query is searched by, without question words

    def __init__(self, index: BM25Index, derived: bool) -> None:
        self._index, self._derived = index, derived
        self.analyzer, self.query_terms = index.analyzer, index.query_terms

    def __contains__(self, key: object) -> bool:
        return key in self._index

    def search(
        self,
        query: str | Mapping[str, float],
        k: int = 4,
        filter: Filter | None = None,
        *,
        ids_only: bool = False,
    ) -> Hits:
        """The best documents for a query, or for weighted terms, ties by id; see ``DocumentIndex.search_keyword``."""
        check_k(k)
        where = self._passages(filter)
        weights = term_weights(self._terms(query))
        if isinstance(query, str):
            weights = self._spell(query, weights, where)
        hits = Hits(self._best(weights, k, where, ids_only))
        hits.maximum = self.maximum(weights) if hits else 0.0
        return hits

    def search_weighted(self, terms: Mapping[str, float], k: int = 4, filter: Filter | None = None) -> Hits:
        """As `search`, for weighted terms."""
        return self.search(terms, k, filter)

    def spread(
        self,
        seeds: Mapping[str, float],
        k: int = 4,
        filter: Filter | None = None,
        *,
        damping: float = 0.5,
        max_df: int = 100,
    ) -> list[tuple[Document, float, list[str]]]:
        """The documents that share rare terms with some documents (see ``BM25Index.spread``)."""
        return self._index.spread(seeds, k, self._passages(filter), damping=damping, max_df=max_df)

    def maximum(self, query: str | Mapping[str, float]) -> float:
        """Give a bound that no score for the query, or for weighted terms, exceeds."""
        return self._index.maximum(query)

    def _passages(self, filter: Filter | None) -> Filter | None:
        """A filter that also leaves out what was made of passages."""
        return passage_filter(filter, self._derived)

    def _best(
        self, terms: Query, k: int, where: Filter | None, ids_only: bool
    ) -> list[tuple[Document, float]]:
        """The k best documents for some terms, ties by id; with ``ids_only`` without text and metadata."""
        # a finished state, which no writer changes; documents are made of the k that are returned only
        view = self._index.current()
        passes = None if where is None else compile_filter(where)
        fetch = k + _TIES
        while True:
            places, scores = view.top(terms, fetch, passes)
            if len(scores) < fetch or scores[-1] < scores[k - 1] - 2 * TIE:
                break
            fetch *= 4
        # in arrays, not tuples: k may be as large as the corpus
        ids = [view.rows[at].key for at in places.tolist()]
        by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
        steps = np.rint(scores.astype(np.float64) / TIE)[by_id]
        best = by_id[np.argsort(-steps, kind="stable")][:k]
        if ids_only:
            documents = documents_of_ids(ids[at] for at in best.tolist())
        else:
            documents = view.documents(places[best].tolist())
        return list(zip(documents, scores[best].tolist(), strict=True))

    def _spell(self, query: str, weights: Mapping[str, float], where: Filter | None) -> Mapping[str, float]:
        """Correct the terms of a query that no document has."""
        passes = None if where is None else compile_filter(where)
        return self._index.spell(query, weights, self._index.current(), passes)

    def _terms(self, query: str | Mapping[str, float]) -> Query:
        return check_weights(query) if isinstance(query, Mapping) else self.query_terms(check_query(query))
