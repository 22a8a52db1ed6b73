"""Files that a killed process leaves whole: a log of one JSON object a line, and a file replaced in one step."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from rag_kit.errors import InvalidInputError, LockedError

#: Seconds between two syncs of a log to the disk: a power cut loses what came since, a killed process nothing.
_SYNC_SECONDS = 1.0
#: Most bytes of a line: no log has a longer one, but a file that is no log may.
MAX_LINE = 2**28
#: Seconds after which a draft that a killed process left behind is removed.
_STALE_SECONDS = 3600.0
#: Characters of the name that a draft's name repeats: a name as long as the system allows leaves no room for more.
_MAX_PREFIX = 40


class AppendLog(contextlib.AbstractContextManager["AppendLog"]):
    """A log file of JSON objects, one a line, with a lock: one process appends at a time, from any of its threads.

    The folder is made at once, the file by the first `append`. The lock is a file, ``.NAME.lock`` beside the log unless
    ``lock`` is another path; it is never removed. If another process, or another log object, still holds the lock
    after ``wait`` seconds, a `LockedError` is raised. The methods block.
    """

    def __init__(self, path: Path, *, lock: Path | None = None, wait: float = 0) -> None:
        from filelock import FileLock, Timeout

        self.path = path
        self._guard = threading.Lock()
        self._file: IO[bytes] | None = None
        self._synced = time.monotonic()
        # not thread-local: a log may be closed by another thread than the one that opened it
        self._lock = FileLock(lock or path.with_name(f".{path.name}.lock"), mode=0o600, thread_local=False)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=wait)
        except Timeout:
            raise LockedError(
                f"another run is writing to {str(path)!r}; wait until it has ended, or name another place"
            ) from None
        except OSError as error:
            raise _cannot_write(path, error) from error

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append one line for each record, or nothing if one is no JSON; a cut-off last line is removed before."""
        unwritten = memoryview(b"".join(map(json_line, records)))
        with self._guard:
            try:
                if self._file is None:
                    opener = partial(os.open, mode=0o600)
                    self._file = open(self.path, "ab", buffering=0, opener=opener)  # noqa: SIM115
                    _cut_half_line(self.path)
                while unwritten:  # a disk that is nearly full takes a part; only the next write fails
                    unwritten = unwritten[self._file.write(unwritten) :]
                if time.monotonic() - self._synced > _SYNC_SECONDS:
                    os.fsync(self._file.fileno())
                    self._synced = time.monotonic()
            except OSError as error:
                if self._file is not None:
                    self._file.close()
                self._file = None  # so that the next append cuts the half line off
                raise _cannot_write(self.path, error) from error

    def close_file(self) -> None:
        """Write the lines to the disk and close the file, so that it can be replaced; the lock is kept."""
        with self._guard:
            if self._file is not None:
                os.fsync(self._file.fileno())
                self._file.close()
                self._file = None

    def close(self) -> None:
        """Write the lines to the disk, close the file and release the lock."""
        self.close_file()
        self._lock.release()

    def __exit__(self, *error: object) -> None:
        self.close()


def read_log(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield number (from 1) and record of each line of a log, None for a damaged line; nothing if there is no file."""
    if path.is_dir():
        raise InvalidInputError(f"{str(path)!r} is a folder, and no log; move it away")
    if not path.is_file():
        return
    with path.open("rb") as file:
        # one byte more than is allowed is read, to see that a line is too long
        lines = iter(lambda: file.readline(MAX_LINE + 1), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) > MAX_LINE:
                raise InvalidInputError(
                    f"{str(path)!r} has a line of more than {MAX_LINE:,} bytes; move it away"
                )
            if not line.strip():
                continue
            try:
                record = json.loads(line) if line.endswith(b"\n") else None
            except (ValueError, RecursionError):
                record = None
            yield number, record if isinstance(record, dict) else None


def json_line(record: Mapping[str, Any]) -> bytes:
    """Write a record as one line; a lone surrogate, which UTF-8 cannot hold, is written as an escape."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _cannot_write(path: Path, error: OSError) -> InvalidInputError:
    return InvalidInputError(
        f"{str(path)!r} cannot be written ({error.strerror or type(error).__name__}); name another place, make room, "
        "or change its permissions"
    )


def _cut_half_line(path: Path) -> None:
    """Remove the last line of a file if no line break ends it, so that the next line does not run into it."""
    with path.open("r+b") as file:
        if path.stat().st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                end = content.rfind(b"\n") + 1  # 0 if there is no whole line
            file.truncate(end)


def replace_file(path: Path, write: Callable[[IO[bytes]], object], *, mode: int | None = None) -> None:
    """Create or replace a file in one step, with the content that ``write`` puts into a draft of it.

    After a crash at any moment there is the old file or the new one. Without ``mode`` the old one's permissions stay.
    """
    prefix = f".{path.name[:_MAX_PREFIX]}."
    _remove_stale(path.parent, prefix)
    if mode is None and path.is_file():
        mode = stat.S_IMODE(path.stat().st_mode)
    draft = path.with_name(f"{prefix}{secrets.token_hex(6)}.tmp")
    try:
        # with "x", a link that somebody else put there is never followed
        with open(draft, "x+b", opener=lambda name, flags: os.open(name, flags, mode or 0o666)) as file:
            if mode is not None:
                with contextlib.suppress(OSError):  # some file systems have no such rights
                    draft.chmod(mode)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        error.filename = str(path)  # which the caller knows, unlike the draft
        raise
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove the drafts with this prefix that are more than an hour old: a killed process left them."""
    for draft in folder.iterdir():
        if draft.name.startswith(prefix) and draft.name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
                    draft.unlink()


def _sync_folder(folder: Path) -> None:
    """Write a folder's list of names to the disk, where the system can: only then a renamed file is safe."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
