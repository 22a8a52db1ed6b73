"""Processes that a test interrupts."""

from __future__ import annotations

import signal
import subprocess
from typing import Any


def start_interruptible(arguments: list[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process that Ctrl-C interrupts, also where this one runs in the background and ignores it.

    A handler of this process is the default one in the new process. No code runs between fork and exec, where the
    threads of gRPC, which other tests start, may abort it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(arguments, **options)
    finally:
        signal.signal(signal.SIGINT, before)
