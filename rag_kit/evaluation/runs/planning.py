"""What a run has to do: what an earlier one left is taken up where it was computed from the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.keys import cell_key, digest, given_digest, metric_key, output_key
from rag_kit.evaluation.runs.lines import to_row
from rag_kit.evaluation.runs.results import Row, row_to_json
from rag_kit.evaluation.runs.settings import Settings

_MAX_HASHES = 16


@dataclass
class Task:
    """One example of a run.

    Args:
        example: The example.
        row: Its row; ``None`` until the pipeline has been asked.
        missing: Names of metrics that are to be computed.
        written: Whether the row stands in the file as it is here.
        stale: What the file holds of another pipeline or another question; kept until there is something better.
        other: Cells of metrics that this run does not compute, as they stand in the file.
    """

    example: Example
    row: Row | None = None
    missing: list[str] = field(default_factory=list)
    written: bool = False
    stale: dict[str, Any] | None = None
    other: dict[str, Any] = field(default_factory=dict)
    _given: tuple[Output, str] | None = field(default=None, repr=False)

    def cell_key(self, metric: str) -> str:
        """Key of a cell of this row; what all metrics are given is hashed once."""
        assert self.row is not None
        if self._given is None or self._given[0] is not self.row.output:
            self._given = (self.row.output, given_digest(self.example, self.row.output))
        return cell_key(metric, self._given[1])

    @property
    def done(self) -> bool:
        """Whether nothing is to be computed."""
        return self.row is not None and not self.missing


class Plan:
    """The tasks of a run.

    Args:
        settings: The run's arguments.
        judge: The judge's fingerprint, if there is one.
        known: Example id -> what the folder holds of it.
        before: What the last run's manifest says of its pipeline.
    """

    def __init__(
        self,
        settings: Settings,
        judge: Mapping[str, Any] | None,
        known: dict[str, dict[str, Any]],
        before: Mapping[str, Any],
    ) -> None:
        self._settings = settings
        self.pipeline_key, self._hashes = self._identify(before)
        self.metric_keys = {metric.name: metric_key(metric, judge) for metric in settings.metrics}
        self.names = tuple(self.metric_keys)
        order = [key for key, record in known.items() if "outside" not in record]
        self.tasks = [self._task(example, known.pop(example.id, None)) for example in settings.examples]
        self.outside = [{**record, "outside": True} for record in known.values() if "output" in record]
        self.same_order = order == [example.id for example in settings.examples]

    def pipeline(self) -> dict[str, Any]:
        """The pipeline as the manifest tells of it.

        What it looks like by now is noted too: one that counts in a field of its own is the same one nevertheless.
        """
        settings = self._settings
        hashes = list(dict.fromkeys([*self._hashes, settings.hash_pipeline()]))[-_MAX_HASHES:]
        named = {"name": settings.name, "version": settings.version}
        return {**named, "key": self.pipeline_key, "hashes": hashes}

    def _identify(self, before: Mapping[str, Any]) -> tuple[str, list[str]]:
        settings, now = self._settings, self._settings.hash_pipeline()
        same = [before.get("name"), before.get("version")] == [settings.name, settings.version]
        hashes = before.get("hashes")
        if same and isinstance(hashes, list) and now in hashes and isinstance(before.get("key"), str):
            return before["key"], hashes
        return digest([settings.name, settings.version, now]), [now]

    def output_key(self, example: Example) -> str:
        """Key of the example's output."""
        return output_key(self.pipeline_key, example, whole=self._settings.whole)

    def start_row(self, task: Task, row: Row) -> dict[str, Any]:
        """Take the pipeline's output up, with the cells that still hold; gives the line that begins the row anew."""
        row.keys["output"] = self.output_key(task.example)
        task.row = row
        self._choose(task)
        return self.line(task)

    def lines(self) -> list[dict[str, Any]]:
        """The whole file: rows in the order of the set, then those of examples that are not in it."""
        records = [self.line(task) if task.row is not None else task.stale for task in self.tasks]
        return [*(record for record in records if record is not None), *self.outside]

    def line(self, task: Task) -> dict[str, Any]:
        """The row as one line of the file."""
        assert task.row is not None
        record = row_to_json(task.row)
        return {**record, "other": task.other} if task.other else record

    def _task(self, example: Example, record: dict[str, Any] | None) -> Task:
        task = Task(example)
        row = None if record is None else to_row(_with_other(record))
        if row is None:
            return task
        same_example = row.example == example
        if row.keys.get("output") != self.output_key(example) or (
            self._settings.retry_errors and row.output.error is not None
        ):
            # where the pipeline answers the same, the cells still hold
            task.stale = record
            task.other = {"cells": row_to_json(row)["cells"], "keys": row.keys, "usage": row.usage}
            return task
        row.example = example
        task.row = row
        before = dict(row.cells)
        self._choose(task)
        task.written = same_example and "outside" not in (record or {})
        if task.written and not task.missing:
            shown = set((record or {}).get("cells", ()))
            task.written = shown == set(task.row.cells) and all(task.row.cells[n] == before[n] for n in shown)
        elif task.missing and set((record or {}).get("cells", ())) - set(task.row.cells):
            task.written = False
        return task

    def _choose(self, task: Task) -> None:
        """Keep the cells that were computed from the same; those of other metrics are set aside while they hold."""
        row = task.row
        assert row is not None
        stored = _stored(task)
        row.cells, usage, keys, task.other = {}, row.usage, row.keys, {}
        row.usage = {name: used for name, used in usage.items() if name == "pipeline"}
        row.keys = {"output": keys["output"]}
        task.missing = []
        for name in self.names:
            wanted = task.cell_key(self.metric_keys[name])
            cell, key, used = stored.pop(name, (None, None, None))
            if cell is None or key != wanted or (self._settings.retry_errors and cell.status == "error"):
                task.missing.append(name)
                continue
            row.cells[name], row.keys[name] = cell, key
            if used:
                row.usage[name] = used
        for name, (cell, key, used) in stored.items():
            settings_key = str(key).partition(":")[0]
            if key and key == task.cell_key(settings_key):
                for part, value in (("cells", cell.to_json()), ("keys", key), ("usage", used)):
                    if value:
                        task.other.setdefault(part, {})[name] = value


def _with_other(record: dict[str, Any]) -> dict[str, Any]:
    """A record with the cells that were set aside among the others."""
    other = record.get("other") or {}
    parts = ("cells", "keys", "usage")
    return {**record, **{part: {**other.get(part, {}), **record.get(part, {})} for part in parts}}


def _stored(task: Task) -> dict[str, tuple[Any, str | None, Any]]:
    """Metric name -> cell, key and usage, of the row itself and of what was set aside."""
    from rag_kit.evaluation.cells import Cell

    assert task.row is not None
    row, other = task.row, task.other
    found = {
        name: (Cell.from_json(cell), other.get("keys", {}).get(name), other.get("usage", {}).get(name))
        for name, cell in other.get("cells", {}).items()
    }
    found |= {name: (cell, row.keys.get(name), row.usage.get(name)) for name, cell in row.cells.items()}
    return found
