"""Printing: answers on stdout, remarks and problems on stderr, hostile text made harmless."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from rag_kit.documents.display import UNSAFE, Table, clean_text, columns, cut, one_line
from rag_kit.errors import RagKitError

_PASSWORD = re.compile(r"(:/{1,2}[^\s/@:]*:)\S+@")  # in a URL, also in one that pathlib has made a path of
_STYLES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}


def say(text: str = "", *, style: str = "", indent: str = "", end: str = "\n") -> None:
    """Print a text with control and bidirectional characters escaped, in a style of `_STYLES` on a terminal."""
    _print(textwrap.indent(clean_text(text), indent), sys.stdout, style, end)


def _print(text: str, stream: TextIO, style: str = "", end: str = "\n") -> None:
    """Clear the status line, and print a text that is safe already, in a style if the stream takes it."""
    STATUS.clear()
    if style and _takes_codes(stream):
        text = f"\x1b[{_STYLES[style]}m{text}\x1b[0m"
    print(text, file=stream, end=end, flush=not end)


def _takes_codes(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def erase(text: str) -> None:
    """Erase a text that `say` printed last on a terminal; if it is too long for that, print a blank line."""
    width, height = shutil.get_terminal_size()
    lines = clean_text(text).split("\n")
    # the cursor is in the last row of the text; a line wider than the terminal takes several rows
    rows_up = sum(1 + max(columns(line) - 1, 0) // width for line in lines) - 1
    erasing = (f"\x1b[{rows_up}A" if rows_up else "") + "\r\x1b[J"
    print(erasing if _takes_codes(sys.stdout) and rows_up < height else "\n\n", end="", flush=True)


def say_table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns; cells are never cut, a terminal folds them."""
    if table := list(rows):
        _print(Table(table[0], table[1:], width=100_000).text(), sys.stdout)


class Status:
    """A line on the terminal about what the command is doing; erased by the next output.

    It is written without escape codes and before anything heavy is imported, so that it is there at once.
    """

    def __init__(self) -> None:
        self._columns = 0

    def show(self, text: str) -> None:
        """Replace the status line, if stderr is a terminal."""
        if sys.stderr.isatty():
            self.clear()
            line = cut(one_line(text), shutil.get_terminal_size().columns - 1)
            print(line, end="", file=sys.stderr, flush=True)
            self._columns = columns(line)

    def count(self, what: str, done: int, total: int, **_: Any) -> None:
        """Show how much is done, and what is worked on; the library's functions take this as ``progress``."""
        self.show(f"{done} of {total}  {what}")

    def clear(self) -> None:
        """Erase the status line."""
        if self._columns:
            print("\r" + " " * self._columns, end="\r", file=sys.stderr, flush=True)
            self._columns = 0


#: The one status line of the process.
STATUS = Status()


class _Warnings(logging.Handler):
    """Prints log records as hints, so that a warning does not run into the status line."""

    def emit(self, record: logging.LogRecord) -> None:
        hint(self.format(record))


def prepare_streams() -> None:
    """Let stdout and stderr escape characters that they cannot encode, and print logged warnings as hints."""
    logging.lastResort = _Warnings(logging.WARNING)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the whole process
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def problem(text: str) -> None:
    """Print one line of trouble on stderr, without passwords in URLs."""
    _print("rag-kit: " + _PASSWORD.sub(r"\1***@", one_line(text)), sys.stderr, "red")


def hint(text: str) -> None:
    """Print a remark that is not part of the answer, on stderr."""
    _print(one_line(text), sys.stderr, "dim")


def say_json(value: Any, *, indent: int | None = 2) -> None:
    """Print JSON with control characters escaped, which would steer a terminal, and those that stdout cannot encode."""
    is_unicode = str(sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(value, ensure_ascii=not is_unicode, indent=indent)
    # outside of strings JSON is ASCII, so every unsafe character is in a string and may be escaped there
    _print(UNSAFE.sub(lambda match: json.dumps(match.group())[1:-1], text), sys.stdout)
    sys.stdout.flush()


def error_line(error: BaseException) -> str:
    """Write an exception as one line; call it unexpected unless it is the kit's or the system's."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, RagKitError):
        return text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    from rag_kit.models.redact import redact

    return f"unexpected {type(error).__name__}: {redact(text)} (RAG_KIT_DEBUG=1 shows where)"
