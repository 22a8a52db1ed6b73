"""Where a quote is on the pages of a PDF, by its text or, on scanned pages, by OCR."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import pypdfium2.raw as raw

from rag_kit.indexing.readers.ocr import page_picture, recognise
from rag_kit.indexing.readers.ocr_layout import Box, ordered_boxes
from rag_kit.indexing.readers.parts import Context, Part, leave_out
from rag_kit.indexing.readers.pdf import open_pdf

_MARKS = re.compile(r"^\s*(?:#{1,6}\s|[-*]\s|\|)|[|*`]|\\(?=#)|^\s*\|?[\s|:-]+\|?\s*$", re.M)
_UNWRITTEN = re.compile("[\\W_]")  # blanks, hyphens at line ends, signs that readers change
_LEVEL = 2.0  # points; rectangles of a line that are no further apart are one

Rectangle = tuple[float, float, float, float]


class _Text(NamedTuple):
    """The letters and digits of a text in one form, and the place of each in the text."""

    letters: str
    places: list[int]


def find_quote(data: bytes, context: Context) -> Iterator[Part]:
    """One part, JSON: the page and the rectangles of the first place that has the quote, else nothing (``null``)."""
    quote = _letters(_MARKS.sub(" ", context.quote)).letters
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


def _letters(text: str) -> _Text:
    letters, places = "", []
    for place, character in enumerate(text):
        plain = _UNWRITTEN.sub("", unicodedata.normalize("NFKC", character).casefold())
        letters += plain
        places += [place] * len(plain)
    return _Text(letters, places)


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
            return _joined([text_page.get_rect(n) for n in rectangles])
    return _in_scan(page, quote)


def _joined(rectangles: Sequence[Rectangle]) -> list[Rectangle]:
    """Rectangles, those of words beside each other on a line as one; rounded."""
    joined: list[Rectangle] = []
    for left, bottom, right, top in rectangles:
        before = joined[-1] if joined else None
        if before and abs(before[1] - bottom) < _LEVEL and -_LEVEL < left - before[2] < top - bottom:
            joined[-1] = (before[0], min(before[1], bottom), right, max(before[3], top))
        else:
            joined.append((left, bottom, right, top))
    return [(round(a, 2), round(b, 2), round(c, 2), round(d, 2)) for a, b, c, d in joined]


def _in_scan(page: Any, quote: str) -> list[Rectangle]:
    """Find a quote in the picture of a page; of a line, the share of its length that the quote has."""
    image, to_page = page_picture(page)
    reading = recognise(image)
    boxes = ordered_boxes(reading.boxes, reading.picture)
    letters, owners = "", []
    for number, box in enumerate(boxes):
        own = _letters(box.text)
        letters += own.letters
        owners += [(number, place) for place in own.places]
    if (start := letters.find(quote)) < 0:
        return []
    spans: dict[int, list[int]] = {}
    for number, place in owners[start : start + len(quote)]:
        spans.setdefault(number, []).append(place)
    found = []
    for number, places in spans.items():
        corners = [reading.given(x, y) for x, y in _part(boxes[number], min(places), max(places) + 1)]
        xs, ys = zip(*(to_page(x, y) for x, y in corners), strict=True)
        found.append((min(xs), min(ys), max(xs), max(ys)))
    return [(round(a, 2), round(b, 2), round(c, 2), round(d, 2)) for a, b, c, d in found]


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
