"""PDF, through PDFium: one part a page, with its number, headings, and paragraphs put together again."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain, groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

import pypdfium2

from rag_kit.indexing.readers.figures import Figures, is_scan, pdf_figures
from rag_kit.indexing.readers.formats import OCR_ADVICE
from rag_kit.indexing.readers.ocr import recognise_page
from rag_kit.indexing.readers.parts import Context, Part, Scalar, Unreadable, leave_out
from rag_kit.indexing.readers.pdf_layout import Layout
from rag_kit.indexing.readers.pdf_lines import Line, Sheet, Word, read_sheets
from rag_kit.indexing.readers.pdf_tables import join_torn_rows, with_tables, word_runs
from rag_kit.indexing.readers.tables import split_runs

_PROGRAM_TITLE = re.compile(  # a title that a program made of the name of a file
    r"^(microsoft (word|powerpoint|excel) - .*|untitled.*|.*\.(docx?|indd|qxd|tex|dvi|pdf|rtf|odt|pptx?|xlsx?))$",
    re.I,
)
_PAGE_WORD = r"(?:page|pg?\.|seite|p[áa]g(?:\.|ina)|strona|sida|side|стр(?:аница|\.)|[页頁][码碼次]|ページ)"
_DASH = "[-–—－―]"
_NUMBERED = (
    rf"{_PAGE_WORD}\s*[:：]?\s*\d{{1,4}}(?:\s*(?:/|of|von|de|di|sur|из)\s*\d{{1,4}})?"
    r"|(?:共\s*\d{1,4}\s*[页頁]\s*[,，/|]?\s*)?第\s*[\d一二三四五六七八九十百]{1,4}\s*[页頁]"
    r"(?:\s*[,，/|（(]?\s*共\s*[\d一二三四五六七八九十百]{1,4}\s*[页頁][)）]?)?"
)
_PAGE_NUMBER = re.compile(  # between dashes or on one side of them, but between two dots: "· 5" is of a list
    rf"(?:([·•~～])|{_DASH}?)\s*(?:(?:\d{{1,4}}|[ivxlc]{{1,7}})(?:\s*(?:[/／]|of)\s*\d{{1,4}}|\s*[页頁])?|{_NUMBERED})\s*"
    rf"(?(1)\1|{_DASH}?)",
    re.I,
)
_PAGE = re.compile(_NUMBERED, re.I)
_AROUND = r"[^\w€$£¥%#+<>=≥≤±]*"  # no sign of a value
# a number that may count pages: 12, 3-12, - 12 -, (12), 12/40
_COUNTED = re.compile(rf"(\d\d?\s?[-–.]\s?|{_AROUND})(\d{{1,4}})(?:{_AROUND}|\s*(?:[/／]|of)\s*\d{{1,4}})")
_WITH_PAGE_NUMBER = re.compile(rf"(?:{_NUMBERED})\s*[|·•]|[|·•]\s*(?:{_NUMBERED})$", re.I)
# the number of a document, which may stand in its running head alone, as in 合同编号：HT-2025-0318
_IDENTIFIER = re.compile(
    r"(?:编号|合同号|文号|档号|\bno\.|\bref(?:erence)?\b\.?)\s?[:：]?\s?[A-Z\d]|\b[A-Z]{1,6}-\d{2,}-\d{2,}",
    re.I,
)
_EDGE = 0.09  # of a page's height: a line there may be a running one
_MARGIN = 0.15  # where a number apart from the text may be that of the page
_TOP = 0.75  # of the page's height; below it the order of the file is kept
_COLUMN_WITHIN = 8  # sizes of type below the names of columns in which these are looked for
_GUTTER = 3  # sizes of type between two columns, at least
_STEP = 1.6  # sizes of type from a line to the next one of its paragraph, at most
_HEAD_ABOVE = 3  # sizes of type from a head to the lines of its column in which these are looked for
_WATERMARK = "/"  # begins the key of a line that runs aslant
_MAX_RUNNING = 150  # characters of a running line; a longer one is text
_SAME_HEIGHT = 0.3  # sizes of type between the pieces of one line of code, at most
_BLANK_LINE = 1.6  # usual steps from line to line; code with a longer one has a blank line between


class _Page(NamedTuple):
    """Content of a page."""

    sheets: list[Sheet]  # one for each direction of text
    has_text: bool = True  # of a scan, what is at its edge alone counts as none: it may be a stamp
    recognised: bool = False  # by OCR
    figures: Sequence[Part] = ()


def read_pdf(data: bytes, context: Context) -> Iterator[Part]:
    """Yield a part for each page, and for each picture where these are wanted; ``page`` counts from 1.

    All pages are read before the first is written: running heads, the size of the body text, and words with hyphens
    are known only then.
    """
    with closing(open_pdf(data)) as document:
        title = " ".join(str(document.get_metadata_value("Title") or "").split())[:300]
        pages, characters = _read_pages(document, context)
    if _PROGRAM_TITLE.match(title) or "\ufffd" in title:
        title = ""
    sheets = [sheet for page in pages for sheet in page.sheets]
    mono_characters = sum(len(line.text) for sheet in sheets for line in sheet.lines if line.mono)
    for sheet in sheets:
        sheet.lines = _with_cut_heads(with_tables(_letterhead_first(sheet.lines), sheet.rules))
        # where most of a document is set in a font of fixed width, that is not a sign of code
        if mono_characters < 0.9 * characters:
            sheet.lines = _with_code(sheet.lines)
    join_torn_rows([sheet.lines for sheet in sheets])
    layout = Layout([sheet.lines for sheet in sheets])
    empty = sum(not (page.has_text and any(sheet.lines for sheet in page.sheets)) for page in pages)
    for number, page in enumerate(pages, 1):
        heading = layout.heading  # the one under which the page begins
        texts = [layout.page_text(sheet.lines) for sheet in page.sheets]
        title = title or layout.first_heading
        common: dict[str, Scalar] = {"page": number, "pages": len(pages), "title": title, "heading": heading}
        metadata = dict(common)
        if page.recognised:
            metadata["ocr"] = True
        if empty:
            metadata["pages_without_text"] = empty
        yield Part("\n\n".join(filter(None, texts)), metadata)
        for figure in page.figures:
            figure.metadata |= common
            yield figure


def _read_pages(document: Any, context: Context) -> tuple[list[_Page], int]:
    """Return all pages without running lines, and the number of characters; raises `Unreadable`."""
    count = len(document)
    context.check(count, "pages", "max_pages")
    if document.get_formtype():
        document.init_forms()
    pages, figures = list[_Page](), Figures(context)
    characters = 0
    for index in range(count):
        pages.append(_read_page(document, index, context, figures))
        characters += sum(len(line.text) for sheet in pages[-1].sheets for line in sheet.lines)
        context.check(characters, "characters", "max_characters")
    figures.finish()
    _drop_running_lines(pages)
    # text at the edge of a scan may be a stamp or a title: it is refused only where all pages share it
    if any(page.figures or any(sheet.lines for sheet in page.sheets) for page in pages):
        return pages, characters
    reason = ", also not by OCR" if context.ocr else "; scanned? OCR is off"
    advice = "Check that it is the right file" if context.ocr else OCR_ADVICE
    raise Unreadable(f"no text found on its {count} page{'s' * (count != 1)}{reason}", advice)


def _read_page(document: Any, index: int, context: Context, figures: Figures) -> _Page:
    """Read the text, form fields and pictures of a page; where it has no text, recognise it by OCR if that is on."""
    result = _Page([], has_text=False)  # a damaged page counts as one without text, and a note names it
    with leave_out(f"page {index + 1}"), closing(document[index]) as page:
        sheets = read_sheets(page, document.formenv)
        # what a scanner or a court stamps on the edge of a scan is not its text
        upright = (line for sheet in sheets for line in sheet.lines if not line.aslant)
        has_text = any(_EDGE <= line.height <= 1 - _EDGE for line in upright)
        result = _Page(sheets, has_text or (bool(sheets) and not is_scan(page)))
        if context.ocr and not result.has_text and (sheet := recognise_page(page)):
            result = _Page([sheet], recognised=True)
        if context.pictures and not (result.recognised and is_scan(page)):
            lines = [line for sheet in result.sheets[:1] for line in sheet.lines if result.has_text]
            result = result._replace(figures=pdf_figures(page, lines, figures, f"page {index + 1}"))
    return result


def _drop_running_lines(pages: Sequence[_Page]) -> None:
    """Remove page numbers, headers, footers and watermarks; the first line with the document's number stays."""
    running = _running_keys(pages)
    seen: set[str] = set()  # keys of lines that stayed
    for number, sheet in [(number, sheet) for number, page in enumerate(pages) for sheet in page.sheets]:
        keys_of_lines = [(line, _keys(line, number)) for line in sheet.lines]
        text_lines = [line for line, keys in keys_of_lines if not keys & running]
        kept = []
        for line, keys in keys_of_lines:
            is_identifier = not line.aslant and not keys & seen and _IDENTIFIER.search(line.text)
            is_running = keys & running and not _is_text(line, text_lines)
            if is_identifier or not (is_running or _is_page_number(line, sheet.lines)):
                kept.append(line)
                seen |= keys
        sheet.lines = kept


def _is_text(line: Line, lines: Sequence[Line]) -> bool:
    """Tell whether a line that pages share is text: of a paragraph, or three names of columns above their cells."""
    alike = (other for other in lines if other.size == line.size)
    aligned = (other for other in alike if abs(other.left - line.left) < _GUTTER * line.size)
    if any(abs(other.bottom - line.bottom) < _STEP * line.size for other in aligned):
        return True
    names = _cell_edges(line)
    below = (other for other in lines if 0 < line.bottom - other.bottom < _COLUMN_WITHIN * line.size)
    edges_below = {edge for row in map(_cell_edges, below) if len(row) > 1 for cell in row for edge in cell}
    are_aligned = [any({edge - 1, edge, edge + 1} & edges_below for edge in edges) for edges in names]
    return len(names) > 2 and 4 * sum(are_aligned) >= 3 * len(names)


def _cell_edges(line: Line) -> list[tuple[int, int]]:
    """Return the left and right edge of each text of a line that is apart from the others, in whole points."""
    return [(round(words[0].left), round(words[-1].right)) for words in word_runs(line)]


def _running_keys(pages: Sequence[_Page]) -> set[str]:
    """Find the headers, footers and watermarks that several pages share; return their texts as `_keys` has them.

    A header is on half of the pages, or one on all left and another on all right pages; a watermark is on two. A header
    of a chapter is on three pages near each other, and those of all chapters together are on half.
    """
    pages_of: dict[str, list[int]] = defaultdict(list)  # key -> numbers of its pages, in order
    for number, page in enumerate(pages):
        for key in set().union(*(_keys(line, number) for sheet in page.sheets for line in sheet.lines)):
            pages_of[key].append(number)
    # of a short document more than half: both of two pages, and three
    half = max(2, min(3, len(pages)), (len(pages) + 1) // 2)
    running, of_chapters, of_sides = set[str](), set[str](), dict[str, int]()
    for key, numbers in pages_of.items():
        if len(numbers) >= (2 if key.startswith(_WATERMARK) else half):
            running.add(key)
        if len(numbers) >= 3 and numbers[-1] - numbers[0] <= 2 * len(numbers):
            of_chapters.add(key)
        if len(numbers) > 1 and numbers[0] < 3 and numbers == list(range(numbers[0], len(pages), 2)):
            of_sides[key] = numbers[0] % 2
    if len(set(of_sides.values())) == 2:
        running |= of_sides.keys()
    chapter_pages = {number for key in of_chapters for number in pages_of[key]}
    return running | of_chapters if len(chapter_pages) >= half else running


def _keys(line: Line, page: int) -> set[str]:
    """Return the texts by which a header or footer is known on other pages; none for a line that can be neither.

    Its page number becomes 0 (in "page 3") or is taken less that of the page: "Report | 12" on page 3 and "Report | 13"
    on page 4 are both ``Report #9``. An amount, or an invoice's number, does not count on with the pages.
    """
    if line.aslant:
        return {f"{_WATERMARK}{line.text}"}
    if _EDGE <= line.height <= 1 - _EDGE or len(line.text) > _MAX_RUNNING:
        return set()
    text = "\t".join(" ".join(word.text for word in words) for words in word_runs(line))
    pieces = re.split(r"\t|\s*[|·•]\s*|\s[-–—]\s|\s(?=\d+\s?(?:/|of)\s?\d+$)", text)
    for place in (0, -1):
        if match := _COUNTED.fullmatch(pieces[place]):
            pieces[place] = f"{match[1]}#{int(match[2]) - page}"
    return {_PAGE.sub("0", " ".join(text.split())) for text in (line.text, "\t".join(pieces))} - {""}


def _is_page_number(line: Line, lines: Sequence[Line]) -> bool:
    """Tell whether a line is a page number: at the edge of the page, or near it and apart from the text."""
    text = line.text.strip()
    is_at_edge = not _EDGE <= line.height <= 1 - _EDGE
    if not _PAGE_NUMBER.fullmatch(text):
        return is_at_edge and len(text) <= _MAX_RUNNING and bool(_WITH_PAGE_NUMBER.search(text))
    if is_at_edge or _MARGIN <= line.height <= 1 - _MARGIN:
        return is_at_edge
    rises = [other.bottom - line.bottom for other in lines if other is not line]  # above this line
    is_outermost = all((rise > 0) == (line.height < 0.5) for rise in rises)
    # a number alone must be further from the text than one with a word, as in "page 3" or 第3页
    least_gap = (1.0 if re.search(r"[^\W\d]{2}|[第/]", text) else 2.5) * line.size
    return is_outermost and min(map(abs, rises), default=0) > least_gap


def _letterhead_first(lines: Sequence[Line]) -> list[Line]:
    """Move blocks at the top of a page, such as a letterhead drawn last, before other lines; no top of a column."""
    head, body = list[Line](), list[Line]()
    blocks = split_runs(lines, lambda line, after: 0 <= line.end_bottom - after.bottom < 2.5 * after.size)
    for number, block in enumerate(blocks, 1):
        last_line, later = block[-1], blocks[number:]
        if last_line.height <= _TOP or not _is_letterhead(last_line, body, later):
            body += block
        else:
            head = [*block, *head] if _is_letterhead(last_line, head, later) else [*head, *block]
    return [*head, *body]


def _is_letterhead(last_line: Line, before: Sequence[Line], later: Sequence[Sequence[Line]]) -> bool:
    """Tell whether a block, given by its last line, is above the lines before it, and not the top of a column."""
    right = max((line.right for line in before), default=math.inf)
    beside = (line for line in chain.from_iterable(later) if min(last_line.left, line.left) > right - 1)
    column = (line for line in beside if line.left < last_line.right and last_line.left < line.right)
    is_top_of_column = any(line.bottom < last_line.bottom for line in column)
    return not is_top_of_column and all(last_line.bottom > line.bottom + last_line.size for line in before)


def _with_cut_heads(lines: Sequence[Line]) -> list[Line]:
    """Cut a line that holds the heads of two columns; that of the right column goes before its first line."""
    page = list(lines)
    number = 0
    while number < len(page):  # the list grows, and a head that was cut off may be one of two again
        if cut := _cut_heads(page[number], page[number + 1 :]):
            page[number], right_head, first_line = cut
            page.insert(page.index(first_line), right_head)
        number += 1
    return page


def _cut_heads(line: Line, later: Sequence[Line]) -> tuple[Line, Line, Line] | None:
    """Cut a line into the heads of the two columns below it; return both, and the first line of the right column."""
    for number, (word, after) in enumerate(pairwise(line.words), 1):
        if after.left - word.right < _GUTTER * line.size:
            continue
        if any(character.isdigit() for each in line.words[number:] for character in each.text):
            continue  # an amount, and no head
        below = [other for other in later if 0 < line.bottom - other.bottom < _HEAD_ABOVE * line.size]
        left = [other for other in below if other.right < after.left and other.left < word.right]
        near = line.size
        right = [other for other in below if other.left > word.right and abs(other.left - after.left) < near]
        if left and right and len(left) + len(right) == len(below) and not any(one.block for one in below):
            return _with_words(line, line.words[:number]), _with_words(line, line.words[number:]), right[0]
    return None


def _with_words(line: Line, words: list[Word]) -> Line:
    """Return a line with only these of its words."""
    text = " ".join(word.text for word in words)
    return replace(line, text=text, words=words, left=words[0].left, right=words[-1].right)


def _with_code(lines: Sequence[Line]) -> list[Line]:
    """Replace each stretch of lines in a fixed-width font by one line that holds them as fenced code."""
    page: list[Line] = []
    for is_code, group in groupby(lines, lambda line: line.mono and not line.block):
        stretch = list(group)
        # a single line within a paragraph may be an address or a code word
        if is_code and (len(stretch) > 1 or not page):
            page.append(stretch[0].as_block(_fence_code(stretch)))
        else:
            page += stretch
    return page


def _fence_code(lines: Sequence[Line]) -> str:
    """Write lines as fenced code, with the indents and blanks between words that their positions show."""
    character_width = median((line.right - line.left) / max(1, len(line.text)) for line in lines) or 1.0
    left = min(line.left for line in lines)
    steps = [line.bottom - below.bottom for line, below in pairwise(lines)]
    usual_step = median([step for step in steps if step > 0] or [1.0])
    texts: list[str] = []
    for line, step in zip(lines, [usual_step, *steps], strict=True):
        is_same_line = bool(texts) and abs(step) < _SAME_HEIGHT * line.size
        text = texts.pop() if is_same_line else ""
        if step > _BLANK_LINE * usual_step:
            texts.append("")
        for word in line.words:
            # blanks up to the word's column; one or two may be an error of measure, and count as one
            blanks = round((word.left - left) / character_width) - len(text)
            is_measured = blanks > 2 or not text
            text += " " * (blanks if is_measured else 1) + word.text
        texts.append(text)
    return "```\n" + "\n".join(texts).replace("```", "'''") + "\n```"


def open_pdf(data: bytes) -> Any:
    """Open a PDF by PDFium; raises `Unreadable` if it is damaged or encrypted."""
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("it is encrypted with a password", "Save it without the password") from error
        reason = str(error).split(":")[-1].strip(" .)")  # in "Failed ... (PDFium: Data format error)."
        advice = "Open it in a PDF viewer and print it to a new PDF"
        raise Unreadable(f"it is damaged ({reason})", advice) from error
