"""Thesaurus files: JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
from os import PathLike
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError

_MOST_BYTES = 64 << 20


def read_entries(path: str | PathLike[str]) -> Any:
    """What a file holds, as the constructor of ``Thesaurus`` takes it.

    Raises:
        InvalidInputError: The file cannot be read; the message names it, and the line where that is known.
    """
    if not isinstance(path, (str, PathLike)):
        raise InvalidInputError(f"path is {type(path).__name__}; give the path of a .json or .csv file.")
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in (".json", ".csv"):
        raise InvalidInputError(f"{file} ends in {suffix!r}; a thesaurus is a .json or a .csv file.")
    if not file.is_file():
        raise InvalidInputError(f"There is no file {file}.")
    if (size := file.stat().st_size) > _MOST_BYTES:
        raise InvalidInputError(f"{file} has {size:,} bytes; at most {_MOST_BYTES:,} are read.")
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{file} is not UTF-8 ({error}); save it as UTF-8.") from error
    return _json(file, text) if suffix == ".json" else _csv(file, text)


def _json(file: Path, text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for term, related in pairs:
            if term in found:
                raise InvalidInputError(f"{file} has the term {term!r} twice; put its terms into one list.")
            found[term] = related
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInputError(f"{file} is not JSON: {error}") from error


def _csv(file: Path, text: str) -> dict[str, list[str]]:
    entries: dict[str, list[str]] = {}
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            cells = [cell.strip() for cell in row if cell.strip()]
            if not cells:
                continue
            if len(cells) == 1:
                raise InvalidInputError(
                    f"{file}, line {reader.line_num}: {cells[0]!r} stands alone; a row is a term and, separated by "
                    "commas, its related terms."
                )
            entries.setdefault(cells[0], []).extend(cells[1:])
    except csv.Error as error:
        raise InvalidInputError(f"{file}, line {reader.line_num}: {error}") from error
    return entries
