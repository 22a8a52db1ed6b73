"""A file that grows by one JSON line at a time and survives a kill: what was appended is not computed again."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from rag_kit.errors import InvalidInputError, ResultsLockedError
from rag_kit.evaluation._files import check_target, make_folder


class Journal:
    """Records of one job, one line each, below a first line that says which job it is.

    Its methods block: call them outside of an event loop. They may be called from several threads.

    Args:
        path: The file; made where it is not there.
        job: What decides the records, as plain JSON. A file of another job is refused.

    Raises:
        InvalidInputError: If the file is of another job, or is no such file.
        ResultsLockedError: If another process, or another job of this one, writes to it.
    """

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        from filelock import FileLock, Timeout

        check_target(path)
        make_folder(path.parent, path)
        self.path = path
        self.records: list[dict[str, Any]] = []
        self._guard = threading.Lock()
        self._lock = FileLock(path.with_name(f".{path.name}.lock"), mode=0o600, thread_local=False)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise ResultsLockedError(
                f"another run is writing to {str(path)!r}; wait until it has ended, or name another file"
            ) from None
        try:
            self._file = self._open(dict(job))
        except BaseException:
            self._lock.release()
            raise

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; a killed process loses none that was appended."""
        with self._guard:
            self._file.write(_line(record))

    def close(self) -> None:
        """Bring everything to the disk and let go of the file."""
        with self._guard:
            if not self._file.closed:
                os.fsync(self._file.fileno())
                self._file.close()
        self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, job: dict[str, Any]) -> IO[bytes]:
        content = self.path.read_bytes() if self.path.is_file() else b""
        whole = content[: content.rfind(b"\n") + 1]  # a line that was cut off is written again
        lines = whole.splitlines()
        if content and not lines:
            # the very first line was cut off; nothing else would have been written
            lines = [] if content.startswith(b'{"job"') else [content]
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict) or (number == 1 and set(record) != {"job"}):
                raise InvalidInputError(
                    f"{self.path.name}:{number} is no line of such a file; name another file, or remove this one"
                )
            if number > 1:
                self.records.append(record)
            elif record["job"] != job:
                raise InvalidInputError(
                    f"{self.path.name} is of another job: {_different(record['job'], job)}"
                )
        file = self.path.open("r+b" if self.path.is_file() else "xb", buffering=0)
        file.truncate(len(whole))
        file.seek(len(whole))
        if not lines:
            file.write(_line({"job": job}))
        return file


def _line(record: Mapping[str, Any]) -> bytes:
    # ASCII: a half character of a model's reply cannot end the run
    return json.dumps(record, allow_nan=False).encode("ascii") + b"\n"


def _different(was: Any, now: Mapping[str, Any]) -> str:
    before = was if isinstance(was, Mapping) else {}
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    shown = "; ".join(
        f"{name} was {before.get(name)!r:.60} and is {now.get(name)!r:.60}" for name in names[:3]
    )
    return f"{shown}; name another file to begin anew"
