"""The reader process: takes one file at a time from standard input, writes its parts as JSON lines.

Protocol, one JSON object a line. In: ``{"path", "format"}`` and the fields of a `Context`. Out, for each request: any
number of ``{"text", "metadata"}``, some with a ``picture``, and at the end ``{"done": true, "notes": [...]}`` or
``{"unreadable": reason, "advice": advice}``. Nothing that is executed crosses the pipe. After ``max_seconds`` of a file
the kernel's alarm ends the process.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from rag_kit.concurrency.notes import Notes, use_notes
from rag_kit.indexing.readers.formats import KINDS, QUOTES, check_content
from rag_kit.indexing.readers.limits import ReadLimits, follow_parent, forbid_network, limit_memory
from rag_kit.indexing.readers.parts import (
    LEFT_OUT,
    SAVE_AGAIN,
    Context,
    Part,
    Unreadable,
    open_regular,
    reason_of,
)

_RECURSION = 5_000  # calls within each other; parsers of nested files need more than Python's 1,000
_MAX_ALARM = 1e6  # seconds
_MAX_NOTES = 100  # on one file
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def convert(path: str | Path, format_name: str, context: Context) -> Iterator[Part]:
    """Yield all parts of a file that have a text or a picture; raises `Unreadable` where none has, or it is broken."""
    max_bytes = context.limits.max_bytes
    with open_regular(path, max_bytes) as file:
        data = file.read(max_bytes + 1)
    context.check(len(data), "bytes", "max_bytes")  # it may have grown since it was opened
    check_content(data, format_name)
    module, _, name = (QUOTES if context.quote else KINDS[format_name].reader).partition(":")
    reader_module = importlib.import_module(f"rag_kit.indexing.readers.{module}")
    converter: Callable[[bytes, Context], Iterator[Part]] = getattr(reader_module, name)
    characters, is_empty = 0, True
    for part in converter(data, context):
        part.text = _clean(part.text)
        if part.text.strip() or part.picture:
            characters += len(part.text)
            context.check(characters, "characters of text", "max_characters")
            for key, value in list(part.metadata.items()):
                if value == "":
                    del part.metadata[key]
                elif isinstance(value, str):
                    part.metadata[key] = _clean(value)
            is_empty = False
            yield part
    if is_empty:
        raise Unreadable("no text found in it", "Remove it, or check that it is the right file")


def _clean(text: str) -> str:
    """Replace characters that no store takes: lone surrogates, and control characters but tabs and line ends."""
    return _CONTROLS.sub(" ", _SURROGATES.sub("\ufffd", text))


def _serve(request: dict[str, Any], out: IO[str]) -> None:
    """Convert the file of a request: write a line of JSON for each part, and a last one for how it ended."""
    limits, notes = ReadLimits(**request.pop("limits")), Notes()
    signal.setitimer(signal.ITIMER_REAL, min(limits.max_seconds, _MAX_ALARM))  # the alarm ends this process
    last: dict[str, Any]
    try:
        with use_notes(notes):
            path, format_name = request.pop("path"), request.pop("format")
            context = Context(limits, folder=os.path.dirname(path), **request)
            for part in convert(path, format_name, context):
                picture = {"picture": b64encode(part.picture).decode("ascii")} if part.picture else {}
                message = {"text": part.text, "metadata": part.metadata, **picture}
                print(json.dumps(message), file=out, flush=True)
        given = [_clean(note) for note in notes.texts[:_MAX_NOTES]]
        if len(notes.texts) > _MAX_NOTES:
            given.append(f"and {len(notes.texts) - _MAX_NOTES} more notes")
        last = {"done": True, "notes": given}
    except Unreadable as error:
        # the first thing that was left out may be why there is no text
        left_out = [note for note in notes.texts if LEFT_OUT in note]
        last = {"unreadable": "; ".join([error.reason, *left_out[:1]]), "advice": error.advice}
    except MemoryError:
        raise  # it may have lost more than the one allocation: a new process takes the next file
    except Exception as error:  # noqa: BLE001 - a converter's own failure is a report, not a crash
        reason, advice = reason_of(error), f"It may be damaged: {SAVE_AGAIN}"
        last = {"unreadable": f"it could not be converted ({reason})", "advice": advice}
    signal.setitimer(signal.ITIMER_REAL, 0)  # no alarm
    print(json.dumps(last), file=out, flush=True)


def main() -> int:
    """Serve requests until standard input ends."""
    # The pipes get other file numbers, and 1 becomes standard error: prints of libraries must not get between the lines
    out = os.fdopen(os.dup(1), "w", encoding="ascii")
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
