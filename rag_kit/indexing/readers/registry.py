"""Readers that users add, by patterns of file names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: A function of a path, or a LangChain loader class, which is called with the path.
UserReader: TypeAlias = "Callable[[Path], str | Document | Iterable[str | Document]] | type[Any]"

_READERS: dict[str, UserReader] = {}
_WILD = re.compile(r"\[[^\]]*\]|[*?]")


def register_reader(pattern: str, reader: UserReader | None) -> None:
    """Read all files whose name matches a pattern by a function or a LangChain loader class.

    It wins over the built-in reader, and one that a `Reader` or `ingest` was given (``readers=``) wins over it. Of
    several patterns that match, the one with the most characters beside its wildcards wins; of equal ones the later.

    It runs **in this process**, without the caps of `ReadLimits`: a function cannot be sent to the reader process
    without executing what a pipe delivers. Register only code that you trust with your files.

    Args:
        pattern: ``"*.eml"``, ``"invoice-*.pdf"``, with a folder (``"letters/*.txt"``), or a suffix (``".eml"``); in any
            case.
        reader: A function that gets the path and gives a text, a `Document`, or several of either; or a class whose
            objects are made from the path and have ``load()``, as LangChain's document loaders. ``None`` takes the
            reader away.

    Raises:
        InvalidInputError: The pattern is none, or the reader is neither a function nor a loader class.

    Example:
        >>> register_reader("*.shout", lambda path: path.read_text().upper())
        >>> register_reader("*.shout", None)
    """
    name = check_pattern(pattern)
    if reader is None:
        _READERS.pop(name, None)
    else:
        _READERS.pop(name, None)  # the later wins
        _READERS[name] = check_reader(reader)


def check_pattern(pattern: Any) -> str:
    """A pattern in lower case; a suffix stands for all files that have it.

    Raises:
        InvalidInputError: It is no pattern.
    """
    lower = pattern.lower() if isinstance(pattern, str) else ""
    if lower.startswith(".") and "/" not in lower and not _WILD.search(lower):
        lower = f"*{lower}"
    if not _WILD.sub("", lower).strip("./") or not ("." in lower or _WILD.search(lower)):
        raise InvalidInputError(
            f"A reader's pattern must be a file name with wildcards, as in '*.eml', or a suffix with its dot, not "
            f"{pattern!r}."
        )
    return lower


def check_reader(reader: Any) -> UserReader:
    """Check a reader that a user gave, and return it.

    Raises:
        InvalidInputError: It is neither a function nor a class with ``load``.
    """
    if isinstance(reader, type) and not callable(getattr(reader, "load", None)):
        raise InvalidInputError(
            f"{reader.__name__} has no load(); give a LangChain loader class, or a function."
        )
    if not callable(reader):
        raise InvalidInputError(
            f"A reader must be a function that takes a path, or a LangChain loader class, not {type(reader).__name__}."
        )
    found: UserReader = reader
    return found


def reader_for(
    path: Path, own: Mapping[str, UserReader], registered: Mapping[str, UserReader] = _READERS
) -> UserReader | None:
    """The reader of a file: in `own`, else among those registered, the one whose pattern is most specific."""
    name, whole = path.name.lower(), path.as_posix().lower()
    for readers in (own, registered):
        best: tuple[int, UserReader] | None = None
        for pattern, reader in readers.items():
            fits = fnmatchcase(whole, f"*/{pattern}") if "/" in pattern else fnmatchcase(name, pattern)
            exact = len(_WILD.sub("", pattern))
            if fits and (best is None or exact >= best[0]):
                best = exact, reader
        if best is not None:
            return best[1]
    return None


def registered_readers() -> dict[str, UserReader]:
    """The readers of `register_reader`, by pattern."""
    return dict(_READERS)


def registered_suffixes() -> set[str]:
    """Suffixes of which all files have a registered reader."""
    return {pattern[1:] for pattern in _READERS if pattern.startswith("*.") and not _WILD.search(pattern[1:])}
