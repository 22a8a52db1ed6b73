"""A process on a real pseudo-terminal of 80 columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Mapping

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\a")


class Terminal:
    """Runs a program, sends it keys and collects what it prints.

    Args:
        arguments: Of the Python interpreter.
        environment: Changes of the environment.
    """

    def __init__(self, arguments: list[str], environment: Mapping[str, str] | None = None) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:  # pragma: no cover - the child
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            changed = {**os.environ, "TERM": "xterm-256color", "PYTHONUTF8": "1", **(environment or {})}
            for name in (
                "COLUMNS",
                "LINES",
                *(() if environment and "NO_COLOR" in environment else ("NO_COLOR",)),
            ):
                changed.pop(name, None)
            os.execve(sys.executable, [sys.executable, *arguments], changed)
        self.raw = b""

    @property
    def text(self) -> str:
        """Everything that was printed."""
        return self.raw.decode("utf-8", "replace")

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self.master, keys.encode())

    def expect(self, wanted: str, *, times: int = 1, within: float = 60.0) -> None:
        """Read until a text was printed so often.

        Raises:
            AssertionError: It was not, in time or before the end.
        """
        end = time.monotonic() + within
        while self.text.count(wanted) < times:
            assert time.monotonic() < end and self._read(), f"no {wanted!r} in {self.text!r}"

    def finish(self, within: float = 60.0) -> int:
        """Read to the end; the exit code."""
        end = time.monotonic() + within
        while self._read():
            assert time.monotonic() < end, self.text
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        if not select.select([self.master], [], [], 0.5)[0]:
            return True
        try:
            piece = os.read(self.master, 4096)
        except OSError:  # the other end is closed
            return False
        self.raw += piece
        return bool(piece)

    def lines(self) -> list[str]:
        """The lines as they stand on the screen in the end, without escape codes."""
        found = []
        for line in _ESCAPE.sub("", self.text).replace("\r\n", "\n").split("\n"):
            shown = ""
            for part in line.split("\r"):
                shown = part + shown[len(part) :]  # a carriage return goes back to the first column
            found.append(shown.rstrip())
        return found
