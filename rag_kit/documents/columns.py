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
        """Return one boolean for each row: whether it passes the filter. The caller may change the array."""
        import numpy as np

        def leaf(key: str, operator: str, operand: Any, negated: bool) -> Mask:
            return self._column(key).mask(operator, operand) ^ negated  # XOR: turned over if negated

        def join(word: str, masks: list[Mask]) -> Mask:
            return reduce(np.logical_and if word == "and" else np.logical_or, masks)

        mask = translate(where, leaf, join)
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

        keys = [_identity(cell) for cell in cells]  # equal keys for cells that no filter can tell apart
        cell_of = dict(zip(keys, cells, strict=True))
        self.numbers: list[Any] = sorted(key for key in cell_of if isinstance(key, (int, float)))
        self.strings = sorted(key for key in cell_of if isinstance(key, str))
        other_keys = [key for key in cell_of if isinstance(key, tuple)]
        order = [*self.numbers, *self.strings, *other_keys]
        self.position_of = {key: position for position, key in enumerate(order)}
        self.values = [*self.numbers, *self.strings, *(cell_of[key] for key in other_keys)]
        # for each row the position of its value; few distinct values fit into two bytes
        dtype: Any = np.int16 if len(order) < 2**15 else np.int32
        codes = (self.position_of[key] for key in keys)
        self.codes: NDArray[Any] = np.fromiter(codes, dtype=dtype, count=len(keys))

    def mask(self, operator: str, operand: Any) -> Mask:
        """Return one boolean for each row: whether its value passes a condition, as `translate` states it."""
        import numpy as np

        if operator in ORDER:
            return self._compare_order(operator, operand)
        value_passes = np.zeros(len(self.position_of), dtype=np.bool_)  # for each distinct value
        if operator in ("$eq", "$in"):
            keys = map(equality_key, operand if operator == "$in" else [operand])
            value_passes[[self.position_of[key] for key in keys if key in self.position_of]] = True
        else:
            value_passes[:] = list(map(value_test(operator, operand), self.values))
        result: Mask = value_passes[self.codes]
        return result

    def _compare_order(self, operator: str, operand: Any) -> Mask:
        """Return one boolean for each row: whether its number or string is above or below the operand.

        Codes count the sorted numbers first, then the sorted strings: the values that pass have codes without a gap.
        """
        values, offset = (self.strings, len(self.numbers)) if isinstance(operand, str) else (self.numbers, 0)
        # the position that divides the values that pass from the others; $gte and $lte let an equal value pass
        bound = (bisect_left if operator in ("$gte", "$lt") else bisect_right)(values, operand)
        low, high = (bound, len(values)) if operator in ("$gt", "$gte") else (0, bound)
        result: Mask = (self.codes >= offset + low) & (self.codes < offset + high)
        return result


def _identity(cell: Any) -> Any:
    """Return a hashable key of a metadata value; two values have the same key if every filter treats them alike."""
    value = plain_scalar(cell)
    if isinstance(cell, LISTS):
        return ("list", frozenset(equality_key(plain_scalar(item)) for item in cell))
    if value is MISSING:
        return ("none",) if cell is None else ("other",)
    if isinstance(value, float) and value != value:
        return ("nan",)  # unordered, and equal to nothing
    return equality_key(value)
