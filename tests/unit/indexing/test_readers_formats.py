"""Text, tables and metadata of each format."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from langchain_core.documents import Document
from support import documents as make

from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import ReadError


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def test_pdf_gives_a_document_a_page_with_number_title_and_running_heading(documents_of):
    """Pages are numbered from 1; a page that begins in a section knows the section."""
    first = [
        (50.0, 780.0, 18.0, "The lake"),
        (50.0, 740.0, 10.0, "It is deep."),
        (50.0, 700.0, 10.0, "And cold."),
    ]
    pages = documents_of("lake.pdf", make.pdf([first, [], [(50, 700, 10, "Nobody swims there in winter.")]]))
    assert [page.metadata["page"] for page in pages] == [1, 3]
    assert pages[0].page_content.startswith("# The lake\n\nIt is deep.")
    assert pages[0].metadata["title"] == "The lake"
    assert pages[1].metadata["heading"] == "The lake"
    assert pages[1].metadata["pages"] == 3 and pages[1].metadata["pages_without_text"] == 1


def _headed(heads: list[str], feet: list[str]) -> bytes:
    """A PDF with a head, a line of text and a foot on each page."""
    return make.pdf(
        [
            [(50, 820, 8, head), (50, 500, 10, f"Text number {n}."), (290, 20, 8, foot)]
            for n, (head, foot) in enumerate(zip(heads, feet, strict=True), 1)
        ]
    )


@pytest.mark.parametrize(
    ("heads", "feet"),
    [
        ([f"Annual report 2024 | {n}" for n in range(12)], [str(n) for n in range(12)]),
        (
            [f"Chapter {1 + n // 4} - {('Pumps', 'Valves', 'Pipes')[n // 4]} | {n + 17}" for n in range(12)],
            [f"Page {n + 1} of 12" for n in range(12)],
        ),
        (
            # left and right pages differ
            [f"{n}      Handbook" if n % 2 else f"Part 2      4-{n}" for n in range(12)],
            ["printed 2024" if n % 3 else "- iv -" for n in range(12)],
        ),
        (
            [("第一章 水泵", "第二章 阀门", "第三章 管道")[n // 4] for n in range(12)],
            [f"第 {n + 1} 页 共 12 页" for n in range(12)],
        ),
        (["内部资料 2026"] * 2, ["Acme 1/2", "Acme 2/2"]),
        (["Part one", "Yearbook"] * 2, ["- 1 -", "- 2 -", "- 3 -", "- 4 -"]),
        ([f"（{n}）" for n in range(6)], [f"[{n + 3}]" for n in range(6)]),
    ],
)
def test_pdf_running_heads_with_changing_text_are_left_out(documents_of, heads, feet):
    """Heads that name the chapter, with or without the page's number, and feet that count pages are no text."""
    documents = documents_of("book.pdf", _headed(heads, feet))
    expected = [f"Text number {n}." for n in range(1, len(heads) + 1)]
    assert texts(documents) == expected


def test_pdf_titles_at_the_edge_of_pages_stay(documents_of):
    """A title that stands once is text, numbered or not, and so is the head of a table on three of many pages."""
    heads = [
        f"{n} {what} the {thing}"
        for n, (what, thing) in enumerate(
            [("Open", "lid"), ("Fill", "tank"), ("Close", "door"), ("Start", "pump"), ("Wait", "hour")], 1
        )
    ]
    feet = ["Name Price", "Name Price", "Name Price", "说明", "结束"]
    pages = documents_of("steps.pdf", _headed([*heads, "x", "y", "z"], [*feet, "a.", "b.", "c."]))
    for page, head, foot in zip(pages, heads, feet, strict=False):
        assert head in page.page_content and foot in page.page_content


@pytest.mark.parametrize(
    ("head", "foot"),
    [("Invoice no. {}", "Amount due:      {}.50 EUR"), ("第{}题", "答案：{}"), ("Room {}", "Total: {}")],
)
@pytest.mark.parametrize("amounts", [[7, 12], [501, 502, 503, 504], [41, 57, 39]])
def test_pdf_lines_with_numbers_of_their_own_stay(documents_of, head, foot, amounts):
    """A line at the edge of each page is running only if its number counts the pages."""
    lines = [(head.format(n), foot.format(100 + n * n)) for n in amounts]
    pages = documents_of("own.pdf", _headed(*zip(*lines, strict=True)))
    for page, (first, last) in zip(pages, lines, strict=True):
        assert page.page_content.startswith(first) and page.page_content.endswith(last.rpartition(" ")[2])


def test_pdf_paragraphs_that_all_pages_begin_with_stay(documents_of):
    """Their first line is no running head, since the paragraph goes on right below it."""
    pages = [
        [(50, 800, 10, "本发票所列货物为水泵，"), (50, 786, 10, f"数量为第{n}批。"), (50, 20, 8, "内部资料")]
        for n in "甲乙丙"
    ]
    documents = documents_of("own.pdf", make.pdf(pages))
    assert texts(documents) == [f"本发票所列货物为水泵，数量为第{n}批。" for n in "甲乙丙"]


def _relation(identifier: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{identifier}" Type="{make.R}/{kind}" Target="{target}"/>'


def _run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def _cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{make.paragraph(text)}</w:tc>"


def test_docx_letters_are_read_as_they_are_shown(text_of):
    """Raised without a superscript, hidden or struck by a style, struck twice, apart by other breaks; in notes, too."""
    styles = (
        f"<w:styles xmlns:w='{make.W}'><w:style w:type='character' w:styleId='H'><w:rPr><w:vanish/></w:rPr></w:style>"
        "<w:style w:type='paragraph' w:styleId='P'><w:rPr><w:vanish/></w:rPr></w:style></w:styles>"
    )
    shown = _run("kept", "<w:vanish w:val='0'/>")
    note = (
        _run("see ")
        + _run("SECRET", "<w:vanish/>")
        + f"<w:fldSimple w:instr='REF x'>{_run('clause 8')}</w:fldSimple>"
    )
    body = "".join(
        f"<w:p>{content}</w:p>"
        for content in (
            _run("limit 10") + _run("6", '<w:position w:val="8"/>') + _run(" N"),
            _run("SECRET", "<w:rStyle w:val='H'/>") + "<w:r><w:footnoteReference w:id='2'/></w:r>",
            f"<w:pPr><w:pStyle w:val='P'/></w:pPr>{_run('SECRET')}{shown}",
            _run("a") + "<w:r><w:cr/></w:r>" + _run("b") + "<w:r><w:ptab/></w:r>" + _run("c"),
            _run("5,000", "<w:dstrike/>") + _run(" 4,000"),
            _run("5,000", "<w:strike/>") + _run(" 4,000"),
            _run(
                "was hidden", "<w:rPrChange><w:rPr><w:vanish/><w:position w:val='8'/></w:rPr></w:rPrChange>"
            ),
        )
    )
    note = f"<w:footnote w:id='2'><w:p>{note}</w:p></w:footnote>"
    notes = f"<w:footnotes xmlns:w='{make.W}'>{note}</w:footnotes>"
    extra = {"word/styles.xml": styles, "word/f.xml": notes}
    data = make.docx(body, extra=extra, relations=_relation("F", "footnotes", "f.xml"))
    text = text_of("a.docx", data)
    struck = "~~5,000~~ 4,000"
    lines = ["limit 10^6 N", "[1]", "kept", "a\nb c", struck, struck, "was hidden", "1. see clause 8"]
    assert text == "\n\n".join(lines)
    assert "SECRET" not in text


def test_docx_notes_have_the_numbers_of_their_lists(text_of):
    """A list in a footnote goes on from that of the text, as it is the same."""
    numbered = make.listed("noted", 1)
    numbering = make.level(0, "decimal", "Clause %1.")
    extra = {
        "word/f.xml": f"<w:footnotes xmlns:w='{make.W}'><w:footnote w:id='2'>{numbered}</w:footnote></w:footnotes>",
        "word/n.xml": f"<w:numbering xmlns:w='{make.W}'><w:abstractNum w:abstractNumId='1'>{numbering}</w:abstractNum>"
        "<w:num w:numId='1'><w:abstractNumId w:val='1'/></w:num></w:numbering>",
    }
    relations = _relation("F", "footnotes", "f.xml") + _relation("N", "numbering", "n.xml")
    body = make.listed("main", 1) + "<w:p><w:r><w:t>x</w:t><w:footnoteReference w:id='2'/></w:r></w:p>"
    text = text_of("a.docx", make.docx(body, extra=extra, relations=relations))
    assert text.startswith("Clause 1. main\n\nx[1]\n\n1. Clause 2. noted")


def test_docx_charts_diagrams_and_inserted_files_are_read_or_named(documents_of):
    """A chart as its figures, a diagram as a list; what is not read is noted."""
    chart = (
        "<c:chartSpace {}><c:chart><c:title><a:t>Sales</a:t></c:title><c:plotArea><c:barChart><c:ser>"
        "<c:tx><c:pt idx='0'><c:v>2025</c:v></c:pt></c:tx><c:cat><c:pt idx='0'><c:v>North</c:v></c:pt></c:cat>"
        "<c:val><c:pt idx='0'><c:v>47</c:v></c:pt></c:val></c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>"
    )
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    spaces = f'xmlns:c="{drawing}/chart" xmlns:a="{drawing}/main" xmlns:d="{drawing}/diagram"'
    extra = {
        "word/c.xml": chart.format(spaces),
        "word/d.xml": f"<d:dataModel {spaces}><d:pt modelId='0'/><d:pt modelId='2'><a:t>Do</a:t></d:pt>"
        "<d:pt modelId='1'><a:t>Plan</a:t></d:pt><d:pt modelId='3'><a:t>with care</a:t></d:pt>"
        "<d:cxn srcId='0' destId='2' srcOrd='1'/><d:cxn srcId='0' destId='1' srcOrd='0'/><d:cxn srcId='2' destId='3'/>"
        "<d:cxn type='presOf' srcId='1' destId='3'/></d:dataModel>",
        "word/a.html": "<p>Inserted <b>text</b></p>",
        "word/b.rtf": "{x}",
    }
    body = (
        f"<w:p {spaces}><w:r><w:t>Before</w:t><w:drawing><c:chart r:id='C'/></w:drawing></w:r></w:p>"
        f"<w:p {spaces}><w:r><w:drawing><d:relIds r:dm='D'/></w:drawing></w:r></w:p>"
        "<w:altChunk r:id='A'/><w:altChunk r:id='B'/>"
        f"<w:p {spaces}><w:r><w:drawing><c:chart r:id='gone'/></w:drawing></w:r></w:p>"
    )
    kinds = {
        "C": ("chart", "c.xml"),
        "D": ("diagramData", "d.xml"),
        "A": ("aFChunk", "a.html"),
        "B": ("aFChunk", "b.rtf"),
    }
    relations = "".join(_relation(name, *target) for name, target in kinds.items())
    with use_notes() as notes:
        (document,) = documents_of("a.docx", make.docx(body, extra=extra, relations=relations))
    table = "|  | 2025 |\n| --- | --- |\n| North | 47 |"
    assert (
        document.page_content == f"Before\n\nSales\n\n{table}\n\n- Plan\n- Do\n  - with care\n\nInserted text"
    )
    assert notes.texts == [
        "part word/b.rtf left out: an inserted file of a kind that is not read (rtf)",
        "part chart left out: it lacks the part ''",
    ]


def _math(name: str, text: str) -> str:
    return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"


_BRACKETS = (
    f"<m:d><m:e><m:r><m:t>a+</m:t></m:r><m:f>{_math('num', 'b')}{_math('den', 'cd')}</m:f></m:e></m:d>"
)
_ROOT = f"<m:rad>{_math('deg', '')}{_math('e', 'x+1')}</m:rad>"
_BOUNDS = _math("sub", "i=1") + _math("sup", "n")
_SUM = f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr>{_BOUNDS}{_math('e', 'x')}</m:nary>"
_MATRIX = f"<m:m><m:mr>{_math('e', '1')}{_math('e', '2')}</m:mr><m:mr>{_math('e', '3')}</m:mr></m:m>"
_POWER = f"<m:sSup>{_math('e', 'v')}{_math('sup', '2')}</m:sSup>"
_FIELD = f'{_run("见第")}<w:fldSimple w:instr="REF a">{_run("3.2")}</w:fldSimple>{_run("条。")}'
_RUBY = f"<w:r><w:ruby><w:rt>{_run('kuì')}</w:rt><w:rubyBase>{_run('匮')}</w:rubyBase></w:ruby></w:r>"
_OVAL = (
    '<w:r><w:pict><v:oval xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox><w:txbxContent>'
    f"{make.paragraph('合同专用章')}</w:txbxContent></v:textbox></v:oval></w:pict></w:r>"
)
_W14 = "http://schemas.microsoft.com/office/word/2010/wordml"
_TICKED = (
    f"<w:sdt><w:sdtPr><w14:checkbox xmlns:w14='{_W14}'><w14:checked w14:val='{{}}'/></w14:checkbox></w:sdtPr>"
    "<w:sdtContent><w:r><w:t>x</w:t></w:r></w:sdtContent></w:sdt>"
)
_CHOICE = (
    "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='red'/>"
    "<w:listEntry w:val='blue'/></w:ddList></w:ffData></w:fldChar><w:fldChar w:fldCharType='end'/></w:r>"
)
_BOX = (
    "<w:drawing><wp:anchor><wps:txbx xmlns:wps='http://schemas.microsoft.com/office/word/2010/wordprocessingShape'>"
    f"<w:txbxContent>{make.paragraph('in the box')}</w:txbxContent></wps:txbx></wp:anchor></w:drawing>"
)
_BOX_BESIDE_A_PICTURE = (
    "<mc:AlternateContent xmlns:mc='http://schemas.openxmlformats.org/markup-compatibility/2006'>"
    f"<mc:Choice>{_BOX}</mc:Choice><mc:Fallback><w:pict/></mc:Fallback></mc:AlternateContent>"
)


_CODE = '<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>{}</w:instrText><w:fldChar w:fldCharType="end"/></w:r>'
_EQS = [
    r"eq \o\ac(○,3)", r"EQ \F(3,4)", r'EQ \* "Font:宋体" \o\ad(\s\up 9(yi),一)',
    'EQ 5</w:instrText><w:fldChar w:fldCharType="separate"/><w:t>7</w:t><w:instrText>',
]  # fmt: skip
_RESULT = '{}</w:instrText><w:fldChar w:fldCharType="separate"/><w:t>{}</w:t><w:instrText>'.format
_INNER = f"</w:instrText></w:r>{_CODE.format(_RESULT('MERGEFIELD sex', 'female'))}<w:r><w:instrText>"
_CONDITION = _CODE.format(_RESULT(f'IF {_INNER} = "female"', "Ms Holm"))  # a field in the code of another one


@pytest.mark.parametrize(
    ("content", "text", "noted"),
    [
        (_TICKED.format(1) + _run(" Yes ") + _TICKED.format(0) + _run(" No"), "☑ Yes ☐ No", ""),
        (_run("Colour: ") + _CHOICE, "Colour: blue", ""),
        (_run("a") + f"<w:r>{_BOX}</w:r>", "a\n\nin the box", ""),
        (_run("a") + f"<w:r>{_BOX_BESIDE_A_PICTURE}</w:r>", "a\n\nin the box", ""),
        (f"<w:hyperlink r:id='gone'>{_run('link')}</w:hyperlink>", "link", ""),
        (
            _run("a")
            + "<w:r><w:pict><v:imagedata xmlns:v='urn:schemas-microsoft-com:vml' r:id='g'/></w:pict></w:r>",
            "a",
            "",
        ),
        (_FIELD, "见第3.2条。", ""),
        (_run("不得") + _RUBY + _run("乏"), "不得匮乏", ""),
        (_OVAL, "合同专用章", ""),
        (f"<m:oMath>{_BRACKETS}{_ROOT}{_POWER}</m:oMath>", "(a+b/(cd))√(x+1)v^2", ""),
        (f"<m:oMath>{_SUM}{_MATRIX}</m:oMath>", "∑_(i=1)^n x[1, 2; 3]", ""),
        (f"<m:oMath><m:rad>{_math('deg', '3')}{_math('e', '27')}</m:rad></m:oMath>", "^3√27", ""),
        (_run("a") + '<w:r><w:br w:type="page"/></w:r>' + _run("b"), "a\nb", ""),
        (_run("步骤") + "".join(map(_CODE.format, _EQS)), "步骤③3/4一7", ""),
        (_run("To ") + _CONDITION, "To Ms Holm", ""),
        ("<w:r><w:sym w:font='Wingdings' w:char='F0FE'/></w:r>" + _run(" Yes"), "☑ Yes", ""),
        (_run("a") + "<w:r><w:footnoteReference w:id='9'/></w:r>", "a", "footnote 9 left out"),
        (
            _run("at ") + "<w:r><w:sym w:font='Unknown' w:char='F0B3'/></w:r>" + _run("5"),
            "at 5",
            "a sign left out",
        ),
    ],
    ids="ticks choice box both link picture field ruby oval equation sum root page code condition wingdings "  # noqa: SIM905
    "note sign".split(),
)
def test_docx_shows_what_word_shows_or_a_note_names_it(text_of, content, text, noted):
    """Boxes to tick, choices and text boxes; what refers to nothing costs only itself."""
    with use_notes() as notes:
        read = text_of("a.docx", make.docx(f"<w:p>{content}</w:p>"))
    assert read == text
    assert len(notes.texts) == bool(noted) and all(note.startswith(noted) for note in notes.texts)


def test_docx_page_headers_and_footers_are_read_once(text_of):
    """The number of a contract may stand in the page header alone; a page number is no text."""
    w = f"xmlns:w='{make.W}'"
    tab = "<w:p><w:r><w:t>Haichuan</w:t><w:tab/><w:t>HT-2025-0318</w:t></w:r></w:p>"
    numbers = [("文件编号", "318"), ("Page", "3"), ("Rev.", "7")]
    rows = "".join(tab.replace("Haichuan", name).replace("HT-2025-0318", text) for name, text in numbers)
    parts = {
        "header1": f"<w:hdr {w}>{tab}{make.paragraph('Terms of purchase.')}</w:hdr>",
        "header2": f"<w:hdr {w}>{tab}</w:hdr>",
        "footer1": f"<w:ftr {w}>{make.paragraph('第 1 页 共 9 页')}{make.paragraph('内部资料')}</w:ftr>",
        "footer2": f"<w:ftr {w}>{tab.replace('HT-2025-0318', '12')}{make.paragraph('内部资料 第3页')}</w:ftr>",
        "footer3": f"<w:ftr {w}>{tab.replace('HT-2025-0318', '2025')}{make.paragraph('Seite 3 von 9')}</w:ftr>",
        "footer4": f"<w:ftr {w}>{make.paragraph('1' * 40 + 'x')}{rows}</w:ftr>",
    }
    relations = "".join(_relation(name, name[:-1], f"{name}.xml") for name in parts)
    extra = {f"word/{name}.xml": text for name, text in parts.items()}
    body = make.paragraph("Terms of purchase.") + make.paragraph("Pay in 30 days.")
    data = make.docx(body, extra=extra, relations=relations)
    text = text_of("a.docx", data)
    feet = ["内部资料", "Haichuan", "Haichuan 2025", "1" * 40 + "x", "文件编号 318", "Rev. 7"]
    assert text.split("\n\n") == ["Haichuan HT-2025-0318", "Terms of purchase.", "Pay in 30 days.", *feet]


def test_docx_keeps_headings_merged_cells_and_equations(documents_of):
    """Headings by outline level whatever the style is called; merged cells and rows that begin late in their place."""
    rows = [("", ["City", "River"]), ('<w:trPr><w:gridBefore w:val="1"/></w:trPr>', ["甲"])]
    table = "".join(f"<w:tr>{late}{''.join(map(_cell, texts))}</w:tr>" for late, texts in rows)
    table += "<w:tr>" + _cell("Bern | Aare", "<w:gridSpan w:val='2'/>") + "</w:tr>"
    table += f"<w:tr><w:trPr><w:hidden/></w:trPr>{_cell('secret')}</w:tr>"
    table += f'<w:tr><w:trPr><w:hidden w:val="0"/></w:trPr>{_cell("open")}</w:tr>'
    body = make.paragraph("Top", "Heading1") + make.paragraph("Some text.") + make.paragraph("第二节", "a5")
    body += (
        f"<w:tbl>{table}</w:tbl><w:p>{_run('Energy: ')}<m:oMath><m:r><m:t>E=mc²</m:t></m:r></m:oMath></w:p>"
    )
    (document,) = documents_of("a.docx", make.docx(body))
    shown = make.table(("City", "River"), ("", "甲"), ("Bern \\| Aare",) * 2, ("open", ""))
    assert document.page_content == f"# Top\n\nSome text.\n\n## 第二节\n\n{shown}\n\nEnergy: E=mc²"
    assert document.metadata["title"] == "Top"


@pytest.mark.parametrize("mark", ["<w:hidden/>", '<w:del w:id="1" w:author="x"/>'])
@pytest.mark.parametrize("late", ["", '<w:gridBefore w:val="1"/>'])
def test_a_merged_cell_of_a_docx_outlasts_its_first_row(text_of, mark, late):
    """Rows below one that is hidden or deleted keep the text that began there, not that of the cell above."""
    start, on = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    rows = [("", "Group", "Value"), ("", ("Zed", start), "0"), ("", ("", on), "1")]
    rows += [(mark, ("Alpha", start), "2"), (mark, ("", on), "3"), ("", ("", on), "4")]
    cells = [
        (properties, [_cell(*[text] if isinstance(text, str) else text) for text in texts])
        for properties, *texts in rows
    ]
    table = "".join(f"<w:tr><w:trPr>{late}{each}</w:trPr>{''.join(texts)}</w:tr>" for each, texts in cells)
    shown = [("Group", "Value"), ("Zed", "0"), ("Zed", "1"), ("Alpha", "4")]
    read = text_of("a.docx", make.docx(f"<w:tbl>{table}</w:tbl>"))
    assert read == make.table(*(("", *row) if late else row for row in shown))


def test_pptx_gives_a_document_a_slide_with_notes(documents_of):
    """Slide numbers, titles as headings, the speaker's notes."""
    slides = documents_of("a.pptx", make.pptx([("One", "first"), ("Two", "second")], notes="say it"))
    assert [slide.metadata["page"] for slide in slides] == [1, 2]
    assert slides[0].page_content == "# One\n\nfirst\n\nNotes: say it"


def test_xlsx_gives_sheet_names_separate_tables_and_row_groups_with_header(documents_of):
    """Each group of rows repeats the header and knows its rows; merged cells are filled; formulas are shown."""
    rows = [["name", "square"], *([n, n * n] for n in range(200))]
    book = make.xlsx(
        {
            "Squares": rows,
            "Two": [["a", "b"], [1, "=A2*2"], [None, None], ["c", "d"], [True, 0.5]],
            "M": [["x", None], [1, 2]],
        },
        merge={"M": "A1:B1"},
    )
    documents = documents_of("a.xlsx", book)
    squares = [document for document in documents if document.metadata["sheet"] == "Squares"]
    assert len(squares) > 2
    assert all("| name | square |\n| --- | --- |\n" in document.page_content for document in squares)
    assert squares[0].metadata["row_start"] == 2 and squares[-1].metadata["row_end"] == 201
    assert "| 199 | 39601 |" in squares[-1].page_content
    two = texts([document for document in documents if document.metadata["sheet"] == "Two"])
    assert len(two) == 2 and "| 1 | =A2*2 |" in two[0] and "| TRUE | 0.5 |" in two[1]
    assert "| x | x |" in documents[-1].page_content


def test_html_gives_visible_text_as_markdown(documents_of):
    """Scripts and hidden parts are out; lists nest; cells span; code keeps its lines."""
    page = """<html><head><title>A  page</title><style>p{}</style></head><body><script>alert(1)</script>
      <h1>Top</h1><p>Some <b>bold</b> text with a <a href="https://x.example/y">link</a>.<br>Next line</p>
      <div hidden>secret</div><p style="display: none">secret</p>
      <ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul><ol><li>three</li></ol>
      <table><tr><th>a</th><th>b</th></tr><tr><td colspan="2">wide</td></tr></table>
      <pre>if x:\n    y()</pre></body></html>"""
    (document,) = documents_of("a.html", page)
    text = document.page_content
    assert document.metadata["title"] == "A page"
    assert "secret" not in text and "alert" not in text and "https" not in text
    assert "# Top\n\nSome bold text with a link.\nNext line" in text
    assert "- one\n  - inner\n- two\n\n1. three" in text
    assert "| a | b |\n| --- | --- |\n| wide | wide |" in text
    assert "```\nif x:\n    y()\n```" in text


def test_html_that_is_hostile_gives_its_text(text_of):
    """Enormous spans cost neither the text nor the process."""
    for count in (1, 300):
        rows = '<tr><td colspan="99999" rowspan="99999">deep' * count
        text = text_of("a.html", f"<table>{rows}</table>")
        assert "deep" in text and len(text) < 100_000


@pytest.mark.parametrize("page", ["<p>{} <font>", "<ul><li>{}", "<div>{}", "<p><span>{}"])
def test_html_that_is_nested_without_end_is_refused(text_of, page):
    """Tags that are never closed nest what follows; what is not so deep is read."""
    assert text_of("a.html", "".join(page.format(f"item{n} ") for n in range(200))).split()[-1] == "item199"
    with pytest.raises(ReadError, match=r"nested over 500 deep.*browser"):
        text_of("a.html", "".join(page.format(f"item{n}") for n in range(3000)))


def test_html_shows_no_hidden_rows_and_keeps_equal_cells(text_of):
    """Rows hidden alone or by their group are out; a table of one row says each of its cells; a price is struck."""
    page = """<table><tr><th>a<th>b<tr style="display:none"><td>secret<td>1<tr><td>new<td>2
      <tbody style="display: none"><tr><td>secret<td>3</table>
      <table><tr><td>Mon<td>8<td>Tue<td>8</table>
      <p><span style="text-decoration: line-through">5,000</span> 4,000
      <pre>limit 10<sup>6</sup> N<br><code>second  line</code> <span hidden>secret</span>end</pre>
      <p><ruby>汉<rp>(</rp><rt>hàn</rt><rp>)</rp>字</ruby> <input type="checkbox" checked>Yes
      <input type=radio>No <input type=checkbox role=button> <input type=checkbox role=switch checked>On"""
    text = text_of("a.html", page)
    blocks = (
        "| a | b |\n| --- | --- |\n| new | 2 |",
        "Mon\n\n8\n\nTue\n\n8",
        "~~5,000~~ 4,000",
        "```\nlimit 10^6 N\nsecond  line end\n```",
        "汉字 ☑ Yes ☐ No ☑ On",
    )
    assert text == "\n\n".join(blocks)


@pytest.mark.parametrize(
    "code",
    [
        "<div>a = 1</div><div>  b = 2</div>",
        "<code><div>a = 1\n</div>\n<div>  b = 2<br></div></code>",
        "a = 1<div>  b = 2</div>",
    ],
)
def test_html_blocks_in_code_are_lines(text_of, code):
    """Each begins and ends a line, once, whether or not the code has a line end there; an empty line stays."""
    text = text_of("a.html", f"<pre>{code}<div><br></div><div>c</div></pre>")
    assert text == "```\na = 1\n  b = 2\n\nc\n```"


def test_markdown_and_text_stand_as_they_are(documents_of):
    """Markdown loses only images written into it; its title is the front matter's or the first heading."""
    image = "data:image/png;base64," + "A" * 200
    (document,) = documents_of("a.md", f"---\ntitle: 'Mine'\n---\n# H\n\n![x]({image})\n\nText.\n")
    assert document.metadata["title"] == "Mine" and "AAAA" not in document.page_content
    assert document.page_content.endswith("Text.\n")
    wrapped = "\n".join(["data:image/png;base64," + "A" * 54, *["B" * 76] * 3, "CC=="])
    text = f"[i]: {image}\n\nThe crane lifts 40 tonnes\n\n![x]({wrapped})\n\nText.\n"
    (document,) = documents_of("c.md", text)
    assert document.page_content == "[i]: \n\nThe crane lifts 40 tonnes\n\n![x]()\n\nText.\n"
    (sharp,) = documents_of("d.md", "~~~\n# no title\n~~~\n\n# C#\n\nText.")
    assert sharp.metadata["title"] == "C#"
    (plain,) = documents_of("b.txt", "one\r\ntwo")
    assert plain.page_content == "one\ntwo" and plain.metadata["title"] == "b"


def test_csv_is_read_in_groups_with_the_header(documents_of):
    """The separator is found; quoted line breaks stay in their cell; no cell is lost."""
    rows = "\n".join(f'{n};"Town {n}\nby the river";{n * 1000}' for n in range(1, 101))
    documents = documents_of("a.csv", f"id;name;people\n{rows}\n101;x;1;extra\n")
    assert all(
        document.page_content.startswith("| id | name | people |\n| --- | --- | --- |\n")
        for document in documents
    )
    assert "| 7 | Town 7 by the river | 7000 |" in documents[0].page_content
    assert "1; extra |" in documents[-1].page_content
    (remarks,) = documents_of("b.csv", "评语\n速度快, 服务差\nGood\n一般\n")
    assert remarks.page_content.split("\n")[2:] == ["| 速度快, 服务差 |", "| Good |", "| 一般 |"]
    spans = [(document.metadata["row_start"], document.metadata["row_end"]) for document in documents]
    assert spans[0][0] == 1 and spans[-1][1] == 101
    assert all(last + 1 == first for (_, last), (first, _) in pairwise(spans))


def test_csv_quotation_marks_that_do_not_fit_swallow_no_rows(text_of):
    """Left open, or followed by letters: the line is a row, and noted; rows over several lines stay."""
    text = 'id,name,note\n1,"unclosed,ok\n2,"two\nlines",ok\n3,"Big" one,"a, b"\n4,5",inch\n'
    with use_notes() as notes:
        text = text_of("a.csv", text)
    rows = text.split("\n")[2:]
    assert rows == [
        '| 1 | "unclosed | ok |',
        "| 2 | two lines | ok |",
        "| 3 | Big one | a, b |",
        '| 4 | 5" | inch |',
    ]
    assert [note.partition(":")[0] for note in notes.texts] == ["line 2", "line 5"]


def test_json_and_jsonl_give_a_document_a_record(documents_of):
    """Records keep their number and title; nested values read as indented lines; Chinese is not escaped."""
    records = [{"title": "鸭子", "tags": ["a", "b"], "size": {"m": 0.5, "kg": 1}}, {"x": [{"y": 1}]}]
    for name, data in (
        ("a.json", json.dumps({"data": records})),
        ("b.jsonl", "\n\n".join(map(json.dumps, records))),
    ):
        first, second = documents_of(name, data)
        assert first.page_content == "title: 鸭子\ntags: a, b\nsize:\n  m: 0.5\n  kg: 1"
        assert first.metadata["title"] == "鸭子" and first.metadata["record"] == 1
        assert second.metadata["record"] == (2 if name == "a.json" else 3)
        assert first.metadata.get("heading") == ("data" if name == "a.json" else None)


def test_json_numbers_stand_as_written_and_no_value_is_lost(text_of):
    """No digit is rounded or dropped; both values of a key that comes twice are kept, and noted."""
    numbers = "2.10, 0.00001, 1e400, 3.14159265358979323846, -0"
    with use_notes() as notes:
        text = f'{{"n": [{numbers}], "limit": 1, "limit": {{"x": 2}}}}'
        text = text_of("a.json", text)
    assert text == f"n: {numbers}\nlimit:\n  - 1\n  - x: 2"
    assert notes.texts == ["given more than once in one object, all values are kept: limit"]


def test_notebook_gives_cells_and_outputs_as_text(documents_of):
    """Errors by name and value, results shown as markdown or HTML only, no picture or colour; what is cut is noted."""
    table, styler = "<table><tr><td>a<td>b<tr><td>1<td>2</table>", "<Styler at 0x1>"
    outputs = [
        {"output_type": "display_data", "data": {"image/png": "iVBOR" * 100, "text/plain": ["<Figure>"]}},
        {"output_type": "error", "ename": "ValueError", "evalue": "bad 42", "traceback": ["x"]},
        {"output_type": "display_data", "data": {"text/markdown": "is 4711", "text/plain": "<a.Markdown>"}},
        {"output_type": "execute_result", "data": {"text/html": table, "text/plain": styler}},
        {"output_type": "stream", "text": ["\x1b[31;1m", "y" * 2100, "END\x1b[0m"]},
    ]
    cells = [("markdown", "# Study"), ("code", "x = 1")]
    with use_notes() as notes:
        (document,) = documents_of("a.ipynb", make.notebook(cells, outputs=outputs))
    shown = "<Figure>\nValueError: bad 42\nis 4711\n" + make.table("ab", "12")
    assert document.page_content.startswith(f"# Study\n\n```python\nx = 1\n```\n\n```text\n{shown}\nyyy")
    assert document.metadata["title"] == "Study"
    assert notes.texts == ["output of cell 2 after 2000 characters left out: it has 2173"]


def test_epub_gives_chapters_in_reading_order(documents_of):
    """A document a chapter, with the book's title and the chapter's."""
    first, second = documents_of(
        "a.epub", make.epub([("One", "First."), ("第二章", "你好。")], title="The book")
    )
    assert first.page_content == "# One\n\nFirst." and second.page_content == "# 第二章\n\n你好。"
    assert second.metadata["chapter"] == 2 and second.metadata["chapter_title"] == "第二章"
    assert second.metadata["title"] == "The book"


def test_style_sheets_of_a_book_are_followed(text_of):
    """They are files of the book; one that is lacking costs no chapter."""
    links = "".join(f'<link rel="stylesheet" href="{name}.css"/>' for name in ("gone", "a%20b"))
    words = "<b>x</b>" * 5_000  # all of them would take minutes if each link were followed by itself
    chapter = f'At 10<span class="up">6</span> N. {words}{links * 2_000}'
    data = make.epub([("One", chapter)], extra={"OEBPS/a b.css": ".up { vertical-align: super }"})
    with use_notes() as notes:
        assert text_of("a.epub", data) == "# One\n\nAt 10^6 N. " + "x" * 5_000
    assert [note.partition(":")[0] for note in notes.texts] == ["style sheet gone.css left out"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("empty.txt", b"", "empty"),
        ("blank.md", b" \n\t", "empty"),
        ("picture.txt", b"\x89PNG\r\n" + bytes(range(256)) * 20, "binary"),
        ("noise.csv", bytes(range(256)) * 20, "binary"),
        ("broken.pdf", b"%PDF-1.4 nothing", "damaged"),
        ("locked.pdf", make.pdf([[(50, 700, 12, "x")]], locked=True), "encrypted"),
        ("scan.pdf", make.pdf([[]]), "OCR"),
        ("really-a.docx", make.pdf([[(50, 700, 12, "x")]]), "no docx file"),
        ("really-a.pdf", make.docx(make.paragraph("x")), "no pdf file"),
        ("locked.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "encrypted"),
        ("broken.docx", make.docx(make.paragraph("x"))[:200], "damaged"),
        ("other.pptx", make.docx(make.paragraph("x")), "slides"),
        ("hollow.xlsx", make.zipped({"a.xml": "<a/>"}), "sheets"),
        ("no.eml", b"no headers at all", "headers of a letter"),
        ("no.mbox", b"no mailbox", "does not begin with a message"),
        ("letter.txt", rb"{\rtf1\ansi Hello}", "no txt file"),
        ("bad.json", b'{"a": ', "JSON"),
        ("bad.jsonl", b'{"a"\n{"a"', "line 1 left out"),
        ("bad.ipynb", b"[]", "cells"),
        ("old.doc", b"x", ".docx"),
        ("tool.exe", b"x", "not among the supported"),
        ("table.et", b"x", "Save it as .xlsx"),
        ("合同.wps", b"x", "Save it as .docx"),
        ("nothing", b"x", "without a suffix"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 else "",
)
def test_what_cannot_be_read_is_named_with_reason_and_advice(tmp_path, reader, name, data, reason):
    """One clear line: the file, why, and what to do."""
    path = make.put(tmp_path, name, data)
    with pytest.raises(ReadError, match=reason) as caught:
        reader.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message and "Traceback" not in message
    assert message.rstrip(".").count(". ") >= 1  # a reason and an advice
    assert len(message.removeprefix(str(path))) < 160 and " object at 0x" not in message


def test_missing_files_folders_addresses_and_pipes_are_refused(tmp_path, reader):
    """Nothing but a regular local file is opened."""
    import os

    os.mkfifo(tmp_path / "pipe.txt")
    for path, reason in (
        (tmp_path / "gone.txt", "no such file"),
        (tmp_path, r"it is a folder.*ingest\(\[folder\], index_folder\)"),
        (tmp_path / "pipe.txt", "pipe"),
        ("https://x.example/a.pdf", "address"),
        ("file:///etc/hosts.txt", "address"),
    ):
        with pytest.raises(ReadError, match=reason):
            reader.read(path)


def test_a_file_outside_of_the_root_is_refused_and_names_are_relative(tmp_path, reader):
    """A link that leaves the folder is refused; metadata ``file`` is relative to the root."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    make.put(tmp_path, "secret.txt", "secret")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ReadError, match="outside"):
        reader.read(root / "link.txt", root=root)
    (document,) = reader.read(make.put(root / "sub", "a\nb.txt", "text"), root=root)
    assert document.metadata["file"] == "sub/a\nb.txt"


def test_file_names_that_are_no_text_become_text(tmp_path, reader):
    """Metadata can always be written as UTF-8; messages hold no control characters."""
    path = tmp_path / "caf\udce9.txt"
    path.write_text("text")
    (document,) = reader.read(path)
    assert document.metadata["file"] == "caf\\xe9.txt"
    document.metadata["source"].encode()
    with pytest.raises(ReadError) as caught:
        reader.read(tmp_path / "a\x1b[31m\u202e.txt")
    assert "\x1b" not in str(caught.value) and "\u202e" not in str(caught.value)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("2305.03393v1-pg9.pdf", 0.95),
        ("amt_handbook_sample.pdf", 0.99),
        ("code_and_formula.pdf", 0.98),
        ("multi_page.pdf", 0.99),
        ("normal_4pages.pdf", 0.99),
        ("table_mislabeled_as_picture.pdf", 0.94),
        ("powerpoint_sample.pptx", 0.99),
        ("wiki_duck.html", 0.87),  # the expected text has the menus
        ("word_sample.docx", 0.99),
        ("word_tables.docx", 0.98),
        ("xlsx_01.xlsx", 0.74),
    ],
)
def test_recall_on_the_sample_documents(data_sets, reader, name, least):
    """At least so many words of the expected text come out (East Asian scripts by character)."""
    from support.recall import recall

    folder = data_sets / "doc_samples"
    expected = folder / f"groundtruth_{name}.md"
    if not expected.exists():
        expected = folder / f"groundtruth_{Path(name).stem}.md"
    text = "\n\n".join(texts(reader.read(folder / name)))
    assert recall(expected.read_text(), text) >= least


_MENU = "".join(
    f"<li><a href='/{n}'>{name}</a></li>" for n, name in enumerate(["Home", "产品", "Contact", "新闻"])
)
_LAKE = "<p>" + "The lake is deep and cold. " * 10 + "</p><p>" + "湖水很深，也很冷。" * 20 + "</p>"


def test_html_menus_banners_and_footers_are_left_out(text_of):
    """Navigation however it is written, cookie banners, link lists and the page's footer are no content."""
    page = f"""
        <div id="cookie-banner"><p>We use cookies. 本网站使用 cookie。</p><button>OK</button></div>
        <header><a href="/">Logo</a><nav><ul>{_MENU}</ul></nav></header>
        <div role="navigation">Menu {_MENU}</div><div class="breadcrumb-nav"><ul>{_MENU}</ul></div>
        <ul>{_MENU}</ul>
        <main><h1>Lake 湖</h1>tail{_LAKE}
        <aside><p>Note: nobody swims there. 注意：没有人游泳。</p></aside>
        <blockquote>Deep.<footer>A fisher</footer></blockquote>
        <h2>Menu of the inn</h2><ul class="menu"><li>Fish 鱼</li><li>Bread</li></ul>
        <h2>Links</h2><ul><li><a href="x">Map</a></li><li><a href="y">Weather</a></li></ul></main>
        <aside><ul>{_MENU}</ul></aside><footer><p>© Lake office. 版权所有</p></footer>"""
    text = text_of("lake.html", page)
    for kept in ("# Lake 湖", "tail", "deep and cold", "湖水", "没有人游泳", "A fisher", "Fish 鱼", "Map"):
        assert kept in text
    for gone in ("产品", "Contact", "cookie", "版权"):
        assert gone not in text


@pytest.mark.parametrize(
    "page",
    [
        f"<nav><h1>Site map</h1><ul>{_MENU}</ul></nav>",
        f"<body><nav><ul>{_MENU}</ul></nav><p>All pages</p></body>",
        f"<nav>{_LAKE}<a href='/contact'>Contact</a> 产品</nav><p>More of it. {'x ' * 200}</p>",
        f"<p>{'All pages of this place. ' * 20}</p><ul>{_MENU}</ul>",
        f"<footer><article>{_LAKE}<a href='/'>Contact 产品</a></article></footer>",
        f"<div class='cookie-notice-archive'><h1>Cookies</h1>{_LAKE}Contact 产品</div>",
        f"<p>{'All pages of this place. ' * 20}</p><div class='consent-form'>Contact 产品</div>",
    ],
    ids=["headed", "only links", "prose", "no main", "article", "about cookies", "consent"],
)
def test_html_that_would_lose_its_content_keeps_it(text_of, page):
    """A page of links stays, and so does an element that is named as navigation and holds the text."""
    text = text_of("page.html", page)
    assert "Contact" in text and "产品" in text


def test_deep_json_is_named_for_what_it_is(documents_of):
    """It is valid JSON; only the depth cannot be read, and the message says so."""
    with pytest.raises(ReadError, match=r"deep\.json: it is nested too deeply"):
        documents_of("deep.json", b"[" * 100_000 + b"]" * 100_000)
