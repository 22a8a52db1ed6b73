"""Limits that the reader process sets for itself before it opens a file: network, programs, memory, big files."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

_FORBIDDEN = tuple(
    "socket. subprocess. os.system os.exec os.fork os.posix_spawn os.spawn urllib. http. ftplib. smtplib. webbrowser. "  # noqa: SIM905
    "pty.".split()
)


def forbid_network() -> None:
    """Refuse every socket and every new program for the rest of this process; there is no way back."""

    def hook(event: str, arguments: Any) -> None:
        if event.startswith(_FORBIDDEN):
            raise PermissionError(f"a reader may not do this: {event}")

    sys.addaudithook(hook)


def limit_memory(max_bytes: int) -> None:
    """Cap address space, core files (none) and written files (1 MiB); POSIX."""
    import resource

    caps = ((resource.RLIMIT_AS, max_bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 1 << 20))
    for which, value in caps:
        _, hard = resource.getrlimit(which)
        try:
            resource.setrlimit(which, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
        except (ValueError, OSError):  # macOS does not take RLIMIT_AS
            print(f"reader: limit {which} could not be set", file=sys.stderr)


def follow_parent() -> None:
    """End this process within a second or so of its parent's death, also in the middle of a file."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(3)

    threading.Thread(target=look, daemon=True).start()
