"""Limits on reading one file, and those that the reader process sets for itself: network, programs, memory."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from rag_kit.errors import InvalidInputError

_SMALLEST_MEMORY = 256 * 2**20
_FORBIDDEN = tuple(
    "socket. subprocess. os.system os.exec os.fork os.posix_spawn os.spawn urllib. http. ftplib. smtplib. webbrowser. "  # noqa: SIM905
    "pty.".split()
)


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Caps for reading one file; a file that needs more is refused with a `ReadError`, never cut short.

    Attributes:
        max_seconds: Wall-clock seconds for one file; the reader process is killed after that.
        max_memory: Bytes of address space of the reader process (at least 256 MiB; POSIX only).
        max_bytes: Bytes of the file itself.
        max_unpacked: Bytes that a zipped file (docx, pptx, xlsx, epub) may unpack to.
        max_pages: Pages of a PDF, slides of a pptx, chapters of an epub.
        max_characters: Characters of text that come out.
        max_chunks: Chunks that `ingest` cuts the text into; each costs about 2 kB of memory beside its text.

    Raises:
        InvalidInputError: A cap is not a positive number, or the memory cap is too small to start Python.

    Example:
        >>> ReadLimits(max_pages=20).max_pages
        20
    """

    max_seconds: float = 120.0
    max_memory: int = 2 * 2**30
    max_bytes: int = 200 * 2**20
    max_unpacked: int = 500 * 2**20
    max_pages: int = 5_000
    max_characters: int = 50_000_000
    max_chunks: int = 200_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidInputError(f"ReadLimits.{name} must be a number above 0, not {value!r}.")
        if self.max_memory < _SMALLEST_MEMORY:
            least = f"at least {_SMALLEST_MEMORY} bytes (256 MiB)"
            raise InvalidInputError(f"ReadLimits.max_memory must be {least}, not {self.max_memory}.")


def forbid_network() -> None:
    """Refuse every socket and every new program for the rest of this process; there is no way back."""

    def hook(event: str, arguments: Any) -> None:
        if event.startswith(_FORBIDDEN):
            raise PermissionError(f"a reader may not do this: {event}")

    sys.addaudithook(hook)


def limit_memory(max_bytes: int) -> None:
    """Cap this process: its memory (address space), core files (none) and written files (1 MiB each); POSIX."""
    import resource

    caps = ((resource.RLIMIT_AS, max_bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 2**20))
    for limit, value in caps:
        _, hard = resource.getrlimit(limit)  # only root may go above it
        try:
            resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
        except (ValueError, OSError):  # macOS does not take RLIMIT_AS
            print(f"reader: limit {limit} could not be set", file=sys.stderr)


def follow_parent() -> None:
    """Start a thread that ends this process about a second after its parent's death, also in the middle of a file."""
    parent = os.getppid()  # an orphan gets another parent

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(3)

    threading.Thread(target=look, daemon=True).start()
