"""Tables, letterheads, key-value lists and source code of PDFs."""

from __future__ import annotations

import pytest
from support import documents as make

from rag_kit.concurrency.notes import use_notes
from rag_kit.indexing.readers.pdf_lines import Line
from rag_kit.indexing.readers.pdf_tables import join_torn_rows


@pytest.fixture
def page_text(text_of):
    """A function from the lines of a page, as for `make.pdf`, to what is read of it."""
    return lambda lines, **options: text_of("page.pdf", make.pdf([lines], **options))


def cells(rows, xs, top, step):
    """Rows of cells that begin at some places across the page, from a height down."""
    return [
        (x, top - step * n, 10.0, cell)
        for n, row in enumerate(rows)
        for x, cell in zip(xs, row, strict=True)
        if cell
    ]


def grid(xs, ys):
    """Rules of a table from the places of its columns and rows."""
    return [(x, ys[0], x, ys[-1]) for x in xs] + [(xs[0], y, xs[-1], y) for y in ys]


def column(*texts, x=60.0, top=700.0, step=12):
    """Lines of 10 points below each other."""
    return cells([(text,) for text in texts], (x,), top, step)


def dues(rows):
    """A table of three columns."""
    return cells(rows, (60.0, 170.0, 280.0), 720.0, 16)


def columns_of(text, more, top=740):
    """Two texts in columns of 40 characters."""
    return make.wrapped(text, width=40, x=50, top=top) + make.wrapped(more, width=40, x=310, top=top)


_PARISH = "Dues hold from the first of January; those who live in the parish pay half of them."
_DUES_EN = make.rows("Vessel|Length|Dues/Dinghy|4 m|4.00/Yacht|9 m|18.50/Tug||7.00")
_DUES_ZH = make.rows("船型|长度|费用/小艇|四米|三十元/渔船|九米|一百元/拖轮||七元")
_LEFT = "The first column goes on for quite a number of lines, so that they must be joined by the reader."
_RIGHT = "The second column stands at the right and is read after the first one has come to its end."
_PAIRS = [("Invoice number:", "HM-20417"), ("Order date:", "3 March 2026"), ("Amount due:", "1,284.50 EUR")]
_FERRY = "The ferry takes twelve cars and runs from six until ten. " * 12
_SPANS = [("Span", "Length"), ("First", "18 m"), ("Main", "64 m")]
_CONTENTS = ("1 Introduction . . . . . . . 3", "2 Methods . . . . . . . . . . 7", "结果 . . . . . . . 9")
_FULL_CONTENTS = [
    f"{text}{'.' * 60}{page}" for text, page in (("Scope", 2), ("Water and its use", 13), ("Fees", 4))
]
_ORDER = "Thank you for your order. It left our house on Monday and is on its way."
_GAUGE = ("It is called once for each gauge, and its", "result is compared with what it measured.")
_JOB = [(60.0, 714.0, 10.0, "Fitter, Quay works"), (205.0, 714.0, 10.0, "2015 to 2019"), *column(*_GAUGE)]
_FORMS = (
    "The forms of the harbour office stand at",
    "harbour.example/forms/berths/2026",
    "in three languages.",
)
_INDEX = (("anchor, 12", "berth, 40", "chain, 7"), ("depth, 33", "engine, 51", "flag, 2"))
_HEADING = [(330.0, 790.0, 16.0, "Rules of the harbour of"), (330.0, 772.0, 16.0, "the northern islands")]
_ITEMS = ["- Pumps\n- Valves\n- blue\n- red"]
_MEETING = (
    "　　兹定于五月六日上午九时在三楼会议室召开年度会议。",
    "　　特此通知。",
    "各部门负责人应当参加，不能参加的应当书面请假。",
)
_CHINESE = ("检索增强生成把检索与生成结合在一起，先找到", "相关的段落，再写出有依据的答案。")
_SHORT = (
    ("收货单位：青山县第二中学", "送货日期：二〇二六年三月"),
    ("Deck in August", "Piles in June", "Survey, May"),
)


@pytest.mark.parametrize(
    ("lines", "options", "text"),
    [
        (column(_PARISH, top=760.0) + dues(_DUES_EN), {}, [_PARISH, make.table(*_DUES_EN)]),
        (column(_PARISH, top=760.0) + dues(_DUES_ZH), {}, [_PARISH, make.table(*_DUES_ZH)]),
        (columns_of(_LEFT, _RIGHT), {}, [_LEFT, _RIGHT]),
        (columns_of(_LEFT, _RIGHT), {"rules": grid((40, 300, 560), (760, 600))}, [_LEFT, _RIGHT]),
        (column(*_CONTENTS, step=14), {}, _CONTENTS),
        (column(*_FULL_CONTENTS, step=14), {}, _FULL_CONTENTS),
        (column(*_INDEX[0]) + column(*_INDEX[1], x=210.0), {}, [*_INDEX[0], *_INDEX[1]]),
        (cells(_PAIRS, (60.0, 190.0), 700.0, 16), {}, [make.table(*_PAIRS)]),
        (cells([("•", "Pumps"), ("•", "Valves"), ("-", "blue"), ("-", "red")], (60.0, 80.0), 700.0, 12), {}, _ITEMS),
        (
            make.wrapped(_ORDER, width=40, x=60, top=600) + column("Quay Road", "Ann Lee", x=330.0, top=790.0),
            {},
            ["Quay Road", "Ann Lee", _ORDER],
        ),
        (
            [*make.wrapped(_ORDER, width=40, x=60, top=600), *_HEADING],
            {},
            ["# Rules of the harbour of the northern islands", _ORDER],
        ),
        (column(*_SHORT[0], step=14), {}, _SHORT[0]),
        (column(*_SHORT[1], step=14), {}, _SHORT[1]),
        (
            make.wrapped(_FERRY.strip(), width=40, x=60, top=700) + cells(_SPANS, (330.0, 420.0), 700.0, 14),
            {},
            [_FERRY.strip(), make.table(*_SPANS)],
        ),
        (column("It was cast in the vil\u2010", "lage foundry."), {}, ["It was cast in the village foundry."]),
        (column("Join every word that is hyphen-", "ated."), {}, ["Join every word that is hyphenated."]),
        (column("Die Wasser-", "versorgungs-", "gesellschaft."), {}, ["Die Wasserversorgungsgesellschaft."]),
        (column("各部门：", *_MEETING, step=14), {}, ["各部门：", *(line.strip() for line in _MEETING)]),
        (_JOB, {}, ["Fitter, Quay works 2015 to 2019", " ".join(_GAUGE)]),
        ([(60.0, 700.0, 11.0, "in April"), (93.62, 704.0, 9.0, "1"), (98.62, 700.0, 11.0, ".")], {}, ["in April[1]."]),
        (column(*_CHINESE, step=13), {}, ["".join(_CHINESE)]),
        (column(*_FORMS), {"mono": _FORMS[1:2]}, [" ".join(_FORMS)]),
        (column(*_GAUGE), {"mono": _GAUGE}, [" ".join(_GAUGE)]),
    ],
    ids=[
        "table", "Chinese table", "columns", "columns in a box", "contents", "full contents",
        "lists side by side", "keys and values",
        "bullets", "letterhead drawn last", "heading drawn last",
        "Chinese lines of one length", "short lines", "table in the second column",
        "typographic hyphen", "hyphen", "two hyphens", "wide blanks", "job and years", "room beside a 1",
        "Chinese", "address in a sentence", "typewriting",
    ],
)  # fmt: skip
def test_lines_become_paragraphs_and_tables(page_text, lines, options, text):
    """Wrapped lines are joined, columns read one after the other, and rows of short cells are tables."""
    assert page_text(lines, **options).split("\n\n") == list(text)


def test_the_head_of_a_second_column_is_read_after_the_first(page_text):
    """A short paragraph at the top of a column is no letterhead."""
    lines = [(60.0, 790.0, 10.0, "Tides"), (60.0, 750.0, 10.0, "Moorings")]
    lines += make.wrapped(
        "Each mooring carried a chain of sensors to the anchor. " * 4, width=40, x=60, top=715
    )
    lines += [(320.0, 770.0, 10.0, "The drift stayed small."), (320.0, 700.0, 10.0, "It is shown below.")]
    text = page_text(lines)
    assert text.index("the anchor.") < text.index("The drift")


@pytest.mark.parametrize("heads", [("How it began", "Noise and roses"), ("起源", "噪声与玫瑰")])
def test_heads_of_columns_on_one_line_are_parted(page_text, heads):
    """Each head goes above its own column, also where the file draws both before the columns."""
    lines = [(50.0, 765.0, 14.0, heads[0]), (310.0, 765.0, 14.0, heads[1]), *columns_of(_LEFT, _RIGHT)]
    assert page_text(lines).split("\n\n") == [f"# {heads[0]}", _LEFT, f"# {heads[1]}", _RIGHT]


def test_a_ruled_table_keeps_wrapped_and_merged_cells(page_text):
    """Lines within a ruled cell are one cell; the text of a merged cell stands in each place that it covers."""
    lines = cells([("Berth", "What it offers")], (65.0, 165.0), 705.0, 0) + column("B01", x=65.0, top=680.0)
    lines += column("Water and power", "from April on", x=165.0, top=685.0)
    lines += column("Closed in winter", x=65.0, top=650.0)
    rules = [rule for rule in grid((60, 160, 300), (720, 695, 665, 640)) if rule != (160, 720, 160, 640)]
    rows = [("Berth", "What it offers"), ("B01", "Water and power from April on"), ("Closed in winter",) * 2]
    assert page_text(lines, rules=[*rules, (160.0, 720.0, 160.0, 665.0)]) == make.table(*rows)


def test_code_keeps_its_lines_and_indents(page_text):
    """Lines in a font of fixed width are fenced code; indents come from where the words stand."""
    code = ["def tide(hours):", "    if hours < 0:", "        raise ValueError(hours)", "    return hours"]
    lines = [(60.0, 740.0, 10.0, "The function below turns the tide every six hours.")]
    for number, line in enumerate(code):
        lines.append((70.0 + 5.4 * (len(line) - len(line.lstrip())), 700.0 - 12 * number, 9.0, line.strip()))
    lines.append((60.0, 620.0, 10.0, "It is called once for each gauge."))
    fenced = "\n".join(code)
    expected = f"{lines[0][3]}\n\n```\n{fenced}\n```\n\n{lines[-1][3]}"
    assert page_text(lines, mono=[line.strip() for line in code]) == expected


def test_what_is_filled_into_a_form_is_read(page_text):
    """Text, boxes on either side of their names, and remarks typed on the page; of notes on it their number."""
    names = ["Owner of the vessel", "I accept the terms", "Sails"]
    lines = [(72, 700 - 40 * n, 12, name) for n, name in enumerate(names)]
    lines += [(300, 620, 12, "Motor"), (72, 540, 12, "Port:")]
    box = b"/Subtype /Widget /FT /Btn /T (%d) /AS /%s /AP << /N << /Yes 3 0 R >> >> /Rect [%d %d %d %d]"
    annotations = [
        b"/Subtype /Widget /FT /Tx /T (owner) /V (R. Macleod) /Rect [200 695 400 715]",
        box % (1, b"Yes", 55, 658, 67, 670),
        box % (2, b"Off", 110, 618, 122, 630),
        box % (3, b"Yes", 340, 618, 352, 630),
        b"/Subtype /FreeText /Contents (Ullapool) /DA (/F1 12 Tf) /Rect [120 535 300 555]",
        b"/Subtype /Text /Contents (check this) /Rect [300 300 320 320]",
    ]
    with use_notes() as notes:
        text = page_text(lines, annotations=annotations)
    assert text.split("\n\n") == [
        "Owner of the vessel R. Macleod", "☑ I accept the terms", "Sails ☐ Motor ☑", "Port: Ullapool"
    ]  # fmt: skip
    assert notes.texts == ["comments on pages left out: only the pages are read"]


# --- turned pages


_PAGE = [
    (60.0, 760.0, 16.0, "Heights of stations"),
    (60.0, 735.0, 10.0, "All heights are in metres above the sea, and they were measured in the summer of"),
    (60.0, 723.0, 10.0, "last year."),
    *cells(
        [("Station", "City", "Height"), ("S0", "Bern", "500"), ("S1", "Ulm", "501")],
        (65.0, 155.0, 245.0),
        690.0,
        20,
    ),
    (280.0, 30.0, 9.0, "Page 1 of 1"),
]
_READ = (
    "# Heights of stations\n\nAll heights are in metres above the sea, and they were measured in the summer of "
    "last year.\n\n| Station | City | Height |\n| --- | --- | --- |\n| S0 | Bern | 500 |\n| S1 | Ulm | 501 |"
)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_a_turned_page_reads_like_the_same_page_upright(page_text, turn, rotate):
    """Whichever way the page is shown and its content drawn: paragraphs, ruled table and page number."""
    rules = grid((60, 150, 240, 330), (705, 685, 665, 645))
    assert page_text(_PAGE, rules=rules, turn=turn, rotate=rotate) == _READ


def test_a_turned_table_is_read_apart_from_the_upright_text(page_text):
    """Text that runs upwards, as a table laid on its side or a stamp at the edge, comes after the page's own."""
    text = [(60.0, 760.0 - 12 * n, 10.0, f"Line {n} of the text, which is upright.") for n in range(9)]
    table = [("Station", "City"), ("S0", "Bern"), ("S1", "Ulm")]
    turned = [
        (400.0 + 20 * m, 105.0 + 90 * n, 10.0, cell)
        for m, row in enumerate(table)
        for n, cell in enumerate(row)
    ]
    rules = grid((385, 405, 425, 445), (100, 190, 280))
    upwards = [cell for row in table for cell in row]
    text = page_text([*text[:5], *turned, *text[5:]], rules=rules, upwards=upwards)
    before, found = text.split("\n\n|")
    assert "Line 8 of the text" in before and "Station" not in before
    assert found == " Station | City |\n| --- | --- |\n| S0 | Bern |\n| S1 | Ulm |"


def test_a_turned_table_is_read_below_its_upright_title(page_text):
    """Also where the table has more text than the rest of the page."""
    rows = [("Station", "City"), ("S0", "Bern"), ("S1", "Ulm"), ("S2", "Chur")]
    turned = [
        (400.0 + 20 * m, 105.0 + 90 * n, 10.0, cell)
        for m, row in enumerate(rows)
        for n, cell in enumerate(row)
    ]
    rules = grid((385, 405, 425, 445, 465), (100, 190, 280))
    upwards = [cell for row in rows for cell in row]
    for height, first in ((760.0, "Heights"), (200.0, "| Station")):
        text = page_text([(60.0, height, 10.0, "Heights"), *turned], rules=rules, upwards=upwards)
        assert text.startswith(first) and "| S2 | Chur |" in text and "Heights" in text


@pytest.mark.parametrize("rotate", [0, 90, 180])
def test_what_is_beside_the_page_is_left_out_and_noted(page_text, rotate):
    """Text that is drawn off the page, as where its margins were cut off; one that is cut through stays."""
    places = [(60.0, 900.0), (60.0, -30.0), (700.0, 500.0), (-300.0, 450.0)]
    lines = [
        (60.0, 700.0, 12.0, "Inside."),
        *((x, y, 12.0, "Out.") for x, y in places),
        (560.0, 600.0, 12.0, "Half out."),
    ]
    with use_notes() as notes:
        assert page_text(lines, rotate=rotate) == "Inside.\n\nHalf out."
    assert notes.texts == ["text beside the edge of a page left out: the page does not show it"]


# --- page numbers


@pytest.mark.parametrize(
    ("text", "height"),
    [
        ("第 1 页", 30.0), ("第 1 页 共 3 页", 80.0), ("第1页/共3页", 100.0), ("共 3 页 第 1 页", 40.0),
        ("第一页", 40.0), ("- 1 -", 85.0), ("1 / 3", 60.0), ("1", 80.0), ("Page 1 of 3", 100.0),
        ("Seite 1 von 3", 60.0), ("页码：1", 60.0), ("Confidential | Page 1 of 3", 40.0),
        ("Page 1", 800.0), ("第 1 页", 790.0), ("－1－", 40.0), ("· 1 ·", 40.0), ("1／3", 40.0), ("1页", 40.0),
        ("第1页（共3页）", 40.0), ("页次：1/3", 40.0),
    ],
)  # fmt: skip
def test_page_numbers_of_single_pages_are_left_out(page_text, text, height):
    """By where they are: at the edge of the page, or beyond all text and apart from it."""
    body = [(60.0, 700.0, 10.0, "The harbour is open."), (60.0, 670.0, 10.0, "港口今天开放。")]
    text = page_text([*body, (280.0, height, 9.0, text)])
    assert text == "The harbour is open.\n\n港口今天开放。"


def test_numbers_that_are_not_of_the_page_stay(page_text):
    """A last line of text in the margin, a number right below the text, and a number in the middle."""
    lines = [
        (60.0, 700.0, 10.0, "Total"),
        (60.0, 400.0, 10.0, "7"),
        (60.0, 112.0, 10.0, "Sum"),
        (60.0, 98.0, 10.0, "12"),
    ]
    text = page_text([*lines, (60.0, 65.0, 10.0, "~ 40"), (60.0, 50.0, 10.0, "For more see page 5")])
    assert text.split() == ["Total", "7", "Sum", "12", "~", "40", "For", "more", "see", "page", "5"]


def test_values_that_grow_from_page_to_page_stay(documents_of):
    """A sign before a number makes it a value, also at the edge of each page."""
    lines = [[(50, 500, 10, f"Text {n}."), (290, 20, 8, f">= {n}")] for n in range(4)]
    pages = documents_of("a.pdf", make.pdf(lines))
    assert [page.page_content[-4:] for page in pages] == [f">= {n}" for n in range(4)]


# --- order and paragraphs


@pytest.mark.parametrize("heading", ["2 Methods", "二、方法"])
def test_a_heading_at_the_top_of_the_second_column_is_read_there(page_text, heading):
    """Though it is above all of the first column, text goes on below it."""
    first = make.wrapped(
        "Each mooring carried a chain of sensors to the anchor. " * 4, width=40, x=60, top=700
    )
    second = make.wrapped(
        "The drift of the sensors stayed small in all years. " * 4, width=40, x=320, top=720
    )
    text = page_text([*first, (320.0, 745.0, 14.0, heading), *second])
    before, after = text.split(f"# {heading}")
    assert "mooring" in before and "drift" not in before and "drift" in after


def test_paragraphs_of_one_indented_line_stay_apart(page_text):
    """Each begins as far to the right as the one before, while other lines of the column begin at its edge."""
    lines = [
        (60.0, 700.0, 10.0, "The pumps were read every week by the crew of the boat, and what"),
        (60.0, 688.0, 10.0, "they gave was written into a book that is kept at the harbour now."),
        (80.0, 676.0, 10.0, "A gauge that was broken was changed at once by those on board."),
        (80.0, 664.0, 10.0, "The books of the first three years were lost in a storm at sea, so"),
        (60.0, 652.0, 10.0, "that nothing is known of them."),
    ]
    text = page_text(lines)
    assert [text[:9] for text in text.split("\n\n")] == ["The pumps", "A gauge t", "The books"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("本合同自双方签字盖章之日起生效有效期为一年期满之后自动终止。", "第二条 乙方应当在十日之内交货。"),
        ("本合同自双方签字盖章之日起生效有效期为一年期满之后自动终止。", "第十二条乙方应当在十日之内交货。"),
        ("本合同自双方签字盖章之日起生效有效期为一年期满之后自动终止。", "（二）乙方应当在十日之内交货。"),
        ("本合同自双方签字盖章之日起生效有效期为一年期满之后自动终止。", "2、乙方应当在十日之内交货。"),
        (
            "The supplier delivers the pumps within ten days of the order, no later.",
            "1.2 The buyer pays them.",
        ),
        (
            "The supplier delivers the pumps within ten days of the order, no later.",
            "Article 3 The buyer pays.",
        ),
    ],
)
def test_clauses_begin_a_paragraph(page_text, first, second):
    """Also where the line before is full."""
    text = page_text([(60.0, 700.0, 10.0, first), (60.0, 686.0, 10.0, second)])
    assert text.split("\n") in ([first, "", second], [first, second])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("甲方应当依照本合同的约定及附件所列的清单逐项核对并且遵守其中的", "第三条的规定支付货款。"),
        ("甲方应当依照本合同的约定及附件所列的清单逐项核对并且遵守其中第", "（二）项的规定支付货款。"),
        ("They measured it in the spring of the year 2020 and found that it was", "3.5 metres deep."),
    ],
)
def test_clauses_within_a_sentence_go_on(page_text, first, second):
    """A number at the beginning of a wrapped line is no clause."""
    text = page_text([(60.0, 700.0, 10.0, first), (60.0, 686.0, 10.0, second)])
    assert "\n" not in text


# --- spans of rows


@pytest.mark.parametrize("place", ["top", "middle", "foot"])
@pytest.mark.parametrize(
    "table",
    [
        "Kind|Name|Price/Fish|Cod|5/Fish|Hake|6/Fish|Tuna|9/Fruit|Apple|1/Fruit|Pear|2",
        "Kind|Name|Price/Fish|Cod|5/Fish|Hake|6/Fruit|Apple|1/Fruit|Pear|2/Nuts|Pecan|7",
        "种类|名称|价格/鱼类|鳕鱼|五元/鱼类|鲔鱼|六元/水果|苹果|一元/水果|香梨|二元",
    ],
)
def test_a_name_for_several_rows_stands_in_each(page_text, table, place):
    """In tables without rules between the rows: the name is in the first of them, at their middle, or in the last."""
    rows = make.rows(table)
    lines = [
        (60.0 + 110 * m, 700.0 - 16 * n, 10.0, cell)
        for n, row in enumerate(rows)
        for m, cell in enumerate(row)
        if m or not n
    ]
    kinds = [row[0] for row in rows]
    for name in dict.fromkeys(kinds[1:]):
        down = {"top": 0, "middle": 8, "foot": 16}[place]
        lines.append((60.0, 700.0 - 16 * kinds.index(name) - down * (kinds.count(name) - 1), 10.0, name))
    assert page_text(lines) == make.table(*rows)


def test_a_ruled_table_without_lines_around_it_keeps_its_outer_columns(page_text):
    """Rules between cells only; the spans of rows are filled."""
    rows = [("Kind", "Name"), ("Fish", "Cod"), ("", "Hake"), ("Fruit", "Apple")]
    lines = cells(rows, (65.0, 155.0), 705.0, 20)
    rules = [
        (150.0, 720.0, 150.0, 640.0),
        (60.0, 700.0, 240.0, 700.0),
        (150.0, 680.0, 240.0, 680.0),
        (60.0, 660.0, 240.0, 660.0),
    ]
    text = page_text(lines, rules=rules)
    assert text.split("\n")[2:] == ["| Fish | Cod |", "| Fish | Hake |", "| Fruit | Apple |"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_watermark_is_no_heading(documents_of, count):
    """Large letters aslant are left out where they come back, and stand behind the text of a single page."""
    lines = [(200.0, 400.0, 60.0, "机密文件"), (50.0, 740.0, 18.0, "技术服务合同")]
    pages = [
        [*lines, (50.0, 700.0, 10.0, f"第{n}条 每季度巡检一次，每次出具书面报告。")]
        for n in range(1, count + 1)
    ]
    documents = documents_of("contract.pdf", make.pdf(pages, aslant=["机密文件"]))
    assert documents[0].page_content.startswith("# 技术服务合同\n\n第1条")
    assert documents[0].page_content.endswith("机密文件") == (count == 1)
    assert documents[0].metadata["title"] == "技术服务合同"


def test_the_number_of_a_contract_in_the_running_head_stays_once(documents_of):
    """It may stand nowhere else; the name of the company beside it on each page is left out."""
    pages = [
        [
            (50.0, 820.0, 8.0, f"合同编号：HT-2025-0318 第{n}页"),
            (50.0, 20.0, 8.0, "海川机械"),
            (50.0, 500.0, 10.0, f"正文第{n}段。"),
        ]
        for n in range(1, 5)
    ]
    texts = [document.page_content for document in documents_of("contract.pdf", make.pdf(pages))]
    assert texts == [
        "合同编号：HT-2025-0318 第1页\n\n正文第1段。",
        "正文第2段。",
        "正文第3段。",
        "正文第4段。",
    ]


def test_a_row_that_the_end_of_a_page_cuts_is_whole(documents_of):
    """The second line of its cell stands on the next page, below the header that is repeated there."""
    xs, head = (65.0, 155.0, 245.0), ("序号", "项目名称", "单价")
    first_rows = [head, ("1", "回填土", "58.70"), ("2", "压型钢板", "124.70")]
    above = make.wrapped("The bill of quantities is a part of the contract. " * 3, width=80, x=60, top=760)
    pages = [
        [*above, *cells(first_rows, xs, 690, 20)],
        cells([head, ("", "屋面", ""), ("3", "环氧地坪", "137.90")], xs, 690, 20),
    ]
    rules = grid((60, 150, 240, 330), (705, 685, 665, 645))
    first, second = (
        document.page_content.splitlines()
        for document in documents_of("bill.pdf", make.pdf(pages, rules=rules))
    )
    assert first[-1] == "| 2 | 压型钢板屋面 | 124.70 |"
    assert second == ["| 序号 | 项目名称 | 单价 |", "| --- | --- | --- |", "| 3 | 环氧地坪 | 137.90 |"]


def test_a_double_rule_is_no_column(page_text):
    """A column without any text, as between two rules, is left out; one that only lacks texts below its name stays."""
    rows = [("Part", "Count", "Seen"), ("Pump", "20", ""), ("Valve", "5", "")]
    above = make.wrapped("The parts of the delivery were counted on arrival. " * 3, width=80, x=60, top=760)
    lines = [*above, *cells(rows, (65.0, 165.0, 255.0), 690, 20)]
    text = page_text(lines, rules=grid((60, 150, 156, 250, 330), (705, 685, 665, 645)))
    assert text.endswith("| Part | Count | Seen |\n| --- | --- | --- |\n| Pump | 20 |  |\n| Valve | 5 |  |")


# --- cells of several lines in tables without rules


_LONG = {
    "en": (
        ["Boats up to nine metres that stay", "over night in the inner basin or", "at the quay"],
        "Yachts of members",
    ),
    "zh": (["长度在九米以下并且在内港池中停泊", "过夜的各种船只"], "会员的游艇"),
}


@pytest.mark.parametrize("name_at", ["top", "middle", "foot"])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("is_last", [False, True], ids=["first", "last"])
def test_a_cell_of_several_lines_is_one_row(page_text, is_last, language, name_at):
    """Whether the other cells stand at its top, middle or foot, and in the last row, too."""
    wrapped, short = _LONG[language]
    long_row = ("A1", "".join(wrapped) if language == "zh" else " ".join(wrapped), "18.50")
    rows = [long_row, ("B2", short, "9.00")]
    rows = rows[::-1] if is_last else [*rows, ("C3", short, "7.00")]
    lines, top = cells([("Code", "Text", "Dues")], (60.0, 130.0, 400.0), 700.0, 0), 682.0
    for code, text, dues in rows:
        pieces = wrapped if text == long_row[1] else [text]
        down = {"top": 0, "middle": 6 * (len(pieces) - 1), "foot": 12 * (len(pieces) - 1)}[name_at]
        lines += [(60.0, top - down, 10.0, code), *cells([(piece,) for piece in pieces], (130.0,), top, 12)]
        lines += [(400.0, top - down, 10.0, dues)]
        top -= 12 * len(pieces) + 6
    text = page_text(lines)
    assert text == make.table(("Code", "Text", "Dues"), *rows)


@pytest.mark.parametrize(
    "rows",
    [
        "Dues of the harbour+for boats|What an owner pays for each day that+a boat lies at a berth/"
        "Berth|A place at the quay/Keeper of the inner+basin|Who writes the book",
        "Ministry of Trade and+Industry|Bern/Office|Ulm/Chamber|Linz",
        "Loss of data|Back up each night to+another site|Head of IT+services/"
        "Fire in the plant|Drill twice a year with+the brigade|Safety officer+of site/"
        "Strike of staff|Talk to the unions+early and often|Head of people+team",
    ],
    ids=["several columns", "names", "end of the table"],
)
def test_cells_of_several_lines_in_several_columns_are_rows(page_text, rows):
    """Drawn cell by cell, also below a name that goes on with a capital."""
    rows = [[cell.split("+") for cell in row] for row in make.rows(rows)]
    names, places = ("Term", "Text", "By")[: len(rows[0])], (60.0, 220.0, 400.0)[: len(rows[0])]
    lines, top = cells([names], places, 700.0, 0), 682.0
    for row in rows:
        for x, pieces in zip(places, row, strict=True):
            lines += cells([(piece,) for piece in pieces], (x,), top, 12)
        top -= 12 * max(map(len, row)) + 6
    assert page_text(lines) == make.table(names, *([" ".join(cell) for cell in row] for row in rows))


_NEAR = [
    "项目名称|承办单位/城市道路改造工程|市政建设工程公司/河道治理修缮工程|水务局下属管理处/公园绿地养护工程|园林绿化养护公司/合计|三家单位",
    "English|German/mooring buoy|boje zum festmachen/anchor chain|kette des ankers/tide table|tafel der gezeiten",
    "Property|Value|Note/Weight in kg|12.5|/Length in cm||not measured/Height in cm|30|",
    "Item|Dues/Night buoy and chain|6.30/boats, price of chain|/from the quay|4.20/Harbour|2.70",
    "Name|Work/anna lindqvist|senior editor/bo|typist/carl|printer",
    "Kept|Item|Where/-|Milk|cold/yes|Tea|dry/-|Bread|warm",
]


@pytest.mark.parametrize("rows", map(make.rows, _NEAR))
@pytest.mark.parametrize(
    ("head", "foot", "ruled"),
    [(12, 12, False), (18, 12, False), (24, 18, False), (12, 20, False), (18, 12, True)],
)
def test_rows_as_near_as_lines_stay_rows(page_text, rows, head, foot, ruled):
    """Also where the header or the last row is apart, and where a rule is below each; a dash is an empty cell."""
    tops = [700.0, *(700.0 - head - 12 * n for n in range(len(rows) - 1))]
    tops[-1] -= foot - 12
    places = (60.0, 200.0, 340.0)[: len(rows[0])]
    lines = [line for top, row in zip(tops, rows, strict=True) for line in cells([row], places, top, 0)]
    rules = [(50.0, top - 3, 500.0, top - 3) for top in tops] if ruled else ()
    assert page_text(lines, rules=rules) == make.table(*rows)


@pytest.mark.parametrize("end", [400.0, 120.0], ids=["rule", "underline"])
@pytest.mark.parametrize(
    ("rows", "whole"),
    [
        ("Item|Dues/Keeper of the harbour|4.00/boats at the quay|", "Keeper of the harbour "),
        ("Name|Day/Ministry of trade and the|Monday/Treasury|", "Ministry of trade and the "),
        ("项目名称|金额/城市道路改造工程|125.00/河道治理工程|", "城市道路改造工程"),
    ],
)
def test_a_rule_parts_rows_and_an_underline_does_not(page_text, rows, whole, end):
    """Below a rule a line is a row, also if its name is alone; else the name above goes on, nearer than rows are."""
    rows = make.rows(f"{rows}/Crane|9.00/Buoy|3.00")
    tops = [700.0, 682.0, 670.0, 652.0, 634.0]
    lines = [
        line for top, row in zip(tops, rows, strict=True) for line in cells([row], (60.0, 250.0), top, 0)
    ]
    text = page_text(lines, rules=[(60.0, top - 3, end, top - 3) for top in tops])
    joined = [rows[0], (whole + rows[2][0], rows[1][1]), *rows[3:]]
    assert text == make.table(*(rows if end == 400.0 else joined))


@pytest.mark.parametrize("room", [12, 20])
@pytest.mark.parametrize(
    "groups",
    [
        {
            f"Boats of {name}": ["mooring at quay", "winter storage"]
            for name in ("members", "guests", "the port")
        },
        {
            f"{name}船只收费项目": ["码头停泊服务费用", "冬季存放服务费用"]
            for name in ("会员", "访客", "港务")
        },
    ],
    ids=["en", "zh"],
)
def test_names_of_groups_and_their_rows_stay_apart(page_text, groups, room):
    """With more room above each group than between its rows."""
    rows, lines, top = (
        [("Service", "Unit")],
        cells([("Service", "Unit")], (60.0, 200.0), 700.0, 0),
        700.0 - room,
    )
    for name, services in groups.items():
        group = [(name, ""), *((service, "per night") for service in services)]
        lines += cells(group, (60.0, 200.0), top, 12)
        rows += group
        top -= 24 + room
    assert page_text(lines) == make.table(*rows)


def test_names_of_columns_on_each_page_are_no_running_head(documents_of):
    """They stay though they are at the edge of each page, where a header without columns below it goes."""
    pages = []
    for page in range(2):
        lines = [
            (60.0, 815.0, 10.0, "Harbour office, dues"),
            *cells([("Code", "Vessel", "Dues")], (60.0, 200.0, 400.0), 790.0, 0),
        ]
        rows = [(f"A{page}{row}", f"Boat of {row} m", f"{row}.50") for row in range(1, 5)]
        pages.append(lines + cells(rows, (60.0, 200.0, 400.0), 770.0, 20))
    for page, document in enumerate(documents_of("dues.pdf", make.pdf(pages))):
        header, _, first, *_ = document.page_content.splitlines()
        assert (header, first) == ("| Code | Vessel | Dues |", f"| A{page}1 | Boat of 1 m | 1.50 |")


@pytest.mark.parametrize(
    ("texts", "joined"),
    [(("Assembly on site", "with the pump", "at the quay"), " "), (("不锈钢循环水泵", "及保温外壳"), "")],
)
def test_lines_much_nearer_than_rows_are_of_one_cell(page_text, texts, joined):
    """Though more of each line would have fitted above, and also below the last row."""
    lines = cells([("Pos", "Description", "Amount")], (60.0, 120.0, 400.0), 724.0, 0)
    lines += cells([("1", "Circulation pump with a converter", "9.50")], (60.0, 120.0, 400.0), 700.0, 0)
    lines += [
        (60.0, 676.0, 10.0, "2"),
        *column(*texts, x=120.0, top=676.0, step=12),
        (400.0, 676.0, 10.0, "7.00"),
    ]
    *_, second = page_text(lines).splitlines()
    assert second == f"| 2 | {joined.join(texts)} | 7.00 |"


@pytest.mark.parametrize(
    "pieces",
    [
        [("Code", "Text", "Dues"), ("A1", _LONG["en"][0], "18.50"), ("B2", "Yachts", "9.00"), ("C3", "Rafts", "7.00")],
        [("编号", "说明", "费用"), ("B2", "游艇", "9.00"), ("A1", _LONG["zh"][0], "18.50"), ("", "合计", "27.50")],
        [("Service", "Dues"), (["Rental of a room in the", "old customs house"], "18.50"), ("Crane", "9.00")],
    ],
    ids=["en", "zh", "name"],
)  # fmt: skip
def test_a_cell_goes_on_where_all_others_are_empty(page_text, pieces):
    """Though the lines of the cell are as far from each other as rows are."""
    rows, top = [], 700.0
    lines = []
    for row in ([[cell] if isinstance(cell, str) else cell for cell in row] for row in pieces):
        for x, texts in zip((60.0, 200.0, 400.0)[-len(row) :], row, strict=True):
            lines += [line for line in column(*texts, x=x, top=top) if line[3]]
        rows.append([("" if "长度" in cell[0] else " ").join(cell) for cell in row])
        top -= 12 * max(map(len, row))
    assert page_text(lines) == make.table(*rows)


@pytest.mark.parametrize("dash", ["-", "–", "—"])
def test_a_dash_far_from_the_text_is_an_empty_cell(page_text, dash):
    """In the first and the last row, too; where nothing else stands in the column, dashes are those of a list."""
    rows = [(dash, "Milk"), ("yes", "Tea"), ("yes", "Rice"), (dash, "Bread")]
    assert page_text(cells(rows, (60.0, 200.0), 700.0, 12)) == make.table(*rows)
    items = [(dash, item) for _, item in rows]
    for place in (80.0, 110.0):
        listed = page_text(cells(items, (60.0, place), 700.0, 12))
        assert listed.split("\n") == [f"{dash} {item}" for _, item in rows]


def test_a_line_below_a_table_is_no_cell(page_text):
    """Though it begins in small letters, at the place of a column and right below it: the cell above has room."""
    rows = [
        ("Vessel", "Dues"),
        ("Yachts of members", "9.00"),
        ("Boats", "18.50"),
        ("in EUR, without tax", ""),
    ]
    text = page_text(cells(rows, (60.0, 200.0), 700.0, 14))
    assert text.endswith("| Boats | 18.50 |\n\nin EUR, without tax")


# --- columns of tables without rules


def _ending(x, text):
    """Return where a number of 10 points begins that ends at a place."""
    return x - sum(2.78 if sign in ",.()" else 5.56 for sign in text)


_DUES = [("Dinghy", "4.00", "paid"), ("Yacht", "18.50", "open"), ("Tug", "1,207.00", "open since May")]
_DAYS = [(f"Tug {n}", f"2026-03-1{n}", "27,500.00") for n in range(5)]
_OWNERS = [("Ann Lee", "4 m"), ("Ann Roth", "18 m"), ("Ann Bell", "120 m")]


@pytest.mark.parametrize(
    ("names", "places", "rows"),
    [
        ({60.0: "Vessel", 150.0: "Dues", 300.0: "State"}, (60.0, 250, 300.0), _DUES),
        ({60.0: "Vessel", 190.0: "Dues", 300.0: "State"}, (60.0, 250, 300.0), _DUES),
        ({60.0: "Vessel", 150.0: "Dues", 254.0: "State"}, (60.0, 250, 254.0), _DUES),
        ({60.0: "Vessel", 150.0: "Dues", 300.0: "State"}, (60.0, 250, 254.0), _DUES),
        ({60.0: "Vessel", 160.0: "Day", 218.0: "Dues"}, (60.0, 150.0, 206.0), _DAYS),
        ({60.0: "Owner", 200.0: "Length"}, (60.0, 240), _OWNERS),
    ],
    ids=["name left", "name centred", "text close behind", "its name centred", "two values", "units"],
)
def test_columns_are_told_apart_by_their_names_and_edges(page_text, names, places, rows):
    """Numbers end at one place (a whole number here), their names are elsewhere; a unit is no column of its own."""
    lines = [(x, 700.0, 10.0, name) for x, name in names.items()]
    for n, row in enumerate(rows, 1):
        starts = (
            _ending(x, cell.split()[0]) if isinstance(x, int) else x
            for x, cell in zip(places, row, strict=True)
        )
        lines += cells([row], tuple(starts), 700.0 - 16 * n, 0)
    found = page_text(lines).split("\n")
    assert found == make.table(tuple(names.values()), *rows).split("\n")


@pytest.mark.parametrize("name", ["项目2", "abc"])
@pytest.mark.parametrize("late", [{(0, 2)}, {(n, 1) for n in range(1, 9)}, {(0, 1), (3, 2)}])
def test_cells_that_the_file_draws_late_stand_in_their_rows(page_text, late, name):
    """A name at the end of the header, or a whole column: programs for sheets draw cells of two scripts last.

    PDFium joins the short words below each other to one line.
    """
    names = [name if n % 2 else "7" for n in range(1, 9)]
    rows = [
        ("编号", "名称", "2025年单价"),
        *[(f"K{n}", text, f"{n}20.00") for n, text in enumerate(names, 1)],
    ]
    places = {
        (n, m): (60.0 + 110 * m, 700.0 - 16 * n, 10.0, cell)
        for n, row in enumerate(rows)
        for m, cell in enumerate(row)
    }
    lines = [places[place] for place in sorted(places, key=lambda place: (place in late, place))]
    text = page_text(lines)
    assert text == make.table(*rows)


@pytest.mark.parametrize(
    ("upper", "lower", "names"),
    [
        (
            {150.0: "Price", 330.0: "Rebate"},
            {60.0: "Part", 150.0: "2024", 240.0: "2025", 330.0: "from 10", 420.0: "from 50", 500.0: "Days"},
            "Part | Price 2024 | 2025 | Rebate from 10 | from 50 | Days",
        ),
        (
            {60.0: "Part", 197.0: "Price", 330.0: "Rebate", 420.0: "Stock", 500.0: "Days"},
            {150.0: "2024", 240.0: "2025"},
            "Part | Price 2024 | Price 2025 | Rebate | Stock | Days",
        ),
    ],
    ids=["names at the foot", "names in the middle"],
)
def test_two_header_rows_without_rules_are_one(page_text, upper, lower, names):
    """A name at the middle of two columns heads both; where it begins at the left, only the first is known."""
    body = [(f"K{n}", f"{n}8.20", f"{n}7.60", "5%", "8%", f"{n}0") for n in range(1, 5)]
    lines = [(x, 708.0, 10.0, name) for x, name in upper.items()] + [
        (x, 700.0, 10.0, name) for x, name in lower.items()
    ]
    lines += cells(body, (60.0, 150.0, 240.0, 330.0, 420.0, 500.0), 684.0, 16)
    text = page_text(lines)
    header, _, *rows = text.splitlines()
    assert (header, len(rows)) == (f"| {names} |", 4)


def test_a_name_that_is_drawn_below_its_column_is_read_above(page_text):
    """The last column of a sheet may be alone on its page, its name at the end of the file."""
    lines = [
        *cells([("286.00",), ("359.00",), ("458.50",)], (60.0,), 740.0, 16),
        (60.0, 756.0, 10.0, "2025年单价"),
    ]
    text = page_text(lines)
    assert text.split() == ["2025年单价", "286.00", "359.00", "458.50"]


@pytest.mark.parametrize(
    ("text", "is_cut"),
    [("tide " * 8_000, True), ("潮" * 17_000, True), ("tide " * 6_000, False), ("潮" * 16_200, False)],
    ids=["long", "long, Chinese", "shorter", "shorter, Chinese"],
)
def test_a_string_that_pdfium_cuts_is_noted(page_text, text, is_cut):
    """PDFium reads 32,767 bytes of a string and says nothing of the rest."""
    with use_notes() as notes:
        found = page_text([(60, 700, 0.01, text), (60, 600, 12, "The harbour is open.")])
    cut = "text behind the first 32,767 bytes of a string left out: PDFium reads no more"
    assert notes.texts == [cut] * is_cut and "harbour" in found


def table_page(*rows):
    """Lines of a page that is a table with these rows below its header."""
    text = "\n".join(["| Name | Rule |", "| --- | --- |", *rows])
    return [Line(text, 0, 0, 0, 0, size=10, height=0.5, block=True)]


def test_a_torn_row_is_joined_although_a_cell_has_a_bar_in_it():
    """The bar, which is escaped in markdown, ends no cell."""
    above, below = table_page(r"| x | a\|b and |"), table_page(r"|  | c\|d |", "| y | e |")
    join_torn_rows([above, below])
    assert above[0].text.endswith(r"| x | a\|b and c\|d |")
    assert below[0].text.splitlines()[2:] == ["| y | e |"]


def test_no_row_is_joined_to_a_header_alone():
    """A page that ends with the header of a table has no row that a next one goes on with."""
    above, below = table_page(), table_page("|  | c |", "| y | e |")
    join_torn_rows([above, below])
    assert above[0].text.endswith("| --- | --- |") and below[0].text.count("\n") == 3
