"""PDF, through PDFium: one part a page, with its number, headings, and paragraphs put together again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

import pypdfium2

from rag_kit.indexing.readers.figures import Figures, is_scan, pdf_figures
from rag_kit.indexing.readers.formats import OCR_ADVICE
from rag_kit.indexing.readers.ocr import recognise_page
from rag_kit.indexing.readers.parts import Context, Part, Scalar, Unreadable, leave_out
from rag_kit.indexing.readers.pdf_layout import Layout
from rag_kit.indexing.readers.pdf_lines import Line, Sheet, read_sheets
from rag_kit.indexing.readers.pdf_tables import join_torn_rows, with_tables
from rag_kit.indexing.readers.tables import split_runs

_PROGRAM_TITLE = re.compile(
    r"^(microsoft (word|powerpoint|excel) - .*|untitled.*|.*\.(docx?|indd|qxd|tex|dvi|pdf|rtf|odt|pptx?|xlsx?))$",
    re.I,
)
_PAGE_WORD = r"(?:page|pg?\.|seite|página|pagina|p[áa]g\.|strona|sida|side|стр(?:аница|\.)|页码|頁碼|ページ)"
_NUMBERED = (
    rf"{_PAGE_WORD}\s*[:：]?\s*\d{{1,4}}(?:\s*(?:/|of|von|de|di|sur|из)\s*\d{{1,4}})?"
    r"|(?:共\s*\d{1,4}\s*[页頁]\s*[,，/|]?\s*)?第\s*[\d一二三四五六七八九十百]{1,4}\s*[页頁]"
    r"(?:\s*[,，/|]?\s*共\s*[\d一二三四五六七八九十百]{1,4}\s*[页頁])?"
)
_PAGE_NUMBER = re.compile(
    rf"[-–—]?\s*(?:\d{{1,4}}|[ivxlc]{{1,7}})(?:\s*(?:/|of)\s*\d{{1,4}})?\s*[-–—]?|[-–—]?\s*(?:{_NUMBERED})\s*[-–—]?",
    re.I,
)
_WITH_PAGE_NUMBER = re.compile(rf"(?:{_NUMBERED})\s*[|·•]|[|·•]\s*(?:{_NUMBERED})$", re.I)
# the number of a document, which may stand in its running head alone, as in 合同编号：HT-2025-0318
_IDENTIFIER = re.compile(
    r"(?:编号|合同号|文号|档号|\bno\.|\bref(?:erence)?\b\.?)\s?[:：]?\s?[A-Z\d]|\b[A-Z]{1,6}-\d{2,}-\d{2,}",
    re.I,
)
_EDGE = 0.09  # of a page's height: a line there may be a running one
_MARGIN = 0.15  # where a number apart from the text may be that of the page
_TOP = 0.75  # of the page's height; below it the file's order stands
_WATERMARK = "/"  # before the text of a line aslant
_MAX_RUNNING = 150  # characters of a running line; a longer one is text


class _Page(NamedTuple):
    """Content of a page: a sheet for each direction of text, and whether its text comes from OCR."""

    sheets: list[Sheet]
    recognised: bool = False
    figures: Sequence[Part] = ()


def read_pdf(data: bytes, context: Context) -> Iterator[Part]:
    """Yield a part for each page that has text; ``page`` counts from 1.

    Two passes over the lines: the first learns the size of the body text, the running heads and the words of
    the document (for hyphens at line ends), the second writes the pages.
    """
    document = open_pdf(data)
    try:
        context.check(len(document), "pages", "max_pages")
        if document.get_formtype():
            document.init_forms()
        title = _metadata_title(document)
        pages, figures = list[_Page](), Figures(context)
        characters = 0
        for index in range(len(document)):
            page = _read_page(document, index, context, figures)
            characters += sum(len(line.text) for sheet in page.sheets for line in sheet.lines)
            context.check(characters, "characters", "max_characters")
            pages.append(page)
        figures.finish()
    finally:
        document.close()
    count = len(pages)
    if not any(page.sheets or page.figures for page in pages):
        reason, advice = "; scanned? OCR is off", OCR_ADVICE
        if context.ocr:
            reason, advice = ", also not by OCR", "Check that it is the right file"
        raise Unreadable(f"no text found on its {count} page{'s' * (count != 1)}{reason}", advice)
    _drop_running_lines(pages)
    sheets = [sheet for page in pages for sheet in page.sheets]
    mono = sum(len(line.text) for sheet in sheets for line in sheet.lines if line.mono)
    for sheet in sheets:
        sheet.lines = with_tables(_letterhead_first(sheet.lines), sheet.rules)
        # where most of a document is set in a font of fixed width, that is not a sign of code
        if mono < 0.9 * characters:
            sheet.lines = _with_code(sheet.lines)
    join_torn_rows([sheet.lines for sheet in sheets])
    layout = Layout([sheet.lines for sheet in sheets])
    empty = sum(not any(sheet.lines for sheet in page.sheets) for page in pages)
    for number, page in enumerate(pages, 1):
        heading = layout.heading
        texts = [layout.page_text(sheet.lines) for sheet in page.sheets]
        text = "\n\n".join(filter(None, texts))
        title = title or layout.first_heading
        metadata: dict[str, Scalar] = {"page": number, "pages": count, "title": title, "heading": heading}
        if page.recognised:
            metadata["ocr"] = True
        if empty:
            metadata["pages_without_text"] = empty
        yield Part(text, metadata)
        for figure in page.figures:
            figure.metadata |= {key: metadata[key] for key in ("page", "pages", "title", "heading")}
            yield figure


def _read_page(document: Any, index: int, context: Context, figures: Figures) -> _Page:
    """Read the text of a page with its form fields, or recognise it by OCR where it has no text."""
    read = _Page([])  # a damaged page among good ones counts as one without text
    with leave_out(f"page {index + 1}"), closing(document[index]) as page:
        read = _Page(read_sheets(page, document.formenv))
        if context.ocr and not read.sheets and (sheet := recognise_page(page)):
            read = _Page([sheet], recognised=True)
        if context.pictures and not (read.recognised and is_scan(page)):
            lines = [line for sheet in read.sheets[:1] for line in sheet.lines]
            read = read._replace(figures=pdf_figures(page, lines, figures, f"page {index + 1}"))
    return read


def _drop_running_lines(pages: Sequence[_Page]) -> None:
    """Remove page numbers, and the headers and footers that come back on several pages.

    A header is on half of the pages, digits aside; headers of chapters are on three in a row each, together on half.
    A line aslant on two pages is a watermark. A line with the number of the document stays once.
    """
    pages_of: dict[str, list[int]] = defaultdict(list)
    for number, page in enumerate(pages):
        for key in {_running_key(line) for sheet in page.sheets for line in sheet.lines} - {""}:
            pages_of[key].append(number)
    half = max(2, min(3, len(pages)), (len(pages) + 1) // 2)
    dense = {key for key, on in pages_of.items() if len(on) >= 3 and on[-1] - on[0] <= 2 * len(on)}
    running = {key for key, on in pages_of.items() if len(on) >= (2 if key.startswith(_WATERMARK) else half)}
    if len({number for key in dense for number in pages_of[key]}) >= half:
        running |= dense
    kept: set[str] = set()
    for page in pages:
        for sheet in page.sheets:
            lines = []
            for line in sheet.lines:
                key = _running_key(line)
                first = not line.aslant and key not in kept and _IDENTIFIER.search(line.text)
                if first or not (key in running or _is_page_number(line, sheet.lines)):
                    lines.append(line)
                    kept.add(key)
            sheet.lines = lines


def _running_key(line: Line) -> str:
    """Return the text by which a header or footer is the same on several pages; empty for a line that is none."""
    if line.aslant:
        return f"{_WATERMARK}{line.text}"
    if _EDGE <= line.height <= 1 - _EDGE or len(line.text) > _MAX_RUNNING:
        return ""
    return " ".join(re.sub(r"\d+", "0", line.text).split())


def _is_page_number(line: Line, lines: Sequence[Line]) -> bool:
    """Tell whether a line is a page number: at the very edge, or apart from the text above or below it."""
    text = line.text.strip()
    at_edge = not _EDGE <= line.height <= 1 - _EDGE
    if not _PAGE_NUMBER.fullmatch(text):
        return at_edge and len(text) <= _MAX_RUNNING and bool(_WITH_PAGE_NUMBER.search(text))
    if at_edge or _MARGIN <= line.height <= 1 - _MARGIN:
        return at_edge
    others = [other.bottom - line.bottom for other in lines if other is not line]
    outside = all((up > 0) == (line.height < 0.5) for up in others)
    words = re.search(r"[^\W\d]{2}|[第/]", text)
    return outside and min(map(abs, others), default=0) > (1.0 if words else 2.5) * line.size


def _letterhead_first(lines: Sequence[Line]) -> list[Line]:
    """Move blocks at the top of a page, which the file may draw last, before the other lines.

    A block that heads a column beside the text before it stays where it is.
    """
    head: list[Line] = []
    rest: list[Line] = []
    blocks = split_runs(lines, lambda line, after: 0 <= line.end_bottom - after.bottom < 2.5 * after.size)
    for number, block in enumerate(blocks):
        foot = block[-1]
        is_above = foot.height > _TOP and all(foot.bottom > line.bottom + foot.size for line in rest)
        later = (line for after in blocks[number + 1 :] for line in after)
        heads_column = bool(rest) and any(_is_column_below(foot, line, rest) for line in later)
        (head if is_above and not heads_column else rest).extend(block)
    return [*head, *rest]


def _is_column_below(foot: Line, line: Line, rest: Sequence[Line]) -> bool:
    """Tell whether a line continues a block below it, in a column to the right of the text before."""
    beside = min(foot.left, line.left) > max(other.right for other in rest) - 1
    return beside and line.bottom < foot.bottom and line.left < foot.right and foot.left < line.right


def _with_code(lines: Sequence[Line]) -> list[Line]:
    """Replace each stretch of lines in a fixed-width font by one line of fenced code."""
    page: list[Line] = []
    for is_code, stretch in groupby(lines, lambda line: line.mono and not line.block):
        code = list(stretch)
        # a single line within a paragraph may be an address or a code word
        page += [code[0].as_block(_fence_code(code))] if is_code and (len(code) > 1 or not page) else code
    return page


def _fence_code(lines: Sequence[Line]) -> str:
    """Write lines as fenced code, with the indents and blanks between words that their positions show."""
    width = median((line.right - line.left) / max(1, len(line.text)) for line in lines) or 1.0
    left = min(line.left for line in lines)
    steps = [line.bottom - below.bottom for line, below in pairwise(lines)]
    leading = median([step for step in steps if step > 0] or [1.0])
    texts: list[str] = []
    for line, step in zip(lines, [leading, *steps], strict=True):
        text = texts.pop() if texts and abs(step) < 0.3 * line.size else ""
        if step > 1.6 * leading:
            texts.append("")
        for word in line.words:
            blanks = round((word.left - left) / width) - len(text)
            text += " " * (blanks if blanks > 2 or not text else 1) + word.text
        texts.append(text)
    return "```\n" + "\n".join(texts).replace("```", "'''") + "\n```"


def open_pdf(data: bytes) -> Any:
    """Open a PDF by PDFium; raises `Unreadable` if it is damaged or encrypted."""
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("it is encrypted with a password", "Save it without the password") from error
        reason = str(error).split(":")[-1].strip(" .)")
        advice = "Open it in a PDF viewer and print it to a new PDF"
        raise Unreadable(f"it is damaged ({reason})", advice) from error


def _metadata_title(document: Any) -> str:
    """Return the title in a PDF's metadata, unless a program made it up from the name of a file."""
    title = " ".join(str(document.get_metadata_value("Title") or "").split())[:300]
    return "" if _PROGRAM_TITLE.match(title) or "\ufffd" in title else title
