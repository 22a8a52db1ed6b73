"""Bytes to text: byte order marks, UTF-8, declared charsets, then the legacy encodings of East Asia, then chardet.

chardet gives up on East Asian text with a damaged byte, and errs on short Japanese. So each East Asian candidate that
decodes the bytes, but for a few damaged ones, is scored by how many of its characters people really write; chardet
decides the rest (decision 0041 has the figures).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, product

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.parts import Unreadable, read_table

_BOMS = {  # in this order: a mark of UTF-16 begins one of UTF-32
    "utf-8-sig": (codecs.BOM_UTF8,),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""")
# larger encoding -> the declared names of files that are really in it, as browsers read them
_ALIASES = read_table("charsets.txt")
_TWO_CHARACTERS = re.compile(rb"[\x80-\xff]{4}")  # two East Asian ones, beside each other
_EAST_ASIAN = ("gb18030", "big5hkscs", "cp949", "cp932", "euc_jp")
_EAST_ASIAN_ANSWERS = (*_EAST_ASIAN[:-1], "euc_jis_2004")  # as chardet names them
#: What chardet may answer; of the code pages of DOS, Macintosh and mainframes those that files are still in.
_ANSWERS = (
    *(*_EAST_ASIAN_ANSWERS, "cp866", "koi8-r", "koi8-u", "cp874"),
    *(f"cp125{n}" for n in range(8)),
    *("iso8859-2", "iso8859-5", "iso8859-7", "iso8859-15"),
)
_SEVEN_BIT = ("iso-2022", "hz", "utf-7")  # their bytes are all ASCII
_SHIFTS = {  # the codecs of ASCII bytes that are tried where such bytes are found
    re.compile(rb"\x1b\$"): ("iso2022_jp_ext", "iso2022_jp_2", "iso2022_kr"),
    re.compile(rb"~\{"): ("hz",),
    re.compile(rb"\+[A-Za-z0-9+/]{3}"): ("utf-7",),
}
_LOW = re.compile(rb"[\x00-\x08\x0e-\x1a]")  # bytes that other encodings of texts do not have
_SHORT = 16  # bytes; the characters of a shorter text may be usual by chance
_USUAL = 0.9  # of the characters of a text in UTF-16 without a mark, and of those written in ASCII bytes
_WHOLE_FOR_DAMAGED = 4  # well-formed sequences for each damaged one in UTF-8; in GB18030 and Thai 1.5 look so
_FEW_DAMAGED = 2  # sequences
_MIN_SCORE = 0.55  # of an East Asian text
_CLEAR_SCORE = 1.0  # of one, even where chardet takes it for another
_SAMPLE = 200_000  # characters that are scored
_CHARACTERS_PER_DAMAGE = 50
_DAMAGE = re.compile("\ufffd+")
# a Greek, Cyrillic or Hebrew letter beside a Latin one
_MIXED = re.compile(r"(?<=[A-Za-z])[\u0370-\u05ff]|[\u0370-\u05ff](?=[A-Za-z])")
_ALONE = re.compile(  # signs of cp1252 that stand alone, such as £5, 40 °C and m²: too little for chardet
    rb"(?<![\x80-\xff])(?:[\x82\x84-\x87\x89\x8b\x91-\x97\x9b\xab\xb5\xbb]|(?<=[\dm])[\xb2\xb3](?![a-z])|(?<=\d)\xb9"
    rb"|(?<![A-Za-z])[\xb1\xbc-\xbe](?![A-Za-z])|\xb0[CF]?|[\x80\x99\xa2\xa3\xa5\xa7\xa9\xae\xb7\xd7\xf7](?![A-Za-z]))"
    rb"(?![\x80-\xff])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# lead and trail bytes of the frequent half of an encoding's table; kana too
_FREQUENT_ROWS = {encoding: rows.split(", ") for encoding, rows in read_table("frequent_rows.txt").items()}
# the most frequent characters of running text; they settle what the tables alone leave open
_FREQUENT = frozenset("".join(read_table("frequent_characters.txt").values()))


@cache
def _common_characters(encoding: str) -> frozenset[str]:
    """Return the characters of everyday use in an East Asian encoding: the frequent half of its table, punctuation."""
    common = set("，。、；：？！“”‘’（）《》〈〉「」『』【】…—·～％　")
    table = "euc_jp" if encoding == "cp932" else encoding  # the same characters under other bytes
    for row in _FREQUENT_ROWS[table]:
        first_lead, last_lead, first_trail, last_trail = bytes.fromhex(row)
        for pair in product(range(first_lead, last_lead + 1), range(first_trail, last_trail + 1)):
            common.update(bytes(pair).decode(table, "ignore"))
    return frozenset(common)


def _score_encoding(text: str, encoding: str) -> float:
    """Score how usual the characters of a decoded text are: the shares of common and very frequent ones, 0 to 2."""
    beyond_ascii = [character for character in text if character > "\x7f"]
    common, count = _common_characters(encoding), len(beyond_ascii) or 1
    usual = sum(character in common for character in beyond_ascii)
    frequent = sum(character in _FREQUENT for character in beyond_ascii)
    return usual / count + frequent / count


def _decode_nearly(data: bytes, encoding: str) -> str | None:
    """Decode a text, with U+FFFD for damage; None if over one in 50 characters beyond ASCII is damaged."""
    try:
        return data.decode(encoding)
    except LookupError:  # Python knows no such encoding
        return None
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
        return text if text.count("\ufffd") * _CHARACTERS_PER_DAMAGE <= beyond_ascii else None


def codec_of(name: str) -> str:
    """Return the codec for a declared charset, as browsers do: for some the larger one that files are really in."""
    name = name.strip().lower()
    return next((wide for wide, names in _ALIASES.items() if name in names.split()), name)


def _utf8_sequences(data: bytes) -> tuple[int, int]:
    """Count the well-formed UTF-8 sequences beyond ASCII, and the damaged ones; a sound text counts as (1, 0)."""
    try:
        data.decode("utf-8")
        return 1, 0
    except UnicodeDecodeError:
        text = _DAMAGE.sub("\ufffd", data.decode("utf-8", "replace"))
    damaged = text.count("\ufffd")
    return len(text) - len(text.encode("ascii", "ignore")) - damaged, damaged


def _detect(data: bytes, declared: str) -> str:
    """Return the codec of a text without a byte order mark: UTF-8 if it fits, else the declared one, else a guess."""
    is_possible = declared not in ("", "utf-8") and _decode_nearly(data, declared) is not None
    if is_possible and declared.startswith(_SEVEN_BIT):
        return declared
    well_formed, damaged = _utf8_sequences(data)
    if unmarked := _wide_or_shifted(data, is_utf8=not damaged):
        write_note(f"encoding guessed: {unmarked}")
        return unmarked
    if is_possible and declared in _EAST_ASIAN and not damaged and _is_only_by_chance_utf8(data, declared):
        return declared
    if well_formed >= _WHOLE_FOR_DAMAGED * damaged:
        return "utf-8"
    if is_possible:
        return declared
    guess = _guess(data, nearly_utf8=well_formed >= damaged and damaged <= _FEW_DAMAGED)
    write_note(f"encoding guessed: {guess}")
    return guess


def _is_only_by_chance_utf8(data: bytes, east_asian: str) -> bool:
    """Tell whether sound UTF-8 is really in an East Asian encoding: a few Chinese characters may read as Greek."""
    is_alphabetic = max(data.decode(), default="") < "\u0800"  # Latin, Greek, Cyrillic, Hebrew or Arabic
    if not is_alphabetic or not _TWO_CHARACTERS.search(data):
        return False
    return _score_encoding(data.decode(east_asian, "ignore")[:_SAMPLE], east_asian) >= 1


def _wide_or_shifted(data: bytes, *, is_utf8: bool) -> str:
    """Return the codec of UTF-16 without a mark, or of an encoding in ASCII bytes, as UTF-7; "" for other texts."""
    if not is_utf8 or _LOW.search(data):
        beginning = data[: _SAMPLE // 10]
        codecs_of_16_bits = ("utf-16-le", "utf-16-be")
        shares = {name: _usual_share(beginning.decode(name, "replace")) for name in codecs_of_16_bits}
        best = max(shares, key=shares.__getitem__)
        if len(data) > _SHORT and shares[best] >= _USUAL:
            return best
    shifts = _SHIFTS.items() if data.isascii() else ()
    for name in chain.from_iterable(names for mark, names in shifts if mark.search(data)):
        with suppress(UnicodeDecodeError):
            beyond_ascii = [character for character in data.decode(name) if character > "\x7f"]
            are_many = len(set(beyond_ascii)) > 2  # one or two may be there by chance
            if are_many and _usual_share(beyond_ascii) >= _USUAL:
                return name
    return ""


def _usual_share(text: Sequence[str]) -> float:
    """Return the share of a text's characters that are ASCII, of alphabets up to Thai, or common in East Asia."""
    common = frozenset("–—‘’“”„…€").union(*map(_common_characters, _FREQUENT_ROWS))
    usual = sum(" " <= c < "\x7f" or "\xa0" < c < "\u0e80" or c in common or c.isspace() for c in text)
    return usual / max(1, len(text))


def _guess(data: bytes, *, nearly_utf8: bool) -> str:
    """Guess a codec, by East Asian characters or chardet; a text that is ``nearly_utf8`` has two damaged sequences."""
    east_asian, is_clear = _guess_east_asian(data)
    if is_clear:
        return east_asian
    if nearly_utf8 and not east_asian:
        return "utf-8"
    if not east_asian and _ALONE.sub(b"", data).isascii():
        return "cp1252"
    import chardet  # here, since few texts need it

    if len(data) > _SAMPLE:  # chardet looks at the beginning, which may be all ASCII
        data = b"\n".join(line for line in data.split(b"\n") if not line.isascii())
    answer = chardet.detect(data, compat_names=False, include_encodings=_ANSWERS)["encoding"] or "cp1252"
    text = data[:_SAMPLE].decode(answer, "replace")
    if 2 * len(_MIXED.findall(text)) > sum("\u0370" <= letter < "\u0600" for letter in text):
        answer = "cp1252"  # é and ñ, in words of Latin letters
    if east_asian and answer in _EAST_ASIAN_ANSWERS:
        return east_asian
    return "utf-8" if nearly_utf8 else answer


def _guess_east_asian(data: bytes) -> tuple[str, bool]:
    """Return the East Asian codec in which a text looks most usual, or ""; and whether that is sure without chardet."""
    best, best_score, damaged = "", _MIN_SCORE, False
    for encoding in _EAST_ASIAN:
        text = _decode_nearly(data, encoding)
        if text is None:
            continue
        score = _score_encoding(text[:_SAMPLE], encoding)
        if score > best_score + 1e-9:  # of equal ones the first
            best, best_score, damaged = encoding, score, "\ufffd" in text
    return best, bool(best) and (damaged or best_score > _CLEAR_SCORE)


def decode(data: bytes, *, markup: bool = False, declared: str = "") -> str:
    r"""Decode a text whose encoding is not known; line ends become ``\n``; raises `Unreadable` for binary data.

    A damaged sequence becomes one U+FFFD; that, and an encoding that is guessed, are written as notes. With ``markup``
    a declaration in the first 4 KB is believed; ``declared`` is one from elsewhere, such as the header of a mail.

    Example:
        >>> decode(b"\xef\xbb\xbfhello\r\nworld")
        'hello\nworld'
    """
    marked = next((encoding for encoding, marks in _BOMS.items() if data.startswith(marks)), "")
    if not declared and markup and (found := _DECLARED.search(data[:4096])):
        declared = found[1].decode("ascii")
    encoding = marked or _detect(data, codec_of(declared))
    if encoding == "cp1252" and data.startswith(b"\x00"):
        encoding = "utf-8"  # binary data, more likely; its damage shows below
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = _DAMAGE.sub("\ufffd", data.decode(encoding, "replace"))
        write_note(f"damaged at {text.count(chr(0xFFFD))} places, read as {encoding}")
    sample = text[:_SAMPLE]
    strange = len(_CONTROLS.findall(sample)) + sample.count("\ufffd")
    if strange > 0.02 * len(sample) + 2:  # two percent, and a few in a short text
        advice = "Give it the suffix of its real format, or save it as UTF-8 text"
        raise Unreadable("it holds binary data, not text", advice)
    return re.sub("[\ufeff\x00]", "", text.replace("\r\n", "\n").replace("\r", "\n"))
