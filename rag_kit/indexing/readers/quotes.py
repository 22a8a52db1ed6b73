"""Places of a quote on the pages of a PDF, by its text or, on scanned pages, by OCR."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import Any

import pypdfium2.raw as raw

from rag_kit.indexing.readers.ocr import page_picture, recognise
from rag_kit.indexing.readers.ocr_layout import ordered_boxes
from rag_kit.indexing.readers.parts import Context, Part, leave_out
from rag_kit.indexing.readers.pdf import open_pdf

# signs of markdown, which pages do not show: of headings, items, tables, bold text, code
_MARKS = re.compile(r"^\s*(?:#{1,6}\s|[-*]\s|\|)|[|*`]|\\(?=#)|^\s*\|?[\s|:-]+\|?\s*$", re.M)
# Blanks, hyphens at line ends, signs that readers change, accents; not those that tell Japanese letters apart.
_UNWRITTEN = re.compile("[^\\w\u3099\u309a]|_")
_IN_NUMBER = re.compile("[.,'\u2019\u00a0\u2009\u202f]")  # between the digits of one number
Rectangle = tuple[float, float, float, float]


def find_quote(data: bytes, context: Context) -> Iterator[Part]:
    """Yield one part, as JSON: page and rectangles of a quote, at best of whole words; ``null`` if it is not there."""
    quote, _ = _letters(_MARKS.sub(" ", context.quote))
    found, is_whole = None, False
    with closing(open_pdf(data)) as document:
        context.check(len(document), "pages", "max_pages")
        for number in range(1, len(document) + 1):
            if not quote or is_whole or context.page not in (0, number):
                continue
            with leave_out(f"page {number}"), closing(document[number - 1]) as page:
                boxes, is_whole = _find_on_page(page, quote, ocr=context.ocr and found is None)
                if boxes and (is_whole or not found):
                    rounded = [[round(side, 2) for side in box] for box in boxes]
                    found = {"page": number, "boxes": rounded}
    yield Part(json.dumps(found))


def _letters(text: str) -> tuple[str, list[int]]:
    """Reduce a text to its letters and digits in small letters, without accents; return the offset of each, too."""
    letters, offsets = "", []
    for offset, character in enumerate(text):
        plain = _UNWRITTEN.sub("", unicodedata.normalize("NFKD", character).casefold())
        letters += plain
        offsets += [offset] * len(plain)  # a ligature gives several letters
    return letters, offsets


def _find_letters(text: str, quote_letters: str) -> tuple[list[int], bool]:
    """Return the offsets of a quote's letters in a text ([] without it), best as whole words, and whether they are."""
    letters, offsets = _letters(text)
    first = start = letters.find(quote_letters)
    while start >= 0:
        end = start + len(quote_letters)
        starts_inside_word = start > 0 and _are_in_one_word(text, offsets[start - 1], offsets[start])
        ends_inside_word = end < len(offsets) and _are_in_one_word(text, offsets[end - 1], offsets[end])
        if not starts_inside_word and not ends_inside_word:
            return offsets[start:end], True
        start = letters.find(quote_letters, start + 1)
    return (offsets[first : first + len(quote_letters)] if first >= 0 else []), False


def _are_in_one_word(text: str, left: int, right: int) -> bool:
    """Tell whether neighbouring letters, at two offsets, are in one word or number; Chinese ones never are."""
    between = "".join(sign for sign in text[left + 1 : right] if not unicodedata.combining(sign))
    if between:
        return bool(_IN_NUMBER.fullmatch(between)) and text[left].isdigit() and text[right].isdigit()
    is_one_sign = left == right  # such as a ligature, of which both are letters
    return is_one_sign or not (_is_wide(text[left]) or _is_wide(text[right]))


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _find_on_page(page: Any, quote: str, *, ocr: bool) -> tuple[list[Rectangle], bool]:
    """Return the rectangles of a quote on a page ([] if it is not there), and whether it is of whole words."""
    with closing(page.get_textpage()) as text_page:
        count = raw.FPDFText_CountChars(text_page)
        text = "".join(chr(raw.FPDFText_GetUnicode(text_page, n)) for n in range(count))
        offsets, is_whole = _find_letters(text, quote)
        if not offsets:  # a scan may have a stamp with text
            return _find_in_scan(page, quote) if ocr else ([], False)
        rectangle_count = text_page.count_rects(offsets[0], offsets[-1] + 1 - offsets[0])
        return [text_page.get_rect(n) for n in range(rectangle_count)], is_whole


def _find_in_scan(page: Any, quote: str) -> tuple[list[Rectangle], bool]:
    """Recognise a page, and return the rectangles of a quote, one for each line, as `_find_on_page` does."""
    image, to_page = page_picture(page)
    reading = recognise(image)
    boxes = ordered_boxes(reading.boxes, reading.picture)
    text = "".join(f"{box.text}\n" for box in boxes)
    positions = [(line, n) for line, box in enumerate(boxes) for n in range(len(box.text) + 1)]
    offsets, is_whole = _find_letters(text, quote)
    rectangles = []
    for line, group in groupby((positions[offset] for offset in offsets), key=itemgetter(0)):
        columns = [column for _, column in group]  # which characters of the line are of the quote
        # the places of characters are estimated by their widths; Chinese ones are twice as wide
        widths = [2 if _is_wide(character) else 1 for character in boxes[line].text]
        shares = [sum(widths[:end]) / sum(widths) for end in (min(columns), max(columns) + 1)]
        top_left, top_right, low_right, low_left = boxes[line].corners
        corners = [  # of the quote: where its shares of the top and the bottom side begin and end
            (left + share * (right - left), left_y + share * (right_y - left_y))
            for (left, left_y), (right, right_y) in ((top_left, top_right), (low_left, low_right))
            for share in shares
        ]
        xs, ys = zip(*(to_page(*reading.to_given(x, y)) for x, y in corners), strict=True)
        rectangles.append((min(xs), min(ys), max(xs), max(ys)))
    return rectangles, is_whole
