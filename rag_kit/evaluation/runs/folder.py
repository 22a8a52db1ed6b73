"""The folder of a run: rows are appended as they come, and survive a kill; the manifest says what made them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rag_kit.documents.append_log import AppendLog, json_line
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import write_file, write_json
from rag_kit.evaluation.runs.lines import add, read_rows, to_row
from rag_kit.evaluation.runs.results import Results, Row, row_to_json

ROWS = "rows.jsonl"
MANIFEST = "manifest.json"
LOCK = ".lock"
FORMAT = 1


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
        self._log = AppendLog(path / ROWS, lock=path / LOCK)
        self.dropped = 0
        self.damaged = False
        self.clean = False

    def read(self) -> dict[str, dict[str, Any]]:
        """What is known of each example; lines that are half written or damaged are dropped and counted."""
        rows: dict[str, dict[str, Any]] = {}
        lines = 0
        for _, record in read_rows(self.path / ROWS):
            lines += 1
            # a kill leaves one half line, at the end; anything else was somebody's
            self.damaged = self.damaged or self.dropped > 0
            if record is None:
                self.dropped += 1
            else:
                add(rows, record)
        self.clean = not self.dropped and lines == len(rows)
        return rows

    def manifest(self) -> dict[str, Any]:
        """The manifest of the last run; empty where there is none that can be read."""
        return read_manifest(self.path, strict=False)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest."""
        write_json(self.path / MANIFEST, manifest)

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add lines; now and then they are brought to the disk."""
        self.clean = False
        self._log.append(records)

    def rewrite(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Replace the rows, in one step."""
        self._log.release()
        write_file(self.path / ROWS, lambda file: [file.write(json_line(record)) for record in records])

    def keep_copy(self) -> None:
        """Set the rows that are there aside, for those of another pipeline will replace them."""
        rows = self.path / ROWS
        if rows.is_file() and rows.stat().st_size:
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            content = rows.read_bytes()
            write_file(self.path / f"rows.before-{stamp}.jsonl", lambda file: file.write(content))

    def close(self) -> None:
        """Bring everything to the disk and let go of the folder."""
        self._log.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


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
        folder.rewrite({**row_to_json(row)} for row in results.rows)
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
    records: dict[str, dict[str, Any]] = {}
    damaged = []
    number_of_last = 0
    for number, record in read_rows(path / ROWS):
        if record is None:
            damaged.append(number)
        else:
            add(records, record)
            number_of_last = number
    inner = [number for number in damaged if records and number < number_of_last]
    if inner:
        raise InvalidInputError(
            f"{ROWS}:{inner[0]} in {str(path)!r} is damaged; run the evaluation again, which computes what is missing"
        )
    metrics = [entry["name"] for entry in manifest.get("metrics", [])]
    rows = [
        row
        for record in records.values()
        if not record.get("outside") and (row := to_row(record)) is not None and _of_run(row, manifest)
    ]
    return Results(
        manifest.get("name") or path.name, rows, tuple(metrics), manifest, manifest.get("examples")
    )


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
    now = {
        entry["name"]: entry["key"]
        for entry in manifest.get("metrics", [])
        if isinstance(entry, Mapping) and "key" in entry
    }
    wanted = (manifest.get("pipeline") or {}).get("key")
    if wanted and row.keys.get("output", wanted).partition(":")[0] != wanted:
        return False
    for name in list(row.cells):
        key = row.keys.get(name)
        if name in now and key is not None and key.partition(":")[0] != now[name]:
            del row.cells[name]
    return True


def _described(results: Results) -> list[Any]:
    known = {
        entry["name"]: entry
        for entry in results.manifest.get("metrics", [])
        if isinstance(entry, Mapping) and "name" in entry
    }
    return [known.get(name, {"name": name}) for name in results.metrics]
