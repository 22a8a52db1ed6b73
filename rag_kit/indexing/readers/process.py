"""The reader process, and the parent's side of it: start, ask, kill.

The process takes one file at a time from standard input, and writes its parts as JSON lines. Protocol, one JSON object
a line. In: ``{"path", "format"}`` and the fields of a `Context`. Out, for each request: any number of ``{"text",
"metadata"}``, some with a ``picture``, and at the end ``{"done": true, "notes": [...]}`` or ``{"unreadable": reason,
"advice": advice}``. Nothing that is executed crosses the pipe. After ``max_seconds`` of a file the kernel's alarm ends
the process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from rag_kit.concurrency.notes import Notes, use_notes, write_note
from rag_kit.indexing.readers.formats import KINDS, check_content
from rag_kit.indexing.readers.limits import ReadLimits, follow_parent, forbid_network, limit_memory
from rag_kit.indexing.readers.parts import (
    LEFT_OUT,
    Context,
    OverCap,
    Part,
    Unreadable,
    open_regular,
    reason_of,
)

_KEPT_VARIABLES = "PATH LANG LANGUAGE TZ TMPDIR TEMP TMP HOME LD_LIBRARY_PATH SYSTEMROOT".split()  # noqa: SIM905
_PICTURES = 150 * 2**20  # bytes of all pictures of a file, in base64
_SLACK = 2**20  # bytes for metadata and notes
_ESCAPED = 12  # bytes that one character takes at most in ASCII JSON (a surrogate pair)
_RECURSION = 5_000  # calls within each other; parsers of nested files need more than Python's 1,000
_MAX_ALARM = 1e6  # seconds
_MAX_NOTES = 100  # on one file
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class ReaderProcess:
    """One child that converts files, one at a time. Not for two threads at once; `Reader` holds the lock."""

    def __init__(self, limits: ReadLimits) -> None:
        self.max_memory = limits.max_memory  # fixed; the other limits go along with each file
        self.files = 0
        self.owner = os.getpid()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in kill()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(limits.max_memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=child_environment(),
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Whether the child runs, and belongs to this process (not to one this was forked from)."""
        return self.owner == os.getpid() and self._process.poll() is None

    def convert(
        self, path: str, format_name: str, context: Context, keep: Callable[[bytes], str] | None = None
    ) -> list[Part]:
        """Convert one file to its parts; raises `Unreadable`, whatever happens to the child.

        ``keep`` stores the bytes of a picture and returns its name, which the metadata of its part get. The child
        is killed when it sends too much, or when the wait is interrupted.
        """
        self.files += 1
        limits = context.limits
        request = {"path": path, "format": format_name, **asdict(context)}
        assert self._process.stdin is not None and self._process.stdout is not None
        parts: list[Part] = []
        allowed = limits.max_characters * _ESCAPED + _SLACK + (_PICTURES if context.pictures else 0)
        try:
            self._process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            self._process.stdin.flush()
            while (line := self._process.stdout.readline(allowed)).endswith(b"\n"):
                message = json.loads(line)
                if "done" in message:
                    for note in message["notes"]:
                        write_note(note)
                    return parts
                if "unreadable" in message:
                    raise Unreadable(message["unreadable"], message["advice"])
                parts.append(Part(message["text"], message["metadata"]))
                if "picture" in message and keep is not None:
                    parts[-1].metadata["picture"] = keep(b64decode(message["picture"]))
                allowed -= len(line)
        except BrokenPipeError:
            line = b""
        except Unreadable:
            raise
        except BaseException:  # Ctrl-C: the child would go on with a file nobody waits for
            self.kill()
            raise
        if len(line) == allowed:  # cut there; a shorter line is the last of a child that has ended
            self.kill()
            raise OverCap("it gives too much text", "max_characters", limits.max_characters)
        raise self._exit_error(limits)

    def _exit_error(self, limits: ReadLimits) -> Unreadable:
        """Return the error for a child that has ended: over a cap, or with its exit code and the last line it wrote."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.returncode
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        last_line = self._errors.read().decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        self.kill()
        if code == -signal.SIGALRM:
            return OverCap("reading it takes longer", "max_seconds", limits.max_seconds)
        if "MemoryError" in last_line or "bad_alloc" in last_line or code == -signal.SIGKILL:
            return OverCap("reading it needs more memory", "max_memory", limits.max_memory)
        return Unreadable(f"the reader process died over it (exit code {code}: {last_line}); damaged?")

    def stop(self) -> None:
        """End the child and whatever it may have started; a thread that waits for it gets an error."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the child, and close its pipes and log; safe to call twice."""
        if self.owner != os.getpid():  # this process was forked: the child is its parent's
            return
        self.stop()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def child_environment() -> dict[str, str]:
    """Return the environment of a child: few variables and no keys, in case a hostile file takes its parser over."""
    variables = {k: v for k, v in os.environ.items() if k in _KEPT_VARIABLES or k.startswith("LC_")}
    variables["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    switches = ("PYTHONUTF8", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return variables | dict.fromkeys(switches, "1")


def convert(path: str | Path, format_name: str, context: Context) -> Iterator[Part]:
    """Yield all parts of a file that have a text or a picture; raises `Unreadable` where none has, or it is broken."""
    max_bytes = context.limits.max_bytes
    with open_regular(path, max_bytes) as file:
        data = file.read(max_bytes + 1)
    context.check(len(data), "bytes", "max_bytes")  # it may have grown since it was opened
    check_content(data, format_name)
    module, _, name = ("quotes:find_quote" if context.quote else KINDS[format_name].reader).partition(":")
    reader_module = importlib.import_module(f"rag_kit.indexing.readers.{module}")
    converter: Callable[[bytes, Context], Iterator[Part]] = getattr(reader_module, name)
    characters, is_empty = 0, True
    for part in converter(data, context):
        part.text = _clean(part.text)
        if part.text.strip() or part.picture:
            characters += len(part.text)
            context.check(characters, "characters of text", "max_characters")
            given = {key: value for key, value in part.metadata.items() if value != ""}
            part.metadata = {k: _clean(v) if isinstance(v, str) else v for k, v in given.items()}
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
    outcome: dict[str, Any]
    try:
        with use_notes(notes):
            path, format_name = request.pop("path"), request.pop("format")
            context = Context(limits, **request)
            for part in convert(path, format_name, context):
                picture = {"picture": b64encode(part.picture).decode("ascii")} if part.picture else {}
                message = {"text": part.text, "metadata": part.metadata, **picture}
                print(json.dumps(message), file=out, flush=True)
        texts = [_clean(note) for note in notes.texts[:_MAX_NOTES]]
        if len(notes.texts) > _MAX_NOTES:
            texts.append(f"and {len(notes.texts) - _MAX_NOTES} more notes")
        outcome = {"done": True, "notes": texts}
    except Unreadable as error:
        # the first thing that was left out may be why there is no text
        left_out = [note for note in notes.texts if LEFT_OUT in note]
        outcome = {"unreadable": "; ".join([error.reason, *left_out[:1]]), "advice": error.advice}
    except MemoryError:
        raise  # it may have lost more than the one allocation: a new process takes the next file
    except Exception as error:  # noqa: BLE001 - a converter's own failure is a report, not a crash
        failure = Unreadable(f"it could not be converted ({reason_of(error)}), and may be damaged")
        outcome = {"unreadable": failure.reason, "advice": failure.advice}
    signal.setitimer(signal.ITIMER_REAL, 0)  # no alarm
    print(json.dumps(outcome), file=out, flush=True)


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
