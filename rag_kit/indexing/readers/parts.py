"""Parts that a converter yields, its errors, and the one way to open a user's file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

from rag_kit.concurrency.notes import write_note
from rag_kit.documents import clean_text
from rag_kit.indexing.readers.limits import ReadLimits

Scalar = str | int | float | bool
_STREAM = re.compile(r"(?:\b(?:image )?file )?['\"]?<_io\.\w+ object at 0x[0-9a-fA-F]+>['\"]?")
LEFT_OUT = " left out: "  # in a note, between where something is left out and why
SAVE_AGAIN = "Open it in the program that made it and save it again"


class Unreadable(Exception):
    """A file cannot be converted: ``reason`` says why, ``advice`` what to do about it."""

    def __init__(self, reason: str, advice: str = SAVE_AGAIN) -> None:
        # libraries name the stream that they were given; people know it as the file
        reason = _STREAM.sub("it", reason)
        super().__init__(reason)
        self.reason = reason
        self.advice = advice

    @property
    def message(self) -> str:
        """Reason and advice as one line for people."""
        return clean_text(f"{self.reason}. {self.advice}.")


class OverCap(Unreadable):
    """A file needs more than a cap of `ReadLimits` allows."""

    def __init__(self, need: str, limit: str, value: float) -> None:
        advice = f"Allow more with ReadLimits({limit}=...), or split the file"
        super().__init__(f"{need}, more than {limit}={value:.15g} allows", advice)


@contextmanager
def leave_out(where: str) -> Iterator[None]:
    """Catch an error in the block, and write a note: where in the file something is left out, and why."""
    try:
        yield
    except (OverCap, MemoryError):  # which are about the whole file
        raise
    except Exception as error:  # noqa: BLE001 - whatever a library raises over a broken part
        write_note(f"{where}{LEFT_OUT}{reason_of(error)}")


def read_table(name: str) -> dict[str, str]:
    """Return one of the readers' tables, a file beside this one with lines such as ``lowerRoman: i lower-roman``."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return {key.rstrip(":"): value for key, _, value in (line.partition(" ") for line in lines)}


def reason_of(error: Exception) -> str:
    """Say in words why a converter failed."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    inner = error if str(error) else error.__cause__ or error  # one without a text may have a cause with one
    text = error.reason if isinstance(error, Unreadable) else f"{type(inner).__name__}: {inner}"
    return " ".join(clean_text(_STREAM.sub("it", text.removeprefix("it is "))).split())[:300]


@dataclass
class Part:
    """A part of a file that is read alone: a page, a slide, a group of rows, a chapter, or the whole."""

    text: str
    metadata: dict[str, Scalar] = field(default_factory=dict)  # empty texts are left out
    picture: bytes = b""  # a file, PNG or JPEG, of what the text is about


@dataclass(frozen=True)
class Context:
    """How to read a file; with a ``quote``, find that instead, on ``page`` or on all pages."""

    limits: ReadLimits
    ocr: bool = False
    pictures: bool = False
    folder: str = ""
    quote: str = ""
    page: int = 0

    def check(self, count: int, unit: str, limit: str) -> None:
        """Raise `OverCap` for a count of something (``"pages"``) that is over a cap (``"max_pages"``)."""
        if count > (cap := getattr(self.limits, limit)):
            raise OverCap(f"it has over {cap} {unit}", limit, cap)


def open_regular(path: str | Path, max_bytes: int | None = None) -> BufferedReader:
    """Open a file for reading; raises `Unreadable` if it is no regular file, or larger than allowed.

    A pipe, socket or device is refused without waiting for its other end. The opened file is checked again, since
    another process may have replaced it by one.
    """
    try:
        _check_regular(os.stat(path))  # before it is opened: some devices do something then
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        file = open(os.open(path, flags), "rb")  # noqa: SIM115 - given back
    except FileNotFoundError as error:
        raise Unreadable("there is no such file", "Check the path") from error
    except (OSError, ValueError) as error:  # not allowed, a broken disk, a null character in the name
        reason = getattr(error, "strerror", None) or error
        advice = "Check the path, its rights and the disk"
        raise Unreadable(f"it cannot be opened ({reason})", advice) from error
    try:
        status = os.fstat(file.fileno())
        _check_regular(status)
        if max_bytes is not None and status.st_size > max_bytes:
            raise OverCap(f"it has {status.st_size} bytes", "max_bytes", max_bytes)
    except Unreadable:
        file.close()
        raise
    return file


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("it is no regular file but a folder, pipe, socket or device", "Leave it out")
