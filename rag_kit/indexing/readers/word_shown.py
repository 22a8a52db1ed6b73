"""Write into a Word document what mammoth would leave out, and take out what it would fail over or nobody sees."""

from __future__ import annotations

import re
from collections.abc import Container
from copy import deepcopy
from functools import cache
from itertools import accumulate, zip_longest
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.numbers import OMML, equation_text, list_number, whole_number
from rag_kit.indexing.readers.package import MC, A, R
from rag_kit.indexing.readers.parts import LEFT_OUT
from rag_kit.indexing.readers.word_lists import Styles, W, value_of

VML = "{urn:schemas-microsoft-com:vml}"
_KNOWN_AS = {  # elements that mammoth does not know -> elements that it does, and that look alike
    **{f"{W}cr": f"{W}br", f"{W}ptab": f"{W}tab", f"{W}dstrike": f"{W}strike"},
    f"{VML}oval": f"{VML}rect",
}
_LETTERS = ("vanish", "strike", "dstrike", "vertAlign", "position")  # properties of runs that a style may set
_RAISED_BY = 4  # half points; less moves a line, not a power
_FEW_LETTERS = 4
_EQ = re.compile(r"\s*EQ\s+(.+)", re.I | re.S)
_CIRCLED = re.compile(r"\\o\s*(?:\\a[clr])?\s*\(\s*[○◯〇]\s*[,，;；]\s*(\d{1,3})\s*\)", re.I)  # \o\ac(○,3)
_FRACTION = re.compile(r"\\f\s*\(([^(),，;；]+)[,，;；]([^()]+)\)", re.I)  # \f(3,4)
# what Pinyin stands above
_BELOW = re.compile(r"\\o\\ad\s*\(\\s\\up\s*\d+\([^()]*\)[,，;；]([^()]*)\)", re.I)
_SWITCH = re.compile(r'\\\*\s*(?:"[^"]*"|\w+)|\\[*a-z]+\d*', re.I)
_OFF = ("0", "false", "off")  # values by which a mark says no


def prepare(root: Any, styles: Styles) -> None:
    """Change the XML of a part so that mammoth reads all that Word shows, and nothing that is hidden."""
    _apply_styles(root, styles)
    _fill_late_rows(root)
    _drop_hidden(root)
    _unwrap(root)
    _show_boxes(root)
    # equations become runs of text; first those on lines of their own, which contain others
    for equation in [*root.iter(f"{OMML}oMathPara"), *root.iter(f"{OMML}oMath")]:
        run = run_of(equation, f" {equation_text(equation)} ")
        run.tail = equation.tail
        equation.getparent().replace(equation, run)
    _write_fields(root)


def _drop_hidden(document: Any) -> None:
    """Empty the runs of hidden text and remove hidden and deleted rows of tables; write notes on what is hidden."""
    for table in list(document.iter(f"{W}tbl")):
        rows = [row for row in table.iter(f"{W}tr") if next(row.iterancestors(f"{W}tbl")) is table]
        for row, next_row in zip_longest(rows, rows[1:]):  # there is none after the last
            hidden, deleted = (row.find(f"{W}trPr/{W}{name}") for name in ("hidden", "del"))
            is_hidden = hidden is not None and value_of(hidden) not in _OFF
            if is_hidden:
                write_note(f"a row of a table{LEFT_OUT}it is hidden")
            if is_hidden or deleted is not None:
                if next_row is not None:
                    _hand_on_merges(row, next_row)
                row.getparent().remove(row)
    marks = [(run, run.find(f"{W}rPr/{W}vanish")) for run in document.iter(f"{W}r")]
    runs = [run for run, mark in marks if mark is not None and value_of(mark) not in _OFF]
    for run in runs:
        run.clear()
    if runs:
        write_note(f"hidden text{LEFT_OUT}{len(runs)} runs")
    if deleted_count := len(list(document.iter(f"{W}delText"))):
        write_note(f"text that tracked changes delete{LEFT_OUT}{deleted_count} runs")


def _hand_on_merges(removed_row: Any, next_row: Any) -> None:
    """Let merged cells that begin in a row that is taken out begin in the row after it, with their texts."""
    next_cells = _cells_by_column(next_row)
    for column, cell in _cells_by_column(removed_row).items():
        next_cell = next_cells.get(column, cell)
        merge, next_merge = (each.find(f"{W}tcPr/{W}vMerge") for each in (cell, next_cell))
        if value_of(merge) == "restart" and next_merge is not None and value_of(next_merge) != "restart":
            next_merge.set(f"{W}val", "restart")
            next_cell[:] = [next_cell.find(f"{W}tcPr"), *(node for node in cell if node.tag != f"{W}tcPr")]


def _cells_by_column(row: Any) -> dict[int, Any]:
    """Return the cells of a row by the column of the table in which they begin."""
    cells = [cell for cell in row.iter(f"{W}tc") if next(cell.iterancestors(f"{W}tr")) is row]
    widths = (whole_number(value_of(cell.find(f"{W}tcPr/{W}gridSpan")), 1) for cell in cells)
    return dict(zip(accumulate(widths, initial=0), cells, strict=False))


def _show_boxes(document: Any) -> None:
    """Put the texts of boxes, and the chosen entries of drop-down lists, where mammoth reads them."""
    for box in list(document.iter(f"{W}txbxContent")):
        drawing = next(box.iterancestors(f"{W}drawing"), None)
        if drawing is None:
            continue
        # Word may write a box twice: as a drawing, and as a fallback for older programs, which mammoth reads
        versions = next(drawing.iterancestors(f"{MC}AlternateContent"), None)
        fallback = None if versions is None else versions.find(f"{MC}Fallback//{W}txbxContent")
        if fallback is None:
            outer = drawing if versions is None else versions
            outer.addprevious(outer.makeelement(f"{W}pict"))
            outer.getprevious().append(box)
    for choices in document.iter(f"{W}ddList"):
        chosen = value_of(choices.find(f"{W}result")) or value_of(choices.find(f"{W}default"))
        entries = choices.findall(f"{W}listEntry")[whole_number(chosen, 0) :]  # the first is the chosen one
        field = next(choices.iterancestors(f"{W}r"), None)
        if entries and field is not None:
            field.addprevious(run_of(field, value_of(entries[0]) or ""))


def drop_broken_references(root: Any, targets: Container[str], footnotes: Container[tuple[str, str]]) -> None:
    """Remove references to links, pictures, footnotes and endnotes that the file lacks; mammoth would fail over them.

    ``targets`` has the ids of the file's links and pictures, ``footnotes`` the kind (``"footnote"``, ``"endnote"``)
    and id of each of its notes. The report on the file says which notes are lacking.
    """
    for node in root.iter(f"{W}hyperlink", f"{A}hlinkClick", f"{A}blip", f"{VML}imagedata"):
        for name in (f"{R}id", f"{R}embed", f"{R}link"):  # attributes that hold the id of a link or picture
            if node.get(name) not in targets:
                node.attrib.pop(name, None)
    for kind in ("footnote", "endnote"):
        for node in list(root.iter(f"{W}{kind}Reference")):
            footnote_id = node.get(f"{W}id") or ""
            if (kind, footnote_id) not in footnotes:
                node.getparent().remove(node)
                write_note(f"{kind} {footnote_id}{LEFT_OUT}it is not in the file")


def _unwrap(document: Any) -> None:
    """Replace elements that mammoth leaves out (fields, directed text, ruby, ovals) by their content or like ones."""
    for node in list(document.iter(f"{W}fldSimple", f"{W}dir", f"{W}bdo", f"{W}rubyBase")):
        # letters of ruby are inside a run, which their own runs replace
        outer = next(node.iterancestors(f"{W}r"), node) if node.tag == f"{W}rubyBase" else node
        for child in list(node):
            outer.addprevious(child)
        outer.getparent().remove(outer)
    for node in document.iter(f"{W}br"):
        node.attrib.pop(f"{W}type", None)  # a page break, which mammoth leaves out, becomes a line break
    for name, known in _KNOWN_AS.items():
        for node in document.iter(name):
            node.tag = known
    for run in document.iter(f"{W}r"):
        position = run.find(f"{W}rPr/{W}position")
        height = whole_number(value_of(position), 0)
        if abs(height) >= _RAISED_BY and len("".join(run.itertext())) <= _FEW_LETTERS:
            position.tag = f"{W}vertAlign"
            position.set(f"{W}val", "superscript" if height > 0 else "subscript")


def _write_fields(document: Any) -> None:
    """Write what EQ fields (circled numbers, fractions) show before them; empty texts inside the code of a field."""
    # where texts go in each open field: into its code or, where its result has begun, into the code around it
    codes: list[list[Any]] = [[]]
    for node in list(document.iter(f"{W}instrText", f"{W}t", f"{W}fldChar")):
        kind = node.get(f"{W}fldCharType")
        if kind == "begin":
            codes.append([])
        elif kind is None:
            codes[-1].append(node)
        elif len(codes) > 1 and (pieces := codes.pop()) is not codes[-1]:
            if kind == "separate":
                codes.append(codes[-1])
            for text_node in (piece for piece in pieces if piece.tag == f"{W}t"):
                text_node.text = ""
            code = _EQ.match("".join(piece.text or "" for piece in pieces))
            if code and kind == "end" and (run := next(pieces[0].iterancestors(f"{W}r"), None)) is not None:
                text = _CIRCLED.sub(lambda sign: list_number(int(sign[1]), "decimalEnclosedCircle"), code[1])
                text = _FRACTION.sub(r"\1/\2", _BELOW.sub(r"\1", text))
                run.addprevious(run_of(run, _SWITCH.sub("", text).strip()))


def run_of(near: Any, text: str) -> Any:
    """Make a run of text for the document that an element is in; it is not inserted."""
    run = near.makeelement(f"{W}r")
    run.append(near.makeelement(f"{W}t"))
    run[0].text = text
    return run


def _apply_styles(root: Any, styles: Styles) -> None:
    """Copy properties of letters (hidden, struck, raised) from styles into their runs: mammoth looks there alone."""

    @cache
    def styled_properties(run_style: str | None, paragraph_style: str | None) -> list[Any]:
        nearest_first = [*(styles.chain(run_style) if run_style else ()), *styles.chain(paragraph_style)]
        by_name = ([style.find(f"{W}rPr/{W}{name}") for style in nearest_first] for name in _LETTERS)
        # each property as the nearest style has it, if any does
        nearest = (next((node for node in nodes if node is not None), None) for nodes in by_name)
        return [node for node in nearest if node is not None]

    @cache  # a paragraph may have very many runs, among which its properties are looked for
    def style_of(paragraph: Any) -> str | None:
        return None if paragraph is None else value_of(paragraph.find(f"{W}pPr/{W}pStyle"))

    for run in root.iter(f"{W}r"):
        paragraph_style = style_of(next(run.iterancestors(f"{W}p"), None))
        properties = run.find(f"{W}rPr")
        run_style = None if properties is None else properties.find(f"{W}rStyle")
        for node in styled_properties(value_of(run_style), paragraph_style):
            if properties is None:
                properties = run.makeelement(f"{W}rPr")
                run.insert(0, properties)
            if properties.find(node.tag) is None:
                properties.append(deepcopy(node))


def _fill_late_rows(document: Any) -> None:
    """Insert empty cells at the beginning of rows that start further to the right than their table."""
    for skipped in list(document.iter(f"{W}gridBefore")):
        properties, count = skipped.getparent(), value_of(skipped) or ""
        if properties.tag == f"{W}trPr" and re.fullmatch(r"\d{1,2}", count):
            for _ in range(int(count)):
                cell = properties.makeelement(f"{W}tc")
                cell.append(cell.makeelement(f"{W}p"))
                properties.addnext(cell)
