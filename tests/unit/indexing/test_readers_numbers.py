"""The numbers that are read are the numbers that a program shows: superscripts, lists, cells, in every format."""

from __future__ import annotations

import copy
import datetime
import io
import re
from typing import Any

import pytest
from support import documents as make

from rag_kit.concurrency.notes import use_notes
from rag_kit.indexing.readers.cell_formats import shown
from rag_kit.indexing.readers.numbers import list_number, lowered, raised

# --- superscripts in every format

_PIECES = [
    ("The load is 10", "6"),
    (" newtons on 25 m", "2"),
    (" as of 2020", "3"),
    (", 荷载为10", "-3"),
    ("吨。", ""),
]
_SHOWN = ("10^6 newtons", "25 m^2", "2020[3]", "10^-3吨")


def _superscript_html() -> str:
    return "<p>" + "".join(f"{text}<sup>{up}</sup>" for text, up in _PIECES) + "</p>"


def _superscript_docx(up: str = '<w:vertAlign w:val="superscript"/>', **extra: str) -> bytes:
    run = '<w:r><w:rPr>{}</w:rPr><w:t xml:space="preserve">{}</w:t></w:r>'.format
    body = "".join(run("", text) + run(up, mark) for text, mark in _PIECES)
    return make.docx(f"<w:p>{body}</w:p>", extra={f"word/{name}.xml": part for name, part in extra.items()})


def _superscript_docx_by_style() -> bytes:
    styles = (
        f'<w:styles xmlns:w="{make.W}"><w:style w:type="character" w:styleId="a"><w:name w:val="Up"/><w:rPr>'
        '<w:vertAlign w:val="superscript"/></w:rPr></w:style><w:style w:type="character" w:styleId="b">'
        '<w:name w:val="Upper"/><w:basedOn w:val="a"/></w:style></w:styles>'
    )
    return _superscript_docx('<w:rStyle w:val="b"/>', styles=styles)


def _superscript_epub() -> bytes:
    return make.epub([("One", "".join(f"{text}<sup>{up}</sup>" for text, up in _PIECES))])


def _superscript_pptx() -> bytes:
    import pptx

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    paragraph = slide.shapes.title.text_frame.paragraphs[0]
    for text, up in _PIECES:
        paragraph.add_run().text = text
        if up:
            run = paragraph.add_run()
            run.text = up
            run._r.get_or_add_rPr().set("baseline", "30000")
    return _saved(deck)


def _superscript_xlsx() -> bytes:
    import openpyxl
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont

    book = openpyxl.Workbook()
    up = InlineFont(vertAlign="superscript")
    book.active["A1"] = CellRichText(
        *(part for text, mark in _PIECES for part in (text, TextBlock(up, mark)) if str(part))
    )
    return _saved(book)


def _superscript_pdf() -> bytes:
    lines = [(60.0, 550.0, 10.0, "it has 2"), (60.0 + _width("it has 2"), 554.0, 6.5, "n+1")]
    for height, (text, up) in zip((700.0, 650.0, 600.0), _PIECES, strict=False):
        width = 5.0 * len(text)  # nearly that of Helvetica: a little is left between
        lines += [(60.0, height, 10.0, text), (60.0 + _width(text), height + 4, 6.5, up)]
        lines += [(60.0 + _width(text) + 5, height, 10.0, "newtons")] if width and up == "6" else []
    lines += [(60.0, 103.0, 5.0, "3"), (60.0 + _width("3") / 2, 100.0, 8.0, "Without"), (60, 80, 8, "3D")]
    return make.pdf([lines])


def _width(text: str) -> float:
    """The width of a text in Helvetica of 10 points."""
    widths = (
        {"m": 8.33, "w": 7.22, "s": 5.0, "T": 6.11} | dict.fromkeys("iltf ", 2.78) | dict.fromkeys("il", 2.22)
    )
    return sum(widths.get(letter, 5.56) for letter in text)


@pytest.mark.parametrize(
    ("name", "make_file", "texts"),
    [
        ("a.html", _superscript_html, _SHOWN),
        ("a.docx", _superscript_docx, _SHOWN),
        ("b.docx", _superscript_docx_by_style, _SHOWN),
        ("a.epub", _superscript_epub, _SHOWN),
        ("a.pptx", _superscript_pptx, _SHOWN),
        ("a.xlsx", _superscript_xlsx, _SHOWN),
        ("a.pdf", _superscript_pdf, ("10^6 newtons", "25 m^2", "2020[3]", "2^(n+1)", "[3]Without", "\n3D")),
    ],
    ids=["html", "docx", "docx by style", "epub", "pptx", "xlsx", "pdf"],
)
def test_superscripts_are_not_glued_to_numbers(text_of, name, make_file, texts):
    """A power has a sign, and the mark of a footnote is in brackets, in titles and in text."""
    text = text_of(name, make_file())
    for part in texts:
        assert part in text
    assert "106" not in text and "20203" not in text


@pytest.mark.parametrize(
    ("before", "text", "result"),
    [
        ("10", "6", "^6"),
        ("10", "−3", "^−3"),
        ("m", "2", "^2"),
        ("厘米", "3", "^3"),
        ("约 3 米", "2", "^2"),
        ("四十公里", "2", "^2"),
        ("9.8米/秒", "2", "^2"),
        ("玉米", "2", "[2]"),
        ("e", "x+1", "^(x+1)"),
        ("(a+b)", "2", "^2"),
        ("Ca", "2+", "^2+"),
        ("the 21", "st", "st"),
        ("1", "re", "re"),
        ("1", "o", "o"),
        ("at 1,500", "a", "[a]"),
        ("2", "n+1", "^(n+1)"),
        ("in 2020", "3", "[3]"),
        ("1,250", "4", "[4]"),
        ("agreement", "2", "[2]"),
        ("本协议", "1", "[1]"),
        ("end.", "12", "[12]"),
        ("Smith", "1,2", "[1,2]"),
        ("Miller", "*", "[*]"),
        ("text", "1)", "[1]"),
        ("in 2018", "a)", "[a]"),
        ("35 km^2.", "3", "[3]"),
        ("text", "[7]", "[7]"),
        ("", "1", "[1]"),
        ("", "a", "a"),
        ("x", "", ""),
    ],
)
def test_powers_marks_and_ordinals_are_told_apart(before, text, result):
    """By what is before: a short number, unit or bracket has powers; long numbers and words have notes."""
    assert raised(before, text) == result


def test_subscripts_are_glued_only_to_letters():
    """A base behind a number would make another number of it."""
    assert (lowered("H", "2"), lowered("10", "2"), lowered("x", "n")) == ("2", "_2", "n")


def test_fractions_are_no_powers(text_of):
    """A raised digit before a fraction slash, or before a slash and a lowered digit, stands apart."""
    page = "<p>1<sup>1</sup>⁄<sub>4</sub> inch, 2<sup>3</sup>/<sub>8</sub> inch, <sup>1</sup>⁄<sub>2</sub>; "
    page += "10<sup>6</sup>/ml</p>"
    assert text_of("a.html", page) == "1 1⁄4 inch, 2 3/8 inch, 1⁄2; 10^6/ml"


def test_a_linked_superscript_is_a_footnote(text_of):
    """Also behind a short number, where a power would stand."""
    page = '<p>It rose to 10<sup><a href="#n">2</a></sup> and H<sub>2</sub>O by 10<sub>2</sub>.</p>'
    page = page.replace(" and", ', 20<a href="#m"><sup>3</sup></a> and')
    assert text_of("a.html", page) == "It rose to 10[2], 20[3] and H2O by 10_2."


_SHEET = """<style><!-- /* .up { x */ @media print { .a { display: none } } @import "b.css"; .up, sub.low {
  vertical-align: super } ol.rom { list-style: lower-roman inside } #z {list-style-type: cjk-ideographic}
  .gone, p.out { display: none !important } .old { text-decoration: line-through } li .gone2 { display: none }
  .shy { visibility: hidden } --></style>"""


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (
            "10<span class='c up'>6</span> N, m<span class=up style='vertical-align: baseline'>x</span>",
            "10^6 N, mx",
        ),
        ("<ol class=rom><li>a<li>b</ol>", "i. a\nii. b"),
        ("<ol id=z><li>甲<li>乙</ol>", "一、 甲\n二、 乙"),
        ("What all may see.<p class=gone>x<p class=out>y<p class='a shy'>z", "What all may see."),
        (
            "What all may see.<p class='gone' style='display: block'>x<p class=a>y",
            "What all may see.\n\nx\n\ny",
        ),
        ("What all may see.<p class=gone>x<b class=gone>secret</b>", "What all may see."),  # counted once
        (
            "<style>.a {DISPLAY: none}</style>What all see.<p class=a style='Display: block'>x",
            "What all see.\n\nx",
        ),
        ("<span class=old>5</span> 4", "~~5~~ 4"),
        # what a script or a click may show, and what is most of the page
        ("<style>#a:checked ~ p {display: block}</style>What all see.<p class=gone>x", "What all see.\n\nx"),
        ("What all may see.<p class=gone>x<script src=a.js></script>", "What all may see.\n\nx"),
        ("See.<p class=gone onclick='f()'>x", "See.\n\nx"),
        ("See.<p class=gone>Long answer.", "See.\n\nLong answer."),
        # then the numbers are written by rules that are not followed
        ("<style>ol.rom::before{content: counter(x)}</style><ol class=rom><li>a</ol>", "1. a"),
        ("<style media=print>b {display: none}</style>What <b>all</b> see.", "What all see."),
        ("Co&shy;operate. <dialog>Shut.</dialog><dialog open>Open.</dialog>", "Cooperate.\n\nOpen."),
    ],
)
def test_style_sheets_are_followed(text_of, page, text):
    """Rules for one tag, class or id, on superscripts, lists, and what is hidden or struck."""
    assert text_of("a.html", f"<html><head>{_SHEET}</head><body>{page}") == text


@pytest.mark.parametrize(
    "css",
    [
        "@" * 200_000, "/*" * 100_000, "a{" * 100_000, "@a{" + "x{y}" * 50_000, ".a{display:" * 20_000,
        "b{display:block}" * 20_000, "b{display:" + "x" * 200_000 + "}",
        "b," * 50_000 + "b{" + "display:block;" * 20_000 + "}",
    ],
)  # fmt: skip
def test_long_style_sheets_are_read_in_no_time(text_of, css):
    """However they are broken, or often they say the same, they cost no more than their length."""
    page = f"<style>{css}</style><p class=a>Words." + "<b>x</b>" * 20_000
    assert text_of("a.html", page) == "Words." + "x" * 20_000


def test_superscripts_by_style_sheet_and_in_formulas(text_of):
    """A superscript as office programs and MathML write it."""
    page = (
        "<p>Area 5 km<span style='font-size:60%; vertical-align: super'>2</span>, "
        "<math><msup><mn>10</mn><mn>6</mn></msup><mo>=</mo><mfrac><mi>a</mi><mn>20</mn></mfrac></math>, <math><mtable>"
        "<mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd></mtr></mtable></math></p>"
    )
    drawn = "<span><math><mi>E</mi></math></span><span aria-hidden='true'><b>E</b></span>"  # by KaTeX
    with use_notes() as notes:
        text = text_of("a.html", f"{page}<p>As <span>{drawn}</span> is.</p><p aria-hidden='true'>Shut.")
    assert text == "Area 5 km^2, 10^6=a/20, [1, 2; 3]\n\nAs E is.\n\nShut." and not notes.texts


# --- lists of html


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<ol start="7"><li>甲</li><li value="12">乙</li><li>丙</li></ol>', "7. 甲\n12. 乙\n13. 丙"),
        ("<ol reversed><li>a</li><li>b</li></ol>", "2. a\n1. b"),
        ('<ol reversed start="9"><li>a</li><li>b</li></ol>', "9. a\n8. b"),
        ('<ol type="a"><li>x</li><li>y</li></ol>', "a. x\nb. y"),
        ('<ol type="I" start="3"><li>x</li><li>y</li></ol>', "III. x\nIV. y"),
        ('<ol><li>x</li><li type="A">y</li></ol>', "1. x\nB. y"),
        ('<ol style="list-style-type: simp-chinese-informal" start="10"><li>甲</li></ol>', "十、 甲"),
        ('<ol style="list-style:none"><li>1.1 x</li></ol>', "- 1.1 x"),
        ("<ul style='list-style-type: decimal'><li>x</li><li>y</li></ul>", "1. x\n2. y"),
        ("<ol><li>x</li><li hidden>no</li><li></li><li>y</li></ol>", "1. x\n3. y"),
        ("<ol><li>x<ol><li>deep</li></ol></li><li>y</li></ol>", "1. x\n   1. deep\n2. y"),
        ('<ol start="x"><li value="">a</li></ol>', "1. a"),
        ('<ol start="0"><li>a</li><li>b</li></ol>', "0. a\n1. b"),
    ],
)
def test_html_lists_have_the_numbers_of_a_browser(text_of, page, text):
    """Start, value, type and direction count; hidden items do not, empty ones do."""
    assert text_of("a.html", page) == text


# --- lists of docx


def test_a_word_list_goes_on_over_tables_and_paragraphs(text_of):
    """As Word counts: one counter for each definition, whatever stands between."""
    body = make.listed("Parts", 1) + f"<w:tbl><w:tr><w:tc>{make.paragraph('泵')}</w:tc></w:tr></w:tbl>"
    body += make.listed("交货", 1) + make.paragraph("Between") + make.listed("Pay", 1)
    text = text_of("a.docx", make.numbered_docx(body, {1: make.level(0, "decimal", "%1.")}))
    for item in ("1. Parts", "2. 交货", "3. Pay"):
        assert item in text.split("\n\n")


def test_word_lists_begin_where_they_say(text_of):
    """A start, an override at the first item of its list only, and lists of one definition that go on together."""
    override = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    body = make.items(("a", 1), ("b", 2), ("c", 2), ("d", 1), ("e", 3))
    data = make.numbered_docx(
        body, {1: make.level(0, "decimal", "%1)", start=3)}, lists={1: (1, ""), 2: (1, override), 3: (1, "")}
    )
    assert text_of("a.docx", data) == "3) a\n5) b\n6) c\n7) d\n8) e"


def test_levels_of_a_word_list_begin_anew_and_show_those_above(text_of):
    """Multi-level labels, a level that never begins anew, letters, roman numbers and bullets."""
    levels = (
        make.level(0, "upperRoman", "%1.")
        + make.level(1, "decimal", "%1.%2", more="<w:isLgl/>")
        + make.level(2, "lowerLetter", "(%3)", more='<w:lvlRestart w:val="0"/>')
        + make.level(3, "bullet", "o")
    )
    items = [
        ("one", 0, "I."), ("deep", 1, "1.1"), ("deeper", 2, "(a)"), ("dot", 3, "-"), ("deep too", 1, "1.2"),
        ("on", 2, "(b)"), ("two", 0, "II."), ("anew", 1, "2.1"),
    ]  # fmt: skip
    data = make.numbered_docx(make.items(*((text, 1, level) for text, level, _ in items)), {1: levels})
    lines = [line.strip() for line in text_of("a.docx", data).split("\n") if line.strip()]
    assert lines == [f"{label} {text}" for text, _, label in items]


def test_clauses_of_a_contract_are_numbered(text_of):
    """Headings numbered by their style, items by another level of the same list, without a gap where there is none."""
    levels = make.level(0, "chineseCounting", "第%1条", more='<w:pStyle w:val="Heading1"/>')
    levels += make.level(1, "chineseCounting", "（%2）", more='<w:suff w:val="nothing"/>')
    styles = (
        '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/><w:pPr><w:numPr>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style><w:style w:type="paragraph" w:styleId="C">'
        '<w:name w:val="Clause"/><w:basedOn w:val="Heading1"/></w:style>'
    )
    body = make.listed("货物", style="Heading1") + make.items(("水泵三台。", 1, 1), ("阀门。", 1, 1))
    body += make.listed("价款", style="C") + make.items(("总价。", 1, 1), ("no number", 0, None, "Heading1"))
    text = text_of("a.docx", make.numbered_docx(body, {1: levels}, styles=styles))
    assert text.split("\n\n") == [
        "# 第一条 货物", "（一）水泵三台。", "（二）阀门。", "# 第二条 价款", "（一）总价。", "# no number",
    ]  # fmt: skip


@pytest.mark.parametrize("is_linked", [True, False], ids=["linked", "by its own level"])
def test_a_style_based_on_a_numbered_one_has_its_own_level(text_of, is_linked):
    """The nearest style that is linked to a level, or names one, counts, not the one that it is based on."""
    levels = make.level(0, "decimal", "%1.", more='<w:pStyle w:val="H1"/>')
    levels += make.level(1, "decimal", "%1.%2", more='<w:pStyle w:val="H2"/>' if is_linked else "")
    styles = (
        '<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="Head"/><w:pPr><w:numPr><w:numId w:val="1"/>'
        '</w:numPr></w:pPr></w:style><w:style w:type="paragraph" w:styleId="H2"><w:name w:val="Deep head"/>'
        '<w:basedOn w:val="H1"/><w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr></w:style>'
    )
    body = "".join(make.listed(text, style=f"H{text[0]}") for text in ("1a", "2b", "2c", "1d", "2e"))
    lines = text_of("a.docx", make.numbered_docx(body, {1: levels}, styles=styles)).split()
    assert lines == ["1.", "1a", "1.1", "2b", "1.2", "2c", "2.", "1d", "2.1", "2e"]


def test_what_word_does_not_show_is_not_counted(text_of):
    """Deleted and hidden paragraphs and the second copy of a text box; an empty item has a number."""
    deleted = (
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr><w:rPr><w:del w:id="1"/></w:rPr></w:pPr>'
        '<w:del w:id="2"><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>'
    )
    hidden = deleted.replace('<w:del w:id="1"/>', "<w:vanish/>")
    box = (
        '<w:p><w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<mc:Choice>{make.listed('box', 1)}</mc:Choice><mc:Fallback><w:pict>{make.listed('box', 1)}</w:pict>"
        "</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    body = make.listed("a", 1) + deleted + hidden + box + make.items(("", 1), ("d", 1))
    text = text_of("a.docx", make.numbered_docx(body, {1: make.level(0, "decimal", "%1.")}))
    assert text.split() == ["1.", "a", "2.", "box", "4.", "d"]


def test_a_column_that_is_numbered_has_its_numbers(text_of):
    """The numbers of empty paragraphs in cells, as in the first column of many forms."""
    rows = "".join(
        f"<w:tr><w:tc>{make.listed('', 1)}</w:tc><w:tc>{make.paragraph(name)}</w:tc></w:tr>"
        for name in ("泵", "阀")
    )
    data = make.numbered_docx(f"<w:tbl>{rows}</w:tbl>", {1: make.level(0, "decimal", "%1")})
    assert text_of("a.docx", data) == "| 1 | 泵 |\n| --- | --- |\n| 2 | 阀 |"


def test_lists_that_are_broken_are_read_as_text(text_of):
    """A list that is missing, refers to itself or lacks its level costs only its numbers."""
    link = '<w:numStyleLink w:val="L"/>'
    styles = (
        '<w:style w:type="numbering" w:styleId="L"><w:name w:val="L"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr>'
        "</w:pPr></w:style>"
    )
    body = make.items(("self", 1), ("missing", 9), ("no level", 2, 7))
    data = make.numbered_docx(body, {1: link, 2: make.level(0, "decimal", "%1.")}, styles=styles)
    assert text_of("a.docx", data) == "self\n\nmissing\n\nno level"


@pytest.mark.parametrize(
    ("style", "numbers"),
    [
        ("decimal", "1 2 10 21"),
        ("decimalZero", "01 02 10 21"),
        ("lowerRoman", "i ii x xxi"),
        ("upperLetter", "A B J U"),
        ("chineseCounting", "一 二 十 二十一"),
        ("chineseLegalSimplified", "壹 贰 壹拾 贰拾壹"),
        ("ideographDigital", "一 二 一〇 二一"),
        ("ideographTraditional", "甲 乙 癸 21"),
        ("aiueoFullWidth", "ア イ コ 21"),
        ("irohaFullWidth", "イ ロ ヌ 21"),
        ("russianLower", "а б к х"),
        ("hebrew1", "א ב י 21"),
        ("decimalEnclosedCircle", "① ② ⑩ 21"),
        ("decimalFullWidth", "１ ２ １０ ２１"),
        ("ordinal", "1st 2nd 10th 21st"),
        ("ordinalText", "First Second Tenth 21st"),
        ("cardinalText", "One Two Ten 21"),
        ("unheard", "1 2 10 21"),
    ],
)
def test_numbers_are_written_in_their_style(style, numbers):
    """In the names that Word gives the styles."""
    assert [list_number(number, style) for number in (1, 2, 10, 21)] == numbers.split()


def test_numbers_of_lists_have_a_bound():
    """A number that would be a page of letters is written in digits."""
    assert list_number(10**9, "lowerLetter") == "1000000000" and list_number(0, "upperRoman") == "0"
    assert list_number(105, "chineseCounting") == "一百零五" and list_number(28, "lowerLetter") == "bb"


# --- lists of pptx


def _saved(deck: Any) -> bytes:
    buffer = io.BytesIO()
    deck.save(buffer)
    return buffer.getvalue()


def _slide(items: list[tuple[str, int, str, int]]) -> tuple[Any, Any]:
    """A presentation and its shape with paragraphs: text, level, scheme of numbers and where they start."""
    import pptx
    from lxml import etree

    deck = pptx.Presentation()
    shape = deck.slides.add_slide(deck.slide_layouts[1]).placeholders[1]
    for place, (text, level, scheme, start) in enumerate(items):
        frame = shape.text_frame
        paragraph = frame.add_paragraph() if place else frame.paragraphs[0]
        paragraph.text, paragraph.level = text, level
        if scheme:
            properties = paragraph._p.get_or_add_pPr()
            number = etree.SubElement(
                properties, "{http://schemas.openxmlformats.org/drawingml/2006/main}buAutoNum"
            )
            number.set("type", scheme)
            if start > 1:
                number.set("startAt", str(start))
    return deck, shape


def test_slides_have_the_numbers_of_powerpoint(text_of):
    """They start where they say; sub-lists begin anew; what has no number ends a list, what is deeper does not."""
    items = [
        ("four", 0, "arabicPeriod", 4), ("a", 1, "alphaLcParenR", 1), ("b", 1, "alphaLcParenR", 1),
        ("five", 0, "arabicPeriod", 4), ("a", 1, "alphaLcParenR", 1), ("", 0, "arabicPeriod", 4),
        ("six", 0, "arabicPeriod", 4), ("plain", 0, "", 1), ("four", 0, "arabicPeriod", 4),
        ("甲", 0, "ea1ChsPeriod", 1), ("乙", 0, "ea1ChsPeriod", 1), ("x", 0, "romanUcParenBoth", 1),
        ("y", 0, "circleNumDbPlain", 1),
    ]  # fmt: skip
    text = text_of("a.pptx", _saved(_slide(items)[0]))
    assert text.split("\n") == [
        "4. four", "  a) a", "  b) b", "5. five", "  a) a", "6. six", "plain", "4. four", "一. 甲", "二. 乙",
        "(I) x", "① y",
    ]  # fmt: skip


def test_numbers_of_slides_go_on_where_none_starts(text_of):
    """A start that only the first paragraph names is that of all; another start begins another list."""
    items = [("a", 0, "arabicPeriod", 5), ("b", 0, "arabicPeriod", 1), ("c", 0, "arabicPeriod", 1)]
    items += [("d", 0, "arabicPeriod", 9), ("e", 0, "arabicPeriod", 9), ("f", 0, "alphaUcPeriod", 1)]
    text = text_of("a.pptx", _saved(_slide(items)[0]))
    assert text.split("\n") == ["5. a", "6. b", "7. c", "9. d", "10. e", "A. f"]


def test_slides_inherit_numbers_from_their_layout(text_of):
    """A list style of the shape or of its layout numbers paragraphs, unless one says that it has no number."""
    from lxml import etree

    a = "http://schemas.openxmlformats.org/drawingml/2006/main"
    deck, shape = _slide([("one", 0, "", 1), ("none", 0, "", 1), ("anew", 0, "", 1)])
    etree.SubElement(shape.text_frame.paragraphs[1]._p.get_or_add_pPr(), f"{{{a}}}buNone")
    layout = next(each for each in deck.slide_layouts[1].placeholders if each.placeholder_format.idx == 1)
    style = next(layout._element.iter(f"{{{a}}}lstStyle"))
    style.append(etree.fromstring(f'<a:lvl1pPr xmlns:a="{a}"><a:buAutoNum type="arabicParenR"/></a:lvl1pPr>'))
    assert text_of("a.pptx", _saved(deck)) == "1) one\nnone\n1) anew"


def _category_chart(labels: Any, values: Any, code: str = "General") -> Any:
    from pptx.chart.data import CategoryChartData

    data = CategoryChartData(number_format=code)
    for label in labels:
        upper, lower = label if isinstance(label, tuple) else (label, ())
        category = data.add_category(upper)
        for each in lower:
            category.add_sub_category(each)
    data.add_series("Sales", values)
    return data


def _point_chart(*series: tuple[str, list[tuple[float, ...]]]) -> Any:
    from pptx.chart.data import BubbleChartData, XyChartData

    data = BubbleChartData() if len(series[0][1][0]) > 2 else XyChartData()
    for name, points in series:
        own = data.add_series(name)
        for point in points:
            own.add_data_point(*point)
    return data


_DAYS = (datetime.date(2026, 1, 1), datetime.date(2026, 2, 1))


@pytest.mark.parametrize(
    ("kind", "data", "rows"),
    [
        ("COLUMN_CLUSTERED", _category_chart("甲AB", (1234567, 0.5, None)), "甲 | 1234567/A | 0.5/B | "),
        ("PIE", _category_chart("甲AB", (0.25, 1, 0.125), "0%"), "甲 | 25%/A | 100%/B | 13%"),
        (
            "COLUMN_CLUSTERED",
            _category_chart(("01067", "1E5", "007"), (1, 2, 3)),
            "01067 | 1/1E5 | 2/007 | 3",
        ),
        ("LINE", _category_chart(_DAYS, (1, 2)), "2026-01-01 | 1/2026-02-01 | 2"),
        ("BAR_CLUSTERED", _category_chart((("N", "ab"), ("S", "a")), (1, 2, 3)), "N a | 1/N b | 2/S a | 3"),
        (
            "XY_SCATTER",
            _point_chart(("Tug", [(1.5, 2), (3, 4)]), ("Yacht", [(10, 20)])),
            "1.5 | 2/3 | 4/ | Yacht/--- | ---/10 | 20",
        ),
        ("XY_SCATTER", _point_chart(("Tug", [(1, 2), (3, 4)]), ("Yacht", [(1, 7)])), "1 | 2 | 7/3 | 4 | "),
        ("BUBBLE", _point_chart(("Tug", [(1, 2, 30), (3, 4, 50)])), "1 | 2 | 30/3 | 4 | 50"),
    ],
    ids=["numbers", "percent", "codes", "days", "two levels", "scatter", "scatter at one place", "bubbles"],
)
def test_charts_have_all_their_figures(text_of, kind, data, rows):
    """Values in their number format with all their digits, each at its own label or place."""
    import pptx
    from pptx.enum.chart import XL_CHART_TYPE

    deck = pptx.Presentation()
    shapes = deck.slides.add_slide(deck.slide_layouts[6]).shapes
    shapes.add_chart(XL_CHART_TYPE[kind], 0, 0, 5_000_000, 3_000_000, data)
    lines = text_of("a.pptx", _saved(deck)).split("\n")
    assert [line for line in lines if line][2:] == [f"| {row} |" for row in rows.split("/")]


def test_names_of_series_that_stand_in_the_chart_are_read(text_of):
    """As Office writes a name that was typed in place of a cell."""
    import pptx
    from pptx.enum.chart import XL_CHART_TYPE

    deck = pptx.Presentation()
    shapes = deck.slides.add_slide(deck.slide_layouts[6]).shapes
    shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 1, 1, _category_chart(("007",), (5,)))
    name = re.compile(b"<c:tx>.*?</c:tx>", re.S)
    data = make.edited(_saved(deck), lambda _, part: name.sub(b"<c:tx><c:v>Income</c:v></c:tx>", part))
    assert make.table(("", "Income"), ("007", "5")) in text_of("a.pptx", data)


# --- cells

_DAY = datetime.datetime(2026, 3, 1, 14, 30, 5)


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (0.25, "0%", "25%"),
        (1, "0%", "100%"),
        (0.1234, "0.0%", "12.3%"),
        (123, "00000", "00123"),
        (5551234, "000-0000", "555-1234"),
        (1234567.891, "#,##0.00", "1,234,567.89"),
        (0, "#", ""),
        (3.5, "0.##", "3.5"),
        (3, "0.##", "3"),
        (2.5, "0", "3"),
        (1234567, '0.0,,"M"', "1.2M"),
        (100000, '0!.0,"万"', "10.0万"),
        (-3, '"€"#,##0.00', "-€3.00"),
        (-3, "#,##0_);(#,##0)", "(3)"),
        (-1234.5, '_-* #,##0.00\\ "€"_-;-* #,##0.00\\ "€"_-', "-1,234.50 €"),
        (5, "[$CHF]* #,##0.00", "CHF 5.00"),
        (12.5, "[$€-407]#,##0.00", "€12.50"),
        (12.5, '"¥"#,##0.00', "¥12.50"),
        (0, '_(* #,##0.00_);_(* \\(#,##0.00\\);_(* "-"??_);_(@_)', "-"),
        (-1234.5, "#,##0.00;[Red]-#,##0.00", "-1,234.50"),
        (-3.5, "0.00;[Red]0.00", "-3.50"),  # where red alone says minus
        (-3.5, "0.00_);[Red](0.00)", "(3.50)"),
        (-3.5, "0.00;0.00", "3.50"),
        (50, '[>=100]"high "0;"low "0', "low 50"),
        (-5, "[>=100]0;0", "-5"),
        (-5, "0;0", "5"),
        (0, '"yes";;"no"', "no"),
        (-2, "0;;", ""),
        (2.75, "# ?/?", "2 3/4"),
        (0.5, "# ?/?", "1/2"),
        (0.3333, "# ??/??", "1/3"),
        (2.25, "# ?/8", "2 2/8"),
        (3, "# ?/?", "3"),
        (1.5, "?/?", "3/2"),
        (12345.678, "0.00E+00", "1.23E+04"),
        (0.000123, "0.0E+0", "1.2E-4"),
        (12345, "##0.0E+0", "12.3E+3"),
        (0.1 + 0.2, "General", "0.3"),
        (123456789012, "General", "123456789012"),
        (1e21, "General", "1E+21"),
        (4.5, '0"小时"', "5小时"),
        ("A1", '"No. "@', "No. A1"),
        ("A1", "0.00", "A1"),
        (1e300, "0.00", "1E+300"),
        (_DAY, "dd/mm/yyyy", "01/03/2026"),
        (_DAY, "d mmmm yyyy", "1 March 2026"),
        (_DAY, "dd\\.mm\\.yyyy;@", "01.03.2026"),
        (_DAY, 'yyyy"年"m"月"d"日"', "2026年3月1日"),
        (_DAY, "[$-804]aaaa", "星期日"),
        (_DAY, '[DBNum1][$-804]yyyy"年"m"月"d"日"', "二〇二六年三月一日"),
        (datetime.date(2026, 11, 21), '[$-804][DBNum2]m"月"d"日"', "壹拾壹月贰拾壹日"),
        (datetime.date(2026, 11, 21), '[DBNum1]mm"月"d"日"', "十一月二十一日"),
        (120_030_004.5, "[DBNum1][$-804]General", "一亿二千〇三万〇四.五"),
        (100_500, '[DBNum2][$-804]General"元整"', "壹拾万零伍佰元整"),
        (12, "[DBNum1]0", "一二"),
        (0, "[DBNum2]General", "零"),
        (1234, "[DBNum1][$-411]General", "1234"),
        (_DAY, '[$-411]ggge"年"m"月"d"日"', "令和8年3月1日"),
        (datetime.date(1989, 1, 7), "[$-411]ge.mm.dd", "S64.01.07"),
        (datetime.date(2019, 5, 1), '[$-ja-JP-x-gannen]ggge"年"', "令和元年"),
        (_DAY, '[$-404]e"年"m"月"', "115年3月"),
        (_DAY, '[$-804]e"年"', "2026年"),
        (3.2, "0.0 kg", "3.2 kg"),
        (_DAY, "h:mm AM/PM", "2:30 PM"),
        (_DAY, "[$-804]AM/PM h:mm", "下午 2:30"),
        (_DAY, "mm:ss", "30:05"),
        (_DAY, "mm-dd-yy", "2026-03-01"),
        (datetime.datetime(2026, 3, 1), "yyyy-mm-dd h:mm:ss", "2026-03-01"),
        (datetime.time(9, 5), "h:mm", "9:05"),
        (datetime.timedelta(hours=30), "[h]:mm", "30:00"),
        (datetime.timedelta(minutes=90), "[mm]:ss", "90:00"),
        (datetime.timedelta(minutes=-90), "[h]:mm", "-1:30"),
        (datetime.timedelta(minutes=-15), "[h]:mm;@", "-0:15"),
        (-0.0625, "[h]:mm;([h]:mm)", "(1:30)"),
        (datetime.timedelta(0), "[h]:mm;-[h]:mm;-", "-"),
        (-3.5, "0.0;@", "-3.5"),
    ],
)
def test_cells_are_shown_by_their_format(value, code, text):
    """As Excel in English shows them; dates in the format of a user's own country are ISO."""
    assert " ".join(shown(value, code).split()) == text


def test_a_workbook_is_read_as_it_is_shown(text_of):
    """Through the reader: percentages, hours, currency, Chinese dates by number, formulas without a value."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["份额", "Hours", "Price", "Day", "Formula"])
    sheet.append([0.25, datetime.timedelta(hours=30), 1250, 46082, "=A2*2"])
    for cell, code in zip(sheet[2], ["0%", "[h]:mm", '#,##0.00 "€"', "0", "0%"], strict=True):
        cell.number_format = code
    sheet["D2"]._style.numFmtId = 31  # yyyy年m月d日 of Chinese Excel, which files name by its number only
    lines = text_of("a.xlsx", _saved(book)).split("\n")
    assert lines[-1] == "| 25% | 30:00 | 1,250.00 € | 2026年3月1日 | =A2*2 |"


def test_struck_text_of_slides_and_sheets_is_marked(text_of):
    """A price that holds no more, before the new one: in a run, or in a cell as a whole."""
    import openpyxl
    import pptx
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont

    deck = pptx.Presentation()
    paragraph = deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text_frame.paragraphs[0]
    for text, strike in (("5,000 ", "sngStrike"), ("4,000", "noStrike")):
        run = paragraph.add_run()
        run.text = text
        run._r.get_or_add_rPr().set("strike", strike)
    assert text_of("a.pptx", _saved(deck)) == "# ~~5,000~~ 4,000"
    book = openpyxl.Workbook()
    book.active.append([5000, CellRichText(TextBlock(InlineFont(strike=True), "5,000 "), "4,000")])
    for cell in book.active[1]:  # a font of the cell does not hold for runs that have their own
        cell.font = openpyxl.styles.Font(strike=True)
    assert text_of("a.xlsx", _saved(book)).endswith("\n\n~~5000~~ ~~5,000~~ 4,000")


def test_equations_of_slides_are_read(text_of):
    """As PowerPoint writes them, beside a picture for older programs."""
    import pptx
    from lxml import etree

    part = "<m:{0}><m:r><m:t>{1}</m:t></m:r></m:{0}>".format
    equation = etree.fromstring(
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        '<mc:Choice xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main" Requires="a14"><a14:m>'
        '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math">'
        f"<m:sSup>{part('e', 'v')}{part('sup', '2')}</m:sSup></m:oMath></a14:m></mc:Choice></mc:AlternateContent>"
    )
    deck = pptx.Presentation()
    paragraph = deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text_frame.paragraphs[0]
    paragraph.text = "Energy:"
    paragraph._p.append(equation)
    assert text_of("a.pptx", _saved(deck)) == "# Energy: v^2"
    title = deck.slides[0].shapes.title._element
    versions = etree.SubElement(title.getparent(), equation.tag)
    etree.SubElement(versions, equation[0].tag).append(title)  # the whole shape is written twice
    picture = etree.SubElement(
        etree.SubElement(versions, equation.tag.replace("AlternateContent", "Fallback")), title.tag
    )
    picture.extend(copy.deepcopy(title)[:2])
    assert text_of("a.pptx", _saved(deck)) == "# Energy: v^2"
