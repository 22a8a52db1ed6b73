"""Warnings about degraded searches: once for each cause, not once for each question."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from threading import Lock

_MOST = 256
_VALUES = re.compile(r"\d+(?:\.\d+)?")
_logged: OrderedDict[tuple[str, str, str], None] = OrderedDict()
_lock = Lock()


def log_degraded(log: logging.Logger, name: str, note: str) -> None:
    """Log a note about a degraded search as a warning, the first time; later ones of the same cause as debug lines.

    The same cause is the same note of the same retriever, whatever numbers stand in it. 256 causes are kept in mind,
    the latest ones. The note on each document is not touched by this.

    Args:
        log: The logger of the module.
        name: Name of the retriever.
        note: ``"degraded: ..."``.

    Example:
        >>> import logging
        >>> log_degraded(logging.getLogger("quiet"), "MultiQuery", "degraded: multi_query failed: TimeoutError")
    """
    cause = (log.name, name, _VALUES.sub("#", note))
    with _lock:
        known = cause in _logged
        _logged[cause] = None
        _logged.move_to_end(cause)
        if len(_logged) > _MOST:
            _logged.popitem(last=False)
    if known:
        log.debug("%s: %s", name, note)
    else:
        log.warning("%s: %s (this warning comes once; the notes of each document say it too)", name, note)


def forget_logged() -> None:
    """Start anew: the next note of each cause is a warning again."""
    with _lock:
        _logged.clear()
