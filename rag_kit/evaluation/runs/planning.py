"""What a run has to do: what the folder holds under the key of an output or a cell is taken up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.folder import Known, take_cell
from rag_kit.evaluation.runs.keys import cell_key, digest, given_digest, metric_key, output_key
from rag_kit.evaluation.runs.results import Row
from rag_kit.evaluation.runs.settings import Settings

_MAX_HASHES = 16


@dataclass
class Task:
    """One example of a run.

    Args:
        example: The example.
        row: Its row; ``None`` until the pipeline has been asked.
        missing: Names of metrics that are to be computed.
    """

    example: Example
    row: Row | None = None
    missing: list[str] = field(default_factory=list)
    _given: str = field(default="", repr=False)

    def start(self, row: Row) -> None:
        """Take the output of the pipeline up."""
        self.row, self._given = row, given_digest(self.example, row.output)

    def cell_key(self, metric: str) -> str:
        """Key of a cell of this row."""
        return cell_key(metric, self._given)

    @property
    def done(self) -> bool:
        """Whether nothing is to be computed."""
        return self.row is not None and not self.missing


class Plan:
    """The tasks of a run.

    Args:
        settings: The run's arguments.
        judge: The judge's fingerprint, if there is one.
        known: What the folder holds.
        before: What the last run's manifest says of its pipeline.
    """

    def __init__(
        self, settings: Settings, judge: Mapping[str, Any] | None, known: Known, before: Mapping[str, Any]
    ) -> None:
        self._settings = settings
        self._known = known
        self.pipeline_key, self._hashes = self._identify(before)
        self.metric_keys = {metric.name: metric_key(metric, judge) for metric in settings.metrics}
        self.tasks = [self._task(example) for example in settings.examples]

    @property
    def rows(self) -> list[Row]:
        """The rows that there are, in the order of the set, each with its cells in the order of the metrics."""
        rows = [task.row for task in self.tasks if task.row is not None]
        for row in rows:
            row.cells = {name: row.cells[name] for name in self.metric_keys if name in row.cells}
            row.keys = {name: row.keys[name] for name in ("output", *row.cells)}
            row.usage = {name: row.usage[name] for name in ("pipeline", *row.cells) if name in row.usage}
        return rows

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

    def start_row(self, task: Task, row: Row) -> None:
        """Take the pipeline's output up, with the cells that were computed from the same."""
        row.keys = {"output": self.output_key(task.example)}
        task.start(row)
        task.missing = []
        for name, metric in self.metric_keys.items():
            record = self._known.cells.get(task.cell_key(metric))
            if record is None or (self._settings.retry_errors and record["value"].get("status") == "error"):
                task.missing.append(name)
            else:
                take_cell(row, name, record)

    def _task(self, example: Example) -> Task:
        task = Task(example)
        record = self._known.outputs.get((example.id, self.output_key(example)))
        if record is not None:
            output = Output.from_json(record["value"])
            if output.error is None or not self._settings.retry_errors:
                usage = {"pipeline": record["usage"]} if "usage" in record else {}
                self.start_row(task, Row(example, output, usage=usage))
        return task
