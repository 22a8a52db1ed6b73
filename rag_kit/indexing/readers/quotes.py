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
# Blanks, hyphens at line ends, signs that readers change, accents; not those that tell Japanese letters apart.
_UNWRITTEN = re.compile("[^\\w\u3099\u309a]|_")
_IN_NUMBER = re.compile("[.,'\u2019\u00a0\u2009\u202f]")  # between the digits of one number
Rectangle = tuple[float, float, float, float]


def find_quote(data: bytes, context: Context) -> Iterator[Part]:
    """One part, JSON: the page and the rectangles of a place that has the quote, else nothing (``null``).

    That is the first where no word or number goes on before or after it, or, without such a place, the first.
    """
    quote = _letters(_MARKS.sub(" ", context.quote))[0]
    with closing(open_pdf(data)) as document:
        context.check(len(document), "pages", "max_pages")
        numbers = [context.page] if context.page else range(1, len(document) + 1)
        place, whole = None, False
        for number in numbers if quote else ():
            if not whole and 1 <= number <= len(document):
                with leave_out(f"page {number}"), closing(document[number - 1]) as page:
                    boxes, whole = _on_page(page, quote, ocr=context.ocr and place is None)
                    place = {"page": number, "boxes": boxes} if boxes and (whole or not place) else place
    yield Part(json.dumps(place))


def _letters(text: str) -> tuple[str, list[int]]:
    """The letters and digits of a text in one form, and the place of each in the text."""
    letters, places = "", []
    for place, character in enumerate(text):
        plain = _UNWRITTEN.sub("", unicodedata.normalize("NFKD", character).casefold())
        letters += plain
        places += [place] * len(plain)
    return letters, places


def _places(text: str, quote: str) -> tuple[list[int], bool]:
    """The places in a text of the letters of a quote, and whether no word or number goes on around them."""
    letters, places = _letters(text)
    start = first = letters.find(quote)
    while start >= 0:
        end = start + len(quote)
        before = start > 0 and _goes_on(text, places[start - 1], places[start])
        if not before and not (end < len(places) and _goes_on(text, places[end - 1], places[end])):
            return places[start:end], True
        start = letters.find(quote, start + 1)
    return places[first : first + len(quote)] if first >= 0 else [], False


def _goes_on(text: str, left: int, right: int) -> bool:
    """Whether a letter and the next one are in the same word or number; Chinese does not show its words."""
    between = "".join(sign for sign in text[left + 1 : right] if not unicodedata.combining(sign))
    if between:
        return bool(_IN_NUMBER.fullmatch(between)) and text[left].isdigit() and text[right].isdigit()
    return left == right or not (_is_wide(text[left]) or _is_wide(text[right]))


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _on_page(page: Any, quote: str, *, ocr: bool) -> tuple[list[Rectangle], bool]:
    with closing(page.get_textpage()) as text_page:
        count = raw.FPDFText_CountChars(text_page)
        text = "".join(chr(raw.FPDFText_GetUnicode(text_page, n)) for n in range(count))
        if text.strip() or not ocr:
            places, whole = _places(text, quote)
            if not places:
                return [], False
            rectangles = range(text_page.count_rects(places[0], places[-1] + 1 - places[0]))
            return [_rounded(*text_page.get_rect(n)) for n in rectangles], whole
    return _in_scan(page, quote)


def _in_scan(page: Any, quote: str) -> tuple[list[Rectangle], bool]:
    """Find a quote in the picture of a page: of each line the part that has it, by the widths of characters."""
    image, to_page = page_picture(page)
    reading = recognise(image)
    boxes = ordered_boxes(reading.boxes, reading.picture)
    owners = [(number, place) for number, box in enumerate(boxes) for place in range(len(box.text) + 1)]
    quoted, whole = _places("".join(f"{box.text}\n" for box in boxes), quote)
    spans: dict[int, list[int]] = {}
    for number, place in (owners[place] for place in quoted):
        spans.setdefault(number, []).append(place)
    found = []
    for number, places in spans.items():
        corners = [reading.given(x, y) for x, y in _part(boxes[number], min(places), max(places) + 1)]
        xs, ys = zip(*(to_page(x, y) for x, y in corners), strict=True)
        found.append(_rounded(min(xs), min(ys), max(xs), max(ys)))
    return found, whole


def _rounded(left: float, bottom: float, right: float, top: float) -> Rectangle:
    return round(left, 2), round(bottom, 2), round(right, 2), round(top, 2)


def _part(box: Box, start: int, end: int) -> list[tuple[float, float]]:
    """The corners of a stretch of a line; Chinese characters are twice as wide as others."""
    widths = [2 if _is_wide(character) else 1 for character in box.text]
    shares = sum(widths[:start]) / sum(widths), sum(widths[:end]) / sum(widths)
    top_left, top_right, low_right, low_left = box.corners
    return [
        (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))
        for a, b in ((top_left, top_right), (low_left, low_right))
        for share in shares
    ]
