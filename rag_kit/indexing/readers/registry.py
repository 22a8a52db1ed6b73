"""Readers that users add for their own suffixes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document

UserReader: TypeAlias = "Callable[[Path], str | Document | Iterable[str | Document]]"

_READERS: dict[str, UserReader] = {}
_SUFFIX = re.compile(r"\.[^./\\\s]+")


def register_reader(suffix: str, func: UserReader | None) -> None:
    """Make ``func`` read all files with a suffix; it wins over the built-in reader.

    The function runs **in this process**, without the caps of `ReadLimits`: a function cannot be sent to the
    reader process without executing what a pipe delivers. Register only code that you trust with your files.

    Args:
        suffix: With its dot, in any case: ``".eml"``.
        func: Gets the path; gives a text, a `Document`, or several of either. ``None`` takes the reader away.

    Raises:
        InvalidInputError: The suffix has no dot, or ``func`` cannot be called.

    Example:
        >>> register_reader(".shout", lambda path: path.read_text().upper())
        >>> register_reader(".shout", None)
    """
    if not isinstance(suffix, str) or not _SUFFIX.fullmatch(suffix):
        raise InvalidInputError(f"suffix must be a dot and a name, as in '.eml', not {suffix!r}.")
    if func is None:
        _READERS.pop(suffix.lower(), None)
    elif callable(func):
        _READERS[suffix.lower()] = func
    else:
        raise InvalidInputError(f"func must be a function that takes a path, not {type(func).__name__}.")


def registered() -> Mapping[str, UserReader]:
    """The readers that were registered, by lower-case suffix."""
    return _READERS
