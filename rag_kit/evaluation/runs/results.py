"""The results of a run: one row for each example, plain data in memory and in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation._files import as_path
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.prices import Prices, Usage
from rag_kit.evaluation.runs.summary import Summary, summarize

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Row:
    """One example, what the pipeline gave for it, and how that was scored.

    Args:
        example: The question and its gold.
        output: What the pipeline gave; ``output.error`` says why it gave nothing.
        cells: Metric name -> its cell; a metric that was not reached yet is not there.
        usage: ``"pipeline"`` or a metric's name -> model -> ``calls``, ``input_tokens``, ``output_tokens``, of
            the requests that were really made.
        keys: What the output and the cells were computed from, hashed; by it a run knows what it need not do
            again.
    """

    example: Example
    output: Output
    cells: dict[str, Cell] = field(default_factory=dict)
    usage: dict[str, Usage] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict, repr=False, compare=False)


@dataclass(repr=False)
class Results:
    """What a run gave.

    Args:
        name: The pipeline's name in tables.
        rows: One for each example that the pipeline was asked, in the order of the set.
        metrics: Names of the metrics, in the order of the tables.
        manifest: Versions, settings, fingerprints and counts of the run, as plain JSON; no key.
        total: Examples of the set; default: as many as there are rows.

    Raises:
        InvalidInputError: If an example comes twice.

    Example:
        >>> row = Row(Example("q1", "Who?"), Output(answer="Ada."), {"exact_match": Cell.ok(1.0)})
        >>> Results("mine", [row], ("exact_match",)).summary()["exact_match"].mean
        1.0
    """

    name: str
    rows: list[Row]
    metrics: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)
    total: int | None = None

    def __post_init__(self) -> None:
        self._check()
        self.rows = list(self.rows)
        self.metrics = tuple(self.metrics or dict.fromkeys(name for row in self.rows for name in row.cells))
        self._by_id = {row.example.id: row for row in self.rows}
        if len(self._by_id) != len(self.rows):
            ids = [row.example.id for row in self.rows]
            twice = next(each for each in ids if ids.count(each) > 1)
            raise InvalidInputError(f"the example {twice!r:.80} has two rows; give one for each example")

    def __repr__(self) -> str:
        return f"<Results of {self.name!r:.80}: {len(self.rows)} rows, metrics {self.metrics!r:.200}>"

    def _check(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.manifest, Mapping):
            raise InvalidInputError("the name of results is a text and their manifest a mapping; see Results")
        for name, kind, allowed in (("rows", Row, "Row objects"), ("metrics", str, "names of metrics")):
            items = getattr(self, name)
            right = isinstance(items, Sequence) and not isinstance(items, (str, bytes))
            if not right or not all(isinstance(each, kind) for each in items):
                raise InvalidInputError(f"{name} is {items!r:.120}; give a list of {allowed}")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, example_id: str) -> Row:
        """The row of an example."""
        try:
            return self._by_id[example_id]
        except KeyError:
            raise InvalidInputError(f"there is no row of the example {example_id!r:.80}") from None

    @property
    def examples(self) -> int:
        """Examples of the set, those that the run has not come to included."""
        return max(len(self.rows), self.total or 0)

    @property
    def complete(self) -> bool:
        """Whether every example has a cell of every metric."""
        return len(self.rows) == self.examples and all(
            metric in row.cells for row in self.rows for metric in self.metrics
        )

    def summary(self, *, level: float = 0.95, n: int = 10_000, seed: int = 0) -> dict[str, Summary]:
        """Mean, interval and coverage of every metric.

        Args:
            level: Share of the bootstrap interval.
            n: Resamples.
            seed: Seed of the draws.
        """
        return {
            metric: summarize(
                (row.cells.get(metric) for row in self.rows), self.examples, level=level, n=n, seed=seed
            )
            for metric in self.metrics
        }

    def values(self, metric: str) -> dict[str, float]:
        """Example id -> value, of the cells that have one.

        Raises:
            InvalidInputError: If there is no such metric.
        """
        self._check_metric(metric)
        found = {row.example.id: row.cells[metric].value for row in self.rows if metric in row.cells}
        return {key: float(value) for key, value in found.items() if value is not None}

    def cells(self, metric: str) -> dict[str, Cell]:
        """Example id -> cell, whatever its status.

        Raises:
            InvalidInputError: If there is no such metric.
        """
        self._check_metric(metric)
        return {row.example.id: row.cells[metric] for row in self.rows if metric in row.cells}

    def money(
        self, part: Literal["pipeline", "judge"] = "pipeline", *, prices: Any = None
    ) -> list[float | None]:
        """What each row cost, in the order of the rows; ``None`` where no price is known.

        Args:
            part: The pipeline's requests, or those of the metrics.
            prices: As for ``evaluate``; default: those the run was given.

        Raises:
            InvalidInputError: If a price is none.
        """
        table = Prices.of(prices if prices is not None else self.manifest.get("prices"))
        if part == "pipeline":
            return [
                table.cost(row.usage.get("pipeline", {}), tokens=row.output.tokens, calls=row.output.calls)
                for row in self.rows
            ]
        return [self._judge_money(row, table) for row in self.rows]

    def to_pandas(self) -> pd.DataFrame:
        """One line for each row: example, output, and for each metric value, status and reason.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("eval", "Results.to_pandas") from None
        money = self.money()
        records = [self._record(row, cost) for row, cost in zip(self.rows, money, strict=True)]
        frame = pd.DataFrame(records)
        for metric in self.metrics:
            if metric in frame:
                frame[metric] = frame[metric].astype("float64")
        return frame

    def save(self, folder: Path | str) -> Path:
        """Write ``rows.jsonl`` and ``manifest.json``; what is there is replaced as a whole.

        Raises:
            InvalidInputError: If the folder holds something else.
            ResultsLockedError: If a run is writing to it.
        """
        from rag_kit.evaluation.runs.folder import save_results

        return save_results(self, as_path(folder, "folder"))

    @classmethod
    def load(cls, folder: Path | str) -> Results:
        """Read what ``save`` or a run wrote; a run that is still going on gives what is there so far.

        Raises:
            InvalidInputError: If there are no results in the folder, or a line is damaged.
        """
        from rag_kit.evaluation.runs.folder import load_results

        return load_results(as_path(folder, "folder"))

    def __str__(self) -> str:
        from rag_kit.evaluation.runs.table import results_text

        return results_text(self)

    def _repr_html_(self) -> str:
        from rag_kit.evaluation.runs.table import results_html

        return results_html(self)

    def _check_metric(self, metric: str) -> None:
        if metric not in self.metrics:
            raise InvalidInputError(
                f"there is no metric {metric!r:.80} in these results; there are {', '.join(self.metrics)}"
            )

    def _judge_money(self, row: Row, prices: Prices) -> float | None:
        costs = [
            prices.cost(row.usage.get(name, {}), tokens=cell.tokens, calls=cell.calls)
            for name, cell in row.cells.items()
            if name in self.metrics
        ]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def _record(self, row: Row, cost: float | None) -> dict[str, Any]:
        example, output = row.example, row.output
        record: dict[str, Any] = {
            "id": example.id, "question": example.question, "reference": example.reference,
            "answer": output.answer, "status": output.status, "error": output.error,
            "passages": [passage.id for passage in output.passages or ()],
            "seconds": output.seconds, "calls": output.calls, "tokens": output.tokens, "money": cost,
        }  # fmt: skip
        record |= {f"tag.{name}": value for name, value in example.tags.items()}
        for metric in self.metrics:
            cell = row.cells.get(metric)
            record[metric] = None if cell is None else cell.value
            record[f"{metric}.status"] = "missing" if cell is None else cell.status
            record[f"{metric}.reason"] = "" if cell is None else cell.reason
        return record


def row_to_json(row: Row) -> dict[str, Any]:
    """A row as one line of ``rows.jsonl``."""
    record: dict[str, Any] = {
        "id": row.example.id,
        "example": row.example.to_json(),
        "output": row.output.to_json(),
    }
    record["cells"] = {name: cell.to_json() for name, cell in row.cells.items()}
    if row.usage:
        record["usage"] = {name: {m: dict(c) for m, c in usage.items()} for name, usage in row.usage.items()}
    if row.keys:
        record["keys"] = dict(row.keys)
    return record


def row_from_json(record: Mapping[str, Any]) -> Row:
    """What ``row_to_json`` gave.

    Raises:
        InvalidInputError: If it is no such record.
    """
    if not {"example", "output"} <= set(record):
        raise InvalidInputError("a row needs example and output")
    return Row(
        Example.from_json(record["example"]),
        Output.from_json(record["output"]),
        {name: Cell.from_json(cell) for name, cell in record.get("cells", {}).items()},
        dict(record.get("usage", {})),
        dict(record.get("keys", {})),
    )
