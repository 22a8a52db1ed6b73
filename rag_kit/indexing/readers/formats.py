"""Which suffix means which format, and whether the bytes agree."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from rag_kit.indexing.readers.parts import Unreadable


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
