"""A short form of rerankers, compressors and signals, for people."""

from __future__ import annotations

import re
from typing import Any

from langchain_core.runnables import Runnable

from rag_kit.documents import redact

_LONGEST = 60
_SECRET = re.compile(r"key|token|secret|password|credential|header", re.IGNORECASE)


class Shown:
    """Shows the class and its settings, of models and functions only the name.

    Example:
        >>> class Cut(Shown):
        ...     def __init__(self):
        ...         self.share, self.call, self._cache = 0.5, len, {}
        >>> Cut()
        Cut(share=0.5, call=len)
    """

    def __repr__(self) -> str:
        given = (f"{name}={_short(value)}" for name, value in vars(self).items() if _is_setting(name, value))
        return redact(f"{type(self).__name__}({', '.join(given)})")


def _is_setting(name: str, value: Any) -> bool:
    private = name.startswith("_") or _SECRET.search(name) is not None
    return not private and value is not None and name != "prompts"


def _short(value: Any) -> str:
    if isinstance(value, Runnable):
        return value.get_name()
    if isinstance(value, (str, int, float, bool, list, tuple, dict, set, frozenset, Shown)):
        text = repr(value)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return str(getattr(value, "__name__", type(value).__name__))
