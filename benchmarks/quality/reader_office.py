"""A docx, a pptx, an xlsx and an html page with known text."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from html import escape

from reader_known import Block, KnownFile, heading, table, text

Made = tuple[bytes, KnownFile]

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml."


def _run(words: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{escape(words)}</w:t></w:r>'


def _paragraph(words: str, style: str = "", more: str = "") -> str:
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{properties}{more}</w:pPr>{_run(words)}</w:p>"


def _symbols(words: str) -> str:
    return f"<m:r><m:t>{escape(words)}</m:t></m:r>"


def _fraction(above: str, below: str) -> str:
    return f"<m:f><m:num>{above}</m:num><m:den>{below}</m:den></m:f>"


def docx() -> Made:
    """Headings, a numbered list with a second level, two formulas with fractions and powers, a table."""
    intro = "The drag of a hull is estimated from its speed and its wetted surface."
    items = [
        ("Measure the draught at the bow and at the stern.", 0),
        ("Use the mean of both.", 1),
        ("Read the log.", 0),
    ]
    rows = [["Hull", "Surface (m2)", "Drag (kN)"], ["Fulmar", "38.2", "1.9"], ["Petrel", "51.7", "2.6"]]
    power = f"<m:sSup><m:e>{_symbols('v')}</m:e><m:sup>{_symbols('2')}</m:sup></m:sSup>"
    drag = _symbols("D=") + _fraction(_symbols("c") + power, _symbols("2g"))
    mean = _symbols("m=") + _fraction(_symbols("a+b"), _symbols("2"))
    listed = "".join(
        _paragraph(words, "", f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>')
        for words, level in items
    )
    cells = "".join(
        "<w:tr>" + "".join(f"<w:tc>{_paragraph(cell)}</w:tc>" for cell in row) + "</w:tr>" for row in rows
    )
    body = (
        _paragraph("Drag of small hulls", "Heading1")
        + _paragraph(intro)
        + f"<w:p><m:oMathPara><m:oMath>{drag}</m:oMath></m:oMathPara></w:p>"
        + _paragraph("Draught", "Heading2")
        + listed
        + f"<w:p>{_run('The mean is ')}<m:oMath>{mean}</m:oMath>{_run(' in metres.')}</w:p>"
        + _paragraph("Results", "Heading2")
        + f"<w:tbl><w:tblPr/><w:tblGrid/>{cells}</w:tbl>"
    )
    levels = "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%{n + 1}."/></w:lvl>'
        for n in range(2)
    )
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/></w:style>'
        for n in (1, 2)
    )
    relation = '<Relationship Id="r{0}" Type="' + _R + '/{1}" Target="{2}"/>'
    relations = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
    kinds = {"document": "document.main+xml", "styles": "styles+xml", "numbering": "numbering+xml"}
    entries = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        + "".join(
            f'<Override PartName="/word/{part}.xml" ContentType="{_TYPES}{kind}"/>'
            for part, kind in kinds.items()
        )
        + "</Types>",
        "_rels/.rels": relations.format(relation.format(1, "officeDocument", "word/document.xml")),
        "word/_rels/document.xml.rels": relations.format(
            relation.format(1, "styles", "styles.xml") + relation.format(2, "numbering", "numbering.xml")
        ),
        "word/styles.xml": f'<w:styles xmlns:w="{_W}">{styles}</w:styles>',
        "word/numbering.xml": f'<w:numbering xmlns:w="{_W}"><w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>',
        "word/document.xml": f'<w:document xmlns:w="{_W}" xmlns:m="{_M}"><w:body>{body}</w:body></w:document>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + data)
    blocks = (
        heading("Drag of small hulls"),
        text(intro),
        text("D=(cv^2)/(2g)", "formula"),
        heading("Draught", 2),
        *(text(words, "item", level) for words, level in items),
        text("The mean is m=(a+b)/2 in metres.", "formula"),
        heading("Results", 2),
        table(rows),
    )
    return out.getvalue(), KnownFile("report.docx", blocks)


def pptx() -> Made:
    """A slide of two columns, the right one drawn first; a slide with a table; notes on both."""
    from pptx import Presentation
    from pptx.util import Inches

    left = ["Moorings are checked in April.", "Divers look at every chain."]
    right = ["Repairs are finished in May.", "New chains are painted white."]
    notes = ["Mention that the divers need calm water.", "The figures are those of last year."]
    rows = [["Basin", "Moorings", "Replaced"], ["Inner", "42", "3"], ["Outer", "67", "11"]]
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Work on the moorings"
    for column, lines in ((1, right), (0, left)):
        frame = slide.shapes.add_textbox(
            Inches(0.5 + 4.6 * column), Inches(2), Inches(4.2), Inches(3)
        ).text_frame
        frame.text = lines[0]
        frame.add_paragraph().text = lines[1]
    slide.notes_slide.notes_text_frame.text = notes[0]
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Replaced chains"
    grid = slide.shapes.add_table(3, 3, Inches(1), Inches(2), Inches(8), Inches(2)).table
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            grid.cell(row, column).text = cell
    slide.notes_slide.notes_text_frame.text = notes[1]
    out = io.BytesIO()
    deck.save(out)
    blocks = (
        heading("Work on the moorings"),
        *map(text, [*left, *right]),
        text(notes[0], "notes"),
        heading("Replaced chains"),
        table(rows),
        text(notes[1], "notes"),
    )
    return out.getvalue(), KnownFile("slides.pptx", blocks)


def xlsx() -> Made:
    """A sheet with two tables, one with merged cells, some empty rows between them; a second sheet."""
    from openpyxl import Workbook

    catch = [["Season", "Port", "Tonnes"], ["Spring", "Portree", "118"], ["Spring", "Mallaig", "240"]]
    catch += [["Autumn", "Portree", "95"], ["Autumn", "Mallaig", "207"]]
    prices = [["Fish", "Price"], ["Cod", "6.45"], ["Haddock", "5.15"]]
    crew = [["Boat", "Crew"], ["Fulmar", "4"], ["Petrel", "7"]]

    def value(cell: str) -> object:
        return (
            float(cell)
            if cell.replace(".", "").isdigit() and "." in cell
            else int(cell)
            if cell.isdigit()
            else cell
        )

    book = Workbook()
    sheet = book.active
    sheet.title = "Catch"
    for row, cells in enumerate(catch, 1):
        for column, cell in enumerate(cells, 1):
            sheet.cell(row, column, value(cell))
    sheet.merge_cells("A2:A3")
    sheet.merge_cells("A4:A5")
    for row, cells in enumerate(prices, 9):
        for column, cell in enumerate(cells, 1):
            sheet.cell(row, column, value(cell))
    second = book.create_sheet("Crew")
    for cells in crew:
        second.append([value(cell) for cell in cells])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue(), KnownFile(
        "catch.xlsx", (heading("Catch"), table(catch), table(prices), heading("Crew"), table(crew))
    )


def html() -> Made:
    """An article among a menu, a cookie banner, a list of related pages and a footer."""
    intro = "The lighthouse on the north point was lit for the first time in the winter of 1842."
    later = "Its lamp burned whale oil, later paraffin, and since 1968 it has been electric."
    rows = [["Year", "Fuel", "Range"], ["1842", "Whale oil", "14 miles"], ["1968", "Electricity", "24 miles"]]
    items = ["Open from May to September.", "The tower has 151 steps."]
    furniture = (
        "Home Products Contact Sign in",
        "We use cookies to improve your experience.",
        "Accept all",
        "You may also like: ten harbours for a rainy day",
        "Copyright 2026 North Point Tourism. All rights reserved.",
    )
    menu, cookies, accept, related, footer = furniture
    grid = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
    header = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    page = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>The north light</title>
<style>.a {{ color: red }}</style><script>var tracking = "on";</script></head><body>
<header><nav><ul>{"".join(f'<li><a href="#">{word}</a></li>' for word in menu.replace("Sign in", "Sign_in").split())}
</ul></nav></header>
<div id="cookie-banner" class="cookie-consent" role="dialog"><p>{cookies}</p><button>{accept}</button></div>
<main><article><h1>The north light</h1><p>{intro}</p><h2>The lamp</h2><p>{later}</p>
<table><thead><tr>{header}</tr></thead><tbody>{grid}</tbody></table>
<h2>Visits</h2><ul>{"".join(f"<li>{item}</li>" for item in items)}</ul></article></main>
<aside><p>{related}</p></aside><footer><p>{footer}</p></footer></body></html>""".replace("Sign_in", "Sign in")
    blocks: tuple[Block, ...] = (
        heading("The north light"),
        text(intro),
        heading("The lamp", 2),
        text(later),
        table(rows),
        heading("Visits", 2),
        *(text(item, "item") for item in items),
    )
    return page.encode(), KnownFile("lighthouse.html", blocks, furniture)


MAKERS: list[Callable[[], Made]] = [docx, pptx, xlsx, html]
