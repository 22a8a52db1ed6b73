"""Rows of a run, and the folder that they are kept in.

``log.jsonl`` holds outputs and cells, each appended at once under a key that says what it was computed from;
``rows.jsonl`` holds the rows of the last run, ``manifest.json`` what made them. What stands under a key is never
computed again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_kit._redact import redact
from rag_kit.documents.append_log import AppendLog, json_line, read_log
from rag_kit.documents.plain import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import write_file, write_json
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.metering import Usage

ROWS = "rows.jsonl"
LOG = "log.jsonl"
MANIFEST = "manifest.json"
LOCK = ".lock"
FORMAT = 1
#: Stands in the log behind what no row of the run needs; what comes later, the run has computed.
_BEGUN = {"begun": True}
#: Fields of an output that say what it took, and not what it is.
_COST = ("calls", "tokens", "seconds")
_SECRET = re.compile(r"(?i)(api[_-]?key|secret|token|password|passwd|authorization|credential)$")
#: What reading a record of another form may raise.
_ODD = (ValueError, TypeError, AttributeError, KeyError)
Record = dict[str, Any]


@dataclass
class Row:
    """One example, what the pipeline gave for it, and how that was scored.

    Args:
        example: The question and its gold.
        output: What the pipeline gave; ``output.error`` says why it gave nothing.
        cells: Metric name -> its cell; a metric that was not reached yet is not there.
        usage: ``"pipeline"`` or a metric's name -> model -> ``calls``, ``input_tokens``, ``output_tokens``, of
            the requests that were really made.
        keys: ``"output"`` or a metric's name -> a hash of what it was computed from.
    """

    example: Example
    output: Output
    cells: dict[str, Cell] = field(default_factory=dict)
    usage: dict[str, Usage] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def to_json(self) -> Record:
        """The row as one line of ``rows.jsonl``."""
        example, output = self.example.to_json(), self.output.to_json()
        cells = {name: cell.to_json() for name, cell in self.cells.items()}
        record = {"id": self.example.id, "example": example, "output": output, "cells": cells}
        return _with_usage(record, self.usage) | ({"keys": self.keys} if self.keys else {})

    @classmethod
    def from_json(cls, record: Any) -> Row:
        """Read a row that ``to_json`` made.

        Raises:
            InvalidInputError: If it is no such record.
        """
        try:
            cells = {name: Cell.from_json(cell) for name, cell in record.get("cells", {}).items()}
            usage, keys = dict(record.get("usage", {})), dict(record.get("keys", {}))
            if not all(isinstance(key, str) for key in keys.values()):
                raise TypeError("a key is no text")
            output = Output.from_json(record["output"])
            return cls(Example.from_json(record["example"]), output, cells, usage, keys)
        except _ODD as error:
            raise InvalidInputError(f"{record!r:.200} is no row of results: {error}") from error

    def output_record(self) -> Record:
        """The output as a line of the log."""
        example, value = self.example.to_json(), self.output.to_json()
        return _with_usage(
            {"output": self.keys["output"], "example": example, "value": value}, self.usage.get("pipeline")
        )

    def cell_record(self, metric: str) -> Record:
        """A cell as a line of the log."""
        return _cell_record(self.keys[metric], self.cells[metric], self.usage.get(metric))


def _cell_record(key: str, cell: Cell, usage: Usage | None) -> Record:
    return _with_usage({"cell": key, "value": cell.to_json()}, usage)


def _with_usage(record: Record, usage: Mapping[str, Any] | None) -> Record:
    return {**record, "usage": usage} if usage else record


def digest(value: Any) -> str:
    """A short hash of plain JSON; the order of keys does not matter.

    Example:
        >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
        True
    """
    text = json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:24]


def given_digest(example: Example, output: Output) -> str:
    """A hash of what every metric is given: the example, and what the pipeline gave."""
    given = {name: value for name, value in output.to_json().items() if name not in _COST}
    return digest([example.to_json(), given])


def clean(value: Any) -> Any:
    """Plain JSON in which texts that look like keys, and values whose name says so, are masked.

    Example:
        >>> clean({"model": "gpt", "api_key": "abc", "note": "Bearer abcdef123456"})
        {'model': 'gpt', 'api_key': '***', 'note': 'Bearer ***'}
    """
    value = to_plain(value)
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, Mapping):
        return {
            key: "***" if isinstance(item, str) and item and _SECRET.search(key) else clean(item)
            for key, item in value.items()
        }
    return value


class Known:
    """Outputs and cells by the keys of what they were computed from."""

    def __init__(self) -> None:
        self.outputs: dict[tuple[str, str], Row] = {}
        self.cells: dict[str, tuple[Cell, Usage | None]] = {}

    def add_row(self, row: Row) -> None:
        """Add the output and the cells of a row; what has no key is left out."""
        if key := row.keys.get("output"):
            usage = {"pipeline": row.usage["pipeline"]} if row.usage.get("pipeline") else {}
            self.outputs[row.example.id, key] = Row(row.example, row.output, {}, usage, {"output": key})
        for name, cell in row.cells.items():
            if name in row.keys:
                self.cells[row.keys[name]] = cell, row.usage.get(name)

    def add(self, record: Record | None) -> None:
        """Add what a line of the log says; a damaged one is left out."""
        try:
            if record is not None and "output" in record:
                keys, usage = {"output": record["output"]}, record.get("usage")
                example, output = Example.from_json(record["example"]), Output.from_json(record["value"])
                self.add_row(Row(example, output, {}, {"pipeline": usage} if usage else {}, keys))
            elif record is not None and "cell" in record:
                self.cells[record["cell"]] = Cell.from_json(record["value"]), record.get("usage")
        except _ODD:
            return

    def fill(self, row: Row, metrics: Mapping[str, str], given: str, *, errors: bool = True) -> None:
        """Give a row the cells that are known for it.

        Args:
            row: The row.
            metrics: Metric name -> key of the metric.
            given: The row's `given_digest`.
            errors: Whether cells that failed count as known.
        """
        for name, metric in metrics.items():
            key = f"{metric}:{given}"
            if key in self.cells and (errors or self.cells[key][0].status != "error"):
                row.keys[name] = key
                row.cells[name], usage = self.cells[key]
                if usage:
                    row.usage[name] = usage

    def records(self, without: Iterable[Row]) -> list[Record]:
        """Everything but what stands in these rows, as lines of the log."""
        rows = list(without)
        outputs = {(row.example.id, row.keys.get("output")) for row in rows}
        cells = {key for row in rows for key in row.keys.values()}
        left = [row.output_record() for key, row in self.outputs.items() if key not in outputs]
        return left + [_cell_record(key, *each) for key, each in self.cells.items() if key not in cells]


class RunFolder:
    """The folder of a run, opened for writing. Its methods block: call them outside of an event loop.

    Args:
        path: The folder; made if it is not there.

    Raises:
        InvalidInputError: If it is a file, or a folder that holds something else.
        ResultsLockedError: If another process, or another run of this one, writes to it.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise InvalidInputError(f"{str(path)!r} is a file; name a folder for the results")
        if path.is_dir() and not (path / MANIFEST).is_file():
            # a run that was killed while it wrote its first file leaves the lock and that file's draft
            drafts = {each.name for each in path.glob(f".{MANIFEST}.*.tmp")}
            others = sorted({each.name for each in path.iterdir()} - {LOCK} - drafts)
            if others:
                raise InvalidInputError(
                    f"{str(path)!r} holds other things ({others[0]!r}); name a new folder, or one with results"
                )
        self.path = path
        self._log = AppendLog(path / LOG, lock=path / LOCK)
        self.known = Known()
        for _, record in read_log(path / ROWS):
            try:
                self.known.add_row(Row.from_json(record))
            except InvalidInputError:
                continue  # what stood there is computed again
        for _, record in read_log(path / LOG):
            self.known.add(record)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest."""
        write_json(self.path / MANIFEST, manifest)

    def append(self, records: Iterable[Record]) -> None:
        """Add records to the log; now and then they are brought to the disk."""
        self._log.append(records)

    def save(self, rows: Iterable[Row]) -> None:
        """Make these the rows; what else is known stays in the log. Files that hold that already are left alone."""
        rows = list(rows)
        left = self.known.records(without=rows)
        self._log.release()
        _replace(self.path / ROWS, [row.to_json() for row in rows])
        _replace(self.path / LOG, [*left, _BEGUN] if left else [])

    def close(self) -> None:
        """Bring everything to the disk and let go of the folder."""
        self._log.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _replace(path: Path, records: list[Record]) -> None:
    """Make these the lines of a file in one step; without any there is no file."""
    content = b"".join(map(json_line, records))
    if not content:
        path.unlink(missing_ok=True)
    elif not path.is_file() or path.read_bytes() != content:
        write_file(path, lambda file: file.write(content))


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a folder.

    Raises:
        InvalidInputError: If there is none, it is damaged, or of another format.
    """
    try:
        value = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInputError(
            f"there is no {MANIFEST} in {str(path)!r}; name a folder of results"
        ) from None
    except (OSError, ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and value.get("format") != FORMAT:
        raise InvalidInputError(
            f"the results in {str(path)!r} are of another format; this version reads format {FORMAT}"
        )
    if not isinstance(value, dict) or not _has_form(value):
        raise InvalidInputError(f"there is a damaged {MANIFEST} in {str(path)!r}; run the evaluation again")
    return value


def _has_form(manifest: Mapping[str, Any]) -> bool:
    """Whether what is read of a manifest has the form that it is written in."""
    metrics, examples = manifest.get("metrics", []), manifest.get("examples")
    return (
        isinstance(manifest.get("name"), str | None)
        and isinstance(metrics, list)
        and all(isinstance(entry, Mapping) and isinstance(entry.get("name"), str) for entry in metrics)
        and isinstance(manifest.get("pipeline"), Mapping | None)
        and (examples is None or type(examples) is int)
    )


def read_rows(path: Path, manifest: Mapping[str, Any]) -> list[Row]:
    """The rows of a folder; of a run that goes on, or was killed, what it has computed so far.

    Raises:
        InvalidInputError: If a line is damaged that is not the last one, which a kill can cut off.
    """
    rows: dict[str, Row] = {}
    damaged: list[int] = []
    number = 0
    for number, record in read_log(path / ROWS):
        try:
            row = Row.from_json(record)
            rows[row.example.id] = row
        except InvalidInputError:
            damaged.append(number)
    if damaged and rows and damaged != [number]:
        raise InvalidInputError(
            f"{ROWS}:{damaged[0]} in {str(path)!r} is damaged; run the evaluation again, which computes what is missing"
        )
    if manifest.get("status") == "running":
        return _rows_so_far(path, manifest, rows.values())
    return list(rows.values())


def _rows_so_far(path: Path, manifest: Mapping[str, Any], rows: Iterable[Row]) -> list[Row]:
    """Rows whose output and cells have the keys that the manifest names."""
    known = Known()
    for row in rows:
        known.add_row(row)
    taken = dict(known.outputs)
    for _, record in read_log(path / LOG):
        if record == _BEGUN:
            known.outputs = dict(
                taken
            )  # others are of other runs; cells count wherever their key is the same
        else:
            known.add(record)
    pipeline = f"{manifest['pipeline']['key']}:"
    metrics = {entry["name"]: entry["key"] for entry in manifest["metrics"]}
    found = [row for (_, key), row in known.outputs.items() if key.startswith(pipeline)]
    for row in found:
        known.fill(row, metrics, given_digest(row.example, row.output))
    return found
