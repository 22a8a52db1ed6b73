"""The folder of a run: each result is appended to a log at once and survives a kill; the rows are written last.

``log.jsonl`` holds outputs and cells, each under a key that says what it was computed from (`runs.keys`);
``rows.jsonl`` the rows of the last run, ``manifest.json`` what made them. What stands under a key is never computed
again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_kit.documents.append_log import AppendLog, json_line, read_log
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import write_file, write_json
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.keys import cell_key, given_digest
from rag_kit.evaluation.runs.results import Results, Row, row_from_json, row_to_json

ROWS = "rows.jsonl"
LOG = "log.jsonl"
MANIFEST = "manifest.json"
LOCK = ".lock"
FORMAT = 1
#: Ends, in the log, what no row of the run needs; what comes later the run has computed.
_BEGUN = {"begun": True}
Record = dict[str, Any]


@dataclass
class Known:
    """What a folder holds.

    Args:
        outputs: Example id and key of an output -> its record: ``output`` (the key), ``example``, ``value``, ``usage``.
        cells: Key of a cell -> its record: ``cell`` (the key), ``value``, ``usage``.
    """

    outputs: dict[tuple[str, str], Record] = field(default_factory=dict)
    cells: dict[str, Record] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take a record of the log up; one of another form is left out."""
        try:
            if "output" in record:
                Output.from_json(record["value"])
                self.outputs[record["example"]["id"], record["output"]] = record
            else:
                Cell.from_json(record["value"])
                self.cells[record["cell"]] = record
        except _ODD:
            return

    def add_row(self, row: Row) -> None:
        """Take the output and the cells of a row up; what has no key is left out."""
        if "output" in row.keys:
            self.outputs[row.example.id, row.keys["output"]] = output_record(row)
        for name in row.cells:
            if name in row.keys:
                self.cells[row.keys[name]] = cell_record(row, name)

    def records(self, without: Iterable[Row]) -> list[Record]:
        """Everything but what stands in these rows."""
        rows = list(without)
        outputs = {(row.example.id, row.keys.get("output")) for row in rows}
        cells = {key for row in rows for name, key in row.keys.items() if name != "output"}
        left = [record for key, record in self.outputs.items() if key not in outputs]
        return left + [record for key, record in self.cells.items() if key not in cells]


def output_record(row: Row) -> Record:
    """The output of a row as a record of the log."""
    record = {
        "output": row.keys["output"],
        "example": row.example.to_json(),
        "value": row.output.to_json(),
    }
    return {**record, "usage": row.usage["pipeline"]} if row.usage.get("pipeline") else record


def cell_record(row: Row, metric: str) -> Record:
    """A cell of a row as a record of the log."""
    record = {"cell": row.keys[metric], "value": row.cells[metric].to_json()}
    return {**record, "usage": row.usage[metric]} if row.usage.get(metric) else record


class RunFolder:
    """The folder of a run, opened for writing. Its methods block: call them outside of an event loop.

    Args:
        path: The folder; made if it is not there.

    Raises:
        InvalidInputError: If it is a file, or a folder that holds something else.
        ResultsLockedError: If another process, or another run of this one, writes to it.
    """

    def __init__(self, path: Path) -> None:
        check_folder(path)
        self.path = path
        self._log = AppendLog(path / LOG, lock=path / LOCK)
        self._known = Known()

    def read(self) -> Known:
        """What outputs and cells there are; a ``rows.jsonl`` with other lines is set aside as it is."""
        self._known = Known()
        damaged: list[int] = []
        number = 0
        for number, record in read_log(self.path / ROWS):
            row = None if record is None else _to_row(record)
            if row is None:
                damaged.append(number)
            else:
                self._known.add_row(row)
        if damaged and damaged != [number]:  # a half line at the end is what a kill leaves
            self._keep_copy()
        for _, record in read_log(self.path / LOG):
            if record is not None:
                self._known.add(record)
        return self._known

    def manifest(self) -> dict[str, Any]:
        """The manifest of the last run; empty where there is none that can be read."""
        return read_manifest(self.path, strict=False)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest."""
        write_json(self.path / MANIFEST, manifest)

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records to the log; now and then they are brought to the disk."""
        self._log.append(records)

    def save(self, rows: Iterable[Row]) -> None:
        """Make these the rows; what else is known stays in the log. Files that hold that already are left alone."""
        rows = list(rows)
        left = self._known.records(without=rows)
        self._log.release()
        _replace(self.path / ROWS, [row_to_json(row) for row in rows])
        _replace(self.path / LOG, [*left, _BEGUN] if left else [])

    def close(self) -> None:
        """Bring everything to the disk and let go of the folder."""
        self._log.close()

    def _keep_copy(self) -> None:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        content = (self.path / ROWS).read_bytes()
        write_file(self.path / f"rows.before-{stamp}.jsonl", lambda file: file.write(content))

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


def check_folder(path: Path) -> None:
    """Refuse a path that cannot be a folder of results.

    Raises:
        InvalidInputError: If it is a file, or a folder that holds something else.
    """
    existing = next(each for each in (path.absolute(), *path.absolute().parents) if os.path.lexists(each))
    if existing.is_symlink() and not existing.exists():
        raise InvalidInputError(f"{str(path)!r}: {existing.name!r} is a link to nothing; name another folder")
    if not existing.is_dir():
        raise InvalidInputError(f"{str(path)!r}: {existing.name!r} is a file; name a folder for the results")
    if existing != path.absolute():
        return
    taken = next((name for name in (ROWS, MANIFEST, LOCK) if (path / name).is_dir()), None)
    if taken is not None:
        raise InvalidInputError(
            f"{taken!r} in {str(path)!r} is a folder; name another folder for the results"
        )
    # a run that was killed or cancelled while it wrote its first file leaves that file's draft
    drafts = {each.name for each in path.glob(f".{MANIFEST}.*.tmp")}
    names = {each.name for each in path.iterdir()} - {LOCK} - drafts
    if names and not names & {ROWS, MANIFEST}:
        raise InvalidInputError(
            f"{str(path)!r} holds other things ({sorted(names)[0]!r}); name a new folder, or one with results"
        )


def save_results(results: Results, path: Path) -> Path:
    """Write results as a whole; what `Results.save` does."""
    with RunFolder(path) as folder:
        folder.save(results.rows)
        folder.write_manifest(
            {
                "format": FORMAT,
                **results.manifest,
                "name": results.name,
                "metrics": _described(results),
                "examples": results.examples,
            }
        )
    return path


def load_results(path: Path) -> Results:
    """Read results; what `Results.load` does."""
    manifest = read_manifest(path)
    rows: dict[str, Row] = {}
    damaged: list[int] = []
    number = 0
    for number, record in read_log(path / ROWS):
        row = None if record is None else _to_row(record)
        if row is None:
            damaged.append(number)
        elif _of_run(row, manifest):
            rows[row.example.id] = row
    if damaged and rows and damaged != [number]:
        raise InvalidInputError(
            f"{ROWS}:{damaged[0]} in {str(path)!r} is damaged; run the evaluation again, which computes what is missing"
        )
    if manifest.get("status") == "running":
        _add_computed(rows, path, manifest)
    metrics = [entry["name"] for entry in manifest.get("metrics", [])]
    name = manifest.get("name") or path.name
    return Results(name, list(rows.values()), tuple(metrics), manifest, manifest.get("examples"))


def _add_computed(rows: dict[str, Row], path: Path, manifest: Mapping[str, Any]) -> None:
    """Add to rows what a run that goes on, or was killed, has computed so far."""
    known = Known()
    for _, record in read_log(path / LOG):
        if record == _BEGUN:
            known.outputs.clear()  # of other runs; cells count wherever their key is the same
        elif record is not None:
            known.add(record)
    for (example, key), record in known.outputs.items():
        row = _to_row({"example": record["example"], "output": record["value"], "keys": {"output": key}})
        if row is not None and _of_run(row, manifest):
            row.usage = {"pipeline": record["usage"]} if "usage" in record else {}
            rows[example] = row
    for row in rows.values():
        given = given_digest(row.example, row.output)
        for name, metric in _keys_of(manifest).items():
            if record := known.cells.get(cell_key(metric, given)):
                take_cell(row, name, record)


def take_cell(row: Row, metric: str, record: Record) -> None:
    """Put the cell of a record of the log into a row."""
    row.cells[metric], row.keys[metric] = Cell.from_json(record["value"]), record["cell"]
    if record.get("usage"):
        row.usage[metric] = record["usage"]


#: What reading a record of another form may raise.
_ODD = (ValueError, TypeError, AttributeError, KeyError)


def _to_row(record: Record) -> Row | None:
    """The row of a line; ``None`` if it is of another form."""
    try:
        row = row_from_json(record)
    except _ODD:
        return None
    return row if all(isinstance(key, str) for key in row.keys.values()) else None


def read_manifest(path: Path, *, strict: bool = True) -> dict[str, Any]:
    """The manifest of a folder.

    Raises:
        InvalidInputError: If there is none, or it is of another format (unless not ``strict``: then it is empty).
    """
    try:
        value = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if not strict:
            return {}
        why = "there is no" if isinstance(error, FileNotFoundError) else "there is a damaged"
        raise InvalidInputError(f"{why} {MANIFEST} in {str(path)!r}; name a folder of results") from None
    if isinstance(value, dict) and value.get("format") == FORMAT and not _is_manifest(value):
        if not strict:
            return {}
        raise InvalidInputError(f"there is a damaged {MANIFEST} in {str(path)!r}; run the evaluation again")
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        if not strict:
            return {}
        raise InvalidInputError(
            f"the results in {str(path)!r} are of another format; this version reads format {FORMAT}"
        )
    return value


def _is_manifest(value: Mapping[str, Any]) -> bool:
    """Whether what is read of a manifest has the form that it is written in."""
    metrics, pipeline, examples = value.get("metrics", []), value.get("pipeline"), value.get("examples")
    return (
        isinstance(value.get("name"), str | None)
        and isinstance(metrics, list)
        and all(isinstance(entry, Mapping) and isinstance(entry.get("name"), str) for entry in metrics)
        and isinstance(pipeline, Mapping | None)
        and (examples is None or type(examples) is int)
    )


def _of_run(row: Row, manifest: Mapping[str, Any]) -> bool:
    """Whether a row belongs to the run that the manifest is of; cells of other settings are taken out of it.

    A run that was stopped after a change leaves rows of before the change behind it.
    """
    now = _keys_of(manifest)
    wanted = (manifest.get("pipeline") or {}).get("key")
    if wanted and row.keys.get("output", wanted).partition(":")[0] != wanted:
        return False
    for name in list(row.cells):
        key = row.keys.get(name)
        if name in now and key is not None and key.partition(":")[0] != now[name]:
            del row.cells[name]
    return True


def _keys_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Metric -> its key."""
    return {entry["name"]: entry["key"] for entry in manifest.get("metrics", []) if "key" in entry}


def _described(results: Results) -> list[Any]:
    known = {
        entry["name"]: entry
        for entry in results.manifest.get("metrics", [])
        if isinstance(entry, Mapping) and "name" in entry
    }
    return [known.get(name, {"name": name}) for name in results.metrics]
