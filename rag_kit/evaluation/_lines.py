"""Reading the text files of a data set; every fault is named by file and line."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from rag_kit.errors import InvalidInputError


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of ``names`` that is a file in ``folder``, else ``None``."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def raw_lines(path: Path, *, encoding: str = "utf-8", most: int | None = None) -> Iterator[tuple[int, str]]:
    """Give ``(line number from 1, line with its end)`` of a text file, plain or ``.gz``.

    Args:
        path: The file.
        encoding: Its encoding; a mark at the beginning of a UTF-8 file is left out.
        most: Bytes that a line may have; a longer one is refused before it is read.

    Raises:
        InvalidInputError: If the file is not of that encoding, no valid gzip, a line is too long, or the encoding
            is unknown.
    """
    number = 0
    if not isinstance(encoding, str) or "\0" in encoding:
        raise InvalidInputError(f"encoding is {encoding!r:.60}; give a name such as 'utf-8' or 'gb18030'")
    try:
        wide = len("\n".encode(encoding)) > 1
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            if wide:
                with io.TextIOWrapper(cast("Any", file), encoding=encoding, newline="") as text:
                    while line := text.readline(-1 if most is None else most + 1):
                        number += 1
                        _check_length(path, number, len(line), most)
                        yield number, line
                return
            while raw := file.readline(-1 if most is None else most + 1):
                number += 1
                _check_length(path, number, len(raw), most)
                # A mark only on line 1: elsewhere U+FEFF belongs to the text.
                bom = number == 1 and raw.startswith(codecs.BOM_UTF8)
                yield number, (raw.removeprefix(codecs.BOM_UTF8) if bom else raw).decode(encoding)
    except LookupError as error:
        raise InvalidInputError(
            f"encoding is {encoding!r}, which Python does not know; give a name such as 'utf-8' or 'gb18030'"
        ) from error
    except UnicodeError as error:
        reason = getattr(error, "reason", None) or str(error)
        raise InvalidInputError(
            f"{path.name}:{max(number, 1)}: not valid {encoding.upper()} ({reason}); save it as UTF-8"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidInputError(
            f"{path.name}: not a complete gzip file after line {number} ({error})"
        ) from error


def read_lines(path: Path, *, encoding: str = "utf-8", most: int | None = None) -> Iterator[tuple[int, str]]:
    """Give ``(line number from 1, line without its end)``; blank lines are left out.

    Raises:
        InvalidInputError: As :func:`raw_lines`.
    """
    for number, line in raw_lines(path, encoding=encoding, most=most):
        text = line.rstrip("\r\n")
        if text.strip():
            yield number, text


def _check_length(path: Path, number: int, length: int, most: int | None) -> None:
    if most is not None and length > most:
        raise InvalidInputError(
            f"{path.name}:{number}: the line has more than {most:,} bytes; give one record a line"
        )


def read_jsonl(
    path: Path, *, encoding: str = "utf-8", most: int | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give ``("file:line", object)`` for every line of a JSON Lines file.

    Raises:
        InvalidInputError: If a line is not one JSON object.
    """
    for number, line in read_lines(path, encoding=encoding, most=most):
        where = f"{path.name}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
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
