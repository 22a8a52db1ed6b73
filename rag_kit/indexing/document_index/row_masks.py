"""Boolean masks of the rows of the store that pass a filter, cached by filter."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter, compile_filter
from rag_kit.documents.columns import MetadataColumns
from rag_kit.indexing.document_index.rows import count_since
from rag_kit.indexing.document_index.sql import Connection
from rag_kit.indexing.document_index.store import State

_MAX_MASKS = 16  # each takes a byte a row
_BLOCK = 1000  # rows parsed together
_FOLLOWED = 100  # columns are made anew once more than one row in so many has changed

Mask = NDArray[np.bool_]


class Loaded(NamedTuple):
    """Metadata in memory.

    Attributes:
        generation: The generation of the store that was loaded; -1 for none.
        rows: The metadata.
        places: The position in ``rows`` by row number, shape (highest number + 1,); -1 for none.
    """

    generation: int = -1
    rows: Sequence[Mapping[str, Any]] = ()
    places: NDArray[np.int32] = np.empty(0, np.int32)


class RowMasks:
    """Cache of the masks of recent filters; after a write only the rows that it changed are tested again.

    A new filter is looked up in a column for each of its fields, made of metadata that are in memory already. So
    the store is read only for what was written since these were loaded.

    Args:
        loaded: Gives the metadata that are in memory.
    """

    def __init__(self, loaded: Callable[[Connection, State], Loaded]) -> None:
        self._loaded = loaded
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[int, Mask]] = OrderedDict()
        self._base, self._columns = Loaded(), MetadataColumns([])

    def mask(self, connection: Connection, state: State, where: Filter) -> Mask:
        """Whether the row of each number passes, shape (highest number + 1,); arbitrary where there is no row."""
        passes = compile_filter(where)
        key = json.dumps(where, sort_keys=True, default=repr)
        with self._lock:
            since, before = self._kept.get(key, (state.generation + 1, np.zeros(0, bool)))
            if since == state.generation:
                self._kept.move_to_end(key)
                return before
            if since > state.generation:  # a new filter, or an older store was put in its place
                self._follow(connection, state)
                since, before = self._base.generation, np.append(self._columns.mask(where), False)
                before = before[self._base.places]
        [(highest,)] = connection.execute("SELECT coalesce(max(n), 0) FROM chunks")
        mask = np.zeros(max(highest + 1, len(before)), bool)
        mask[: len(before)] = before
        rows = connection.execute("SELECT n, metadata FROM chunks WHERE generation > ?", (since,))
        while group := rows.fetchmany(_BLOCK):
            parsed = json.loads(f"[{','.join(metadata for _, metadata in group)}]")
            mask[[n for n, _ in group]] = [passes(metadata) for metadata in parsed]
        with self._lock:
            self._kept[key] = (state.generation, mask)
            while len(self._kept) > _MAX_MASKS:
                self._kept.popitem(last=False)
        return mask

    def _follow(self, connection: Connection, state: State) -> None:
        """Make the columns anew if too many rows have changed since they were made."""
        since = self._base.generation
        follows = 0 <= since <= state.generation
        if not follows or count_since(connection, ("chunks", "removed"), since) * _FOLLOWED > len(
            self._columns
        ):
            self._base = self._loaded(connection, state)
            self._columns = MetadataColumns(self._base.rows)
