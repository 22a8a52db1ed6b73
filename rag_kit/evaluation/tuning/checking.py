"""What a line of a search's log must be; the file may have been edited, mixed with another, or made up."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

VERSION = 1
"""Of the log; raise it when a line of an older one would be read in another way."""

_PARAMETERS = re.compile(r"(?:[a-z][a-z_]*(?:, \*)?(?:, [a-z][a-z_]*=None)*)?")


def is_event(event: Mapping[str, Any]) -> bool:
    """Whether it is a line that a search wrote.

    Example:
        >>> is_event({"event": "end", "trial": 0, "state": "complete", "reason": "", "elapsed": 0.5})
        True
        >>> is_event({"event": "end", "trial": 0, "state": "complete", "reason": "", "elapsed": float("nan")})
        False
    """
    form = _EVENTS.get(str(event.get("event")))
    return form is not None and all(name in event and right(event[name]) for name, right in form.items())


def is_parameters(text: str) -> bool:
    """Whether a text is the parameters of a function that a written file may have: names, and ``=None``.

    Example:
        >>> is_parameters("documents, *, llm=None"), is_parameters("x=print('hello')")
        (True, False)
    """
    return _PARAMETERS.fullmatch(text) is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_amount(value: Any) -> bool:
    return _is_value(value) and value >= 0


def _is_value(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= 1e300 and math.isfinite(value)


def _or_none(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or right(value)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_counts(value: Any) -> bool:
    return _is_object(value) and all(_is_count(value.get(name)) for name in ("search", "held", "left_out"))


def _is_maker(value: Any) -> bool:
    """``[[module, name], parameters]``: it is written into a file, so it is names and nothing else."""
    if not (isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], list | tuple)):
        return False
    names, parameters = value
    return (
        len(names) == 2 and all(map(_is_text, names)) and _is_text(parameters) and is_parameters(parameters)
    )


def _one_of(*allowed: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in allowed


_EVENTS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "search": {
        "metric": _is_text, "higher_is_better": lambda value: isinstance(value, bool), "space": _is_object,
        "default": _is_object, "counts": _is_counts,
    },
    "trial": {"trial": _is_count, "settings": _is_object},
    "score": {
        "trial": _is_count, "part": _one_of("search", "held"), "id": _is_text, "value": _or_none(_is_value),
        "status": _one_of("ok", "undefined", "error", "not_applicable"), "reason": _is_text,
        "seconds": _is_amount, "calls": _is_count, "tokens": _is_count, "money": _or_none(_is_amount),
        "elapsed": _is_amount,
    },
    "end": {
        "trial": _is_count, "state": _one_of("complete", "pruned", "failed"), "reason": _is_text,
        "elapsed": _is_amount,
    },
    "stopped": {
        "reason": _is_text, "level": lambda value: _is_value(value) and 0 < value < 1,
        "maker": _or_none(_is_maker), "elapsed": _is_amount,
    },
}  # fmt: skip
