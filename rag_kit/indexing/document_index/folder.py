"""The folder of an index: names of the files, writer lock."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rag_kit.errors import InvalidInputError, LockedError

if TYPE_CHECKING:
    from filelock import FileLock

STORE = "store.sqlite3"
LOCK = "writer.lock"
REPLIES = "replies.sqlite"  # of the model that made representations; they were paid for, and stay
_PART = re.compile(
    r"store\.sqlite3(-wal|-shm|-journal)?|writer\.(lock|pid)|replies\.sqlite(-journal|\.lock|\.damaged)?"
    r"|bm25-[0-9a-f]{8}-[0-9]+\.index|(vectors|store)-[0-9a-f]{8}-[0-9a-f]{8}-[0-9]+\.index"
    r"|\.(bm25|vectors)[^/]*\.tmp"
)


def is_part(name: str) -> bool:
    """Whether a file of this name in an index folder is the index's own.

    Example:
        >>> [is_part(name) for name in ("store.sqlite3-wal", "bm25-0123abcd-12.index", "letter.txt", "bm25-old")]
        [True, True, False, False]
    """
    return _PART.fullmatch(name) is not None


def remove_parts(paths: Iterable[Path], keep: Collection[str] = ()) -> None:
    """Remove, of some files in the folder of an index, those that the index wrote, but for some names."""
    for path in paths:
        if path.name in keep or not is_part(path.name):
            continue
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def repair_advice(folder: Path) -> str:
    """What to do about damage."""
    return f"Try: rag-kit repair --index {folder}; or put a backup in its place."


def prepare_new(folder: Path) -> None:
    """Make the folder for a new index, readable by its owner only."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{folder} is a file; an index needs a folder. Name a new or empty one.")
    if folder.is_dir() and (
        others := sorted(path.name for path in folder.iterdir() if not is_part(path.name))
    ):
        raise InvalidInputError(
            f"{folder} is not an index and holds other files ({', '.join(others[:3])}"
            f"{', ...' if len(others) > 3 else ''}). Name a new or empty folder."
        )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def refuse_links(folder: Path) -> None:
    """Refuse an index whose store or lock is a link: what it points to would be written."""
    for name in (LOCK, STORE, *(f"{STORE}-{log}" for log in ("wal", "shm", "journal"))):
        if (folder / name).is_symlink():
            raise InvalidInputError(
                f"{folder / name} is a link, which is not followed. Copy the file instead."
            )


def lock_for_writing(folder: Path, wait: float) -> FileLock:
    """An advisory file lock, of at most one writer a folder, which the system drops when the process dies."""
    from filelock import FileLock, Timeout

    # not thread-local: an index may be closed by another thread than the one that opened it
    lock = FileLock(folder / LOCK, mode=0o600, thread_local=False)
    try:
        lock.acquire(timeout=max(0.0, wait))
    except Timeout:
        raise LockedError(
            f"Another process is writing to the index in {folder}{f' (waited {wait:g} s)' if wait > 0 else ''}. "
            "Wait for it, or let this one wait: wait=SECONDS, rag-kit ingest --wait SECONDS."
        ) from None
    except OSError as error:
        raise InvalidInputError(f"Nothing can be written to {folder} ({error}).") from error
    return lock
