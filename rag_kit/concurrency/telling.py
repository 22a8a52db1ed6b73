"""Tell of a degraded search in the log: once for each cause, not once for each question."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from threading import Lock

_MOST = 256
_VALUES = re.compile(r"\d+(?:\.\d+)?")
_told: OrderedDict[tuple[str, str, str], None] = OrderedDict()
_lock = Lock()


def tell_degraded(log: logging.Logger, name: str, note: str) -> None:
    """Log a note about a degraded search as a warning, the first time; later ones of the same cause as debug lines.

    The same cause is the same note of the same retriever, whatever numbers stand in it. 256 causes are kept in mind,
    the latest ones. The note on each document is not touched by this.

    Args:
        log: The logger of the module.
        name: Name of the retriever.
        note: ``"degraded: ..."``.

    Example:
        >>> import logging
        >>> tell_degraded(logging.getLogger("quiet"), "MultiQuery", "degraded: multi_query failed: TimeoutError")
    """
    cause = (log.name, name, _VALUES.sub("#", note))
    with _lock:
        known = cause in _told
        _told[cause] = None
        _told.move_to_end(cause)
        if len(_told) > _MOST:
            _told.popitem(last=False)
    if known:
        log.debug("%s: %s", name, note)
    else:
        log.warning("%s: %s (this warning comes once; the notes of each document say it too)", name, note)


def forget_told() -> None:
    """Start anew: the next note of each cause is a warning again."""
    with _lock:
        _told.clear()
