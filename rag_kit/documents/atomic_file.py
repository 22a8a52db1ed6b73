"""A file replaced in one step: after a crash at any moment there is the old one or the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

#: Seconds after which a draft that a killed process left behind is removed.
_STALE_SECONDS = 3600.0
#: Characters of the name that a draft's name repeats: a name as long as the system allows leaves no room for more.
_MAX_PREFIX = 40


def replace_file(path: Path, write: Callable[[IO[bytes]], object], *, mode: int | None = None) -> None:
    """Create or replace a file with what `write` puts into the open draft of it.

    Args:
        path: The file; its folder must be there.
        write: Called with the draft, open for writing and reading.
        mode: The permissions of the file; default: those of the file that is replaced, or of any new file.

    Raises:
        OSError: The file cannot be written; what was there is untouched.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "notes.txt"
        >>> replace_file(path, lambda file: file.write(b"one"))
        >>> path.read_bytes()
        b'one'
    """
    prefix = f".{path.name[:_MAX_PREFIX]}."
    _remove_stale(path.parent, prefix)
    if mode is None and path.is_file():
        mode = stat.S_IMODE(path.stat().st_mode)
    draft = path.with_name(f"{prefix}{secrets.token_hex(6)}.tmp")
    try:
        # "x": a link that somebody else put there is never followed
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
    """Remove old drafts with this prefix."""
    for draft in folder.iterdir():
        if draft.name.startswith(prefix) and draft.name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
                    draft.unlink()


def _sync_folder(folder: Path) -> None:
    """Bring the file's new name to the disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
