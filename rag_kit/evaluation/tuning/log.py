"""The file that a search lives in: one line an event, written to the end, read again after a kill."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rag_kit.errors import InvalidInputError

FILE = "tuning.jsonl"
_LOCK = ".tuning.lock"


def read_events(path: Path) -> list[dict[str, Any]]:
    """The events of a log; a last line without an end is being written, or was cut off, and is left out.

    Raises:
        InvalidInputError: If another line is no JSON object.
    """
    content = path.read_bytes()
    events = []
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            raise InvalidInputError(
                f"{path.name}:{number}: no JSON object; the file is damaged. Remove that line, or give another folder"
            )
        events.append(event)
    return events


class TuningLog:
    """Events of one search in a folder; while it is open no other process writes there.

    The first line says what is searched. A last line that a kill has cut off is dropped; any other line that is no
    JSON object is a fault of the file and is refused.

    Args:
        folder: Where the file is, or will be.

    Raises:
        InvalidInputError: If the folder is a file, the file is damaged, or another process is searching there.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self.events: list[dict[str, Any]] = []
        self._file: Any = None
        self._lock: Any = None
        self._busy = threading.Lock()
        self._given_up = False

    def __enter__(self) -> Self:
        with self._busy:
            if self._given_up:
                raise InvalidInputError("the search was given up before its folder was opened")
            self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A thread that was given up may still be opening or writing; its work is done first.
        with self._busy:
            self._given_up = True
            try:
                if self._file is not None:
                    self._file.close()
            finally:
                if self._lock is not None:
                    self._lock.release()

    def _open(self) -> None:
        from filelock import FileLock, Timeout

        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidInputError(f"out is {str(self.folder)!r}, which is a file; give a folder")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(
                f"the folder {str(self.folder)!r} cannot be made: {error.strerror}; give another out"
            ) from error
        lock = FileLock(self.folder / _LOCK, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise InvalidInputError(
                f"another search is writing to {str(self.folder)!r}; wait for it, or give another out"
            ) from None
        self._lock = lock
        try:
            self._drop_torn_end()
            self.events = read_events(self.path) if self.path.exists() else []
            # without a buffer: what a full disk refused is not tried again when the file is closed
            self._file = self.path.open("ab", buffering=0)
        except BaseException:
            lock.release()
            raise

    def begin(self, header: Mapping[str, Any]) -> None:
        """Write what is searched, or see that the file is about the same.

        Raises:
            InvalidInputError: If it is about something else; the message names what differs.
        """
        wanted = json.loads(json.dumps({"event": "search", **header}))
        if not self.events:
            self.append(wanted)
            return
        found = self.events[0]
        names = [*wanted, *(name for name in found if name not in wanted)]
        other = [name for name in names if found.get(name) != wanted.get(name)]
        if other:
            raise InvalidInputError(
                f"{str(self.path)!r} holds another search: not the same {', '.join(other)}; give another folder "
                "as out, or the same arguments as before to go on with it"
            )

    def append(self, *events: Mapping[str, Any]) -> None:
        """Write events so that they are there after a kill of the process or the machine.

        Raises:
            InvalidInputError: If the file cannot be written, such as on a full disk; what stands in it stays good.
        """
        lines = [json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n" for event in events]
        left = memoryview("".join(lines).encode("utf-8", "backslashreplace"))
        try:
            with self._busy:
                while left:
                    left = left[self._file.write(left) :]
                os.fsync(self._file.fileno())
        except OSError as error:
            raise InvalidInputError(
                f"{str(self.path)!r} cannot be written: {error.strerror or error}. What stands in it is kept; make "
                "room, and call again with the same arguments"
            ) from error
        self.events.extend(dict(event) for event in events)

    def _drop_torn_end(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            size = end = file.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - 65_536)
                file.seek(start)
                newline = file.read(end - start).rfind(b"\n")
                if newline >= 0:
                    end = start + newline + 1
                    break
                end = start
            if end < size:
                file.truncate(end)
                file.flush()
                os.fsync(file.fileno())
