"""Bytes to text: byte order marks, UTF-8, declared charsets, then GB18030 or Big5 if the characters are usual ones.

General detectors need long texts to tell GB18030 from Big5; a short note is often all there is.
"""

from __future__ import annotations

import codecs
import re
from functools import cache
from itertools import product

from rag_kit.indexing.readers.parts import Unreadable

_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before the mark of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""")
_ALIASES = {  # declared name -> the larger encoding that its files are really in, as browsers do
    "gb2312 gbk gb_2312-80 x-gbk": "gb18030",
    "big5 big5-hkscs x-x-big5": "big5hkscs",
    "iso-8859-1 latin-1 ascii us-ascii": "cp1252",
    "euc-kr ks_c_5601-1987": "cp949",
    "shift_jis x-sjis shift-jis": "cp932",
}
# first and last lead byte, first trail byte of the frequent half of an encoding's table
_USUAL_BYTES = {"gb18030": (0xB0, 0xD7, 0xA1), "big5hkscs": (0xA4, 0xC6, 0x40)}
_MARKS = "，。、；：？！“”‘’（）《》〈〉「」『』【】…—·～％　"
_MIN_USUAL = 0.55
_SAMPLE = 200_000
_STRANGE = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")


@cache
def _usual_characters(encoding: str) -> frozenset[str]:
    """Chinese characters of everyday use in an encoding, and punctuation."""
    first, last, trail = _USUAL_BYTES[encoding]
    pairs = map(bytes, product(range(first, last + 1), range(trail, 0xFF)))
    return frozenset(_MARKS).union(*(pair.decode(encoding, "ignore") for pair in pairs))


def _share_of_usual(data: bytes, encoding: str) -> float:
    """The share of the characters beyond ASCII that are of everyday use; 0 where the bytes are of no such text."""
    if not _decodes(data, encoding):
        return 0.0
    characters = [character for character in data.decode(encoding)[:_SAMPLE] if character > "\x7f"]
    usual = _usual_characters(encoding)
    return sum(character in usual for character in characters) / max(1, len(characters))


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def detect(data: bytes, *, markup: bool = False) -> str:
    """The encoding of a text file, as a Python codec name.

    Args:
        data: The bytes, without a byte order mark.
        markup: Whether a declaration in the first 4 KB (HTML ``meta``, XML) is to be believed.

    Example:
        >>> detect("检索增强生成把检索与生成结合在一起。".encode("gb18030"))
        'gb18030'
        >>> detect("café au lait, déjà vu".encode("cp1252"))
        'cp1252'
    """
    if _decodes(data, "utf-8"):
        return "utf-8"
    if markup and (match := _DECLARED.search(data[:4096])):
        declared = match.group(1).decode("ascii").lower()
        name = next((wide for names, wide in _ALIASES.items() if declared in names.split()), declared)
        if _decodes(data, name):
            return name
    shares = {encoding: _share_of_usual(data, encoding) for encoding in _USUAL_BYTES}
    best = max(shares, key=lambda encoding: shares[encoding])
    return best if shares[best] > _MIN_USUAL else "cp1252"


def decode(data: bytes, *, markup: bool = False) -> str:
    r"""Text of a file whose encoding is not known; line ends become ``\n``.

    Raises:
        Unreadable: The bytes are binary, not text.

    Example:
        >>> decode(b"\xef\xbb\xbfhello\r\nworld")
        'hello\nworld'
    """
    mark = next((mark for mark in _BOMS if data.startswith(mark)), b"")
    data = data.removeprefix(mark)
    text = data.decode(_BOMS[mark] if mark else detect(data, markup=markup), "replace")
    sample = text[:_SAMPLE]
    if len(_STRANGE.findall(sample)) > 0.02 * len(sample) + 1:
        raise Unreadable(
            "it holds binary data, not text",
            "Give it the suffix of its real format, or save it as UTF-8 text",
        )
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
