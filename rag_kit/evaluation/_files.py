"""Writing a file as a whole: a reader sees the old content or the new, never a part."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
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


def make_folder(path: Path, target: Path) -> None:
    """Make the folder that a file is to be in.

    Raises:
        InvalidInputError: If the system does not let us.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(target, error) from error


def _unwritable(path: Path, error: OSError) -> InvalidInputError:
    return InvalidInputError(
        f"{str(path)!r} cannot be written ({error.strerror or error}); name another place, or change its permissions"
    )


def write_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Create or replace ``path`` in one step with what ``write`` puts into the open file.

    A device or a pipe is written to as it is: replaced, ``/dev/null`` would be a file from then on.

    Raises:
        InvalidInputError: If no file can be made there.
        OSError: If the disk fails while the file is written; the old content stays.
    """
    make_folder(path.parent, path)
    if path.exists() and not path.is_file() and not path.is_dir():
        try:
            opened = path.open("wb")
        except OSError as error:
            raise _unwritable(path, error) from error
        with opened as file:
            write(file)
        return
    # a name as long as the system allows has no room for what a draft's adds
    draft = path.with_name(f".{path.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        try:
            opened = draft.open("xb")
        except OSError as error:
            raise _unwritable(path, error) from error
        with opened as file:
            if path.is_file():  # one that only its owner may read stays so
                with suppress(OSError):  # some file systems have no such rights
                    draft.chmod(stat.S_IMODE(path.stat().st_mode))
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
