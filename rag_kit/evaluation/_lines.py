"""Reading the text files of a data set; every fault is named by file and line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of ``names`` that is a file in ``folder``, else ``None``."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Give ``(line number from 1, line without its end)`` of a UTF-8 file, plain or ``.gz``.

    Raises:
        InvalidInputError: If the file is no valid UTF-8 or no valid gzip.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                # utf-8-sig only on line 1: elsewhere U+FEFF belongs to the text.
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if text.strip():
                    yield number, text
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path.name}:{number}: not valid UTF-8 ({error.reason}); save it as UTF-8"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidInputError(
            f"{path.name}: not a complete gzip file after line {number} ({error})"
        ) from error


def read_jsonl(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give ``("file:line", object)`` for every line of a JSON Lines file.

    Raises:
        InvalidInputError: If a line is not one JSON object.
    """
    for number, line in read_lines(path):
        where = f"{path.name}:{number}"
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InvalidInputError(f"{where}: not valid JSON ({error}); give one object a line") from error
        if not isinstance(value, dict):
            raise InvalidInputError(
                f"{where}: a JSON {type(value).__name__}, but each line must be an object"
            )
        yield where, value


def take_id(record: dict[str, Any], key: str, where: str) -> str:
    """Take the identifier out of a record; whole numbers become text.

    Raises:
        InvalidInputError: If it is missing, blank or neither text nor a whole number.
    """
    value = record.pop(key, None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(f"{where}: {key!r} is {value!r}; give a text that is not blank")
    return value


def take_text(record: dict[str, Any], key: str, where: str, *, default: str | None = None) -> str:
    """Take a text out of a record (``null`` counts as missing).

    Raises:
        InvalidInputError: If it is missing without a default, or is no text.
    """
    value = record.pop(key, None)
    if value is None:
        value = default
    if not isinstance(value, str):
        raise InvalidInputError(f"{where}: {key!r} is {value!r}; give a text")
    return value


def first_few(values: list[str], limit: int = 5) -> str:
    """Up to ``limit`` of the values, quoted, and how many more there are."""
    shown = ", ".join(repr(value) for value in values[:limit])
    return shown if len(values) <= limit else f"{shown} and {len(values) - limit} more"
