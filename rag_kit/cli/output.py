"""Printing: answers on stdout, remarks and problems on stderr, hostile text made harmless.

A terminal gets colour and lines of its width; a pipe, ``--no-color`` and ``NO_COLOR`` plain lines, each in one piece.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from rag_kit.cli.lines import LineWriter, fold
from rag_kit.documents.clean import UNSAFE, clean_text
from rag_kit.documents.tables import columns
from rag_kit.errors import RagKitError

#: Wider than any row of a table, which a pipe gets in one piece.
_ENDLESS = 100_000
_HINTED: set[str] = set()


def say(text: str = "", *, style: str = "", indent: str = "") -> None:
    """Print text; control and bidirectional characters are escaped.

    Args:
        text: Any text.
        style: A style of rich, such as ``"bold"``, for terminals.
        indent: Stands before each line.
    """
    _print(clean_text(text), sys.stdout, style, indent)


def on_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal, and colour was not switched off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size().columns


def _print(text: str, stream: TextIO, style: str = "", indent: str = "") -> None:
    if not on_terminal(stream):
        print(indent + text, file=stream)
    elif not style:
        print("\n".join(fold(text, width(), indent)), file=stream)
    else:
        from rich.text import Text

        lines = Text("\n".join(fold(text, width(), indent)), style=style)
        _console(stream).print(lines, soft_wrap=True)


def _console(stream: TextIO, *, width: int | None = None, terminal: bool = False) -> Any:
    from rich.console import Console

    return Console(file=stream, width=width, force_terminal=terminal or None, highlight=False, emoji=False)


def say_table(rows: Iterable[Sequence[str | tuple[str, str]]], header: Sequence[str] = ()) -> None:
    """Print rows in columns; the last column takes the width that the others leave.

    Args:
        rows: Cells, each a text or a text with its style.
        header: Names of the columns.
    """
    from rich.table import Table
    from rich.text import Text

    terminal = on_terminal(sys.stdout)
    table = Table(box=None, show_header=bool(header), pad_edge=False, padding=(0, 2, 0, 0))
    cells = [[cell if isinstance(cell, tuple) else (cell, "") for cell in row] for row in rows]
    for name in header or [""] * (len(cells[0]) if cells else 0):
        table.add_column(name, no_wrap=True, overflow="fold")
    taken = [
        max(columns(line) for row in cells for line in row[place][0].split("\n")) + 2
        for place in range(len(table.columns) - 1)
    ]
    for *most, (text, style) in cells:
        text = clean_text(text)
        if terminal:  # rich would part a Chinese text from its punctuation
            text = "\n".join(fold(text, width() - sum(taken)))
        table.add_row(*(Text(clean_text(cell), style=own) for cell, own in most), Text(text, style=style))
    out = io.StringIO()
    _console(out, width=width() if terminal else _ENDLESS, terminal=terminal).print(table)
    for line in out.getvalue().splitlines():
        print(line.rstrip())


class AnswerWriter:
    """Writes an answer to stdout as it is streamed, in lines of the terminal's width."""

    def __init__(self) -> None:
        self._lines = LineWriter(sys.stdout.write, width()) if on_terminal(sys.stdout) else None

    def write(self, text: str) -> None:
        """Print a piece of the answer."""
        text = clean_text(text)
        if self._lines is None:
            sys.stdout.write(text)
        else:
            self._lines.feed(text)
        sys.stdout.flush()

    def end(self) -> None:
        """Print the last word, and end the line."""
        if self._lines is not None:
            self._lines.end()
        print(flush=True)


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
        line = fold(flat(text), width() - 1)[0]
        sys.stderr.write(line)
        sys.stderr.flush()
        self._columns = columns(line)

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
    STATUS.clear()
    _print(f"rag-kit: {flat(text)}", sys.stderr, "red")


def problem_at(error: BaseException) -> None:
    """Print the whole traceback of an exception on stderr, without the keys that servers put into their messages."""
    from rag_kit.models.redact import redact

    STATUS.clear()
    _print(clean_text(redact("".join(traceback.format_exception(error)))), sys.stderr)


def hint(text: str) -> None:
    """Print a remark that is not part of the answer, on stderr."""
    STATUS.clear()
    _print(flat(text), sys.stderr, "dim")


def hint_once(text: str) -> None:
    """As `hint`; the same text is printed once a process."""
    if text not in _HINTED:
        _HINTED.add(text)
        hint(text)


def flat(text: str) -> str:
    r"""A text as one safe line.

    Example:
        >>> print(flat("a\nb"))
        a\nb
    """
    return clean_text(text).replace("\n", "\\n")


def say_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a JSON document; non-ASCII stays readable, but what could steer a terminal is escaped."""
    print(json_text(value, ascii_only=not _unicode(sys.stdout), indent=indent), flush=True)


def _unicode(stream: Any) -> bool:
    return str(getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


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
    return UNSAFE.sub(_json_escape, json.dumps(value, ensure_ascii=ascii_only, indent=indent))


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def one_line(error: BaseException) -> str:
    """An exception as one line; one that is neither the kit's nor the system's is named as unexpected."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, RagKitError):
        return text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    return f"unexpected {type(error).__name__}: {text} (RAG_KIT_DEBUG=1 shows where)"


class Progress:
    """A progress bar on stderr, with rate and time left; none where stderr is not a terminal.

    Args:
        unit: What is counted.
        quiet: No bar.
    """

    def __init__(self, unit: str, *, quiet: bool) -> None:
        self._unit = unit
        self._quiet = quiet
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if not self._quiet and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(unit=f" {self._unit}", dynamic_ncols=True, file=sys.stderr, leave=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def count(self, done: int, total: int) -> None:
        """Move the bar to ``done`` of ``total``."""
        if self._bar is not None:
            self._bar.total = total
            self._bar.n = done
            self._bar.refresh()

    def file(self, file: str, done: int, total: int, **_: Any) -> None:
        """Move the bar, and show the file that is read now."""
        if self._bar is not None:
            from rag_kit.documents import clean_text

            self._bar.set_description_str(clean_text(file)[-40:], refresh=False)
            self.count(done, total)
