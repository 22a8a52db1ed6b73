"""Which reader reads a file: those of users by patterns of names, else the kit's by suffix, if the bytes agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.readers.parts import Part, Unreadable

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: A function of a path, or a LangChain loader class, which is called with the path.
UserReader: TypeAlias = "Callable[[Path], str | Document | Iterable[str | Document]] | type[Any]"

_READERS: dict[str, UserReader] = {}
_WILD = re.compile(r"\[[^\]]*\]|[*?]")


class Format(NamedTuple):
    """A format that is read: its suffixes, its media type, and ``module:function`` beside this file."""

    suffixes: str
    mime: str
    reader: str


_OFFICE = "application/vnd.openxmlformats-officedocument"
KINDS = {
    "pdf": Format(".pdf", "application/pdf", "pdf:read_pdf"),
    "docx": Format(".docx", f"{_OFFICE}.wordprocessingml.document", "word:read_docx"),
    "pptx": Format(".pptx", f"{_OFFICE}.presentationml.presentation", "slides:read_pptx"),
    "xlsx": Format(".xlsx", f"{_OFFICE}.spreadsheetml.sheet", "sheets:read_xlsx"),
    "html": Format(".html .htm .xhtml", "text/html", "menus:read_html"),
    "epub": Format(".epub", "application/epub+zip", "epub:read_epub"),
    "md": Format(".md .markdown", "text/markdown", "plain:read_md"),
    "txt": Format(".txt .text .log .rst", "text/plain", "plain:read_txt"),
    "ipynb": Format(".ipynb", "application/x-ipynb+json", "plain:read_ipynb"),
    "csv": Format(".csv .tsv", "text/csv", "records:read_csv"),
    "json": Format(".json", "application/json", "records:read_json"),
    "jsonl": Format(".jsonl .ndjson", "application/jsonl", "records:read_jsonl"),
    "eml": Format(".eml", "message/rfc822", "mail:read_eml"),
    "mbox": Format(".mbox", "application/mbox", "mail:read_mbox"),
}
_ZIPPED = {"docx", "pptx", "xlsx", "epub"}
FORMATS = {suffix: kind for kind, row in KINDS.items() for suffix in row.suffixes.split()}
#: Pictures, which are read where OCR is asked for.
PICTURES = {
    "png": "png",
    "jpg": "jpeg",
    "jpeg": "jpeg",
    "tif": "tiff",
    "tiff": "tiff",
    "bmp": "bmp",
    "webp": "webp",
}
MIME = {kind: row.mime for kind, row in KINDS.items()}
MIME |= {suffix: f"image/{kind}" for suffix, kind in PICTURES.items()}
#: How OCR is switched on.
OCR_ADVICE = (
    "Give ocr='eng' (--ocr eng), after pip install 'rag-kit[ocr]' and apt-get install tesseract-ocr-eng"
)
_OWN = ", or add a reader of your own: register_reader('*{0}', function)"
#: Suffixes that are not read, what they are, and what to do.
_REFUSED: tuple[tuple[str, str, str], ...] = (
    (".doc .xls .ppt", "the old binary Office format", "Save it as {0}x and read that"),
    (".hwp .hwpx", "a Hangul document", f"Save it as .docx or .pdf{_OWN}"),
    (".key .pages .numbers", "a Keynote, Pages or Numbers document", f"Export it as .pdf or .csv{_OWN}"),
    (".odt .rtf .odp .ods", "a format that is not read", f"Save it as .docx, .pptx or .xlsx{_OWN}"),
    (".msg .pst", "Outlook's own format", f"Export the letters as .eml or .mbox{_OWN}"),
    (
        ".mp3 .wav .m4a .flac .ogg .aac .mp4 .mov .mkv .avi .webm .m4v",
        "sound or film, which has no text",
        f"Transcribe it and read the transcript as .txt{_OWN}",
    ),
    (".gif .heic .svg", "a picture of a kind that is not read", "Save it as .png and give ocr='eng'" + _OWN),
    (".zip .tar .gz .7z .rar", "an archive, which is not opened", "Unpack it and read what is in it"),
)
_OLE, _ZIP = "an old or encrypted Office file (OLE)", "a zip archive"
_MAGIC = {
    b"%PDF-": "a PDF",
    b"PK\x03\x04": _ZIP,
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": _OLE,
    b"{\\rtf": "an RTF file",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"\x1f\x8b": "a gzip archive",
    b"\x7fELF": "a program",
    b"SQLite format 3": "an SQLite database",
}


def format_of(path: PurePath, *, ocr: bool = False) -> str:
    """The format that a file's suffix stands for; pictures have one where their text is to be recognised.

    Raises:
        Unreadable: The suffix is none of the supported ones.

    Example:
        >>> format_of(PurePath("Report.PDF"))
        'pdf'
    """
    suffix = path.suffix.lower()
    if suffix in FORMATS:
        return FORMATS[suffix]
    if suffix[1:] in PICTURES:
        if ocr:
            return suffix[1:]
        raise Unreadable(f"{suffix} is a picture, and OCR is off", OCR_ADVICE)
    for suffixes, what, advice in _REFUSED:
        if suffix in suffixes.split():
            raise Unreadable(f"{suffix} is {what}", advice.format(suffix))
    shown = f"the suffix {suffix!r} is" if suffix else "a name without a suffix is"
    raise Unreadable(
        f"{shown} not among the supported ones",
        "Convert it, e.g. to .pdf, .docx, .md or .csv, or add a reader with register_reader",
    )


def check_content(data: bytes, kind: str) -> None:
    """Refuse bytes that are not what the suffix says.

    Raises:
        Unreadable: The file is empty, or its first bytes are another format's.
    """
    if not data.strip():
        raise Unreadable("the file is empty", "Remove it, or write something into it")
    found = next((name for magic, name in _MAGIC.items() if data.startswith(magic)), None)
    if kind == "pdf":
        fits = b"%PDF-" in data[:1024]
    elif kind in _ZIPPED:
        fits = found == _ZIP
    else:
        fits = found is None or kind in PICTURES  # whichever picture it is, Pillow sees
    if not fits and found == _OLE and kind in _ZIPPED:
        raise Unreadable(
            "it is encrypted with a password, or an old binary Office file",
            f"Open it, remove the password and save it as .{kind}",
        )
    if not fits:
        raise Unreadable(
            f"it is no {kind} file although it is named so ({found or 'unknown content'})",
            "Give it the suffix of its real format",
        )


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
