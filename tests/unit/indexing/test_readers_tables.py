"""Tables of sheets and of CSV files: their header is chosen by shape, and blank rows and columns keep them whole."""

from __future__ import annotations

import pytest
from support import documents as make

from rag_kit.concurrency.notes import use_notes
from rag_kit.indexing.readers.tables import find_header, is_value


def _sheet(documents_of, rows, merge=None):
    """The parts of a sheet without its name."""
    book = make.xlsx({"S": rows}, merge={"S": merge} if merge else None)
    return [document.page_content.removeprefix("# S\n\n") for document in documents_of("book.xlsx", book)]


def _table(text):
    return make.table(*make.rows(text))


def _sheet_rows(text):
    """Cells of a sheet: blanks are none, digits are numbers."""
    return [[int(cell) if cell.isdigit() else cell or None for cell in row] for row in make.rows(text)]


def _csv(documents_of, text):
    return [document.page_content for document in documents_of("rows.csv", text)]


_BLANK = [None]


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ("PROGRESS//Task||Owner/Design||Ana/Build||Ben", ["PROGRESS: Task|Owner/Design|Ana/Build|Ben"]),
        ("项目|一月|二月/甲|1|2//乙|3|4//合计|4|6", ["项目|一月|二月/甲|1|2/乙|3|4/合计|4|6"]),
        ("Task|Owner/Design|Ana//Build|Ben", ["Task|Owner/Design|Ana/Build|Ben"]),
        ("Item|Qty||Jan|Feb/A|1||5|6/B|2||7|8", ["Item|Qty|Jan|Feb/A|1|5|6/B|2|7|8"]),
        ("City|People/Bern|140//River|Length/Aare|288", ["City|People/Bern|140", "River|Length/Aare|288"]),
        ("City|Size||River|Sea/Bern|140||Po|2/Ulm|1||Inn|3", ["City|Size/Bern|140/Ulm|1", "River|Sea/Po|2/Inn|3"]),
        ("City|Size||Rate/Bern|140||7/Ulm|1/Basel|170", ["City|Size/Bern|140/Ulm|1/Basel|170", "Rate\n7"]),
        ("Item|Price||Qty/A|1/B|2/C|3||7/D|4/E|5", ["Item|Price|Qty/A|1|/B|2|/C|3|7/D|4|/E|5|"]),
        ("City|Size||Rate/Bern|140||7/Ulm|1||8/Basel|170", ["City|Size|Rate/Bern|140|7/Ulm|1|8/Basel|170|"]),
        ("a|b/x|y/z|w||c|d/v|u||e|f", ["a|b/x|y/z|w/v|u", "c|d/e|f"]),
        ("a|b/1|2///3|4/5|6///7|8", ["a|b/1|2/3|4/5|6/7|8"]),
        ("City|People/Bern|140///River|Sea/Inn|Black", ["City|People/Bern|140", "River|Sea/Inn|Black"]),
        ("Item|Price/Lime|7/Sand|3||ok/Gravel|5||late", ["Item|Price|/Lime|7|/Sand|3|ok/Gravel|5|late"]),
        ("Item|Qty/A|1/B|2//Source: office", ["Item|Qty/A|1/B|2", "Source: office"]),
        ("City|Size/Bern|140//Rivers/River|Length/Aare|288", ["City|Size/Bern|140", "Rivers: River|Length/Aare|288"]),
        ("Item|Price/Fruit/Apple|1/Pear|2/Leek|3", ["Item|Price/Fruit|/Apple|1/Pear|2/Leek|3"]),
        ("Title/|2024年|2025年/A|1|2/B|3|4", ["Title: |2024年|2025年/A|1|2/B|3|4"]),
    ],
    ids=[
        "a blank column, and a title above a blank row", "blank rows", "texts only",
        "a blank column before columns that have no names of rows", "two tables, each with a header",
        "the same beside each other", "a single value with its name", "a column that has a value in one row",
        "a column that has values in most rows", "beside each other, but not as high",
        "two blank rows, without a header of its own", "two blank rows, and texts where values were",
        "notes beside, without a name", "a note below", "a second table with a title of its own",
        "names of groups are rows", "a header that has no name for the first column",
    ],
)  # fmt: skip
def test_tables_of_a_sheet_stay_whole(documents_of, rows, parts):
    """They are cut where both sides have a header, before a note, and by two blanks where no table goes on."""
    expected = []
    for part in parts:
        title, _, table = part.rpartition(": ")
        expected.append((f"{title}\n\n" if title else "") + _table(table) if "|" in part else part)
    assert _sheet(documents_of, _sheet_rows(rows)) == expected


def test_merged_titles_are_no_header(documents_of):
    """A title over all columns stands above; a header of two rows has both names in each column."""
    rows = [
        ["销售报表", None, None],
        ["单位：万元"],
        ["城市", "一季度", "二季度"],
        ["北京", 10, 20],
        ["上海", 30, 40],
    ]
    (part,) = _sheet(documents_of, rows, "A1:C1")
    assert part.startswith("销售报表\n单位：万元\n\n| 城市 | 一季度 | 二季度 |\n| --- |")
    (part,) = _sheet(documents_of, [["Mon", "8", "Tue", "8", "8"], *[["a_x000D_\nb", 1, 2, 3, 4, 5]] * 3])
    assert part.startswith("Mon 8 Tue 8 8\n\n| a b |")
    rows = [["Item", "2025", None], [None, "Q1", "Q2"], ["A", 1, 2], ["B", 3, 4]]
    (part,) = _sheet(documents_of, rows, "B1:C1")
    assert part == make.table(("Item", "2025 Q1", "2025 Q2"), ("A", "1", "2"), ("B", "3", "4"))
    # a title over blank columns does not make columns of them
    rows = [["支出表", None, None], ["月份", None, "费用"], ["一月", None, 120], ["二月", None, 118]]
    (part,) = _sheet(documents_of, rows, "A1:C1")
    assert part == "支出表\n\n" + make.table(("月份", "费用"), ("一月", "120"), ("二月", "118"))


@pytest.mark.parametrize(
    ("rows", "merge", "table"),
    [
        ("型号|单价/|2024年|2025年/K1|295|286/K2|3|4", "A1:A2 B1:C1", "型号|单价 2024年|单价 2025年/K1|295|286/K2|3|4"),
        ("Item|Sold/|1|2/A|7|8/B|9|6", "B1:C1", "Item|Sold 1|Sold 2/A|7|8/B|9|6"),
        ("型号|价/|甲||乙/|1月|7月|1月/K1|1|2|3", "A1:A3 B1:D1 B2:C2", "型号|价 甲 1月|价 甲 7月|价 乙 1月/K1|1|2|3"),
        (
            "类别|型号|单价/||甲|乙/车床|K1|5|6/|K2|7|8", "A1:A2 B1:B2 C1:D1 A3:A4",
            "类别|型号|单价 甲|单价 乙/车床|K1|5|6/车床|K2|7|8",
        ),
        ("姓名|地址/张三|上海|浦东/李四|北京|朝阳", "B1:C1", "姓名|地址|地址/张三|上海|浦东/李四|北京|朝阳"),
        ("Item|Size/A|7|8/B|9|6", "B1:C1", "Item|Size|Size/A|7|8/B|9|6"),
        ("Kind|Name/Fish|Cod/|Hake", "A2:A3", "Kind|Name/Fish|Cod/Fish|Hake"),
    ],
    ids=[
        "years", "months as numbers, nothing merged downwards", "three rows", "names merged downwards in the body",
        "a merged name over columns of texts: the second row is no name", "the same over numbers",
        "no header of two rows, but names of several rows",
    ],
)  # fmt: skip
def test_merged_cells_of_a_header_tell_its_rows(documents_of, rows, merge, table):
    """Whatever stands in its last row; what begins with a name of its own is a row of the table."""
    assert _sheet(documents_of, _sheet_rows(rows), merge) == [_table(table)]


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ("<thead><tr><th rowspan=2>A<th colspan=2>B<tr><th>C<th>D</thead>", "| A | B C | B D |"),
        ("<tr><th>Grade<th colspan=2>Limit<tr><th>name<th>day<th>night", "| Grade name | Limit day | Limit night |"),
        ("<tr><th rowspan=2>Grade<th>Day<th>Night<tr><th>EUR<th>USD", "| Grade | Day EUR | Night USD |"),
        ("<tr><td rowspan=2>Grade<td colspan=2>Limit<tr><td>2024<td>2025", "| Grade | Limit 2024 | Limit 2025 |"),
        ("<tr><td colspan=3>Limits<tr><td>Grade<td>2024<td>2025", "Limits\n\n| Grade | 2024 | 2025 |"),
        ("<tr><th>Grade<th>2024<th>2025", "| Grade | 2024 | 2025 |"),
    ],
    ids=["thead", "th", "beside", "td", "title", "one row"],
)  # fmt: skip
def test_rows_of_a_header_of_a_page_are_one(documents_of, rows, header):
    """By the marks of the page or by merged cells; a title over all columns stands above."""
    (page,) = documents_of("t.html", f"<table>{rows}<tr><td>A<td>1<td>2<tr><td>B<td>3<td>4</table>")
    assert page.page_content == f"{header}\n| --- | --- | --- |\n| A | 1 | 2 |\n| B | 3 | 4 |"


@pytest.mark.parametrize(
    ("rows", "table"),
    [
        ("<tr><th>Name<th>Age<tr><th colspan=2>A<tr><td>Al<td>3<tr><th colspan=2>B", "Name|Age/A|A/Al|3/B|B"),
        ("<thead><tr><th>N<th>M</thead><tbody><tr><th colspan=2>A<tr><td>Al<td>3", "N|M/A|A/Al|3"),
        ("<thead><tr><th>Name<th>Age<tr><th colspan=2>A</thead><tr><td>Al<td>3", "Name|Age/A|A/Al|3"),
        ("<tr><th>Name<th colspan=2>Size<tr><td colspan=3>A<tr><td>Al<td>3<td>4", "Name|Size|Size/A|A|A/Al|3|4"),
        ("<tr><th>Name<th>Ann<tr><th>Age<th>3<tr><th>City<td>Bonn", "Name|Ann/Age|3/City|Bonn"),
        ("<tr><th>Party<th>Party<tr><td>A<td>B<tr><td>C<td>D", "Party|Party/A|B/C|D"),
        ("<tr><th>Item<th>Party<th>Party<tr><th>day<th>A<th>B<tr><td>x<td>1<td>2", "Item|Party|Party/day|A|B/x|1|2"),
        ("<tr><td>0<td>0<tr><td>0<td>0<tr><td>1<td>0", "0|0/0|0/1|0"),
        ("<tfoot><tr><td>S<td>3</tfoot><tbody><tr><td>x<td>3</tbody><thead><tr><th>A<th>B</thead>", "A|B/x|3/S|3"),
        ("<thead><tr><th>A<th>B</thead><tr><td>x<td>1</tr><thead><tr><th>C<th>D</thead><tr><td>y", "A|B/x|1/C|D/y|"),
        ("<tr><td rowspan=2>A<td>1<tr hidden><td>2<tr><td>B<td>3<tr><td>C<td>4", "A|1/B|3/C|4"),
        ("<tr><td>A<td>1<tr hidden><td rowspan=2>secret<td>2<tr><td>3<tr><td>C<td>4", "A|1/|3/C|4"),
    ],
    ids=[
        "groups", "tbody", "thead", "spans", "names", "alike", "alike of three", "values", "foot first", "second head",
        "hidden", "hidden span",
    ],
)  # fmt: skip
def test_rows_of_a_page_stay_in_their_places(documents_of, rows, table):
    """Names of groups, cells that read alike and rows of names are no header; a hidden row counts for spans."""
    (page,) = documents_of("t.html", f"<table>{rows}</table>")
    assert page.page_content == _table(table)


_INNER = "<table><tr><td>By road<td>800</tr><tr><td>By sea<td>1,500</tr></table>"


def test_a_table_within_a_cell_is_a_line_of_it(documents_of):
    """The table around it keeps its rows; a table that only lays out a page is none."""
    outer = f"<table><tr><td>Item<td>Details</tr><tr><td>Freight<td>{_INNER}</tr><tr><td>Duty<td>none</tr></table>"
    (page,) = documents_of("data.html", outer)
    rows = [("Item", "Details"), ("Freight", "By road 800; By sea 1,500"), ("Duty", "none")]
    assert page.page_content == make.table(*rows)
    spans = "<tr><td rowspan=2>Site<td colspan=2>Levels</tr><tr><td>May<td>June</tr>"
    (page,) = documents_of("spans.html", f"<table>{spans}<tr><td>North<td>12<td>{_INNER}</tr></table>")
    rows = [("Site", "Levels May", "Levels June"), ("North", "12", "By road 800; By sea 1,500")]
    assert page.page_content == make.table(*rows)
    (page,) = documents_of("layout.html", f"<table><tr><td>Menu<td>{_INNER}</tr></table>")
    assert page.page_content == "Menu\n\n" + make.table(("By road", "800"), ("By sea", "1,500"))
    (page,) = documents_of("letter.html", f"<table><tr><td>{_INNER}</tr><tr><td>Yours</tr></table>")
    assert page.page_content.endswith("\n\nYours")


def test_formulas_without_a_value_are_noted(documents_of):
    """A program that is not Excel may write none; the formula is all that there is."""
    book = make.xlsx({"S": [["Item", "Sum"], ["A", "=B3+1"], ["B", '=IF(A3="B","",1)']]})
    # Excel's mark of a text, which is empty here
    book = make.edited(book, lambda name, data: data.replace(b'<c r="B3">', b'<c r="B3" t="str">'))
    with use_notes() as notes:
        (document,) = documents_of("a.xlsx", book)
    assert document.page_content.endswith("| A | =B3+1 |\n| B |  |")
    assert notes.texts == ["sheet S: 1 formulas have no computed value and are read as they are written"]


def test_rows_of_a_sheet_keep_their_numbers_below_titles(tmp_path, reader):
    """``row_start`` and ``row_end`` are rows of the sheet, the titles only in the first group."""
    path = tmp_path / "long.xlsx"
    rows = [["Report"], _BLANK, ["Name", "Value"], *([f"name {n} " + "x" * 60, n] for n in range(40))]
    path.write_bytes(make.xlsx({"S": rows}))
    documents = reader.read(path)
    spans = [(document.metadata["row_start"], document.metadata["row_end"]) for document in documents]
    assert spans[0][0] == 4 and spans[-1][1] == 43 and len(documents) > 2
    assert [("Report" in document.page_content) for document in documents] == [
        True,
        *[False] * (len(documents) - 1),
    ]
    assert all("| Name | Value |" in document.page_content for document in documents)


@pytest.mark.parametrize(
    ("text", "titles", "table"),
    [
        ("sep=;\nArtikel;Preis, netto\nApfel;1,20\n", "", "Artikel|Preis, netto/Apfel|1,20"),
        ('"sep=\t"\r\nA\tB\r\n1,2\t3;4\r\n', "", "A|B/1,2|3;4"),
        ("Preis, netto;Rabatt\n1,20;Ulm\n", "", "Preis, netto|Rabatt/1,20|Ulm"),
        ("Preis, netto;Rabatt, netto\n1,20;0,30\n", "", "Preis, netto|Rabatt, netto/1,20|0,30"),
        ("a|b\n1,5|2,5\n", "", "a|b/1,5|2,5"),
        ("a,b\n1;2,3\n", "", "a|b/1;2|3"),
        ('"a", "b, c"\n"1", "2, 3"\n', "", "a|b, c/1|2, 3"),
        ("Towns\nof 2026\n\nCity,Size\nUlm,5\nBern,9\n", "Towns\nof 2026", "City|Size/Ulm|5/Bern|9"),
        ("时间,2026,\n,,\n站点,城市,海拔\n甲,北京,43\n", "时间, 2026", "站点|城市|海拔/甲|北京|43"),
        ("A, b, c, d\nCity,Age,Size\nUlm,1,5\nLinz,2,9\n", "A, b, c, d", "City|Age|Size/Ulm|1|5/Linz|2|9"),
        ("销售报表,2026\n城市,数量\n北京,10\n上海,20\n", "销售报表, 2026", "城市|数量/北京|10/上海|20"),
        ("汇总,,\n华东,,4月2日\n部门,人数,金额\n销售,12,864\n", "汇总\n华东, 4月2日", "部门|人数|金额/销售|12|864"),
        ("Item,2024,2025\nA,1,2\nB,3,4\n", "", "Item|2024|2025/A|1|2/B|3|4"),
        ("id,name,note\n1,x\n2,y,z\n", "", "id|name|note/1|x|/2|y|z"),
        ("a,b\n", "", "a|b"),
        ("Item,Price,\nSand,3,ok\nGravel,5,ok\nLime,7,\n", "", "Item|Price|/Sand|3|ok/Gravel|5|ok/Lime|7|"),
        ("报价\n货物,供方,\n沙,甲,缺货\n石,乙,缺货\n", "报价", "货物|供方|/沙|甲|缺货/石|乙|缺货"),
        ("Sales,EU,\nItem,2024,Note\nA,1,x\nB,3,y\n", "Sales, EU", "Item|2024|Note/A|1|x/B|3|y"),
    ],
    ids=[
        "sep", "sep tab", "tie", "decimals", "bars", "commas", "blanks", "lines above", "padded", "commas above",
        "value above", "remarks above", "years", "short rows", "one row", "notes beside", "equal notes beside",
        "year below a title",
    ],
)  # fmt: skip
def test_csv_files_are_cut_at_their_separator_below_their_titles(documents_of, text, titles, table):
    """Excel's hint counts; else what cuts most lines alike, a comma last; lines above the header stand above it."""
    assert _csv(documents_of, text) == [(f"{titles}\n\n" if titles else "") + _table(table)]


def test_two_blank_lines_end_a_table_of_a_csv_file(documents_of):
    """The next one has a header of its own; titles stay above theirs."""
    text = "Towns\n\n\nCity,Size\nBern,5\n\nUlm,6\n,\n\nRivers\nRiver,Length\nAare,288\nInn,517\n"
    assert _csv(documents_of, text) == [
        "Towns\n\n" + make.table(("City", "Size"), ("Bern", "5"), ("Ulm", "6")),
        "Rivers\n\n" + make.table(("River", "Length"), ("Aare", "288"), ("Inn", "517")),
    ]


@pytest.mark.parametrize(
    "notes",
    [
        ["注：人口单位为万人，数据截至2025年底"],
        ["Note: rounded, see the yearbook, page 5", "", "Source: office,,"],
        ["Wholly estimated"],
    ],
)
def test_notes_below_a_csv_table_are_no_rows(documents_of, notes):
    """One blank line sets them apart, at the end of the file only; a sum and the name of a group are rows."""
    rows = "City,Area,Size\nBern,1,5\n\nAlps\n\nUlm,2,6\n\nSum,3,11\n"
    table, text = _csv(documents_of, rows + "\n" + "\n".join(notes))
    assert table.splitlines()[2:] == [
        "| Bern | 1 | 5 |",
        "| Alps |  |  |",
        "| Ulm | 2 | 6 |",
        "| Sum | 3 | 11 |",
    ]
    assert text == "\n".join(note.rstrip(",") for note in notes if note)
    sheet = [[cell or None for cell in line.split(",")] for line in rows.splitlines()]
    (part,) = documents_of("a.xlsx", make.xlsx({"S": sheet}))
    assert part.page_content.removeprefix("# S\n\n") == table


@pytest.mark.parametrize(
    ("head", "last"),
    [
        ("Task,Due\nBuy pumps,2026-03-01\nPaint wall,\n", "Call Ann,"),
        ("Item,Price\nPump,5\nSeal,6\n", ",11"),
        ("Price,Item\n5,Pump\n6,Seal\n", "11,\n\n\n\n"),
        ("Name\nAnn\nBob\n", "Cara\n\nDan"),
        ("Name\n" + "Ann\n" * 40, "Cara"),
        ("City,Size\nUlm,3\n", "\n".join(f"Note: {n}" for n in range(31))),
    ],
)
def test_rows_with_one_cell_below_a_blank_line_stay_rows(documents_of, head, last):
    """A sum, or a task that nobody has yet, is read below the names of its columns; so are very many notes."""
    pages = _csv(documents_of, f"{head}\n{last}\n")
    assert {page.splitlines()[0] for page in pages} == {f"| {head.splitlines()[0].replace(',', ' | ')} |"}


def test_a_whole_row_that_begins_like_a_note_is_a_row_of_a_sheet(documents_of):
    """Text with commas in it is in one cell there, so that more cells are a row."""
    rows = [["Item", "Spec"], ["Pump", "5 kW"], ["Seal", "6 mm"], [], ["Type: A", "big"]]
    (part,) = documents_of("a.xlsx", make.xlsx({"S": rows}))
    assert part.page_content.endswith("| Type: A | big |")


def test_a_note_below_names_of_columns_alone_is_text(documents_of):
    """There is no row between them."""
    assert _csv(documents_of, "A,B\n\nNote: none found\n") == [
        "| A | B |\n| --- | --- |",
        "Note: none found",
    ]


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        (["name,city", "Ann,Bern", "Bob,Ulm"], ["Cid,Linz"]),
        (["城市,人口", "北京,10"], ["上海,20", "广州,30"]),
        (["Item,2024,2025", "A,1,2"], ["Sum,,4"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_rows_below_two_blank_ones_keep_their_header(documents_of, upper, lower, ending):
    """As many columns, and no header of their own: numbers stay under their names, with the numbers of their rows."""
    rows = [[cell or None for cell in line.split(",")] for line in [*upper, "", "", *lower]]
    data = make.xlsx({"S": rows}) if ending == "xlsx" else "\n".join([*upper, "", "", *lower]).encode()
    (part,) = documents_of(f"a.{ending}", data)
    assert part.page_content.removeprefix("# S\n\n") == make.table(
        *(line.split(",") for line in [*upper, *lower])
    )
    last = len(upper) + len(lower) + (2 if ending == "xlsx" else -1)
    assert part.metadata["row_end"] == last


MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'


def test_text_boxes_of_a_sheet_are_read_and_chart_sheets_noted(documents_of):
    """A box that is drawn on a sheet belongs to it."""
    import io

    import openpyxl
    from openpyxl.chart import BarChart

    book, out = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["a", "b"])
    book.active.add_chart(BarChart(), "D4")
    book.create_chartsheet("Plot").add_chart(BarChart())
    book.save(out)
    place = "<from><col>1</col><colOff>0</colOff><row>1</row><rowOff>0</rowOff></from><ext cx='1' cy='1'/>"
    body = "<a:bodyPr/><a:p><a:r><a:t>Without </a:t></a:r><a:r><a:t>tax</a:t></a:r></a:p>"
    shape = f"<sp><spPr/><txBody>{body}</txBody></sp>"
    shape = f"<mc:Choice>{shape}</mc:Choice><mc:Fallback>{shape}</mc:Fallback>"
    shape = f"<mc:AlternateContent {MC}>{shape}</mc:AlternateContent>"
    box = f"<oneCellAnchor>{place}{shape}<clientData/></oneCellAnchor></wsDr>"
    box = box.replace("<txBody>", '<txBody xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">')
    changed = {"xl/drawings/drawing1.xml": (b"</wsDr>", box.encode())}
    data = make.edited(out.getvalue(), lambda name, part: part.replace(*changed.get(name, (b"\0\0", b""))))
    with use_notes() as notes:
        _, text = documents_of("a.xlsx", data)
    assert (text.page_content, text.metadata["sheet"]) == ("Without tax", "Sheet")
    assert notes.texts == ["sheet Plot left out: it is a chart, whose figures are in the cells of others"]


def test_a_header_is_looked_for_only_where_a_title_can_be():
    """Tables of two rows have none above them; what fills only the first columns is none."""
    assert find_header([["x", "x"], ["1", "2"]]) == 0
    assert (
        find_header([["Name", "X", ""], ["Date", "Y", ""], ["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6"]])
        == 2
    )


def test_values_are_told_from_names():
    """Numbers with signs and units, dates and times are values."""
    values = ["12", "-3.5%", "€1,200.00", "12 kg", "2026-03-01", "14:30", "(3)", "3月1日", "1.2M"]
    assert all(map(is_value, values)) and not any(map(is_value, ["Q1", "City", "第1条", "", "A 1", "一月"]))
