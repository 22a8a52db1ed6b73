"""The parent's side of a reader process: start, ask, kill."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Callable
from dataclasses import asdict

from langchain_core.documents import Document

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import SAVE_AGAIN, Context, OverLimit, Unreadable

_KEPT_VARIABLES = "PATH LANG LANGUAGE TZ TMPDIR TEMP TMP HOME LD_LIBRARY_PATH SYSTEMROOT".split()  # noqa: SIM905
_PICTURES = 150 * 2**20  # bytes of all pictures of a file, in base64
_SLACK = 2**20  # bytes for metadata and notes
_ESCAPED = 12  # bytes that one character takes at most in ASCII JSON (a surrogate pair)


class ReaderProcess:
    """One child that converts files, one at a time. Not for two threads at once; `Reader` holds the lock."""

    def __init__(self, limits: ReadLimits) -> None:
        self.max_memory = limits.max_memory  # fixed; the other limits go along with each file
        self.files = 0
        self.owner = os.getpid()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in kill()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rag_kit.indexing.readers.child", str(limits.max_memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=child_environment(),
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the child runs, and belongs to this process (not to one this was forked from)."""
        return self.owner == os.getpid() and self._process.poll() is None

    def convert(
        self, path: str, format_name: str, context: Context, keep: Callable[[bytes], str] | None = None
    ) -> list[Document]:
        """Convert one file to documents; raises `Unreadable`, whatever happens to the child.

        ``keep`` stores the bytes of a picture and returns its name, which the metadata of its document get. The child
        is killed when it sends too much, or when the wait is interrupted.
        """
        self.files += 1
        limits = context.limits
        request = {"path": path, "format": format_name, **asdict(context)}
        del request["folder"]  # the child takes that of the path
        assert self._process.stdin is not None and self._process.stdout is not None
        documents: list[Document] = []
        allowed = limits.max_characters * _ESCAPED + _SLACK + (_PICTURES if context.pictures else 0)
        try:
            self._process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            self._process.stdin.flush()
            while (line := self._process.stdout.readline(allowed)).endswith(b"\n"):
                message = json.loads(line)
                if "done" in message:
                    for note in message["notes"]:
                        write_note(note)
                    return documents
                if "unreadable" in message:
                    raise Unreadable(message["unreadable"], message["advice"])
                documents.append(Document(message["text"], metadata=message["metadata"]))
                if "picture" in message and keep is not None:
                    documents[-1].metadata["picture"] = keep(b64decode(message["picture"]))
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
            raise OverLimit("it gives too much text", "max_characters", limits.max_characters)
        raise self._exit_error(limits)

    def _exit_error(self, limits: ReadLimits) -> Unreadable:
        """Return the error for a child that has ended: over a cap, or with its exit code and the last line it wrote."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.returncode
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        last = self._errors.read().decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        self.kill()
        if code == -signal.SIGALRM:
            return OverLimit("reading it takes longer", "max_seconds", limits.max_seconds)
        if "MemoryError" in last or "bad_alloc" in last or code == -signal.SIGKILL:
            return OverLimit("reading it needs more memory", "max_memory", limits.max_memory)
        reason = f"the reader process died over it (exit code {code}: {last})"
        return Unreadable(reason, f"Damaged? {SAVE_AGAIN}")

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
