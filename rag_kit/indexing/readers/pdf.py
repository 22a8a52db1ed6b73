"""PDF, through PDFium: one part a page, with its number, headings, and paragraphs put together again."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from rag_kit.indexing.readers.formats import OCR_ADVICE
from rag_kit.indexing.readers.ocr import recognised_page
from rag_kit.indexing.readers.parts import Context, Part, Scalar, Unreadable
from rag_kit.indexing.readers.pdf_layout import Layout
from rag_kit.indexing.readers.pdf_lines import Line, Rule, page_lines, page_rules, with_fields
from rag_kit.indexing.readers.pdf_tables import with_tables

_PROGRAM_TITLE = re.compile(
    r"^(microsoft (word|powerpoint|excel) - .*|untitled.*|.*\.(docx?|indd|qxd|tex|dvi|pdf|rtf|odt|pptx?|xlsx?))$",
    re.I,
)

_PAGE_NUMBER = re.compile(
    r"[-–—]?\s*(?:page\s+)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of)\s*\d{1,4})?\s*[-–—]?"
    r"|第\s*\d{1,4}\s*页(?:\s*[,，/|]?\s*共\s*\d{1,4}\s*页)?",
    re.I,
)
_TOP = 0.75  # of the page's height; below it the file's order stands
_MAX_RUNNING = 150  # characters of a running line; a longer one is text


def read_pdf(data: bytes, context: Context) -> Iterator[Part]:
    """One part a page that has text; ``page`` counts from 1.

    Two passes over the lines: the first learns the size of the body text, the running heads and the words of
    the document (for hyphens at line ends), the second writes the pages.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise _open_error(str(error)) from error
    try:
        count = len(document)
        if document.get_formtype():
            document.init_forms()
        context.check(count, "pages", "max_pages")
        pages: list[list[Line]] = []
        rules: list[list[Rule]] = []
        recognised: dict[int, str] = {}
        characters = 0
        for index in range(count):
            lines, drawn, text = _read_page(document, index, context)
            if text:
                recognised[index + 1] = text
            characters += sum(len(line.text) for line in lines) + len(text)
            context.check(characters, "characters", "max_characters")
            pages.append(lines)
            rules.append(drawn)
        title = _metadata_title(document)
    finally:
        document.close()
    if not any(pages) and not recognised:
        reason, advice = "; scanned? OCR is off", OCR_ADVICE
        if context.ocr:
            reason, advice = ", also not by OCR", "Check that it is the right file"
        raise Unreadable(f"no text found on its {count} page{'s' * (count != 1)}{reason}", advice)
    edges = [{n: line.text for n, line in enumerate(lines) if _at_edge(line)} for lines in pages]
    pages = [
        [line for n, line in enumerate(lines) if n not in running]
        for lines, running in zip(pages, running_lines(edges), strict=True)
    ]
    mono = sum(len(line.text) for lines in pages for line in lines if line.mono)
    pages = [with_tables(_letterhead_first(lines), drawn) for lines, drawn in zip(pages, rules, strict=True)]
    # where most of a document is set in a font of fixed width, that is no sign of code
    if mono < 0.9 * characters:
        pages = [_with_code(lines) for lines in pages]
    layout = Layout(pages)
    empty = sum(1 for lines in pages if not lines) - len(recognised)
    for number, lines in enumerate(pages, 1):
        before = layout.heading
        text = recognised.get(number) or layout.page_text(lines)
        title = title or layout.first_heading
        if not text.strip():
            continue
        metadata: dict[str, Scalar] = {"page": number, "pages": count, "title": title, "heading": before}
        if number in recognised:
            metadata["ocr"] = True
        if empty:
            metadata["pages_without_text"] = empty
        yield Part(text, metadata)


def _at_edge(line: Line) -> bool:
    return not 0.09 <= line.place <= 0.91


def _read_page(document: Any, index: int, context: Context) -> tuple[list[Line], list[Rule], str]:
    """The lines and rules of a page, and where it has none the text that OCR finds, if that is asked for."""
    import pypdfium2

    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return [], [], ""  # a damaged page among good ones; it counts as one without text
    try:
        lines = page_lines(page)
        if document.formenv is not None:
            lines = with_fields(lines, page, document.formenv)
        text = recognised_page(page, context) if context.ocr and not lines else ""
        return lines, page_rules(page) if lines else [], text
    finally:
        page.close()


def running_lines(edges: Sequence[Mapping[int, str]]) -> list[set[int]]:
    """Find what comes back at the edges of pages, equal but for its digits: on half of them, or by chapter.

    Heads by chapter stand each on three pages in a row or more, and together on half of the pages. A line that is a
    page number alone is a running line, too.

    Args:
        edges: For each page the lines at its top and bottom edge, by numbers of the caller's.

    Returns:
        For each page the numbers of its running lines.

    Example:
        >>> texts = ["Oil the pump.", "Open the lid.", "Fill the tank.", "Wait."]
        >>> running_lines([{0: f"Pumps | {page}", 1: text} for page, text in enumerate(texts)])
        [{0}, {0}, {0}, {0}]
    """
    pages_of: dict[str, list[int]] = defaultdict(list)
    for page, lines in enumerate(edges):
        for key in {_without_digits(text) for text in lines.values() if len(text) <= _MAX_RUNNING}:
            pages_of[key].append(page)
    half = max(3, (len(edges) + 1) // 2)
    dense = {key for key, on in pages_of.items() if len(on) >= 3 and on[-1] - on[0] <= 2 * len(on)}
    chapters = dense if len({page for key in dense for page in pages_of[key]}) >= half else set()
    repeated = {key for key, on in pages_of.items() if len(on) >= half} | chapters
    return [
        {
            number
            for number, text in lines.items()
            if _without_digits(text) in repeated or _PAGE_NUMBER.fullmatch(text.strip())
        }
        for lines in edges
    ]


def _without_digits(text: str) -> str:
    return " ".join(re.sub(r"\d+", "0", text).split())


def _letterhead_first(lines: Sequence[Line]) -> list[Line]:
    """The lines of a page, blocks at its top that the file draws after what stands below them moved there."""
    blocks: list[list[Line]] = []
    for line in lines:
        if blocks and 0 <= blocks[-1][-1].end_bottom - line.bottom < 2.5 * line.size:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    head: list[Line] = []
    rest: list[Line] = []
    for block in blocks:
        foot = block[-1]
        above = foot.place > _TOP and all(foot.bottom > line.bottom + foot.size for line in rest)
        (head if above else rest).extend(block)
    return [*head, *rest]


def _with_code(lines: Sequence[Line]) -> list[Line]:
    """The lines of a page, each stretch of a fixed-width font replaced by one line of fenced code."""
    page: list[Line] = []
    for is_code, stretch in groupby(lines, lambda line: line.mono and not line.block):
        code = list(stretch)
        # a single line within a paragraph may be an address or a code word
        page += [code[0].as_block(_fence_code(code))] if is_code and (len(code) > 1 or not page) else code
    return page


def _fence_code(lines: Sequence[Line]) -> str:
    """Lines of code with the indents and blanks that the places of their words stand for."""
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


def _open_error(message: str) -> Unreadable:
    if "password" in message.lower():
        return Unreadable("it is encrypted with a password", "Save it without the password")
    reason = message.split(":")[-1].strip(" .)")
    return Unreadable(f"it is damaged ({reason})", "Open it in a PDF viewer and print it to a new PDF")


def _metadata_title(document: Any) -> str:
    title = " ".join(str(document.get_metadata_value("Title") or "").split())[:300]
    return "" if _PROGRAM_TITLE.match(title) or Counter(title).get("\ufffd") else title
