"""Which reader reads a file: those of users by patterns of names, else the kit's by suffix, if the bytes agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.readers.parts import Unreadable, read_table

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: A function of a path, or a LangChain loader class, which is called with the path.
UserReader: TypeAlias = "Callable[[Path], str | Document | Iterable[str | Document]] | type[Any]"
_READERS: dict[str, UserReader] = {}


class Format(NamedTuple):
    """A format that is read."""

    reader: str  # "module:function" beside this file
    mime: str
    suffixes: str  # with blanks between them


_PICTURE = "ocr:read_picture"
#: The formats by name, from lines such as ``md: plain:read_md text/markdown .md .markdown``.
KINDS = {name: Format(*row.split(" ", 2)) for name, row in read_table("formats.txt").items()}
FORMATS = {suffix: kind for kind, row in KINDS.items() for suffix in row.suffixes.split()}
#: Formats of older programs, of WPS and of LibreOffice that are not read, and the one that each program saves too.
_SAVED_AS = read_table("saved_as.txt")
#: How OCR is switched on.
OCR_ADVICE = "Give ocr=True (--ocr on), after pip install 'rag-kit[ocr]'"
_ZIPPED = {"docx", "pptx", "xlsx", "epub"}
_PDF, _ZIP, _OLE, _RTF = b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"{\\rtf1"


def format_of(path: PurePath, *, ocr: bool = False) -> str:
    """Return the format of a file's suffix, or raise `Unreadable`; pictures have one if ``ocr`` is on."""
    suffix = path.suffix.lower()
    kind = FORMATS.get(suffix)
    if kind is None:
        reason = f"{suffix or 'a name without a suffix'} is not among the supported formats"
        advice = "Convert it, e.g. to .pdf, .docx, .md or .csv"
        if better := _SAVED_AS.get(suffix):
            advice = f"Save it as {better} in the program that it was written with, or in LibreOffice"
        raise Unreadable(reason, f"{advice}, or add a reader with register_reader")
    if KINDS[kind].reader == _PICTURE and not ocr:
        raise Unreadable(f"{suffix} is a picture, and OCR is off", OCR_ADVICE)
    return kind


def check_content(data: bytes, kind: str) -> None:
    """Raise `Unreadable` for an empty file, and for one whose first bytes are another format's than its suffix says."""
    if not data.strip():
        raise Unreadable("the file is empty", "Remove it, or write something into it")
    if kind in _ZIPPED and data.startswith(_OLE):
        reason = "it is encrypted with a password, or an old binary Office file"
        raise Unreadable(reason, f"Open it, remove the password and save it as .{kind}")
    if kind == "pdf":
        fits = _PDF in data[:1024]
    elif kind in _ZIPPED:
        fits = data.startswith(_ZIP)
    else:
        fits = not data.startswith((_PDF, _ZIP, _OLE, _RTF))
    if not fits:
        advice = "Give it the suffix of its real format"
        raise Unreadable(f"it is no {kind} file although it is named so", advice)


def register_reader(pattern: str, reader: UserReader | None) -> None:
    """Read all files whose name matches a pattern by a function or a LangChain loader class.

    It wins over the built-in reader. Of several patterns that match, those of a `Reader` or `ingest` (``readers=``)
    win, then the later one.

    It runs **in this process**, without the caps of `ReadLimits`: a function cannot be sent to the reader process
    without executing what a pipe delivers. Register only code that you trust with your files.

    Args:
        pattern: ``"*.eml"``, ``"invoice-*.pdf"``, with a folder (``"letters/*.txt"``), or a suffix (``".eml"``).
        reader: A function that gets the path and gives a text, a `Document`, or several of either; or a class made from
            the path that has ``load()``, as LangChain's document loaders. ``None`` takes the reader away.

    Raises:
        InvalidInputError: The pattern or the reader is none.

    Example:
        >>> register_reader("*.shout", lambda path: path.read_text().upper())
        >>> register_reader("*.shout", None)
    """
    pattern = check_pattern(pattern, reader)
    _READERS.pop(pattern, None)
    if reader is not None:
        _READERS[pattern] = reader


def check_pattern(pattern: Any, reader: Any) -> str:
    """Return a user's pattern in lower case, a suffix such as ``.eml`` as ``*.eml``; raises InvalidInputError."""
    lower = pattern.lower() if isinstance(pattern, str) else ""
    if not re.search(r"[.*?]", lower) or not lower.strip("./*?"):  # no suffix or wildcard, or nothing else
        wanted = "a file name with wildcards, as in '*.eml', or a suffix with its dot"
        raise InvalidInputError(f"A reader's pattern must be {wanted}, not {pattern!r}.")
    if not callable(reader) and reader is not None:
        raise InvalidInputError(f"The reader of {pattern!r} is {reader!r}; give a function or a loader.")
    return f"*{lower}" if lower.startswith(".") else lower


def all_readers(own: Mapping[str, UserReader]) -> dict[str, UserReader]:
    """Return the readers of `register_reader` by pattern, then a caller's own, which win."""
    return {pattern: reader for pattern, reader in _READERS.items() if pattern not in own} | dict(own)


def reader_for(path: Path, own: Mapping[str, UserReader]) -> UserReader | None:
    """Return the user's reader of a file, registered or a caller's own: the last whose pattern fits; None without."""
    for pattern, reader in reversed(all_readers(own).items()):
        with_folder = "/" in pattern
        name, glob = (path.as_posix(), f"*/{pattern}") if with_folder else (path.name, pattern)
        if fnmatchcase(name.lower(), glob):
            return reader
    return None


def user_documents(reader: UserReader, path: Path) -> list[Document]:
    """Return the documents of a user's reader; raises `Unreadable` if it fails, or returns no text."""
    from langchain_core.documents import Document

    call: Any = reader
    is_loader = isinstance(reader, type)  # a class of LangChain, which is made from the path
    try:
        result: Any = call(str(path)).load() if is_loader else call(path)
        items: list[Any] = [result] if isinstance(result, str | Document) else list(result)
    except Exception as error:
        reason = f"the registered reader failed ({type(error).__name__}: {error})"
        raise Unreadable(reason, "Mend that reader") from error
    documents = []
    for item in items:
        if not isinstance(item, str | Document):
            reason = f"the registered reader gave {type(item).__name__}, not text or a Document"
            raise Unreadable(reason, "Mend that reader")
        documents.append(Document(item) if isinstance(item, str) else item)
        if is_loader:  # its source is the path as this process sees it
            documents[-1].metadata.pop("source", None)
    if not any(document.page_content.strip() for document in documents):
        raise Unreadable("no text found in it", "Remove it, or check that it is the right file")
    return documents
