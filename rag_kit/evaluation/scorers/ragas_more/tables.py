"""A table as the answer, beside the expected one, by Ragas over datacompy."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.ragas_import import ragas_version
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.scorers.ragas_more.classes import (
    Lazy,
    ascore,
    cell,
    check_length,
    one_of,
)
from rag_kit.evaluation.scorers.table_text import MOST, reference_table, unfence

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.outputs import Output


class DataComparison(Metric):
    """Share of rows, or of columns, that are the same in both CSV tables, by Ragas's ``DataCompyScore``.

    Row is compared with row by position: the same rows in another order score 0, and a column that only one table
    has is not compared. `ours_data_comparison` has neither fault. Tables without a common column, which Ragas
    scores 1, are undefined here, and so is an answer that is no CSV.

    Args:
        mode: ``"rows"`` or ``"columns"``.
        metric: ``"f1"``, ``"precision"`` or ``"recall"``.
    """

    source: ClassVar[Source] = "ragas"
    stage: ClassVar[Stage] = "agent"
    example_any = frozenset({"reference", "metadata.reference_table"})

    def __init__(
        self,
        *,
        mode: Literal["rows", "columns"] = "rows",
        metric: Literal["f1", "precision", "recall"] = "f1",
        name: str = "data_comparison",
    ) -> None:
        one_of("mode", mode, ("rows", "columns"))
        one_of("metric", metric, ("f1", "precision", "recall"))
        self.name = name
        self._ragas = Lazy(
            f"the metric {name!r}", lambda ragas: ragas.DataCompyScore(mode=mode, metric=metric), ("pandas",)
        )
        self._settings = {"ragas": ragas_version(), "mode": mode, "metric": metric}

    def settings(self) -> dict[str, Any]:
        """Ragas's version, mode and metric."""
        return dict(self._settings)

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Ragas's value, of tables that can be compared."""
        reference, answer = reference_table(example), unfence(output.answer or "")
        check_length(self.name, MOST, answer=answer, reference=reference)
        ragas = await self._ragas.get()
        wanted = await run_in_thread(_columns, reference)
        if isinstance(wanted, str):
            raise InvalidInputError(f"the reference is no CSV table: {wanted}")
        given = await run_in_thread(_columns, answer)
        if isinstance(given, str):
            return Cell.undefined(f"the answer is no CSV table: {given}")
        if not {str(name).lower() for name in wanted} & {str(name).lower() for name in given}:
            return Cell.undefined(
                f"the tables have no column in common: expected {_few(wanted)}; the answer has {_few(given)}"
            )
        return cell(await ascore(ragas, reference=reference, response=answer))


def data_comparison(name: str) -> DataComparison:
    """By rows, unless the name says columns."""
    return DataComparison(mode="columns" if name.endswith("_columns") else "rows", name=name)


def _columns(text: str) -> list[Any] | str:
    """The column names as pandas reads them, or why it does not."""
    import pandas

    try:
        return list(pandas.read_csv(io.StringIO(text)).columns)
    except (ValueError, RecursionError) as error:  # pandas's parser errors are ValueErrors
        return str(error)


def _few(names: Sequence[Any]) -> str:
    shown = ", ".join(repr(str(name)[:40]) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
