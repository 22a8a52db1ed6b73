"""Printing: answers on stdout, remarks and problems on stderr, hostile text made harmless."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import textwrap
import traceback
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from rag_kit.documents import tables
from rag_kit.documents.clean import UNSAFE, clean_text
from rag_kit.errors import RagKitError

#: Wider than any row of a table: cells are never cut, a terminal folds them.
_ENDLESS = 100_000
_STYLES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}


def say(text: str = "", *, style: str = "", indent: str = "", end: str = "\n") -> None:
    """Print text; control and bidirectional characters are escaped.

    Args:
        text: Any text.
        style: A name of `_STYLES`, for terminals.
        indent: Stands before each line.
        end: Stands behind it; "" for a piece of an answer, which is printed at once.
    """
    _print(textwrap.indent(clean_text(text), indent), sys.stdout, style, end)


def _print(text: str, stream: TextIO, style: str = "", end: str = "\n") -> None:
    """Print a text that is safe in the place of the status line."""
    STATUS.clear()
    coloured = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    shown = f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if style and coloured else text
    print(shown, file=stream, end=end, flush=not end)


def say_table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns."""
    if listed := list(rows):
        _print(tables.Table(listed[0], listed[1:], width=_ENDLESS).text(), sys.stdout)


class Status:
    """A line on the terminal that says what the command is doing; erased by the next output.

    It is written without escape codes and before anything heavy is imported, so that it is there at once.
    """

    def __init__(self) -> None:
        self._columns = 0

    def show(self, text: str) -> None:
        """Replace the line."""
        if not sys.stderr.isatty():
            return
        self.clear()
        line = tables.cut(flat(text), shutil.get_terminal_size().columns - 1)
        sys.stderr.write(line)
        sys.stderr.flush()
        self._columns = tables.columns(line)

    def count(self, what: str, done: int, total: int, **_: Any) -> None:
        """Show how much is done, and what is worked on now: a ``progress`` of the library's functions."""
        self.show(f"{done} of {total}  {what}")

    def clear(self) -> None:
        """Erase the line."""
        if self._columns:
            sys.stderr.write("\r" + " " * self._columns + "\r")
            sys.stderr.flush()
            self._columns = 0


#: The one status line of the process.
STATUS = Status()


class _Warnings(logging.Handler):
    """Prints log records with `hint`, so that a warning does not run into the status line."""

    def emit(self, record: logging.LogRecord) -> None:
        hint(self.format(record))


def prepare_streams() -> None:
    """Make stdout and stderr take every text: what they cannot show is escaped, a closed one swallows it."""
    logging.lastResort = _Warnings(logging.WARNING)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the whole process
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def problem(text: str) -> None:
    """Print one line of trouble on stderr; a line break in it, as from a file's name, is shown as one."""
    _print(f"rag-kit: {flat(text)}", sys.stderr, "red")


def problem_at(error: BaseException) -> None:
    """Print the whole traceback of an exception on stderr, without the keys that servers put into their messages."""
    from rag_kit.models.redact import redact

    _print(clean_text(redact("".join(traceback.format_exception(error)))), sys.stderr)


def hint(text: str) -> None:
    """Print a remark that is not part of the answer, on stderr."""
    _print(flat(text), sys.stderr, "dim")


def flat(text: str) -> str:
    r"""A text as one safe line.

    Example:
        >>> print(flat("a\nb"))
        a\nb
    """
    return clean_text(text).replace("\n", "\\n")


def say_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a JSON document; what the stream does not know is escaped."""
    known = str(sys.stdout.encoding or "utf-8").lower().startswith("utf")
    _print(json_text(value, ascii_only=not known, indent=indent), sys.stdout)
    sys.stdout.flush()


def json_text(value: Any, *, ascii_only: bool = False, indent: int | None = 2) -> str:
    r"""JSON whose strings hold no control, bidirectional or lone surrogate characters, only their escapes.

    Args:
        value: Plain JSON data.
        ascii_only: Escape everything that is not ASCII, for outputs that know nothing else.
        indent: Blanks a level is indented by; ``None`` for one line.

    Example:
        >>> print(json_text("温度 \u202e"))
        "温度 \u202e"
    """
    # outside of strings JSON is ASCII, so whatever is unsafe stands in a string and may be escaped there
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    return UNSAFE.sub(lambda match: json.dumps(match.group())[1:-1], text)


def one_line(error: BaseException) -> str:
    """An exception as one line; one that is neither the kit's nor the system's is named as unexpected."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, RagKitError):
        return text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    return f"unexpected {type(error).__name__}: {text} (RAG_KIT_DEBUG=1 shows where)"
