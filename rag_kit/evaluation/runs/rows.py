"""Rows of a run, and the folder that they are kept in.

``rows.jsonl`` holds the rows of the last run that ended, ``manifest.json`` what made them. ``log.jsonl`` holds whatever
else was computed: each output and each cell, appended at once, under a key that says what it was computed from.
What stands under a key is never computed again.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rag_kit._redact import redact
from rag_kit.documents.files import AppendLog, json_line, read_log
from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import write_file, write_json
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output

T = TypeVar("T", Output, Cell)

ROWS = "rows.jsonl"
_MODE = 0o600  # questions, passages and answers are for the owner alone
LOG = "log.jsonl"
MANIFEST = "manifest.json"
LOCK = ".lock"
FORMAT = 1
PIPELINE = "pipeline"  # the part of a row that is no metric
_COST = ("calls", "tokens", "seconds")  # fields of an output that say what it took, and not what it is
_SECRET = re.compile(r"(?i)(api[_-]?key|secret|token|password|passwd|authorization|credential)$")
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError)  # raised by a record of another form
Record = dict[str, Any]
Usage = dict[str, dict[str, int]]  # model -> input_tokens, output_tokens


@dataclass
class Row:
    """One example, its output (``output.error``: why there is none), and its scores.

    By ``"pipeline"`` and metric, ``usage`` has model -> ``input_tokens``, ``output_tokens`` of the requests really
    made, and ``keys`` a hash of what each is computed from.
    """

    example: Example
    output: Output
    cells: dict[str, Cell] = field(default_factory=dict)  # metric -> cell; one not reached yet is not there
    usage: dict[str, Usage] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def to_json(self) -> Record:
        """Return the row as one line of ``rows.jsonl``."""
        example, output = self.example.to_json(), self.output.to_json()
        cells = {name: cell.to_json() for name, cell in sorted(self.cells.items())}
        record = {"id": self.example.id, "example": example, "output": output, "cells": cells}
        for name, values in (("usage", self.usage), ("keys", self.keys)):
            if present := {part: values[part] for part in (PIPELINE, *cells) if part in values}:
                record[name] = present
        return record

    @classmethod
    def from_json(cls, record: Any) -> Row:
        """Read a row that ``to_json`` made."""
        try:
            cells = {name: Cell.from_json(cell) for name, cell in record.get("cells", {}).items()}
            maps: dict[str, dict[str, Any]] = {name: dict(record.get(name, {})) for name in ("usage", "keys")}
            example, output = Example.from_json(record["example"]), Output.from_json(record["output"])
            return cls(example, output, cells, **maps)
        except _UNREADABLE as error:
            raise InvalidInputError(f"{record!r:.200} is no row of results: {error}") from error

    def log_record(self, part: str) -> Record:
        """Return the log's line for a part of the row: the output (``"pipeline"``) or the cell of a metric."""
        value = self.output if part == PIPELINE else self.cells[part]
        record = {"key": self.keys[part], "id": self.example.id, "part": part, "value": value.to_json()}
        if usage := self.usage.get(part):
            record["usage"] = usage
        return record

    def log_records(self) -> dict[str, Record]:
        """Return the lines of the log for output and cells, by their keys; those without a key are left out."""
        parts = (PIPELINE, *self.cells)
        return {self.keys[part]: self.log_record(part) for part in parts if part in self.keys}


def digest(value: Any) -> str:
    """Return a short hash of plain JSON; the order of keys does not matter."""
    text = json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:24]


def hash_input(example: Example, output: Output) -> str:
    """Hash what every metric is given: the example, and the output without its cost."""
    content = {name: value for name, value in output.to_json().items() if name not in _COST}
    return digest([example.to_json(), content])


def clean(value: Any) -> Any:
    """Return plain JSON without secrets: texts that look like one, or whose name (``api_key``) says so, are masked.

    Example:
        >>> clean({"model": "gpt", "api_key": "abc", "note": "Bearer abcdef123456"})
        {'model': 'gpt', 'api_key': '***', 'note': 'Bearer ***'}
    """
    value = to_plain(value)
    if isinstance(value, Mapping):
        secret = {
            key for key, item in value.items() if item and isinstance(item, str) and _SECRET.search(key)
        }
        return {key: "***" if key in secret else clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return redact(value) if isinstance(value, str) else value


class RunFolder:
    """The folder of a run, opened for writing; made if missing.

    Its methods block: call them outside of an event loop. One writer at a time, else `LockedError`.
    """

    def __init__(self, path: Path) -> None:
        if in_the_way := _foreign_names(path):
            raise InvalidInputError(
                f"{str(path)!r} holds something else ({min(in_the_way)!r}); name a new folder, or one with results"
            )
        self.path = path
        self._saving = threading.Lock()
        self._log = AppendLog(path / LOG, lock=path / LOCK)
        self._stored: dict[str, Record] = {}  # outputs and cells, by key, that no row of this run has taken
        try:
            for row in map(_read_row, read_log(path / ROWS)):
                if row is not None:
                    self._stored |= row.log_records()
            self._keys_in_rows = set(self._stored)
            for _, record in read_log(path / LOG):
                if record is not None:
                    self._stored[str(record.get("key"))] = to_plain(record)
        except BaseException:
            self._log.close()
            raise

    def take(self, key: str, kind: type[T], retry_errors: bool) -> tuple[T, Usage] | None:
        """Remove and return the output or cell that is stored under a key, and its usage.

        Return ``None``, and remove nothing, if there is none, it is damaged, or it is an error to be tried again.
        """
        try:
            record = self._stored[key]
            value, usage = kind.from_json(record["value"]), dict(record.get("usage", {}))
        except _UNREADABLE:
            return None
        is_error = bool(value.error) if isinstance(value, Output) else value.status == "error"
        if retry_errors and is_error:
            return None
        del self._stored[key]
        return value, usage

    def append(self, row: Row, part: str) -> None:
        """Write an output or a cell to the log at once."""
        self._log.append([row.log_record(part)])

    def save(self, rows: list[Row], manifest: Mapping[str, Any]) -> None:
        """Write rows and manifest; outputs and cells that no row uses stay in the log."""
        with self._saving:
            used_keys = {row.keys.get(part) for row in rows for part in (PIPELINE, *row.cells)}
            unused = {key: record for key, record in self._stored.items() if key not in used_keys}
            # a kill while rows.jsonl is replaced must not lose what only that file holds
            self._log.append(record for key, record in unused.items() if key in self._keys_in_rows)
            self._log.close_file()
            _replace_lines(self.path / ROWS, lambda: map(Row.to_json, rows))
            self.write_manifest(manifest)
            _replace_lines(self.path / LOG, unused.values)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest."""
        write_json(self.path / MANIFEST, {"format": FORMAT, **manifest}, mode=_MODE)

    def close(self) -> None:
        """Write everything to the disk, and release the folder."""
        with self._saving:
            self._log.close()


def _foreign_names(path: Path) -> set[str]:
    """Return the names at a path that show that it holds no results; a user's files may lie beside a manifest."""
    if not path.is_dir():
        return {path.name} if path.exists() else set()
    names = {entry.name for entry in path.iterdir()}
    if MANIFEST not in names:  # a run that was killed while it wrote its first file leaves lock and draft
        return {name for name in names if name != LOCK and not name.startswith(f".{MANIFEST}.")}
    try:
        read_manifest(path)
    except InvalidInputError:  # damaged, or another program's: many have a file of that name
        is_run = LOCK in names or any(map(_read_row, read_log(path / ROWS)))
        return set() if is_run else {MANIFEST}
    return set()


def _replace_lines(path: Path, records: Callable[[], Iterable[Record]]) -> None:
    """Replace a file by records, or remove it if there are none; each call of ``records`` starts to yield them anew."""
    if next(iter(records()), None) is None:
        path.unlink(missing_ok=True)
    else:
        write_file(path, lambda file: file.writelines(map(json_line, records())), mode=_MODE)


def read_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest of a folder of results; raise `InvalidInputError` if there is none, or it is damaged."""
    if not (path / MANIFEST).is_file():
        raise InvalidInputError(f"there is no {MANIFEST} in {str(path)!r}; name a folder of results")
    try:
        record = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        names = [record.get("name") or "", *(entry["name"] for entry in record.get("metrics") or ())]
        are_texts = all(isinstance(name, str) for name in names)
        is_valid = record["format"] == FORMAT and are_texts and isinstance(record.get("examples"), int | None)
    except (OSError, RecursionError, *_UNREADABLE):
        is_valid = False
    if not is_valid:
        raise InvalidInputError(
            f"the {MANIFEST} in {str(path)!r} is damaged, or not of format {FORMAT}; run the evaluation again"
        )
    return dict(record)


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a folder; a damaged last line, cut off by a kill, is left out; another one is an error."""
    lines = list(read_log(path / ROWS))
    rows = list(map(_read_row, lines))
    if None in rows[:-1]:
        number, _ = lines[rows.index(None)]
        raise InvalidInputError(
            f"{ROWS}:{number} in {str(path)!r} is damaged; run the evaluation again, which computes what is missing"
        )
    return [row for row in rows if row is not None]


def _read_row(line: tuple[int, Record | None]) -> Row | None:
    """Read a numbered line of ``rows.jsonl``; ``None`` if it is damaged."""
    _, record = line
    try:
        return Row.from_json(record)
    except InvalidInputError:
        return None
