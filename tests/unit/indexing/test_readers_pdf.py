"""Tables, letterheads, key-value lists and source code of PDFs."""

from __future__ import annotations

import pytest
from support import documents as make

from rag_kit.indexing.readers.api import Reader, read


@pytest.fixture(scope="module")
def reader():
    """One reader process for all tests of this file."""
    with Reader() as shared:
        yield shared


def put(folder, lines, **options):
    path = folder / "page.pdf"
    path.write_bytes(make.pdf([lines], **options))
    return path


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
    lines = [
        (
            60.0,
            760.0,
            10.0,
            "Dues hold from the first of January; those who live in the parish pay half of them.",
        )
    ]
    for number, row in enumerate((head, *rows)):
        lines += [(60.0 + 110 * n, 720.0 - 16 * number, 10.0, cell) for n, cell in enumerate(row) if cell]
    path = put(tmp_path, lines)
    (page,) = reader.read(path)
    table = ["| " + " | ".join(row) + " |" for row in (head, ("---",) * 3, *rows)]
    assert page.page_content.split("\n\n", 1) == [lines[0][3], "\n".join(table)]
    (again,) = read(path)
    assert again.page_content == page.page_content


def test_a_ruled_table_keeps_wrapped_and_merged_cells(tmp_path, reader):
    """Lines within a ruled cell are one cell; the text of a merged cell stands in each place that it covers."""
    lines = [
        (65.0, 705.0, 10.0, "Berth"),
        (165.0, 705.0, 10.0, "What it offers"),
        (65.0, 680.0, 10.0, "B01"),
        (165.0, 685.0, 10.0, "Water and power"),
        (165.0, 673.0, 10.0, "from April on"),
        (65.0, 650.0, 10.0, "Closed in winter"),
    ]
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
    """What the file draws column by column, as the index of a book, is no table."""
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
    lines = [
        (x, 700.0 - 16 * n, 10.0, text)
        for n, pair in enumerate(pairs)
        for x, text in zip((60.0, 190.0), pair, strict=True)
    ]
    (page,) = reader.read(put(tmp_path, lines))
    assert all(f"| {key} | {value} |" in page.page_content for key, value in pairs)


def test_a_letterhead_that_the_file_draws_last_is_read_first(tmp_path, reader):
    """What stands above all other text at the head of a page comes first; columns keep their order."""
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
    lines = [
        (x, 700.0 - 14 * n, 10.0, cell)
        for n, row in enumerate(table)
        for x, cell in zip((330.0, 420.0), row, strict=True)
    ]
    (page,) = reader.read(put(tmp_path, [*first, *lines]))
    assert page.page_content.endswith("| Span | Length |\n| --- | --- |\n| First | 18 m |\n| Main | 64 m |")


def test_a_word_that_a_typographic_hyphen_cuts_is_whole(tmp_path, reader):
    """Programs that hyphenate by themselves end a line with U+2010."""
    lines = [
        (60.0, 700.0, 10.0, "The railings were cast in the vil\u2010"),
        (60.0, 688.0, 10.0, "lage foundry long ago."),
    ]
    (page,) = reader.read(put(tmp_path, lines))
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
    """Where all text has a fixed width, that says nothing: lines are joined to paragraphs."""
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
