"""HTML to markdown: headings, lists, tables with merged cells, code; scripts and hidden parts left out.

Nothing is fetched: links and images are attributes that are dropped or printed, never opened.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, takewhile
from typing import Any, NamedTuple

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.numbers import equation_text, list_number, lowered, raised, struck, whole_number
from rag_kit.indexing.readers.parts import LEFT_OUT, Unreadable, read_table
from rag_kit.indexing.readers.tables import fill_spans, join_header, join_rows, markdown_table

_SKIP, _BLOCK = (frozenset(names.split()) for names in read_table("html_elements.txt").values())
_CODE = ("code", "kbd", "samp", "tt")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.I)
_STRUCK = re.compile(r"text-decoration(?:-line)?\s*:[^;]*line-through", re.I)
_SHIFTED = re.compile(r"vertical-align\s*:\s*(super|sub)\b", re.I)
_STYLE = re.compile(
    r"\b(display|visibility|vertical-align|list-style|text-decoration)(?:-type|-line)?\s*:\s*([^;!]{1,99})",
    re.I,
)
# of a style sheet: remarks, and rules for print or for some screens
_NOT_FOLLOWED = re.compile(r"<!--|/\*.*?(?:\*/|\Z)|@[^@{};]*(?:;|\{(?:[^{}]*\{[^{}]*\})*[^{}]*\})", re.S)
_LIST_STYLE = re.compile(r"list-style(?:-type)?\s*:\s*([\w-]+)", re.I)
# style of numbers -> its names in attributes and in style sheets
_LIST_STYLES = {style: names.split() for style, names in read_table("list_styles.txt").items()}
_MAX_DEPTH = 500  # elements within each other, as calls are here; the parser has a greatest depth, too
_MAX_NAME = 60  # characters of a name in a table that has tables in its cells
_BEFORE = 8  # pieces of a line that are looked at to read a superscript behind them
# where a block in a line begins or ends, which is written between form feeds
_LINE_END = re.compile(r"[\n\x0b]?\f+(?:\n\f+)?\n?")
_SPACES = re.compile(r"[ \t\n\r\f\v\u00a0]+")


class _Row(NamedTuple):
    """A row of a table."""

    element: Any
    cells: list[tuple[str, int, int]]  # text, and how many columns and rows it covers
    texts: list[str]  # of all columns: that of a merged cell is repeated


def parse_html(text: str) -> Any:
    """Parse an HTML text, however untidy; raises `Unreadable` if it has no element, or elements nested too deeply."""
    from lxml import etree, html

    data = text.encode("utf-8", "replace")
    options = {"no_network": True, "remove_comments": True, "remove_pis": True, "huge_tree": True}
    try:
        tree = html.document_fromstring(data, parser=html.HTMLParser(encoding="utf-8", **options))
    except (etree.ParserError, etree.XMLSyntaxError, AssertionError) as error:
        reason = f"no HTML element could be found ({error})"
        raise Unreadable(reason, "Check that the file is HTML") from error
    if tree.xpath(f"boolean({'/*' * (_MAX_DEPTH + 1)})"):  # /*/*/*...: some element is so deep
        reason = f"its elements are nested over {_MAX_DEPTH} deep (are end tags missing?)"
        raise Unreadable(reason, "Open it in a browser and save its text")
    # the picture of a formula that KaTeX and MathJax draw beside its MathML
    formulas = "(//math | //*[count(node()) = 1]/math/..)[not(@aria-hidden)]"
    for drawn in tree.xpath(f"{formulas}/../*[@aria-hidden='true' and not(self::div)]"):
        drawn.drop_tree()
    apply_style_sheet(tree, "\n".join(tree.xpath("//style[not(@media)]/text()")))
    return tree


def apply_style_sheet(tree: Any, css: str) -> None:
    """Write into the elements of a page what its style sheet says of their lists, their height and being hidden.

    Rules for a tag, a class or an id are followed, but not if they hide most of the page, or a click may show it.
    """
    scripts = tree.xpath("//script[@src or contains(., 'class') or contains(., 'style')] | //@onclick")
    if scripts or ":checked" in css or ":target" in css:
        css = css.replace("display", "").replace("visibility", "")
    if "counter" in css:  # then other rules write the numbers of lists
        css = css.replace("list-style", "")
    rules: dict[str, dict[str, str]] = defaultdict(dict)  # properties by tag, .class and #id
    for rule in _NOT_FOLLOWED.sub("", css).split("}"):
        selectors, _, declarations = rule.rpartition("{")
        properties = _properties(declarations)
        for selector in selectors.split(",") if properties else ():
            rules[selector.strip()] |= properties
    hidden: list[Any] = []
    inside: set[Any] = set()  # hidden elements, and those within them
    for node in tree.iter("*") if rules else ():
        names = [f".{name}" for name in (node.get("class") or "").split()] + [f"#{node.get('id')}"]
        style: dict[str, str] = {}
        for name in (node.tag, *names, *(node.tag + name for name in names)):
            style |= rules.get(name, {})
        if style:
            style |= _properties(node.get("style") or "")  # its own come last, and win
            node.set("style", "; ".join(f"{name}: {value}" for name, value in style.items()))
            hidden += [node] * _is_skipped(node)
        if node.getparent() in inside or (hidden and node is hidden[-1]):
            inside.add(node)
    length = sum(map(len, tree.xpath("//text()[not(parent::script or parent::style)]"))) if hidden else 0
    outermost = (node for node in hidden if node.getparent() not in inside)
    if 2 * sum(len(text) for node in outermost for text in node.itertext()) > length:
        for node in hidden:
            node.set("style", _HIDDEN.sub("", node.get("style")))


def _properties(declarations: str) -> dict[str, str]:
    return {name.lower(): value for name, value in _STYLE.findall(declarations)}


def html_title(tree: Any) -> str:
    """Return a page's first ``title`` that has a text, else its first such ``h1``, else ""."""
    titles = map(_heading_text, [*tree.xpath("//title"), *tree.xpath("//h1")])
    return next(filter(None, titles), "")[:300]


def _heading_text(node: Any) -> str:
    return _tidy_lines(_inner_text(node)).replace("\n", " ")


def to_markdown(tree: Any) -> str:
    """Write an HTML tree as markdown, links as their text; a note says how many hidden elements have a text."""
    hidden = (node for node in tree.iter("*") if node.tag not in _SKIP and _is_skipped(node))
    if count := sum(any(map(str.strip, node.itertext())) for node in hidden):
        write_note(f"hidden text{LEFT_OUT}{count} elements")
    return "\n\n".join(_blocks_inside(tree))


def _blocks_inside(node: Any) -> Iterator[str]:
    """Yield the blocks of text inside an element; loose inline content between them becomes paragraphs."""
    loose: list[str] = [node.text or ""]  # inline content since the last block
    for child in node:
        if not _is_skipped(child):
            # an inline element around blocks, as in ``<a><div>``, counts as a block
            if child.tag in _BLOCK or any(inner.tag in _BLOCK for inner in child):
                yield from _paragraph_text(loose)
                yield from _blocks_of(child)
                loose = []
            else:
                loose.append(_inline_text(child, loose))
        loose.append(child.tail or "")
    yield from _paragraph_text(loose)


def _paragraph_text(pieces: list[str]) -> Iterator[str]:
    if text := _tidy_lines("".join(pieces)):
        yield "\\" + text if text.startswith("#") else text


def _tidy_lines(text: str) -> str:
    """Fold white space and drop empty lines and soft hyphens; `_inline_text` wrote a ``br`` as a vertical tab."""
    lines = (_SPACES.sub(" ", line).strip() for line in text.replace("\xad", "").split("\x0b"))
    return "\n".join(line for line in lines if line)


def _is_skipped(node: Any) -> bool:
    style = node.get("style")
    is_closed = node.tag == "dialog" and "open" not in node.attrib
    return is_closed or node.tag in _SKIP or "hidden" in node.attrib or bool(style and _HIDDEN.search(style))


def _blocks_of(node: Any) -> Iterator[str]:
    """Yield an element as markdown blocks: a heading, list, table, code, quotation, or the blocks inside it."""
    tag = node.tag
    if tag in _HEADINGS:
        if text := _heading_text(node):
            yield "#" * _HEADINGS[tag] + " " + text
    elif tag in ("ul", "ol", "menu", "dir"):
        if text := _list_text(node):
            yield text
    elif tag == "table":
        yield from _table_texts(node)
    elif tag == "pre":
        for inner in node.iter(*_CODE):
            inner.tag = "span"  # no backticks inside a fence
        code = _LINE_END.sub("\n", _inner_text(node)).replace("\x0b", "\n").strip("\n").replace("```", "'''")
        if code.strip():
            yield f"```\n{code}\n```"
    elif tag == "blockquote":
        if inner := "\n\n".join(_blocks_inside(node)):
            yield "\n".join("> " + line if line else ">" for line in inner.split("\n"))
    elif tag != "hr":
        yield from _blocks_inside(node)


def _list_text(node: Any) -> str:
    """Write a list as lines of markdown with the numbers that a browser shows, and indented contents."""
    lines: list[str] = []
    children = [child for child in node if not _is_skipped(child)]
    is_reversed = "reversed" in node.attrib
    step = -1 if is_reversed else 1
    first = sum(child.tag == "li" for child in children) if is_reversed else 1
    number = whole_number(node.get("start"), first) - step  # that of an item before the first
    for child in children:
        if child.tag == "li":
            number = whole_number(child.get("value"), number + step)
            mark = _item_mark(child, node, number) + " "
            inner = "\n".join(_blocks_inside(child))
        else:  # a list straight inside a list
            mark = "  "
            inner = "\n".join(_blocks_of(child))
        if inner:
            lines.append(mark + inner.replace("\n", "\n" + " " * len(mark)))
    return "\n".join(lines)


def _item_mark(item: Any, parent: Any, number: int) -> str:
    """Return the mark of a list's item as a browser shows it: its number, or a dash for a bullet."""
    if label := item.get("rag-kit-label"):  # written by the reader of Word documents
        return str(label)
    style = item.get("type") or parent.get("type") or (None if parent.tag == "ol" else "disc")
    for node in (parent, item):
        if match := _LIST_STYLE.search(node.get("style") or ""):
            style = match[1].lower()
    if style in ("none", "disc", "circle", "square"):
        return "-"
    if style is None or number < 1:
        return f"{number}."
    name = next((name for name, names in _LIST_STYLES.items() if style in names), "decimal")
    text = list_number(number, name)
    return text + ("." if text.isascii() or name == "lowerGreek" else "、")  # 一、


def _table_texts(node: Any) -> Iterator[str]:
    """Yield the captions and the markdown of a table, or the blocks of its cells if it is there for layout only."""
    for caption in node.iterchildren("caption"):
        yield from _paragraph_text([_inner_text(caption)])
    if next(node.iterdescendants("table", *_HEADINGS), None) is not None:
        rows = [row for row in _own_rows(node) if not _is_hidden_row(row)]
        if not _is_data(rows):  # a table used for layout
            for cell in (cell for row in rows for cell in row if not _is_skipped(cell)):
                yield from _blocks_inside(cell)
            return
        for inner in reversed(list(node.iterdescendants("table"))):  # innermost first: Mon 9-12; Tue 9-16
            lines = [" ".join(filter(None, row.texts)) for row in _grid(inner)]
            text, tail = "; ".join(filter(None, lines)), inner.tail
            inner.clear()
            inner.tag, inner.text, inner.tail = "p", text, tail
    grid = _grid(node)
    while len(grid) > 2 and _is_one_cell(grid[0]):
        yield grid.pop(0).texts[0]  # a title
    if len(grid) == 1 or (grid and len(grid[0].texts) == 1):  # one row or column is no table
        yield from (text for row in grid for text, _, _ in row.cells if text)
    elif grid:
        yield markdown_table(_with_joined_header(grid))


def _with_joined_header(grid: Sequence[_Row]) -> list[list[str]]:
    """Return the texts of a table by row, those of its header's rows joined into one."""
    rows = [row.texts for row in grid]
    header_count = 1 + sum(1 for _ in takewhile(_goes_on_with_header, pairwise(grid)))
    if 1 < header_count < len(rows):
        return [join_rows(rows[:header_count]), *rows[header_count:]]
    has_spans = any(width > 1 or height > 1 for _, width, height in grid[0].cells)
    is_marked = grid[0].element.getparent().tag == "thead"  # as a header of one row
    return join_header(rows) if has_spans and not is_marked else rows


def _grid(table: Any) -> list[_Row]:
    """Return the shown rows of a table; cells that span several rows also count hidden ones."""
    elements = _own_rows(table)
    cells = [[(_cell_text(cell), wide, high) for cell, wide, high in _row_cells(row)] for row in elements]
    rows = map(_Row, elements, cells, fill_spans(cells))
    return [row for row in rows if any(row.texts) and not _is_hidden_row(row.element)]


def _is_one_cell(row: _Row) -> bool:
    """Tell whether a row is one cell that is merged over all columns: a title, or below a header a group's name."""
    return len(row.cells) == 1 and all(width >= len(row.texts) > 1 for _, width, _ in row.cells)


def _goes_on_with_header(rows: tuple[_Row, _Row]) -> bool:
    """Tell whether the second of two rows is in the same header: in one ``thead``, or ``th`` below or beside spans."""
    upper, lower = rows
    if _is_one_cell(lower):
        return False
    if upper.element.getparent().tag == "thead":
        return lower.element.getparent() is upper.element.getparent()
    upper_widths, widths = ([width for _, width, _ in row.cells] for row in rows)
    is_below_span = max(upper_widths, default=1) > max(widths, default=1)
    is_beside_span = sum(widths) < sum(map(bool, lower.texts))  # some texts are of cells that begin above
    return (is_below_span or is_beside_span) and all(cell.tag == "th" for cell in lower.element)


def _is_data(rows: Sequence[Any]) -> bool:
    """Tell whether a table with other tables in its cells holds data: short names are in its first row and column."""
    grid: Any = fill_spans(map(_row_cells, rows))
    if len(grid) < 2 or len(set(grid[0])) < 2 or any("" in row for row in grid):  # "" where a row is shorter
        return False
    names = [*grid[0], *(row[0] for row in grid[1:])]
    are_short = all(0 < len("".join(cell.itertext()).strip()) <= _MAX_NAME for cell in names)
    is_plain = not any(next(cell.iterdescendants("table"), None) is not None for cell in names)
    cells = chain.from_iterable(grid)
    has_headings = any(next(cell.iterdescendants(*_HEADINGS), None) is not None for cell in cells)
    return are_short and is_plain and not has_headings


def _own_rows(table: Any) -> list[Any]:
    """Return the rows of a table as they are shown, head first and foot last, without those of tables inside it."""
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table"), None) is table]
    groups = [row.getparent() for row in rows]
    # of several heads, and feet, the first alone is moved
    head, foot = (next((group for group in groups if group.tag == tag), None) for tag in ("thead", "tfoot"))
    # 0 for the head, 2 for the foot, 1 for all between
    return sorted(rows, key=lambda row: (row.getparent() is not head) + (row.getparent() is foot))


def _is_hidden_row(row: Any) -> bool:
    """Tell whether a row of a table is hidden, alone or in a group."""
    return _is_skipped(row) or _is_skipped(row.getparent())


def _row_cells(row: Any) -> Iterator[tuple[Any, int, int]]:
    """Yield the cells of a row, and how many columns and rows each covers."""
    for cell in row:
        if cell.tag in ("td", "th") and not _is_skipped(cell):
            yield cell, whole_number(cell.get("colspan"), 1), whole_number(cell.get("rowspan"), 1)


def _cell_text(cell: Any) -> str:
    return "" if _is_hidden_row(cell.getparent()) else " ".join(" ".join(_blocks_inside(cell)).split())


def _inner_text(node: Any, before: Sequence[str] = ()) -> str:
    """Return the text inside an element as one line; a superscript at its start depends on the text ``before``."""
    pieces = [*before[-_BEFORE:], node.text or ""]
    start = len(pieces) - 1
    for child in node:
        if not _is_skipped(child):
            pieces.append(_inline_text(child, pieces))
        pieces.append(child.tail or "")
    return "".join(pieces[start:])


def _inline_text(node: Any, before: Sequence[str]) -> str:
    """Return the text of an element inside a line; ``before`` has the pieces of text before it in that line."""
    tag = node.tag
    if tag == "br":
        return "\x0b"  # a line break that survives the folding of white space
    if tag == "img":
        return f" {node.get('alt') or ''} "
    if tag == "input":  # a box that can be ticked; one that is a button opens a menu, and is not seen
        kind, role = ((node.get(name) or "").strip().lower() for name in ("type", "role"))
        is_box = kind in ("checkbox", "radio") and role != "button"
        return f" {'☑' if 'checked' in node.attrib else '☐'} " if is_box else ""
    if tag == "math":
        return str(node.get("alttext") or "") or equation_text(node)
    shift = _SHIFTED.search(node.get("style") or "")
    if tag in ("sup", "sub") or shift:
        is_lowered = tag == "sub" or (shift is not None and shift[1].lower() == "sub")
        return _shifted_text(node, "".join(before[-_BEFORE:]), is_lowered=is_lowered)
    text = _inner_text(node, before)
    if tag in _BLOCK:  # form feeds mark where it begins and ends
        return f" {text} " if tag in ("td", "th") else f"\f{text}\f"
    if tag in _CODE and text.strip() and "`" not in text:
        return f"`{text.strip()}`"
    return struck(text) if tag in ("s", "strike", "del") or _STRUCK.search(node.get("style") or "") else text


def _shifted_text(node: Any, before: str, *, is_lowered: bool) -> str:
    """Write a superscript or subscript for the text before it; a superscript in a link is a footnote's mark."""
    if is_lowered:
        return lowered(before, _inner_text(node))
    after, following = (node.tail or "").strip(), node.getnext()
    if after == "/" and following is not None and following.tag == "sub":
        after = "⁄"  # a fraction: <sup>1</sup>/<sub>2</sub>
    is_linked = next(node.iter("a"), None) is not None or node.getparent().tag == "a"
    return raised(before, _inner_text(node), after, note=is_linked)
