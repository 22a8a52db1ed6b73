"""The keyword leg: BM25 over the chunks of a folder, and which of them pass a filter."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter, compile_filter
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.document_index.postings_leg import TermLeg
from rag_kit.indexing.document_index.state import NO_GENERATION, Connection, IndexState

Mask = NDArray[np.bool_]
_MASKS = 16  # filters that are remembered: each takes a byte a row


class KeywordLeg(TermLeg):
    """BM25 over the chunks of an index; see ``Leg``."""

    label = "keyword"

    def _forget(self) -> None:
        super()._forget()
        # positions in the index by row number, of a generation
        self._placed = NO_GENERATION, np.empty(0, np.int64)
        self._masks: dict[str, tuple[int, Mask]] = {}  # of recent filters, with their generations

    def _prefix(self, state: IndexState) -> str:
        return f"bm25-{state.uid[:8]}-"

    def _empty(self, state: IndexState) -> BM25Index:
        return BM25Index()

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
