"""Write into a Word document what mammoth would leave out, and take out what it would fail over or nobody sees."""

from __future__ import annotations

import re
from collections.abc import Container
from copy import deepcopy
from functools import cache
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.numbers import OMML, equation_text, whole_number
from rag_kit.indexing.readers.package import MC, A, R
from rag_kit.indexing.readers.parts import LEFT_OUT
from rag_kit.indexing.readers.word_lists import Styles, W, value_of

VML = "{urn:schemas-microsoft-com:vml}"
_KNOWN_AS = {  # elements that mammoth does not know, and those that it writes in the same way
    **{f"{W}cr": f"{W}br", f"{W}ptab": f"{W}tab", f"{W}dstrike": f"{W}strike"},
    f"{VML}oval": f"{VML}rect",
}
_LETTERS = ("vanish", "strike", "dstrike", "vertAlign", "position")  # what a style may say of letters
_RAISED_BY = 4  # half points; less moves a line, not a power
_FEW_LETTERS = 4
_OFF = ("0", "false", "off")  # values by which a mark says no


def prepare(root: Any, styles: Styles) -> None:
    """Write what is shown of a part as mammoth knows it, and nothing else."""
    _apply_styles(root, styles)
    _drop_hidden(root)
    _unwrap(root)
    _show_boxes(root)
    _write_equations(root)
    _fill_late_rows(root)


def _drop_hidden(document: Any) -> None:
    """Empty the runs of hidden text, and take out hidden rows; a note says how many."""
    for mark in list(document.iterfind(f".//{W}tr/{W}trPr/{W}hidden")):
        if value_of(mark) in _OFF:
            continue
        row = next(mark.iterancestors(f"{W}tr"))
        row.getparent().remove(row)
        write_note(f"a row of a table{LEFT_OUT}it is hidden")
    hidden = [mark for mark in document.iter(f"{W}vanish") if value_of(mark) not in _OFF]
    runs = {run for mark in hidden for run in mark.iterancestors(f"{W}r")}
    for run in runs:
        run.clear()
    if runs:
        write_note(f"hidden text{LEFT_OUT}{len(runs)} runs")


def _show_boxes(document: Any) -> None:
    """Put the texts of boxes and the choices of lists where mammoth reads them."""
    for box in list(document.iter(f"{W}txbxContent")):
        drawing = next(box.iterancestors(f"{W}drawing"), None)
        if drawing is None:
            continue
        both = next(drawing.iterancestors(f"{MC}AlternateContent"), None)
        older = None if both is None else both.find(f"{MC}Fallback//{W}txbxContent")
        if older is None:  # else the box is written a second time for older programs, which is read
            place = drawing if both is None else both
            place.addprevious(place.makeelement(f"{W}pict"))
            place.getprevious().append(box)
    for choices in document.iter(f"{W}ddList"):
        chosen = value_of(choices.find(f"{W}result")) or value_of(choices.find(f"{W}default"))
        entries = choices.findall(f"{W}listEntry")[whole_number(chosen, 0) :]
        field = next(choices.iterancestors(f"{W}r"), None)
        if entries and field is not None:
            field.addprevious(run_of(field, value_of(entries[0]) or ""))


def drop_broken_references(root: Any, relations: Container[str], notes: Container[tuple[str, str]]) -> None:
    """Take out what refers to a link, a picture or a note that is not there; a note of the reading names the latter."""
    for node in root.iter(f"{W}hyperlink", f"{A}hlinkClick", f"{A}blip", f"{VML}imagedata"):
        for name in (f"{R}id", f"{R}embed", f"{R}link"):
            if node.get(name) not in relations:
                node.attrib.pop(name, None)
    for kind in ("footnote", "endnote"):
        for node in list(root.iter(f"{W}{kind}Reference")):
            number = node.get(f"{W}id") or ""
            if (kind, number) not in notes:
                node.getparent().remove(node)
                write_note(f"{kind} {number}{LEFT_OUT}it is not in the file")


def _unwrap(document: Any) -> None:
    """Replace elements that mammoth leaves out by their content: fields, directed text, annotated letters, ovals."""
    for node in list(document.iter(f"{W}fldSimple", f"{W}dir", f"{W}bdo", f"{W}rubyBase")):
        # letters with a reading are in a run, which they replace
        outer = next(node.iterancestors(f"{W}r"), node) if node.tag == f"{W}rubyBase" else node
        for child in list(node):
            outer.addprevious(child)
        outer.getparent().remove(outer)
    for node in document.iter(f"{W}br"):
        node.attrib.pop(f"{W}type", None)  # the end of a page, which would be left out between two words
    for name, known in _KNOWN_AS.items():
        for node in document.iter(name):
            node.tag = known
    for position in document.iter(f"{W}position"):
        height = whole_number(value_of(position), 0)
        run = next(position.iterancestors(f"{W}r"), None)
        if run is not None and abs(height) >= _RAISED_BY and len("".join(run.itertext())) <= _FEW_LETTERS:
            position.tag = f"{W}vertAlign"
            position.set(f"{W}val", "superscript" if height > 0 else "subscript")


def _write_equations(document: Any) -> None:
    """Replace the equations of a document by runs of text."""
    # those on a line of their own first, with all that is in them
    for equation in [*document.iter(f"{OMML}oMathPara"), *document.iter(f"{OMML}oMath")]:
        run = run_of(equation, f" {equation_text(equation)} ")
        run.tail = equation.tail
        equation.getparent().replace(equation, run)


def run_of(near: Any, text: str) -> Any:
    """Make a run of text for the document of an element."""
    run = near.makeelement(f"{W}r")
    run.append(near.makeelement(f"{W}t"))
    run[0].text = text
    return run


def _apply_styles(root: Any, styles: Styles) -> None:
    """Write into the runs of a part what their styles say of letters that are hidden, struck, raised or lowered."""

    @cache
    def letters(of_run: str | None, of_paragraph: str | None) -> list[Any]:
        chain = [*(styles.chain(of_run) if of_run else ()), *styles.chain(of_paragraph)]
        found = ([style.find(f"{W}rPr/{W}{name}") for style in chain] for name in _LETTERS)
        return [nodes[0] for each in found if (nodes := [node for node in each if node is not None])]

    for run in root.iter(f"{W}r"):
        paragraph = next(run.iterancestors(f"{W}p"), None)
        of_paragraph = None if paragraph is None else paragraph.find(f"{W}pPr/{W}pStyle")
        properties = run.find(f"{W}rPr")
        of_run = None if properties is None else properties.find(f"{W}rStyle")
        for node in letters(value_of(of_run), value_of(of_paragraph)):
            if properties is None:
                properties = run.makeelement(f"{W}rPr")
                run.insert(0, properties)
            if properties.find(node.tag) is None:
                properties.append(deepcopy(node))


def _fill_late_rows(document: Any) -> None:
    """Insert empty cells at the beginning of rows that begin further to the right than their table."""
    for skipped in list(document.iter(f"{W}gridBefore")):
        properties, count = skipped.getparent(), value_of(skipped) or ""
        if properties.tag == f"{W}trPr" and re.fullmatch(r"\d{1,2}", count):
            for _ in range(int(count)):
                cell = properties.makeelement(f"{W}tc")
                cell.append(cell.makeelement(f"{W}p"))
                properties.addnext(cell)
