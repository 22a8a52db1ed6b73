"""A table as the answer, beside the expected one: rows in any order, columns by name."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.scorers.ours_text.overlap import f_measure
from rag_kit.evaluation.scorers.table_text import MOST, reference_table, unfence
from rag_kit.text import fold

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.outputs import Output

_CODE = re.compile("[+-]?0[0-9]|.*_")  # 007 is a code, not the number 7
Table = tuple[list[str], list[list[str]]]


class OursDataComparison(Metric):
    """Share of rows, or of columns, that are the same in both CSV tables, whatever the order of rows and columns.

    Beside Ragas's `data_comparison`, which compares by position. A row is the same when all its columns and values
    are; a column when it holds the same values equally often. Numbers are compared by value (``1.0`` is ``1``),
    texts and names without case, width and outer spaces.

    Args:
        mode: ``"rows"`` or ``"columns"``.
        metric: ``"f1"``, ``"precision"`` or ``"recall"``.

    Example:
        >>> OursDataComparison().compute("id,n\\n1,a\\n2,b\\n", "n,id\\nb,2.0\\na,1\\n").value
        1.0
    """

    source: ClassVar[Source] = "ours"
    stage: ClassVar[Stage] = "agent"
    example_any = frozenset({"reference", "metadata.reference_table"})

    def __init__(
        self,
        *,
        mode: Literal["rows", "columns"] = "rows",
        metric: Literal["f1", "precision", "recall"] = "f1",
        name: str = "ours_data_comparison",
    ) -> None:
        if mode not in ("rows", "columns") or metric not in ("f1", "precision", "recall"):
            raise InvalidInputError(
                f"mode={mode!r:.40}, metric={metric!r:.40} is not allowed; give rows or columns, and f1, precision "
                "or recall"
            )
        self.name, self.mode, self.metric = name, mode, metric

    def settings(self) -> dict[str, Any]:
        """The version of the rules, mode and metric."""
        return {"version": 1, "mode": self.mode, "metric": self.metric}

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The value for a table of at most two million characters."""
        reference, answer = reference_table(example), unfence(output.answer or "")
        for what, text in (("reference", reference), ("answer", answer)):
            if len(text) > MOST:
                raise InvalidInputError(f"the {what} has {len(text):,} characters; at most {MOST:,} are read")
        return await run_in_thread(self.compute, reference, answer)

    def compute(self, reference: str, answer: str) -> Cell:
        """The cell for two CSV texts; undefined where the answer is no table.

        Raises:
            InvalidInputError: If the reference is no table.
        """
        wanted, given = _read(reference), _read(answer)
        if isinstance(wanted, str):
            raise InvalidInputError(f"the reference is no CSV table: {wanted}")
        if isinstance(given, str):
            return Cell.undefined(f"the answer is no CSV table: {given}")
        ours, theirs = (_rows(table) if self.mode == "rows" else _columns(table) for table in (wanted, given))
        if not ours and not theirs and wanted[0] == given[0]:
            return Cell.ok(1.0, "no row was expected, and there is none")
        right = (ours & theirs).total()
        precision, recall = right / max(1, theirs.total()), right / max(1, ours.total())
        value = {"precision": precision, "recall": recall}.get(self.metric, f_measure(precision, recall))
        reason = f"{right} {self.mode} right of {theirs.total()} in the answer and {ours.total()} expected"
        return Cell.ok(value, reason, precision=precision, recall=recall)


def _read(text: str) -> Table | str:
    """Names and rows, or why it is no table. The rows have as many values as there are names."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text), strict=True, skipinitialspace=True) if row]
    except csv.Error as error:
        return str(error)
    if not rows:
        return "it is empty"
    names, *values = rows
    names = [fold(name).strip() for name in names]
    if len(set(names)) != len(names):
        return "two columns have one name"
    for number, row in enumerate(values, start=1):
        if len(row) > len(names):
            return f"row {number} has {len(row)} values for {len(names)} columns"
        row.extend([""] * (len(names) - len(row)))
    order = sorted(range(len(names)), key=names.__getitem__)
    return [names[n] for n in order], [[_plain(row[n]) for n in order] for row in values]


def _plain(value: str) -> str:
    value = fold(value).strip()
    if len(value) <= 40 and not _CODE.match(value):
        try:
            number = Decimal(value)
        except InvalidOperation:
            return value
        if number.is_finite() and abs(number.adjusted()) <= 40:
            # A number in its one shortest spelling; minus zero is zero.
            return f"{number.normalize():f}" if number else "0"
    return value


def _rows(table: Table) -> Counter[Any]:
    names, rows = table
    return Counter((tuple(names), tuple(row)) for row in rows)


def _columns(table: Table) -> Counter[Any]:
    names, rows = table
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return Counter((name, tuple(sorted(column))) for name, column in zip(names, columns, strict=True))


def ours_data_comparison(name: str) -> OursDataComparison:
    """By rows, unless the name says columns."""
    return OursDataComparison(mode="columns" if name.endswith("_columns") else "rows", name=name)
