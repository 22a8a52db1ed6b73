"""Filters over many documents at once: the metadata as columns, a filter as a mask of rows.

Every column keeps its distinct values once, and for each row the position of its value. So a condition is tested on
few values, and the rows follow by one look-up. The meaning is that of ``matches``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from rag_kit.documents.filters import (
    LISTS,
    MISSING,
    Filter,
    equality_key,
    plain_scalar,
    translate,
    value_test,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


class MetadataColumns:
    """The metadata of documents, for filtering all of them at once. Thread-safe; the rows must not change.

    Example:
        >>> columns = MetadataColumns([{"year": 2019}, {"year": 2021, "lang": "en"}, {"lang": "en"}])
        >>> columns.mask({"year": {"$gte": 2020}}).tolist()
        [False, True, False]
        >>> columns.mask({"$not": {"lang": "en"}}).tolist()
        [True, False, False]
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows
        self._columns: dict[str, _Column] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return MetadataColumns, (self._rows,)

    def mask(self, where: Filter | None) -> Mask:
        """Return which rows pass a filter, one boolean a row, in an array that the caller may change."""
        import numpy as np

        def mask_of_condition(key: str, operator: str, operand: Any, negated: bool) -> Mask:
            return self._column(key).mask(operator, operand) ^ negated

        def join(word: str, masks: list[Mask]) -> Mask:
            return reduce(np.logical_and if word == "and" else np.logical_or, masks)

        mask = translate(where, mask_of_condition, join)
        return np.full(len(self._rows), mask, dtype=np.bool_) if isinstance(mask, bool) else mask

    def _column(self, key: str) -> _Column:
        """Return the column of a key, made on first use."""
        with self._lock:  # one maker at a time: two would each read all rows
            if key not in self._columns:
                self._columns[key] = _Column([row.get(key) for row in self._rows])
            return self._columns[key]


class _Column:
    """The distinct values of one key, and for each row the position of its value among them."""

    def __init__(self, cells: Sequence[Any]) -> None:
        import numpy as np

        keys = [_identity(cell) for cell in cells]
        cell_of = dict(zip(keys, cells, strict=True))
        self.values = list(cell_of.values())
        self.position_of = {key: position for position, key in enumerate(cell_of)}
        self.positions = np.array([self.position_of[key] for key in keys], np.int32)

    def mask(self, operator: str, operand: Any) -> Mask:
        """Return which rows pass a condition as `translate` gives it."""
        import numpy as np

        passes = np.zeros(len(self.values), dtype=np.bool_)  # by position of the distinct value
        if operator in ("$eq", "$in"):
            keys = map(equality_key, operand if operator == "$in" else [operand])
            passes[[self.position_of[key] for key in keys if key in self.position_of]] = True
        else:
            passes[:] = list(map(value_test(operator, operand), self.values))
        mask: Mask = passes[self.positions]
        return mask


def _identity(cell: Any) -> Any:
    """Return a hashable key that is equal for cells which no filter can tell apart."""
    value = plain_scalar(cell)
    if isinstance(cell, LISTS):
        return ("list", frozenset(equality_key(plain_scalar(item)) for item in cell))
    if value is MISSING:
        return ("none",) if cell is None else ("other",)
    if isinstance(value, float) and value != value:
        return ("nan",)  # unordered, and equal to nothing
    return equality_key(value)
