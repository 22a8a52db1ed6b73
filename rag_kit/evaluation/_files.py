"""Writing a file as a whole: a reader sees the old content or the new, never a part."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from rag_kit.errors import InvalidInputError


def as_path(value: Any, what: str) -> Path:
    """A path that a user gave.

    Raises:
        InvalidInputError: If it is none, or no file could have such a name.
    """
    if not isinstance(value, (str, Path)) or not str(value):
        raise InvalidInputError(f"{what} is {value!r:.80}; give a path")
    try:
        Path(value).is_file()  # asks the system
        os.fsencode(value)
        right = "\0" not in str(value)
    except (OSError, ValueError):
        right = False
    if not right:
        raise InvalidInputError(
            f"{what} is {str(value)!a:.80}, which no file can be called; give another path"
        )
    return Path(value)


def check_target(path: Path | None) -> None:
    """Refuse a file that could not be written, before the work that it is for.

    Raises:
        InvalidInputError: If the path is a folder, or lies below a file.
    """
    if path is None:
        return
    if path.is_dir():
        raise InvalidInputError(f"{str(path)!r} is a folder; give the name of a file")
    existing = next(parent for parent in path.absolute().parents if parent.exists())
    if not existing.is_dir():
        raise InvalidInputError(f"{str(path)!r} lies below {existing.name!r}, which is a file")


def write_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Create or replace ``path`` in one step with what ``write`` puts into the open file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with draft.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write an indented JSON file; NaN is refused."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    write_file(path, lambda file: file.write(text.encode("utf-8")))


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write one JSON object a line; NaN is refused."""
    text = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    write_file(path, lambda file: file.write(text.encode("utf-8")))
