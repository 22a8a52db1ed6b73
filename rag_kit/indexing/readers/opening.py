"""The one way to open a user's file: a regular file of allowed size, never waited for."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from rag_kit.indexing.readers.parts import Unreadable, over_limit


def open_regular(path: str | Path, max_bytes: int | None = None) -> BufferedReader:
    """Open a file for reading; raises `Unreadable` for what is no regular file, or is larger than allowed.

    A pipe, socket or device is refused without waiting for its other end, also one that has just replaced a file.
    """
    try:
        _check_regular(os.stat(path))  # opening a device may do something
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        file = open(os.open(path, flags), "rb")  # noqa: SIM115 - given back
    except FileNotFoundError as error:
        raise Unreadable("there is no such file", "Check the path") from error
    except (OSError, ValueError) as error:  # not allowed, a broken disk, a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise Unreadable(
            f"it cannot be opened ({reason})", "Check the path, its rights and the disk"
        ) from error
    try:
        status = os.fstat(file.fileno())
        _check_regular(status)
        if max_bytes is not None and status.st_size > max_bytes:
            raise over_limit(f"it has {status.st_size} bytes", "max_bytes", max_bytes)
    except Unreadable:
        file.close()
        raise
    return file


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("it is no regular file but a folder, pipe, socket or device", "Leave it out")
