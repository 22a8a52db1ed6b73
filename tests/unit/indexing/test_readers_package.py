"""Office files: the smallest broken part is left out and noted, what is hidden too, all else is read."""

from __future__ import annotations

import datetime
import io
import re
import time
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import TypeAlias

import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from support import documents as make

from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import ReadError
from rag_kit.indexing.readers.api import Reader
from rag_kit.indexing.readers.package import parse_xml
from rag_kit.indexing.readers.word_lists import Styles
from rag_kit.indexing.readers.word_shown import prepare

MACRO = b"ms-powerpoint.presentation.macroEnabled"
Edit: TypeAlias = Callable[[str, bytes], bytes | None]


def deck(edit: Edit = lambda name, data: data) -> bytes:
    """Two slides, the first with a chart."""
    made = Presentation()
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "Sales"
    figures = CategoryChartData()
    figures.categories = ["North", "South"]
    figures.add_series("Pumps", (1234567.5, 2))
    box = Inches(1), Inches(1), Inches(5), Inches(4)
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *box, figures)
    last = made.slides.add_slide(made.slide_layouts[1])
    last.shapes.title.text = "End"
    last.placeholders[1].text = "All pumps are blue."
    out = io.BytesIO()
    made.save(out)
    return make.edited(out.getvalue(), edit)


def workbook(edit: Edit = lambda name, data: data) -> bytes:
    """A sheet with dates and a chart, one with a hidden row, a hidden one, one with hidden columns."""
    book = Workbook()
    pumps = book.active
    pumps.title = "Pumps"
    for row in (["City", "Since"], ["Bern", datetime.date(2026, 3, 1)], ["Chur", datetime.date(2026, 3, 2)]):
        pumps.append(row)
    chart = BarChart()
    chart.add_data(Reference(pumps, min_col=2, min_row=1, max_row=3))
    pumps.add_chart(chart, "E2")
    lamps = book.create_sheet("Lamps")
    for row in (["Lamp", "Watt"], ["desk", 5], ["hall", 9], [], ["roof", 7]):
        lamps.append(row)
    lamps.row_dimensions[3].hidden = lamps.row_dimensions[4].hidden = True
    secret = book.create_sheet("Secret")
    secret.append(["nobody", "sees"])
    secret.sheet_state = "hidden"
    wide = book.create_sheet("Wide")
    for row in (["k", "l", None, "n"], [1, 2, None, 4]):
        wide.append(row)
    wide.column_dimensions.group("B", "C", hidden=True)
    out = io.BytesIO()
    book.save(out)
    return make.edited(out.getvalue(), edit)


def within(part: str, change: Callable[[bytes], bytes | None]) -> Edit:
    """Change the parts whose name holds a text."""
    return lambda name, data: change(data) if part in name else data


def read(reader: Reader, folder: Path, name: str, data: bytes) -> tuple[str, list[str]]:
    """Read a file; give its text and the notes."""
    (folder / name).write_bytes(data)
    with use_notes() as notes:
        documents = reader.read(folder / name)
    return "\n\n".join(document.page_content for document in documents), notes.texts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"c:barChart", b"c:bar3DChart"),
        (b"c:barChart", b"c:ofPieChart"),
        (b"<c:v>2</c:v>", b"<c:v>#N/A</c:v>"),
    ],
)
def test_charts_of_every_kind_are_read(tmp_path, reader, old, new):
    """The figures that the file keeps, whatever draws them; a figure in full."""
    text, notes = read(reader, tmp_path, "a.pptx", deck(lambda name, data: data.replace(old, new)))
    assert "| North | 1234567.5 |" in text and "All pumps are blue." in text and not notes


_SLIDES = ["# Sales", "All pumps are blue."]
_DAY, _LAMP = "| Bern | 2026-03-01 |", "| desk | 5 |"


@pytest.mark.parametrize(
    ("make_file", "part", "change", "left_out", "kept"),
    [
        (deck, "charts/chart", lambda data: b"no xml", "slide 1, Chart", _SLIDES),
        (deck, "charts/chart", lambda data: None, "slide 1, Chart", _SLIDES),
        (deck, "slides/slide1.xml", lambda data: b"\0\1", "slide 1 left out", _SLIDES[1:]),
        (deck, "slides/slide1.xml", lambda data: data[: len(data) // 2], "slides/slide1.xml", _SLIDES[1:]),
        (deck, "slides/slide1.xml", lambda data: b"<p:sld", "part ppt/slides/slide1.xml", _SLIDES[1:]),
        (deck, "docProps/core.xml", lambda data: b"<", "docProps/core.xml", _SLIDES),
        (workbook, "charts/chart", lambda data: data[:300], "charts/chart", [_DAY, _LAMP]),
        (workbook, "charts/chart", lambda data: data.replace(b'val="col"', b'val="up"'), "all but the cells", [_DAY]),
        (workbook, "drawings/drawing", lambda data: None, "all but the cells", [_DAY, _LAMP]),
        (workbook, "sheet1.xml", lambda data: data.replace(b"<v>46083</v>", b"<v>soon</v>"), "sheet1.xml", [_LAMP]),
        (workbook, "sheet1.xml", lambda data: b"no xml", "sheet1.xml", [_LAMP]),
        (workbook, "sheet2.xml", lambda data: data[: data.rindex(b"<row")], "sheet2.xml", [_DAY, "| desk | 5"]),
        (workbook, "styles.xml", lambda data: data.replace(b'val="11"', b'val="big"'), "all but", ["| Bern |", _LAMP]),
        (workbook, "styles.xml", lambda data: re.sub(rb"<fill>.*?</fill>", b"<fill/>", data), "all but", [_DAY, _LAMP]),
    ],
)  # fmt: skip
def test_a_broken_part_is_left_out(tmp_path, reader, make_file, part, change, left_out, kept):
    """A chart, a slide, a sheet, formats, a part of no importance: a note names the place, the rest is read."""
    name = "a.pptx" if make_file is deck else "a.xlsx"
    text, notes = read(reader, tmp_path, name, make_file(within(part, change)))
    assert all(each in text for each in kept), text
    assert any(left_out in note and "left out" in note for note in notes), notes
    assert "sees" not in text


def test_broken_parts_of_a_docx_are_left_out(tmp_path, reader):
    """Footnotes and the numbers of lists: a note names each."""
    kinds = {"footnotes": "<w:footnotes><broken", "numbering": f"<w:numbering xmlns:w='{make.W}'><w:num"}
    relations = "".join(f'<Relationship Id="{k}" Type="{make.R}/{k}" Target="{k}.xml"/>' for k in kinds)
    body = make.listed("Visitors sign in.", 1) + "<w:p><w:r><w:footnoteReference w:id='2'/></w:r></w:p>"
    data = make.docx(body, extra={f"word/{k}.xml": v for k, v in kinds.items()}, relations=relations)
    text, notes = read(reader, tmp_path, "a.docx", data)
    assert text == "Visitors sign in." and all(any(kind in note for note in notes) for kind in kinds)


_STRICT = "http://purl.oclc.org/ooxml/main/"  # in a text it stays as it is


@pytest.mark.parametrize(
    ("name", "shown"), [("a.docx", f"1. Sign in. {_STRICT}"), ("a.xlsx", _DAY), ("a.pptx", _SLIDES[0])]
)
def test_strict_office_files_are_read(tmp_path, reader, name, shown):
    """As Word, Excel and PowerPoint save them as Strict Open XML: namespaces of their own."""
    numbered = make.numbered_docx(make.listed(f"Sign in. {_STRICT}", 1), {1: make.level(0, "decimal", "%1.")})
    data = {"a.docx": numbered, "a.xlsx": workbook(), "a.pptx": deck()}[name]
    usual, strict = (
        rb"http://schemas.openxmlformats.org/(?!package)(\w+)/2006/",
        rb"http://purl.oclc.org/ooxml/\1/",
    )
    data = make.edited(data, lambda name, part: re.sub(usual, strict, part))
    assert shown in read(reader, tmp_path, name, data)[0]


def test_a_workbook_without_a_sheet_that_can_be_read_is_refused(tmp_path, reader):
    """With the first reason."""
    with pytest.raises(ReadError, match=r"sheets cannot be read|no text"):
        read(reader, tmp_path, "a.xlsx", workbook(within("worksheets/sheet", lambda data: b"no xml")))


def test_hidden_sheets_rows_columns_slides_and_texts_are_left_out_and_noted(tmp_path, reader):
    """In all formats alike; a table is not torn apart by what is hidden in it."""
    text, notes = read(reader, tmp_path, "a.xlsx", workbook())
    assert "| desk | 5 |\n| roof | 7 |" in text and "| k | n |" in text
    assert not any(hidden in text for hidden in ("hall", "nobody", "| l"))
    assert [note.split(" left out")[0] for note in notes] == [
        "sheet Lamps: 1 hidden rows, 0 hidden columns",
        "sheet Secret",
        "sheet Wide: 0 hidden rows, 1 hidden columns",
    ]
    hidden = deck(within("slides/slide1.xml", lambda data: data.replace(b"<p:sld ", b'<p:sld show="0" ', 1)))
    text, notes = read(reader, tmp_path, "a.pptx", hidden)
    assert (
        "Sales" not in text and "All pumps are blue." in text and notes == ["slide 1 left out: it is hidden"]
    )
    mark = within("slides/slide1.xml", lambda data: data.replace(b'name="Chart', b'hidden="1" name="Chart'))
    text, notes = read(reader, tmp_path, "a.pptx", deck(mark))
    assert "North" not in text and "# Sales" in text and notes[0].startswith("slide 1, Chart")
    run = "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>Secret.</w:t></w:r><w:r><w:t>Shown.</w:t></w:r></w:p>"
    text, notes = read(reader, tmp_path, "a.docx", make.docx(run))
    assert text == "Shown." and notes == ["hidden text left out: 1 runs"]
    page = "<nav><a href='/'>Home</a></nav><p hidden>Secret.</p><p style='display:none'>Secret.</p><p hidden></p>"
    text, notes = read(reader, tmp_path, "a.html", f"{page}<p>{'Shown. ' * 40}".encode())
    assert "Home" not in text and "Secret" not in text and notes == ["hidden text left out: 2 elements"]


def test_comments_deleted_text_and_attached_files_are_noted(tmp_path, reader):
    """They are not read; of a file its name is."""
    comments = f"<w:comments xmlns:w='{make.W}'><w:comment w:id='0'>{make.paragraph('核对')}</w:comment></w:comments>"
    body = "<w:p><w:del><w:r><w:delText>五百</w:delText></w:r></w:del><w:r><w:t>九百元。</w:t></w:r></w:p>"
    relation = f'<Relationship Id="C" Type="{make.R}/comments" Target="comments.xml"/>'
    word = make.docx(body, extra={"word/comments.xml": comments}, relations=relation)
    text, notes = read(reader, tmp_path, "a.docx", word)
    assert text == "九百元。" and notes == [
        "text that tracked changes delete left out: 1 runs", "1 comments left out: only the text is read"
    ]  # fmt: skip
    word = make.docx(body, extra={"word/comments.xml": ""}, relations=relation)
    assert read(reader, tmp_path, "b.docx", word)[0] == text  # damaged
    relation = relation.replace("comments.xml", "../presProps.xml")
    remarked = within("slides/_rels/slide1.xml", lambda data: data.replace(b"</R", f"{relation}</R".encode()))
    text, notes = read(reader, tmp_path, "a.pptx", deck(remarked))
    assert "# Sales" in text and notes == ["comments on slide 1 left out: only the slide is read"]
    book = Workbook()
    book.active.append(["Part", "Price"])
    book.active.append(["Pump", 5])
    book.active["B2"].comment = Comment("without tax", "Ann")
    out = io.BytesIO()
    book.save(out)
    text, notes = read(reader, tmp_path, "a.xlsx", out.getvalue())
    assert "tax" not in text and notes == ["sheet Sheet: 1 comments left out: only cells are read"]
    mail = EmailMessage()
    mail["Subject"] = "The offer"
    mail.set_content("Please find it attached.")
    mail.add_attachment("The price is 5.", filename="offer.txt")
    text, notes = read(reader, tmp_path, "a.eml", mail.as_bytes())
    assert "offer.txt" in text and notes == ["attached files left out: only their names are read"]


def test_the_main_part_is_found_by_relationships(tmp_path, reader):
    """A Word document whose parts have other names, as other programs write them."""
    data = make.docx(make.paragraph("Policy", "Heading1") + make.paragraph("Sign."))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    renamed = {re.sub(r"(document|styles)\.xml", r"\1_2.xml", name): part for name, part in parts.items()}
    parts = {name: re.sub(r"(document|styles)\.xml", r"\1_2.xml", part) for name, part in renamed.items()}
    text, notes = read(reader, tmp_path, "a.docx", make.zipped(parts))
    assert text == "# Policy\n\nSign." and not notes


@pytest.mark.parametrize(
    ("name", "data", "old", "new"),
    [
        ("a.docm", make.docx(make.paragraph("Sign.")), b"wordprocessingml.document.main", b"x.macroEnabled.main"),
        ("a.pptm", deck(), b"openxmlformats-officedocument.presentationml.presentation", MACRO),
        ("a.ppsx", deck(), b"presentationml.presentation.main", b"presentationml.slideshow.main"),
        ("a.potx", deck(), b"presentationml.presentation.main", b"presentationml.template.main"),
        ("a.xlsm", workbook(), b"openxmlformats-officedocument.spreadsheetml.sheet", b"ms-excel.sheet.macroEnabled"),
        ("a.xltx", workbook(), b"spreadsheetml.sheet.main", b"spreadsheetml.template.main"),
    ],
)  # fmt: skip
def test_files_with_programs_slide_shows_and_templates_are_read(tmp_path, reader, name, data, old, new):
    """By their endings, as the plain formats."""
    changed = make.edited(data, within("[Content_Types]", lambda types: types.replace(old, new)))
    text, _ = read(reader, tmp_path, name, changed)
    assert any(words in text for words in ("Sign.", "All pumps are blue.", "| desk | 5 |"))


def test_a_broken_chapter_and_line_are_left_out(tmp_path, reader):
    """A chapter of a book that is missing, a line of JSON lines that is none."""
    book = make.edited(make.epub([("One", "Deep."), ("Two", "Cold.")]), within("c0.xhtml", lambda data: None))
    text, notes = read(reader, tmp_path, "a.epub", book)
    assert "Cold." in text and any(note.startswith("chapter 1 left out") for note in notes)
    text, notes = read(reader, tmp_path, "a.jsonl", b'{"a": "one"}\n{"a": \n{"a": "three"}\n')
    assert "one" in text and "three" in text and notes[0].startswith("line 2 left out: not valid JSON")


def test_a_paragraph_of_very_many_runs_takes_no_longer_than_many_paragraphs():
    """Properties of the paragraph are looked for once, not for each run among all."""
    run = f"<w:p xmlns:w='{make.W}'>{'<w:r><w:t>word </w:t></w:r>' * 30_000}</w:p>"
    root = parse_xml(run.encode(), "document", recover=False)
    begun = time.process_time()
    prepare(root, Styles(None))
    assert time.process_time() - begun < 4
