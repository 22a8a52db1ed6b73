"""The folder of an index: manifest, format version, writer lock, modes of the files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from rag_kit.errors import IndexFormatError, IndexLockedError, IndexMissingError, InvalidInputError

FORMAT = "rag_kit.DocumentIndex"
VERSION = 2  # 1: vectors in a Chroma collection beside the store
MANIFEST = "manifest.json"
STORE = "store.sqlite3"
LOCK = "writer.lock"
HOLDER = "writer.pid"
REPLIES = "replies.sqlite"  # of the model that made representations; they were paid for, and stay
_BEGUN = (LOCK, HOLDER, MANIFEST + ".tmp", REPLIES)  # what may be there before there is a store
_PART = re.compile(
    r"manifest\.json(\.tmp)?|store\.sqlite3(-wal|-shm|-journal)?|writer\.(lock|pid)|replies\.sqlite(-journal|\.lock|\.damaged)?"
    r"|bm25\.tmp|(bm25|vectors)-[0-9a-f]{8}-[0-9]+\.index|store-[0-9a-f]{8}-[0-9]+\.record|vectors-[0-9a-f]{8}-[0-9a-f]{16}\.rows"
    r"|\.(bm25|vectors|store)[^/]*\.tmp|chroma(-[0-9]+)?"
)


def is_part(name: str) -> bool:
    """Whether a file or folder of this name in an index folder is the index's own.

    Example:
        >>> [is_part(name) for name in ("store.sqlite3-wal", "chroma-12", "letter.txt", "chroma-old")]
        [True, True, False, False]
    """
    return _PART.fullmatch(name) is not None


def remove_parts(paths: Iterable[Path], keep: Collection[str]) -> None:
    """Remove, of some files and folders in the folder of an index, those that the index wrote.

    Args:
        paths: Removed in this order.
        keep: Names to leave alone.
    """
    for path in paths:
        if path.name in keep or not is_part(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()


class ManifestDamagedError(IndexFormatError):
    """The manifest is no manifest of any version, so it says nothing that a new one would lose."""


def manifest_of(folder: Path) -> dict[str, Any]:
    """Read and check the manifest.

    Raises:
        IndexMissingError: There is none, so there is no index.
        ManifestDamagedError: It is damaged.
        IndexFormatError: It cannot be read, or is of a newer or another format.
    """
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise IndexMissingError(
            f"There is no index in {folder}. Make one: rag-kit ingest PATH --index {folder}"
        ) from None
    except OSError as error:
        raise IndexFormatError(f"{path} cannot be read ({error}). Check its permissions.") from error
    try:
        manifest = json.loads(content.decode("utf-8"))
        found, version = manifest["format"], manifest["version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ManifestDamagedError(f"{path} is damaged ({error}). {repair_advice(folder)}") from error
    if found != FORMAT or type(version) is not int or version < 1:
        raise IndexFormatError(
            f"{path} is not of a {FORMAT} (it says {found!r}, version {version!r}). Name another folder."
        )
    if version > VERSION:
        raise IndexFormatError(
            f"The index in {folder} has format version {version}; this rag_kit reads up to {VERSION}. "
            "Update rag_kit, or build the index again in another folder."
        )
    return dict(manifest)


def take_over(folder: Path, uid: str, generation: int) -> None:
    """Make a folder the writer's: an older format's manifest is renewed, so that older versions leave it alone.

    What was derived from a later state than the store's, which is a backup then, is removed.
    """
    with contextlib.suppress(IndexFormatError, IndexMissingError):
        if manifest_of(folder)["version"] < VERSION:
            write_manifest(folder, uid)
    for path in folder.glob(f"*-{uid[:8]}-*.index"):
        if is_part(path.name) and int(path.stem.rpartition("-")[2]) > generation:
            path.unlink(missing_ok=True)


def repair_advice(folder: Path) -> str:
    """What to do about damage."""
    return f"Try: rag-kit repair --index {folder}; or put a backup in its place."


def write_manifest(folder: Path, uid: str) -> None:
    """Write the manifest as the last step of creating an index: before it, there is no index."""
    from rag_kit import __version__

    content = {"format": FORMAT, "version": VERSION, "uid": uid, "written_by": f"rag_kit {__version__}"}
    temporary = folder / (MANIFEST + ".tmp")
    with os.fdopen(_new_file(temporary), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, folder / MANIFEST)


def _new_file(path: Path) -> int:
    """A file of our own, open for writing: what has its name goes, and a link is never followed."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def prepare_new(folder: Path) -> None:
    """Make the folder for a new index, readable by its owner only.

    Raises:
        InvalidInputError: It is a file, or holds files that are not of an index.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{folder} is a file; an index needs a folder. Name a new or empty one.")
    if folder.is_dir():
        # a file that happens to have the store's name does not make its neighbours ours
        begun = (folder / STORE).exists()
        names = sorted(path.name for path in folder.iterdir())
        if others := [name for name in names if not (is_part(name) if begun else name in _BEGUN)]:
            raise InvalidInputError(
                f"{folder} is not an index and holds other files ({', '.join(others[:3])}"
                f"{', ...' if len(others) > 3 else ''}). Name a new or empty folder."
            )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def private(path: Path) -> None:
    """Take group's and others' rights from a file, or from a folder and all below it; links are not followed."""
    if path.is_symlink():
        return
    if path.is_dir():
        os.chmod(path, 0o700)
        for below in path.iterdir():
            private(below)
    elif path.exists():
        os.chmod(path, 0o600)


class WriterLock:
    """At most one writer a folder, by an advisory file lock that the system drops when the process dies."""

    def __init__(self, folder: Path) -> None:
        from filelock import FileLock

        self._holder = folder / HOLDER
        self._folder = folder
        # not thread-local: an index may be closed by another thread than the one that opened it
        self._lock = FileLock(folder / LOCK, mode=0o600, thread_local=False)

    def acquire(self, wait: float) -> None:
        """Take the lock.

        Args:
            wait: Seconds to wait for another writer.

        Raises:
            IndexLockedError: Another writer holds it; the message names its process.
        """
        from filelock import Timeout

        if (lock := self._folder / LOCK).is_symlink():
            raise InvalidInputError(f"{lock} is a link, which is not followed. Remove it.")
        try:
            self._lock.acquire(timeout=max(0.0, wait))
        except Timeout:
            raise IndexLockedError(
                f"{self._who()} is writing to the index in {self._folder}"
                f"{f' (waited {wait:g} s)' if wait > 0 else ''}. "
                "Wait for it, or let this one wait: wait=SECONDS, rag-kit ingest --wait SECONDS."
            ) from None
        except OSError as error:
            raise InvalidInputError(f"Nothing can be written to {self._folder} ({error}).") from error
        with os.fdopen(_new_file(self._holder), "w") as file:
            file.write(str(os.getpid()))

    def _who(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            return f"Process {int(self._holder.read_text())}"
        return "Another process"

    def release(self) -> None:
        """Give the lock back."""
        if self._lock.is_locked:
            with contextlib.suppress(OSError):
                self._holder.unlink()
            self._lock.release()
