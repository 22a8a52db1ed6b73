"""The reader process: takes one file at a time from standard input, writes its parts as JSON lines.

Protocol, one JSON object a line. In: ``{"path", "format", "limits", "ocr"}``. Out, for each request: any number of
``{"text", "metadata"}`` and at the end ``{"done": n}`` or ``{"unreadable": reason, "advice": advice}``. Nothing that
is executed crosses the pipe. After ``max_seconds`` of a file the kernel's alarm ends the process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO, Any

from rag_kit.indexing.readers.convert import convert
from rag_kit.indexing.readers.guard import follow_parent, forbid_network, limit_memory
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import SAVE_AGAIN, Context, Unreadable

_RECURSION = 5_000
_LONGEST = 1e6  # seconds that an alarm is set to


def _write(out: IO[str], **message: Any) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def _serve(request: dict[str, Any], out: IO[str]) -> None:
    limits = ReadLimits(**request["limits"])
    count = 0
    signal.setitimer(signal.ITIMER_REAL, min(limits.max_seconds, _LONGEST))
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
