"""Tables, letterheads, key-value lists and source code of PDFs."""

from __future__ import annotations

import pytest
from support import documents as make

from rag_kit.indexing.readers.api import read


def put(folder, lines, **options):
    path = folder / "page.pdf"
    path.write_bytes(make.pdf([lines], **options))
    return path


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


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        (
            ("Vessel", "Length", "Dues"),
            (("Dinghy", "4 m", "4.00"), ("Yacht", "9 m", "18.50"), ("Tug", "", "7.00")),
        ),
        (
            ("船型", "长度", "费用"),
            (("小艇", "四米", "三十元"), ("渔船", "九米", "一百元"), ("拖轮", "", "七元")),
        ),
    ],
)
def test_a_table_without_rules_is_a_markdown_table(tmp_path, reader, head, rows):
    """Cells stand below the name of their column, the header is a row of its own, an empty cell stays empty."""
    first = "Dues hold from the first of January; those who live in the parish pay half of them."
    lines = [(60.0, 760.0, 10.0, first), *cells((head, *rows), (60.0, 170.0, 280.0), 720.0, 16)]
    path = put(tmp_path, lines)
    (page,) = reader.read(path)
    table = ["| " + " | ".join(row) + " |" for row in (head, ("---",) * 3, *rows)]
    assert page.page_content.split("\n\n", 1) == [first, "\n".join(table)]
    (again,) = read(path)
    assert again.page_content == page.page_content


def test_a_ruled_table_keeps_wrapped_and_merged_cells(tmp_path, reader):
    """Lines within a ruled cell are one cell; the text of a merged cell stands in each place that it covers."""
    lines = cells([("Berth", "What it offers")], (65.0, 165.0), 705.0, 0)
    lines += [
        (65.0, 680.0, 10.0, "B01"),
        *cells([("Water and power",), ("from April on",)], (165.0,), 685.0, 12),
    ]
    lines += [(65.0, 650.0, 10.0, "Closed in winter")]
    rules = [rule for rule in grid((60, 160, 300), (720, 695, 665, 640)) if rule != (160, 720, 160, 640)] + [
        (160.0, 720.0, 160.0, 665.0)
    ]
    (page,) = reader.read(put(tmp_path, lines, rules=rules))
    assert page.page_content == (
        "| Berth | What it offers |\n| --- | --- |\n| B01 | Water and power from April on |\n"
        "| Closed in winter | Closed in winter |"
    )


def test_prose_in_two_columns_and_a_box_around_it_are_no_table(tmp_path, reader):
    """Columns of sentences stay paragraphs, whatever is drawn around them."""
    left = "The first column goes on for quite a number of lines, so that they must be joined by the reader."
    right = "The second column stands at the right and is read after the first one has come to its end."
    lines = make.wrapped(left, width=40, x=50, top=740) + make.wrapped(right, width=40, x=310, top=740)
    rules = grid((40, 300, 560), (760, 600))
    (page,) = reader.read(put(tmp_path, lines, rules=rules))
    assert page.page_content == f"{left}\n\n{right}"


def test_a_table_of_contents_keeps_its_lines(tmp_path, reader):
    """Entries that end with dots and a page number do not run together."""
    entries = [
        "1 Introduction . . . . . . . . . . . 3",
        "2 Methods . . . . . . . . . . . . . . 7",
        "结果 . . . . . . . . . . . 9",
    ]
    lines = [(60.0, 700.0 - 14 * n, 10.0, text) for n, text in enumerate(entries)]
    (page,) = reader.read(put(tmp_path, lines))
    assert [line for line in page.page_content.split("\n") if line] == entries


def test_lists_side_by_side_are_read_one_after_the_other(tmp_path, reader):
    """Text drawn column by column, as the index of a book, is no table."""
    columns = (["anchor, 12", "berth, 40", "chain, 7"], ["depth, 33", "engine, 51", "flag, 2"])
    lines = [
        (60.0 + 150 * n, 700.0 - 12 * m, 10.0, text)
        for n, one in enumerate(columns)
        for m, text in enumerate(one)
    ]
    (page,) = reader.read(put(tmp_path, lines))
    assert page.page_content.split() == " ".join([*columns[0], *columns[1]]).split()


def test_keys_and_values_are_rows(tmp_path, reader):
    """A list of keys with a colon and their values gives one row of a table a pair."""
    pairs = [
        ("Invoice number:", "HM-20417"),
        ("Order date:", "3 March 2026"),
        ("Amount due:", "1,284.50 EUR"),
    ]
    (page,) = reader.read(put(tmp_path, cells(pairs, (60.0, 190.0), 700.0, 16)))
    assert all(f"| {key} | {value} |" in page.page_content for key, value in pairs)


def test_a_letterhead_that_the_file_draws_last_is_read_first(tmp_path, reader):
    """Text above all other text at the head of a page comes first; columns keep their order."""
    body = make.wrapped(
        "Thank you for your order. It left our house on Monday and is on its way.", width=40, x=60, top=600
    )
    head = [(330.0, 790.0, 12.0, "Halvorsen Marine Supplies"), (330.0, 776.0, 12.0, "14 Quayside Road")]
    (page,) = reader.read(put(tmp_path, [*body, *head]))
    assert page.page_content.startswith(
        "Halvorsen Marine Supplies\n14 Quayside Road"
    ) or page.page_content.startswith("# Halvorsen Marine Supplies")
    assert page.page_content.endswith("on its way.")


@pytest.mark.parametrize(
    "texts",
    [
        ("收货单位：青山县第二中学", "送货日期：二〇二六年三月"),
        ("Deck in August", "Piles in June", "Survey, May"),
    ],
)
def test_short_lines_of_one_length_stay_lines(tmp_path, reader, texts):
    """Keys with their values, addresses and the lists of slides are not joined to a paragraph."""
    (page,) = reader.read(put(tmp_path, [(60.0, 700.0 - 14 * n, 10.0, text) for n, text in enumerate(texts)]))
    assert (
        page.page_content.split() == "\n".join(texts).split()
        and page.page_content.count("\n\n") == len(texts) - 1
    )


def test_the_head_of_a_second_column_is_read_after_the_first(tmp_path, reader):
    """A short paragraph at the top of a column is no letterhead."""
    first = make.wrapped(
        "Each mooring carried a chain of sensors to the anchor. " * 4, width=40, x=60, top=715
    )
    lines = [(60.0, 790.0, 10.0, "Tides"), (60.0, 750.0, 10.0, "Moorings"), *first]
    lines += [(320.0, 770.0, 10.0, "The drift stayed small."), (320.0, 700.0, 10.0, "It is shown below.")]
    (page,) = reader.read(put(tmp_path, lines))
    assert page.page_content.index("the anchor.") < page.page_content.index("The drift")


def test_a_table_in_the_second_of_two_narrow_columns_is_found(tmp_path, reader):
    """The lines of the first column, short as cells and as high on the page, do not belong to it."""
    first = make.wrapped(
        "The ferry takes twelve cars and runs from six until ten. " * 12, width=40, x=60, top=700
    )
    table = [("Span", "Length"), ("First", "18 m"), ("Main", "64 m")]
    (page,) = reader.read(put(tmp_path, [*first, *cells(table, (330.0, 420.0), 700.0, 14)]))
    assert page.page_content.endswith("| Span | Length |\n| --- | --- |\n| First | 18 m |\n| Main | 64 m |")


def test_a_word_that_a_typographic_hyphen_cuts_is_whole(tmp_path, reader):
    """Programs that hyphenate by themselves end a line with U+2010."""
    texts = [("The railings were cast in the vil\u2010",), ("lage foundry long ago.",)]
    (page,) = reader.read(put(tmp_path, cells(texts, (60.0,), 700.0, 12)))
    assert page.page_content == "The railings were cast in the village foundry long ago."


def test_code_keeps_its_lines_and_indents(tmp_path, reader):
    """Lines in a font of fixed width are fenced code; indents come from where the words stand."""
    code = ["def tide(hours):", "    if hours < 0:", "        raise ValueError(hours)", "    return hours"]
    lines = [(60.0, 740.0, 10.0, "The function below turns the tide every six hours.")]
    for number, line in enumerate(code):
        lines.append((70.0 + 5.4 * (len(line) - len(line.lstrip())), 700.0 - 12 * number, 9.0, line.strip()))
    lines.append((60.0, 620.0, 10.0, "It is called once for each gauge."))
    (page,) = reader.read(put(tmp_path, lines, mono=[line.strip() for line in code]))
    fenced = "\n".join(code)
    assert page.page_content == f"{lines[0][3]}\n\n```\n{fenced}\n```\n\n{lines[-1][3]}"


def test_a_line_of_code_words_within_a_sentence_is_no_code(tmp_path, reader):
    """An address or a command that fills a line of a paragraph does not tear it apart."""
    texts = [
        "The forms of the harbour office stand at",
        "harbour.example/forms/berths/2026",
        "in three languages.",
    ]
    lines = [(60.0, 740.0 - 12 * n, 10.0, text) for n, text in enumerate(texts)]
    (page,) = reader.read(put(tmp_path, lines, mono=texts[1:2]))
    assert "```" not in page.page_content and page.page_content.split() == " ".join(texts).split()


def test_a_page_of_typewriting_is_prose(tmp_path, reader):
    """Fixed width of all text says nothing: lines are joined to paragraphs."""
    text = "It is called once for each gauge, and its result is compared with what the gauge measured."
    lines = make.wrapped(text, width=40, x=60, top=740)
    (page,) = reader.read(put(tmp_path, lines, mono=[line[3] for line in lines]))
    assert page.page_content == text


def test_what_is_filled_into_a_form_is_read(reader, tmp_path):
    """The value of a field is text of its page, though it stands in no content of it."""
    shown = b"BT /F1 12 Tf 0 g 2 4 Td (R. Macleod) Tj ET"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    content = b"BT /F1 12 Tf 72 700 Td (Owner of the vessel) Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] >> >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >> "
        b"/Contents 4 0 R /Annots [6 0 R] >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        font,
        b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (owner) /V (R. Macleod) /Rect [200 695 400 715] /F 4 "
        b"/AP << /N 7 0 R >> >>",
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 5 0 R >> >> /Length %d >>\n"
        b"stream\n%s\nendstream" % (len(shown), shown),
    ]
    body = b"%PDF-1.7\n"
    starts = []
    for number, each in enumerate(objects, 1):
        starts.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    body += b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1, table, len(objects) + 1, len(body),
    )  # fmt: skip
    (tmp_path / "form.pdf").write_bytes(body)
    (page,) = reader.read(tmp_path / "form.pdf")
    assert "Owner of the vessel" in page.page_content and "R. Macleod" in page.page_content


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
def test_a_turned_page_reads_like_the_same_page_upright(tmp_path, reader, turn, rotate):
    """Whichever way the page is shown and its content drawn: paragraphs, ruled table and page number."""
    rules = grid((60, 150, 240, 330), (705, 685, 665, 645))
    (page,) = reader.read(put(tmp_path, _PAGE, rules=rules, turn=turn, rotate=rotate))
    assert page.page_content == _READ


def test_a_turned_table_is_read_apart_from_the_upright_text(tmp_path, reader):
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
    (page,) = reader.read(put(tmp_path, [*text[:5], *turned, *text[5:]], rules=rules, upwards=upwards))
    before, found = page.page_content.split("\n\n|")
    assert "Line 8 of the text" in before and "Station" not in before
    assert found == " Station | City |\n| --- | --- |\n| S0 | Bern |\n| S1 | Ulm |"


# --- page numbers


@pytest.mark.parametrize(
    ("text", "height"),
    [
        ("第 1 页", 30.0), ("第 1 页 共 3 页", 80.0), ("第1页/共3页", 100.0), ("共 3 页 第 1 页", 40.0),
        ("第一页", 40.0), ("- 1 -", 85.0), ("1 / 3", 60.0), ("1", 80.0), ("Page 1 of 3", 100.0),
        ("Seite 1 von 3", 60.0), ("页码：1", 60.0), ("Confidential | Page 1 of 3", 40.0),
        ("Page 1", 800.0), ("第 1 页", 790.0),
    ],
)  # fmt: skip
def test_page_numbers_of_single_pages_are_left_out(tmp_path, reader, text, height):
    """By where they are: at the edge of the page, or beyond all text and apart from it."""
    body = [(60.0, 700.0, 10.0, "The harbour is open."), (60.0, 670.0, 10.0, "港口今天开放。")]
    (page,) = reader.read(put(tmp_path, [*body, (280.0, height, 9.0, text)]))
    assert page.page_content == "The harbour is open.\n\n港口今天开放。"


def test_numbers_that_are_not_of_the_page_stay(tmp_path, reader):
    """A last line of text in the margin, a number right below the text, and a number in the middle."""
    lines = [
        (60.0, 700.0, 10.0, "Total"),
        (60.0, 400.0, 10.0, "7"),
        (60.0, 112.0, 10.0, "Sum"),
        (60.0, 98.0, 10.0, "12"),
    ]
    (page,) = reader.read(put(tmp_path, [*lines, (60.0, 50.0, 10.0, "For more see page 5")]))
    assert page.page_content.split() == ["Total", "7", "Sum", "12", "For", "more", "see", "page", "5"]


def test_heads_of_two_pages_are_left_out(tmp_path, reader):
    """Lines at the edge of both pages of a short document are not text."""
    path = tmp_path / "two.pdf"
    pages = [[(50.0, 815.0, 8.0, "内部资料 2026"), (50.0, 500.0, 10.0, f"Text {n}.")] for n in range(2)]
    path.write_bytes(make.pdf(pages))
    assert [page.page_content for page in reader.read(path)] == ["Text 0.", "Text 1."]


# --- order and paragraphs


@pytest.mark.parametrize("heading", ["2 Methods", "二、方法"])
def test_a_heading_at_the_top_of_the_second_column_is_read_there(tmp_path, reader, heading):
    """Though it is above all of the first column, text goes on below it."""
    first = make.wrapped(
        "Each mooring carried a chain of sensors to the anchor. " * 4, width=40, x=60, top=700
    )
    second = make.wrapped(
        "The drift of the sensors stayed small in all years. " * 4, width=40, x=320, top=720
    )
    (page,) = reader.read(put(tmp_path, [*first, (320.0, 745.0, 14.0, heading), *second]))
    before, after = page.page_content.split(f"# {heading}")
    assert "mooring" in before and "drift" not in before and "drift" in after


def test_paragraphs_of_one_indented_line_stay_apart(tmp_path, reader):
    """Each begins as far to the right as the one before, while other lines of the column begin at its edge."""
    lines = [
        (60.0, 700.0, 10.0, "The pumps were read every week by the crew of the boat, and what"),
        (60.0, 688.0, 10.0, "they gave was written into a book that is kept at the harbour now."),
        (80.0, 676.0, 10.0, "A gauge that was broken was changed at once by those on board."),
        (80.0, 664.0, 10.0, "The books of the first three years were lost in a storm at sea, so"),
        (60.0, 652.0, 10.0, "that nothing is known of them."),
    ]
    (page,) = reader.read(put(tmp_path, lines))
    assert [text[:9] for text in page.page_content.split("\n\n")] == ["The pumps", "A gauge t", "The books"]


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
def test_clauses_begin_a_paragraph(tmp_path, reader, first, second):
    """Also where the line before is full."""
    (page,) = reader.read(put(tmp_path, [(60.0, 700.0, 10.0, first), (60.0, 686.0, 10.0, second)]))
    assert page.page_content.split("\n") in ([first, "", second], [first, second])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("甲方应当依照本合同的约定及附件所列的清单逐项核对并且遵守其中的", "第三条的规定支付货款。"),
        ("甲方应当依照本合同的约定及附件所列的清单逐项核对并且遵守其中第", "（二）项的规定支付货款。"),
        ("They measured it in the spring of the year 2020 and found that it was", "3.5 metres deep."),
    ],
)
def test_clauses_within_a_sentence_go_on(tmp_path, reader, first, second):
    """A number at the beginning of a wrapped line is no clause."""
    (page,) = reader.read(put(tmp_path, [(60.0, 700.0, 10.0, first), (60.0, 686.0, 10.0, second)]))
    assert "\n" not in page.page_content


# --- spans of rows


@pytest.mark.parametrize("place", ["top", "middle", "foot"])
@pytest.mark.parametrize(
    ("head", "groups"),
    [
        (
            ("Kind", "Name", "Price"),
            {"Fish": [("Cod", "5"), ("Hake", "6"), ("Tuna", "9")], "Fruit": [("Apple", "1"), ("Pear", "2")]},
        ),
        (
            ("Kind", "Name", "Price"),
            {"Fish": [("Cod", "5"), ("Hake", "6")], "Fruit": [("Apple", "1"), ("Pear", "2")], "Nuts": [("Pecan", "7")]},
        ),
        (
            ("种类", "名称", "价格"),
            {"鱼类": [("鳕鱼", "五元"), ("鲔鱼", "六元")], "水果": [("苹果", "一元"), ("香梨", "二元")]},
        ),
    ],
)  # fmt: skip
def test_a_name_for_several_rows_stands_in_each(tmp_path, reader, head, groups, place):
    """In tables without rules between the rows: the name is in the first of them, at their middle, or in the last."""
    lines, rows = [(60.0 + 110 * n, 700.0, 10.0, cell) for n, cell in enumerate(head)], [head]
    for name, items in groups.items():
        top = 700.0 - 16 * len(rows)
        down = {"top": 0, "middle": 8, "foot": 16}[place]
        lines.append((60.0, top - down * (len(items) - 1), 10.0, name))
        for n, item in enumerate(items):
            lines += [(60.0 + 110 * m, top - 16 * n, 10.0, cell) for m, cell in enumerate(item, 1)]
            rows.append((name, *item))
    (page,) = reader.read(put(tmp_path, lines))
    table = ["| " + " | ".join(row) + " |" for row in (rows[0], ("---",) * 3, *rows[1:])]
    assert page.page_content == "\n".join(table)


def test_a_ruled_table_without_lines_around_it_keeps_its_outer_columns(tmp_path, reader):
    """Rules between cells only; the spans of rows are filled."""
    rows = [("Kind", "Name"), ("Fish", "Cod"), ("", "Hake"), ("Fruit", "Apple")]
    lines = cells(rows, (65.0, 155.0), 705.0, 20)
    rules = [
        (150.0, 720.0, 150.0, 640.0),
        (60.0, 700.0, 240.0, 700.0),
        (150.0, 680.0, 240.0, 680.0),
        (60.0, 660.0, 240.0, 660.0),
    ]
    (page,) = reader.read(put(tmp_path, lines, rules=rules))
    assert page.page_content.split("\n")[2:] == ["| Fish | Cod |", "| Fish | Hake |", "| Fruit | Apple |"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_watermark_is_no_heading(tmp_path, reader, count):
    """Large letters aslant are left out where they come back, and stand behind the text of a single page."""
    lines = [(200.0, 400.0, 60.0, "机密文件"), (50.0, 740.0, 18.0, "技术服务合同")]
    pages = [
        [*lines, (50.0, 700.0, 10.0, f"第{n}条 每季度巡检一次，每次出具书面报告。")]
        for n in range(1, count + 1)
    ]
    path = tmp_path / "contract.pdf"
    path.write_bytes(make.pdf(pages, aslant=["机密文件"]))
    documents = reader.read(path)
    assert documents[0].page_content.startswith("# 技术服务合同\n\n第1条")
    assert documents[0].page_content.endswith("机密文件") == (count == 1)
    assert documents[0].metadata["title"] == "技术服务合同"


def test_the_number_of_a_contract_in_the_running_head_stays_once(tmp_path, reader):
    """It may stand nowhere else; the name of the company beside it on each page is left out."""
    pages = [
        [
            (50.0, 820.0, 8.0, f"合同编号：HT-2025-0318 第{n}页"),
            (50.0, 20.0, 8.0, "海川机械"),
            (50.0, 500.0, 10.0, f"正文第{n}段。"),
        ]
        for n in range(1, 5)
    ]
    (tmp_path / "contract.pdf").write_bytes(make.pdf(pages))
    texts = [document.page_content for document in reader.read(tmp_path / "contract.pdf")]
    assert texts == [
        "合同编号：HT-2025-0318 第1页\n\n正文第1段。",
        "正文第2段。",
        "正文第3段。",
        "正文第4段。",
    ]


def test_a_row_that_the_end_of_a_page_cuts_is_whole(tmp_path, reader):
    """The second line of its cell stands on the next page, below the header that is repeated there."""
    xs, head = (65.0, 155.0, 245.0), ("序号", "项目名称", "单价")
    first_rows = [head, ("1", "回填土", "58.70"), ("2", "压型钢板", "124.70")]
    above = make.wrapped("The bill of quantities is a part of the contract. " * 3, width=80, x=60, top=760)
    pages = [
        [*above, *cells(first_rows, xs, 690, 20)],
        cells([head, ("", "屋面", ""), ("3", "环氧地坪", "137.90")], xs, 690, 20),
    ]
    rules = grid((60, 150, 240, 330), (705, 685, 665, 645))
    (tmp_path / "bill.pdf").write_bytes(make.pdf(pages, rules=rules))
    first, second = (document.page_content.splitlines() for document in reader.read(tmp_path / "bill.pdf"))
    assert first[-1] == "| 2 | 压型钢板屋面 | 124.70 |"
    assert second == ["| 序号 | 项目名称 | 单价 |", "| --- | --- | --- |", "| 3 | 环氧地坪 | 137.90 |"]


def test_a_double_rule_is_no_column(tmp_path, reader):
    """A column without any text, as between two rules, is left out; one that only lacks texts below its name stays."""
    rows = [("Part", "Count", "Seen"), ("Pump", "20", ""), ("Valve", "5", "")]
    above = make.wrapped("The parts of the delivery were counted on arrival. " * 3, width=80, x=60, top=760)
    lines = [*above, *cells(rows, (65.0, 165.0, 255.0), 690, 20)]
    (page,) = reader.read(put(tmp_path, lines, rules=grid((60, 150, 156, 250, 330), (705, 685, 665, 645))))
    assert page.page_content.endswith(
        "| Part | Count | Seen |\n| --- | --- | --- |\n| Pump | 20 |  |\n| Valve | 5 |  |"
    )


# --- cells of several lines in tables without rules


_LONG = {
    "en": (
        ["Boats up to nine metres that stay", "over night in the inner basin or", "at the quay"],
        "Yachts of members",
    ),
    "zh": (["长度在九米以下并且在内港池中停泊", "过夜的各种船只以及在外港池中停泊", "的渡船"], "会员的游艇"),
}


@pytest.mark.parametrize("name_at", ["top", "middle", "foot"])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("is_last", [False, True], ids=["first", "last"])
def test_a_cell_of_several_lines_is_one_row(tmp_path, reader, is_last, language, name_at):
    """Whether the other cells stand at its top, middle or foot, and in the last row, too."""
    wrapped, short = _LONG[language]
    long_row = ("A1", "".join(wrapped) if language == "zh" else " ".join(wrapped), "18.50")
    rows = [long_row, ("B2", short, "9.00")]
    rows = (
        [
            *rows[::-1],
        ]
        if is_last
        else [*rows, ("C3", short, "7.00")]
    )
    lines, top = cells([("Code", "Text", "Dues")], (60.0, 130.0, 400.0), 700.0, 0), 682.0
    for code, text, dues in rows:
        pieces = wrapped if text == long_row[1] else [text]
        down = {"top": 0, "middle": 6 * (len(pieces) - 1), "foot": 12 * (len(pieces) - 1)}[name_at]
        lines += [(60.0, top - down, 10.0, code), *cells([(piece,) for piece in pieces], (130.0,), top, 12)]
        lines += [(400.0, top - down, 10.0, dues)]
        top -= 12 * len(pieces) + 6
    (page,) = reader.read(put(tmp_path, lines))
    table = ["| " + " | ".join(row) + " |" for row in (("Code", "Text", "Dues"), ("---",) * 3, *rows)]
    assert page.page_content.split("\n") == table


def test_a_line_below_a_table_is_no_cell(tmp_path, reader):
    """Though it begins in small letters, at the place of a column and right below it: the cell above has room."""
    rows = [
        ("Vessel", "Dues"),
        ("Yachts of members", "9.00"),
        ("Boats", "18.50"),
        ("in EUR, without tax", ""),
    ]
    (page,) = reader.read(put(tmp_path, cells(rows, (60.0, 200.0), 700.0, 14)))
    assert page.page_content.endswith("| Boats | 18.50 |\n\nin EUR, without tax")


# --- columns of tables without rules


def _ending(x, text):
    """Return where a number of 10 points begins that ends at a place."""
    return x - sum(2.78 if sign in ",.()" else 5.56 for sign in text)


_DUES = [("Dinghy", "4.00", "paid"), ("Yacht", "18.50", "open"), ("Tug", "1,207.00", "open since May")]


@pytest.mark.parametrize("name_at", [150.0, 190.0], ids=["left", "centred"])
def test_a_name_at_another_side_than_its_numbers_heads_their_column(tmp_path, reader, name_at):
    """Numbers end at the right of their column; its name begins at the left, or stands in the middle."""
    lines = [(60.0, 700.0, 10.0, "Vessel"), (name_at, 700.0, 10.0, "Dues"), (300.0, 700.0, 10.0, "State")]
    for n, (vessel, dues, state) in enumerate(_DUES, 1):
        top = 700.0 - 16 * n
        lines += [(60.0, top, 10.0, vessel), (_ending(250, dues), top, 10.0, dues), (300.0, top, 10.0, state)]
    (page,) = reader.read(put(tmp_path, lines))
    rows = [("Vessel", "Dues", "State"), ("---",) * 3, *_DUES]
    assert page.page_content.splitlines() == ["| " + " | ".join(row) + " |" for row in rows]


@pytest.mark.parametrize("state_at", [254.0, 300.0], ids=["above", "centred"])
def test_a_number_and_a_text_close_behind_it_are_two_cells(tmp_path, reader, state_at):
    """A column that begins where the one before ends shows by its name, or by texts of several lengths below it."""
    lines = [(60.0, 700.0, 10.0, "Vessel"), (150.0, 700.0, 10.0, "Dues"), (state_at, 700.0, 10.0, "State")]
    for n, (vessel, dues, state) in enumerate(_DUES, 1):
        top = 700.0 - 16 * n
        lines += [(60.0, top, 10.0, vessel), (_ending(250, dues), top, 10.0, dues), (254.0, top, 10.0, state)]
    (page,) = reader.read(put(tmp_path, lines))
    assert page.page_content.splitlines()[2:] == ["| " + " | ".join(row) + " |" for row in _DUES]


def test_two_values_close_together_below_a_name_each_are_two_cells(tmp_path, reader):
    """Also where all of them are as long, so that nothing but the names in the middle shows two columns."""
    rows = [(f"Tug {n}", f"2026-03-1{n}", "27,500.00") for n in range(5)]
    lines = [(60.0, 700.0, 10.0, "Vessel"), (160.0, 700.0, 10.0, "Day"), (218.0, 700.0, 10.0, "Dues")]
    lines += cells(rows, (60.0, 150.0, 206.0), 684.0, 16)
    (page,) = reader.read(put(tmp_path, lines))
    assert page.page_content.splitlines()[2:] == ["| " + " | ".join(row) + " |" for row in rows]


def test_a_unit_and_a_second_name_stay_in_their_cells(tmp_path, reader):
    """Words below each other within a cell are no column of their own."""
    rows = [("Owner", "Length"), ("Ann Lee", "4 m"), ("Ann Roth", "18 m"), ("Ann Bell", "120 m")]
    lines = [(60.0, 700.0, 10.0, rows[0][0]), (200.0, 700.0, 10.0, rows[0][1])]
    for n, (owner, length) in enumerate(rows[1:], 1):
        start = _ending(240, length.split()[0])
        lines += [(60.0, 700.0 - 16 * n, 10.0, owner), (start, 700.0 - 16 * n, 10.0, length)]
    (page,) = reader.read(put(tmp_path, lines))
    assert page.page_content.splitlines()[2:] == [f"| {owner} | {length} |" for owner, length in rows[1:]]


@pytest.mark.parametrize("name", ["项目2", "abc"])
@pytest.mark.parametrize("late", [{(0, 2)}, {(n, 1) for n in range(1, 9)}, {(0, 1), (3, 2)}])
def test_cells_that_the_file_draws_late_stand_in_their_rows(tmp_path, reader, late, name):
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
    (page,) = reader.read(put(tmp_path, lines))
    table = ["| " + " | ".join(row) + " |" for row in (rows[0], ("---",) * 3, *rows[1:])]
    assert page.page_content == "\n".join(table)


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
def test_two_header_rows_without_rules_are_one(tmp_path, reader, upper, lower, names):
    """A name at the middle of two columns heads both; where it begins at the left, only the first is known."""
    body = [(f"K{n}", f"{n}8.20", f"{n}7.60", "5%", "8%", f"{n}0") for n in range(1, 5)]
    lines = [(x, 708.0, 10.0, name) for x, name in upper.items()] + [
        (x, 700.0, 10.0, name) for x, name in lower.items()
    ]
    lines += cells(body, (60.0, 150.0, 240.0, 330.0, 420.0, 500.0), 684.0, 16)
    (page,) = reader.read(put(tmp_path, lines))
    header, _, *rows = page.page_content.splitlines()
    assert (header, len(rows)) == (f"| {names} |", 4)


def test_a_name_that_is_drawn_below_its_column_is_read_above(tmp_path, reader):
    """The last column of a sheet may be alone on its page, its name at the end of the file."""
    lines = [
        *cells([("286.00",), ("359.00",), ("458.50",)], (60.0,), 740.0, 16),
        (60.0, 756.0, 10.0, "2025年单价"),
    ]
    (page,) = reader.read(put(tmp_path, lines))
    assert page.page_content.split() == ["2025年单价", "286.00", "359.00", "458.50"]
