"""Filters over many documents at once: the metadata as columns, a filter as a mask of rows.

Every column keeps its distinct values once, in an order, and for each row the place of its value. So a condition is
decided on few values, or by bisection, and the rows follow by one look-up. The meaning is that of ``matches``.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.documents.filters import (
    _MANY,
    _MISSING,
    Filter,
    _scalar,
    _typed,
    validate_filter,
    value_test,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

_RANGES = {
    "$gt": (bisect_right, None),
    "$gte": (bisect_left, None),
    "$lt": (None, bisect_left),
    "$lte": (None, bisect_right),
}


class MetadataColumns:
    """The metadata of documents, for filtering all of them at once. Thread-safe; the rows must not change.

    A column is made when a filter first asks for its key.

    Args:
        rows: The metadata of each document.

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

    def __len__(self) -> int:
        return len(self._rows)

    def mask(self, where: Filter | None) -> Mask:
        """Which rows pass a filter.

        Args:
            where: The filter; ``None`` and ``{}`` let everything pass.

        Returns:
            One boolean a row; the caller may change it.

        Raises:
            FilterError: As ``validate_filter``.
        """
        validate_filter(where)
        return self._where(where or {})

    def _where(self, where: Filter) -> Mask:
        import numpy as np

        mask: Mask = np.ones(len(self._rows), dtype=np.bool_)
        for key, value in where.items():
            if key == "$or":
                either: Mask = np.zeros(len(self._rows), dtype=np.bool_)
                for part in value:
                    either |= self._where(part)
                mask &= either
            elif key == "$and":
                for part in value:
                    mask &= self._where(part)
            elif key == "$not":
                mask &= ~self._where(value)
            else:
                column = self._column(key)
                conditions = value if isinstance(value, Mapping) else {"$eq": value}
                for operator, operand in conditions.items():
                    mask &= column.mask(operator, operand)
        return mask

    def _column(self, key: str) -> _Column:
        # One maker at a time: two would each read all rows.
        with self._lock:
            column = self._columns.get(key)
            if column is None:
                column = self._columns[key] = _Column([row.get(key) for row in self._rows])
            return column


class _Column:
    """The values of one key.

    Attributes:
        places: Identity of each distinct value -> its place: numbers in their order, then strings in theirs, then
            everything else.
        codes: For each row the place of its value.
    """

    def __init__(self, cells: Sequence[Any]) -> None:
        import numpy as np

        found: dict[Any, Any] = {}  # identity of a value -> the value
        names = []
        for cell in cells:
            name, value = _identity(cell)
            names.append(name)
            found.setdefault(name, value)
        numbers = sorted(name for name in found if _is_number(name))
        strings = sorted(name for name in found if isinstance(name, str))
        others = [name for name in found if not _is_number(name) and not isinstance(name, str)]
        order = [*numbers, *strings, *others]
        self.places: dict[Any, int] = {name: place for place, name in enumerate(order)}
        self.numbers = numbers
        self.strings = strings
        self.others = [found[name] for name in others]
        kind: Any = np.int16 if len(order) < 2**15 else np.int32
        self.codes: NDArray[Any] = np.fromiter(
            (self.places[name] for name in names), dtype=kind, count=len(names)
        )

    def mask(self, operator: str, operand: Any) -> Mask:
        import numpy as np

        if operator in _RANGES:
            return self._between(operator, _scalar(operand))
        table = np.zeros(len(self.places), dtype=np.bool_)
        if operator in ("$eq", "$ne", "$in", "$nin"):
            wanted = {
                _typed(_scalar(item)) for item in (operand if operator in ("$in", "$nin") else [operand])
            }
            table[[self.places[name] for name in wanted if name in self.places]] = True
            table ^= operator in ("$ne", "$nin")
        else:  # each distinct value is asked once
            test = value_test(operator, operand)
            table[:] = [test(value) for value in (*self.numbers, *self.strings, *self.others)]
        result: Mask = table[self.codes]
        return result

    def _between(self, operator: str, operand: Any) -> Mask:
        values, offset = (self.strings, len(self.numbers)) if isinstance(operand, str) else (self.numbers, 0)
        low, high = _RANGES[operator]
        start = offset + (low(values, operand) if low else 0)
        stop = offset + (high(values, operand) if high else len(values))
        result: Mask = (self.codes >= start) & (self.codes < stop)
        return result


def _identity(cell: Any) -> tuple[Any, Any]:
    """What distinguishes a cell, and its value: equal exactly where no filter can tell two cells apart."""
    value = _scalar(cell)
    if value is _MISSING:
        if cell is None:
            return ("none",), None
        if isinstance(cell, _MANY):
            return ("list", frozenset(_typed(_scalar(item)) for item in cell)), cell
        return ("other",), cell
    if isinstance(value, float) and value != value:
        return ("nan",), value  # unordered, and equal to nothing
    return _typed(value), value


def _is_number(name: Any) -> bool:
    return isinstance(name, (int, float)) and not isinstance(name, bool)
