"""Boolean masks of the rows of the store that pass a filter, cached by filter."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter, compile_filter
from rag_kit.indexing.document_index.meta import State

_MAX_MASKS = 16  # each takes a byte a row
_BLOCK = 1000  # rows parsed together

Mask = NDArray[np.bool_]


class RowMasks:
    """Cache of the masks of recent filters; after a write only the rows that it changed are tested again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[int, Mask]] = OrderedDict()

    def mask(self, connection: sqlite3.Connection, state: State, where: Filter) -> Mask:
        """Whether the row of each number passes, shape (highest number + 1,); arbitrary where there is no row."""
        passes = compile_filter(where)
        try:
            key = json.dumps(where, sort_keys=True)
        except TypeError:
            key = ""
        with self._lock:
            since, before = self._kept.get(key, (-1, np.zeros(0, bool)))
            if since > state.generation:  # an older store was put in its place
                since, before = -1, before[:0]
            elif since == state.generation:
                self._kept.move_to_end(key)
                return before
        [(highest,)] = connection.execute("SELECT coalesce(max(n), 0) FROM chunks")
        mask = np.zeros(max(highest + 1, len(before)), bool)
        mask[: len(before)] = before
        rows = connection.execute("SELECT n, metadata FROM chunks WHERE generation > ?", (since,))
        while group := rows.fetchmany(_BLOCK):
            parsed = json.loads(f"[{','.join(metadata for _, metadata in group)}]")
            mask[[n for n, _ in group]] = [passes(metadata) for metadata in parsed]
        if key:
            with self._lock:
                self._kept[key] = (state.generation, mask)
                while len(self._kept) > _MAX_MASKS:
                    self._kept.popitem(last=False)
        return mask
