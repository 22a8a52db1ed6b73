"""Warnings about searches that went on with less, once for each cause."""

from __future__ import annotations

import logging
import re

_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_MAX_LOGGED = 256
_logged: set[tuple[str, str, str]] = set()


def log_degraded(log: logging.Logger, name: str, note: str) -> None:
    """Log a note about a degraded search as a warning once for each cause; then as debug lines.

    The same cause is the same note of the same retriever, whatever numbers stand in it. The note on each document
    is not touched by this.

    Args:
        log: The logger of the module.
        name: Name of the retriever.
        note: ``"degraded: ..."``.

    Example:
        >>> log_degraded(logging.getLogger("quiet"), "MultiQuery", "degraded: multi_query failed: TimeoutError")
    """
    cause = (log.name, name, _NUMBERS.sub("#", note))
    level = logging.DEBUG if cause in _logged else logging.WARNING
    if len(_logged) >= _MAX_LOGGED:
        _logged.clear()
    _logged.add(cause)
    log.log(level, "%s: %s (this warning comes once; the notes of each document say it too)", name, note)
