"""Small test files of every format, made in code."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def put(folder: Path, name: str, data: bytes | str) -> Path:
    """Write a file, and return its path."""
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def zipped(entries: Mapping[str, str | bytes], *, compressed: bool = True) -> bytes:
    """A zip archive of the entries, in their order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def edited(data: bytes, edit: Callable[[str, bytes], bytes | None]) -> bytes:
    """A package with its parts changed; one that is changed to None is left out."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        parts = {name: edit(name, old.read(name)) for name in old.namelist()}
    return zipped({name: part for name, part in parts.items() if part is not None})


def rows(text: str) -> list[tuple[str, ...]]:
    """Cells of a table that is written like ``Name|Age/Ann|3``."""
    return [tuple(row.split("|")) for row in text.split("/")]


def table(*rows: Sequence[str]) -> str:
    """Rows as the markdown that readers write."""
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "| " + " | ".join(["---"] * len(rows[0])) + " |", *body])


# --- PDF ---------------------------------------------------------------------------------------------------------


def pdf(
    pages: Sequence[Sequence[tuple[float, float, float, str]]],
    *,
    title: str = "",
    bold: Sequence[str] = (),
    mono: Sequence[str] = (),
    rules: Sequence[tuple[float, float, float, float]] = (),
    locked: bool = False,
    upwards: Sequence[str] = (),
    aslant: Sequence[str] = (),
    turn: int = 0,
    rotate: int = 0,
    annotations: Sequence[bytes] = (),
) -> bytes:
    """A PDF of lines ``(x, y, size, text)``; Chinese lines use a predefined encoding, no font is embedded.

    ``rules`` are straight lines ``(x, y, x, y)`` drawn on each page, lines in ``upwards`` run upwards, those in
    ``aslant`` at 45 degrees. All that is
    drawn is turned by ``turn`` degrees against the clock, and the page is shown turned by ``rotate`` degrees with it.
    ``annotations`` are the entries of fields of a form and of remarks on each page.
    """
    across = turn in (90, 270)
    width, height = (842, 595) if across else (595, 842)
    matrix = {
        0: b"1 0 0 1 0 0", 90: b"0 1 -1 0 842 0", 180: b"-1 0 0 -1 595 842", 270: b"0 -1 1 0 0 595"
    }[turn]  # fmt: skip
    objects: list[bytes] = [b"", b""]  # catalogue and page tree come last

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    def stream(dictionary: bytes, data: bytes) -> int:
        return add(b"<< %s /Length %d >>\nstream\n%s\nendstream" % (dictionary, len(data), data))

    plain = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    heavy = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>")
    fixed = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>")
    descendant = add(
        b"<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /DW 1000 "
        b"/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> /FontDescriptor "
        b"<< /Type /FontDescriptor /FontName /STSong-Light /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 "
        b"/Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >> >>"
    )
    chinese = add(
        b"<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H /DescendantFonts [%d 0 R] >>"
        % descendant
    )
    listed = b" ".join(b"%d 0 R" % add(b"<< /Type /Annot /F 4 %s >>" % entries) for entries in annotations)
    form, noted = (
        (b"/AcroForm << /Fields [%s] >>" % listed, b"/Annots [%s]" % listed) if listed else (b"", b"")
    )
    kids = []
    for lines in pages:
        parts = [b"%s cm" % matrix] if turn else []
        parts += [b"%g %g m %g %g l S" % rule for rule in rules]
        for x, y, size, text in lines:
            if text.isascii() or all(ord(c) < 256 for c in text):
                font = b"F2" if text in bold else b"F4" if text in mono else b"F1"
                shown = (
                    text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
                )
                shown = b"(" + shown + b")"
            else:
                font, shown = b"F3", b"<" + text.encode("utf-16-be").hex().encode() + b">"
            direction = b"0 1 -1 0" if text in upwards else b"1 0 0 1"
            direction = b".7 .7 -.7 .7" if text in aslant else direction
            parts.append(b"BT /%s %g Tf %s %g %g Tm %s Tj ET" % (font, size, direction, x, y, shown))
        content = stream(b"", b"\n".join(parts))
        kids.append(
            add(
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Rotate %d /Contents %d 0 R %s "
                b"/Resources << /Font << /F1 %d 0 R /F2 %d 0 R /F3 %d 0 R /F4 %d 0 R >> >> >>"
                % (width, height, rotate, content, noted, plain, heavy, chinese, fixed)
            )
        )
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R %s >>" % form
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (
        len(kids),
        b" ".join(b"%d 0 R" % kid for kid in kids),
    )
    trailer = b""
    if locked:  # by a password that nobody knows
        no_key = b"00" * 32
        encrypt = add(b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (no_key, no_key))
        trailer = b" /Encrypt %d 0 R /ID [<%s> <%s>]" % (encrypt, b"00" * 16, b"00" * 16)
    elif title:
        info = add(b"<< /Title <feff%s> >>" % title.encode("utf-16-be").hex().encode())
        trailer = b" /Info %d 0 R" % info
    out = io.BytesIO(b"")
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for offset in offsets:
        out.write(b"%010d 00000 n \n" % offset)
    out.write(
        b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, trailer, start)
    )
    return out.getvalue()


def wrapped(
    text: str, *, width: int, x: float, top: float, size: float = 10
) -> list[tuple[float, float, float, str]]:
    """A text as PDF lines of at most ``width`` characters, words kept whole."""
    lines, current = [], ""
    for word in text.split(" "):
        if current and len(current) + 1 + len(word) > width:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}".strip()
    lines.append(current)
    return [(x, top - 12 * number, size, line) for number, line in enumerate(lines)]


# --- Office ------------------------------------------------------------------------------------------------------


def paragraph(text: str, style: str = "") -> str:
    """A paragraph of a docx body."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def listed(text: str, numbering: int | None = None, level: int | None = 0, style: str = "") -> str:
    """A paragraph of a docx body that is numbered by a list, or by its style."""
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    if numbering is not None:
        deep = "" if level is None else f'<w:ilvl w:val="{level}"/>'
        properties += f'<w:numPr>{deep}<w:numId w:val="{numbering}"/></w:numPr>'
    return f'<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def items(*items: tuple[Any, ...]) -> str:
    """Paragraphs of a docx body that are numbered, each as for `listed`."""
    return "".join(listed(*item) for item in items)


def level(number: int, form: str, text: str, *, start: int = 1, more: str = "") -> str:
    """A level of a Word list, with its ``w:numFmt`` and ``w:lvlText``."""
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/>'
        f'<w:lvlText w:val="{escape(text)}"/>{more}</w:lvl>'
    )


def numbered_docx(
    body: str,
    definitions: Mapping[int, str],
    *,
    lists: Mapping[int, tuple[int, str]] | None = None,
    styles: str = "",
) -> bytes:
    """A Word document with abstract lists by number, each of levels, and lists: their definition and overrides.

    Without ``lists``, each definition is the list of its number.
    """
    lists = lists or {number: (number, "") for number in definitions}
    numbering = f'<?xml version="1.0"?><w:numbering xmlns:w="{W}">'
    for number, levels in definitions.items():
        numbering += f'<w:abstractNum w:abstractNumId="{number}">{levels}</w:abstractNum>'
    for number, (definition, overrides) in lists.items():
        numbering += f'<w:num w:numId="{number}"><w:abstractNumId w:val="{definition}"/>{overrides}</w:num>'
    extra = {"word/numbering.xml": numbering + "</w:numbering>"}
    if styles:
        extra["word/styles.xml"] = f'<?xml version="1.0"?><w:styles xmlns:w="{W}">{styles}</w:styles>'
    relation = f'<Relationship Id="n1" Type="{R}/numbering" Target="numbering.xml"/>'
    return docx(body, extra=extra, relations=relation)


def docx(body: str, *, extra: Mapping[str, str | bytes] | None = None, relations: str = "") -> bytes:
    """A Word document with a body of WordprocessingML; the style of level 2 has a Chinese name and an outline level."""
    entries: dict[str, str | bytes] = {
        "[Content_Types].xml": (
            '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/></Types>'
        ),
        "_rels/.rels": (
            '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="r1" Type="{R}/officeDocument" Target="word/document.xml"/></Relationships>'
        ),
        "word/_rels/document.xml.rels": (
            '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="s1" Type="{R}/styles" Target="styles.xml"/>{relations}</Relationships>'
        ),
        "word/styles.xml": (
            f'<?xml version="1.0"?><w:styles xmlns:w="{W}">'
            '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
            '<w:style w:type="paragraph" w:styleId="a5"><w:name w:val="节标题"/><w:pPr>'
            '<w:outlineLvl w:val="1"/></w:pPr></w:style></w:styles>'
        ),
        "word/document.xml": (
            f'<?xml version="1.0"?><w:document xmlns:w="{W}" xmlns:r="{R}" '
            'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
            'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
            'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
            'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture">'
            f"<w:body>{body}</w:body></w:document>"
        ),
    }
    return zipped({**entries, **(extra or {})})


def pptx(slides: Sequence[tuple[str, str]], *, notes: str = "") -> bytes:
    """Slides of a title and a text; the first one gets the notes."""
    import pptx as library

    deck = library.Presentation()
    for number, (title, text) in enumerate(slides):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
        if notes and not number:
            slide.notes_slide.notes_text_frame.text = notes
    buffer = io.BytesIO()
    deck.save(buffer)
    return buffer.getvalue()


def xlsx(
    sheets: Mapping[str, Sequence[Sequence[object]]], *, merge: Mapping[str, str] | None = None
) -> bytes:
    """A workbook; ``merge`` names ranges to merge by sheet, with blanks between them."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
        for area in (merge or {}).get(name, "").split():
            sheet.merge_cells(area)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


# --- Others ------------------------------------------------------------------------------------------------------


def epub(
    chapters: Sequence[tuple[str, str]], *, title: str = "A book", extra: Mapping[str, str] | None = None
) -> bytes:
    """A book of chapters ``(heading, text)``."""
    manifest = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    entries = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">'
            '<rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>'
            "</container>"
        ),
        "OEBPS/book.opf": (
            '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title></metadata>'
            f"<manifest>{manifest}</manifest><spine>{spine}</spine></package>"
        ),
    }
    for number, (heading, text) in enumerate(chapters):
        entries[f"OEBPS/c{number}.xhtml"] = (
            '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head>'
            f"<title>{escape(heading)}</title></head><body><h1>{escape(heading)}</h1><p>{text}</p></body></html>"
        )
    return zipped({**entries, **(extra or {})})


def notebook(cells: Sequence[tuple[str, str]], *, outputs: Sequence[object] = ()) -> bytes:
    """A Jupyter notebook of cells ``(type, source)``; the outputs go to each code cell."""
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"language_info": {"name": "python"}},
            "cells": [
                {
                    "cell_type": kind,
                    "source": source,
                    **({"outputs": list(outputs)} if kind == "code" else {}),
                }
                for kind, source in cells
            ],
        }
    ).encode()


def bomb(name: str, *, megabytes: int, fill: bytes = b" ") -> dict[str, bytes]:
    """An entry that unpacks to many megabytes."""
    return {name: fill * (megabytes << 20)}


def with_false_size(data: bytes, name: str, size: int) -> bytes:
    """A zip archive whose headers state another unpacked size for an entry than it has."""
    changed = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        local = archive.getinfo(name).header_offset
    changed[local + 22 : local + 26] = struct.pack("<I", size)
    position = 0
    while (position := data.find(b"PK\x01\x02", position)) >= 0:
        length = struct.unpack("<H", data[position + 28 : position + 30])[0]
        if data[position + 46 : position + 46 + length] == name.encode():
            changed[position + 24 : position + 28] = struct.pack("<I", size)
        position += 4
    return bytes(changed)


def process_id(reader: Any) -> int | None:
    """The id of the process of a `Reader` while one runs."""
    process = reader._process
    return process._process.pid if process is not None and process.alive else None
