"""Filters over many documents at once: the metadata as columns, a filter as a mask of rows.

Every column keeps its distinct values once, in order, and for each row the position of its value. So a condition is
decided on few values, or by bisection, and the rows follow by one look-up. The meaning is that of ``matches``.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from rag_kit.documents.filters import (
    LISTS,
    MISSING,
    ORDER,
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
    """The distinct values of one key, and for each row the position of its value among them.

    Numbers come first, in their order, then strings in theirs, then everything else.
    """

    def __init__(self, cells: Sequence[Any]) -> None:
        import numpy as np

        keys = [_identity(cell) for cell in cells]
        cell_of = dict(zip(keys, cells, strict=True))
        self.numbers: list[Any] = sorted(key for key in cell_of if isinstance(key, (int, float)))
        self.strings = sorted(key for key in cell_of if isinstance(key, str))
        order = [*self.numbers, *self.strings, *(key for key in cell_of if isinstance(key, tuple))]
        self.position_of = {key: position for position, key in enumerate(order)}
        self.values = [cell_of[key] if isinstance(key, tuple) else key for key in order]
        dtype: Any = np.int16 if len(order) < 2**15 else np.int32
        codes = (self.position_of[key] for key in keys)
        self.codes: NDArray[Any] = np.fromiter(codes, dtype, len(keys))

    def mask(self, operator: str, operand: Any) -> Mask:
        """Return which rows pass a condition as `translate` gives it."""
        import numpy as np

        if operator in ORDER:
            return self._compare_order(operator, operand)
        passes = np.zeros(len(self.position_of), dtype=np.bool_)  # by position of the distinct value
        if operator in ("$eq", "$in"):
            keys = map(equality_key, operand if operator == "$in" else [operand])
            passes[[self.position_of[key] for key in keys if key in self.position_of]] = True
        else:
            passes[:] = list(map(value_test(operator, operand), self.values))
        mask: Mask = passes[self.codes]
        return mask

    def _compare_order(self, operator: str, operand: Any) -> Mask:
        """Return which rows have a number or string on one side of the operand, found by bisection.

        Codes are positions in sorted numbers, then sorted strings, then the rest: a range of values is one of codes.
        """
        values, offset = (self.strings, len(self.numbers)) if isinstance(operand, str) else (self.numbers, 0)
        bisect = bisect_left if operator in ("$gte", "$lt") else bisect_right
        bound = bisect(values, operand)
        low, high = (bound, len(values)) if operator in ("$gt", "$gte") else (0, bound)
        mask: Mask = (self.codes >= offset + low) & (self.codes < offset + high)
        return mask


def _identity(cell: Any) -> Any:
    """Return a key that is equal for two cells that no filter can tell apart."""
    value = plain_scalar(cell)
    if isinstance(cell, LISTS):
        return ("list", frozenset(equality_key(plain_scalar(item)) for item in cell))
    if value is MISSING:
        return ("none",) if cell is None else ("other",)
    if isinstance(value, float) and value != value:
        return ("nan",)  # unordered, and equal to nothing
    return equality_key(value)
