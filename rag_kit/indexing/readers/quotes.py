"""Places of a quote on the pages of a PDF, by its text or, on scanned pages, by OCR."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pypdfium2.raw as raw

from rag_kit.indexing.readers.ocr import page_picture, recognise
from rag_kit.indexing.readers.ocr_layout import Box, ordered_boxes
from rag_kit.indexing.readers.parts import Context, Part, leave_out
from rag_kit.indexing.readers.pdf import open_pdf

_MARKS = re.compile(r"^\s*(?:#{1,6}\s|[-*]\s|\|)|[|*`]|\\(?=#)|^\s*\|?[\s|:-]+\|?\s*$", re.M)
_UNWRITTEN = re.compile("[\\W_]")  # blanks, hyphens at line ends, signs that readers change
Rectangle = tuple[float, float, float, float]


def find_quote(data: bytes, context: Context) -> Iterator[Part]:
    """One part, JSON: the page and the rectangles of the first place that has the quote, else nothing (``null``)."""
    quote = _letters(_MARKS.sub(" ", context.quote))[0]
    with closing(open_pdf(data)) as document:
        context.check(len(document), "pages", "max_pages")
        numbers = [context.page] if context.page else range(1, len(document) + 1)
        place = None
        for number in numbers if quote else ():
            if place is None and 1 <= number <= len(document):
                with leave_out(f"page {number}"), closing(document[number - 1]) as page:
                    boxes = _on_page(page, quote, ocr=context.ocr)
                    place = {"page": number, "boxes": boxes} if boxes else None
    yield Part(json.dumps(place))


def _letters(text: str) -> tuple[str, list[int]]:
    """The letters and digits of a text in one form, and the place of each in the text."""
    letters, places = "", []
    for place, character in enumerate(text):
        plain = _UNWRITTEN.sub("", unicodedata.normalize("NFKC", character).casefold())
        letters += plain
        places += [place] * len(plain)
    return letters, places


def _on_page(page: Any, quote: str, *, ocr: bool) -> list[Rectangle]:
    with closing(page.get_textpage()) as text_page:
        count = raw.FPDFText_CountChars(text_page)
        text = "".join(chr(raw.FPDFText_GetUnicode(text_page, n)) for n in range(count))
        if text.strip() or not ocr:
            letters, places = _letters(text)
            if (start := letters.find(quote)) < 0:
                return []
            first, last = places[start], places[start + len(quote) - 1]
            rectangles = range(text_page.count_rects(first, last + 1 - first))
            return [_rounded(*text_page.get_rect(n)) for n in rectangles]
    return _in_scan(page, quote)


def _in_scan(page: Any, quote: str) -> list[Rectangle]:
    """Find a quote in the picture of a page: of each line the part that has it, by the widths of characters."""
    image, to_page = page_picture(page)
    reading = recognise(image)
    boxes = ordered_boxes(reading.boxes, reading.picture)
    letters, owners = "", []
    for number, box in enumerate(boxes):
        own, places = _letters(box.text)
        letters += own
        owners += [(number, place) for place in places]
    if (start := letters.find(quote)) < 0:
        return []
    spans: dict[int, list[int]] = {}
    for number, place in owners[start : start + len(quote)]:
        spans.setdefault(number, []).append(place)
    found = []
    for number, places in spans.items():
        corners = [reading.given(x, y) for x, y in _part(boxes[number], min(places), max(places) + 1)]
        xs, ys = zip(*(to_page(x, y) for x, y in corners), strict=True)
        found.append(_rounded(min(xs), min(ys), max(xs), max(ys)))
    return found


def _rounded(left: float, bottom: float, right: float, top: float) -> Rectangle:
    return round(left, 2), round(bottom, 2), round(right, 2), round(top, 2)


def _part(box: Box, start: int, end: int) -> list[tuple[float, float]]:
    """The corners of a stretch of a line; Chinese characters are twice as wide as others."""
    widths = [2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in box.text]
    shares = sum(widths[:start]) / sum(widths), sum(widths[:end]) / sum(widths)
    top_left, top_right, low_right, low_left = box.corners
    return [
        (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))
        for a, b in ((top_left, top_right), (low_left, low_right))
        for share in shares
    ]
