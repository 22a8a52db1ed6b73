"""The reader process: takes one file at a time from standard input, writes its parts as JSON lines.

Protocol, one JSON object a line. In: ``{"path", "format", "limits", "ocr"}``. Out, for each request: any number of
``{"text", "metadata"}`` and at the end ``{"done": n}`` or ``{"unreadable": reason, "advice": advice}``. Nothing that
is executed crosses the pipe. After ``max_seconds`` of a file the kernel's alarm ends the process.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from rag_kit.indexing.readers.formats import KINDS, check_content
from rag_kit.indexing.readers.guard import follow_parent, forbid_network, limit_memory
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import SAVE_AGAIN, Context, Part, Unreadable, over_limit

_RECURSION = 5_000  # calls within each other; parsers of nested files need more than Python's 1,000
_MAX_ALARM = 1e6  # seconds
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def _read_bytes(path: str | Path, max_bytes: int) -> bytes:
    """The bytes of a regular file; anything else (a pipe, a device) is never waited for."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Unreadable("it is no regular file but a folder, pipe, socket or device", "Leave it out")
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as stream:
            data = stream.read(max_bytes + 1)
    except FileNotFoundError as error:
        raise Unreadable("there is no such file", "Check the path") from error
    except (OSError, ValueError) as error:  # not allowed, a broken disk, a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise Unreadable(
            f"it cannot be opened ({reason})", "Check the path, its rights and the disk"
        ) from error
    if len(data) > max_bytes:
        raise over_limit(f"it has over {max_bytes} bytes", "max_bytes", max_bytes)
    return data


def convert(path: str | Path, kind: str, context: Context) -> Iterator[Part]:
    """All parts of a file that have text; raises `Unreadable`, also where none has."""
    data = _read_bytes(path, context.limits.max_bytes)
    check_content(data, kind)
    module, _, name = KINDS[kind].reader.partition(":")
    converter: Callable[[bytes, Context], Iterator[Part]] = getattr(
        importlib.import_module(f"rag_kit.indexing.readers.{module}"), name
    )
    characters = 0
    for part in converter(data, context):
        part.text = _clean(part.text)
        if part.text.strip():
            characters += len(part.text)
            context.check(characters, "characters of text", "max_characters")
            part.metadata = {
                key: _clean(value) if isinstance(value, str) else value
                for key, value in part.metadata.items()
                if value != ""
            }
            yield part
    if not characters:
        raise Unreadable("no text found in it", "Remove it, or check that it is the right file")


def _clean(text: str) -> str:
    """Text that every store and encoder takes: no lone surrogates, no control characters but tab and newline."""
    return _CONTROLS.sub(" ", _SURROGATES.sub("\ufffd", text))


def _write(out: IO[str], **message: Any) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def _serve(request: dict[str, Any], out: IO[str]) -> None:
    """Convert one file, a line of JSON for each part and one for how it ended."""
    limits = ReadLimits(**request["limits"])
    count = 0
    signal.setitimer(signal.ITIMER_REAL, min(limits.max_seconds, _MAX_ALARM))
    try:
        for part in convert(request["path"], request["format"], Context(limits, request["ocr"])):
            _write(out, text=part.text, metadata=part.metadata)
            count += 1
        last: dict[str, Any] = {"done": count}
    except Unreadable as error:
        last = {"unreadable": error.reason, "advice": error.advice}
    except MemoryError:
        raise  # it may have lost more than the one allocation: a new process takes the next file
    except Exception as error:  # noqa: BLE001 - a converter's own failure is a report, not a crash
        deep = isinstance(error, RecursionError)
        reason = "it is nested too deeply" if deep else f"{type(error).__name__}: {error}"[:300]
        advice = f"It may be damaged: {SAVE_AGAIN}"
        last = {"unreadable": f"it could not be converted ({reason})", "advice": advice}
    signal.setitimer(signal.ITIMER_REAL, 0)
    _write(out, **last)


def main() -> int:
    """Serve requests until standard input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="ascii")  # what libraries print must not get between the lines
    requests = os.fdopen(os.dup(0), "r", encoding="ascii")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    sys.setrecursionlimit(_RECURSION)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a parent may have it ignored
    follow_parent()
    limit_memory(int(sys.argv[1]))
    forbid_network()
    try:
        for line in requests:
            _serve(json.loads(line), out)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # the other side is gone: nothing can be reported any more
    return 0


if __name__ == "__main__":
    sys.exit(main())
