"""Readers that users add, by patterns of file names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.readers.parts import Part, Unreadable

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: A function of a path, or a LangChain loader class, which is called with the path.
UserReader: TypeAlias = "Callable[[Path], str | Document | Iterable[str | Document]] | type[Any]"

_READERS: dict[str, UserReader] = {}
_WILD = re.compile(r"\[[^\]]*\]|[*?]")


def register_reader(pattern: str, reader: UserReader | None) -> None:
    """Read all files whose name matches a pattern by a function or a LangChain loader class.

    It wins over the built-in reader. Of several patterns that match, the one with the most characters beside its
    wildcards wins; of equal ones that of a `Reader` or `ingest` (``readers=``), then the later.

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
    _READERS.pop(name := check_pattern(pattern), None)
    if reader is not None:
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
    is_loader = isinstance(reader, type) and callable(getattr(reader, "load", None))
    if not callable(reader) or (isinstance(reader, type) and not is_loader):
        raise InvalidInputError(
            f"A reader must be a function that takes a path, or a class with load(), as LangChain's loaders, not "
            f"{reader!r:.80}."
        )
    found: UserReader = reader
    return found


def all_readers(own: Mapping[str, UserReader]) -> dict[str, UserReader]:
    """The readers of `register_reader`, then a caller's own."""
    return {pattern: reader for pattern, reader in _READERS.items() if pattern not in own} | dict(own)


def reader_for(path: Path, own: Mapping[str, UserReader]) -> UserReader | None:
    """The reader of a file among `own` and those registered: the one whose pattern is most specific."""
    name, whole = path.name.lower(), path.as_posix().lower()
    best, most = None, -1
    for pattern, reader in all_readers(own).items():
        fits = fnmatchcase(whole, f"*/{pattern}") if "/" in pattern else fnmatchcase(name, pattern)
        if fits and (exact := len(_WILD.sub("", pattern))) >= most:
            best, most = reader, exact
    return best


def user_parts(reader: UserReader, path: Path) -> list[Part | Document]:
    """What a user's reader gives for a file, texts as parts.

    Raises:
        Unreadable: It failed, or gave something else, or no text.
    """
    from langchain_core.documents import Document

    call: Any = reader
    is_loader = isinstance(reader, type)
    try:
        result: Any = call(str(path)).load() if is_loader else call(path)
        items: list[Any] = [result] if isinstance(result, str | Document) else list(result)
    except Exception as error:
        reason = f"the registered reader failed ({type(error).__name__}: {error})"
        raise Unreadable(reason, "Mend that reader") from error
    found: list[Part | Document] = []
    for item in items:
        if isinstance(item, str):
            found.append(Part(item))
        elif isinstance(item, Document):  # a loader's source is the path as this process sees it
            kept = {k: v for k, v in item.metadata.items() if not (is_loader and k == "source")}
            found.append(item.model_copy(update={"metadata": kept}))
        else:
            reason = f"the registered reader gave {type(item).__name__}, not text or a Document"
            raise Unreadable(reason, "Mend that reader")
    if not any((item.text if isinstance(item, Part) else item.page_content).strip() for item in found):
        raise Unreadable("no text found in it", "Remove it, or check that it is the right file")
    return found
