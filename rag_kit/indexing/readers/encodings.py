"""Bytes to text: byte order marks, UTF-8, declared charsets, then the legacy encodings of East Asia and Europe.

General detectors need long texts to tell GB18030 from Big5 and Korean. Here each candidate that decodes the bytes, but
for a few damaged ones, is scored by how many of its characters people really write.
"""

from __future__ import annotations

import codecs
import re
from functools import cache
from itertools import product

from rag_kit.indexing.readers.parts import Unreadable

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""")
_ALIASES = {  # declared name -> the larger encoding that its files are really in, as browsers do
    "gb2312 gbk gb_2312-80 x-gbk": "gb18030",
    "big5 big5-hkscs x-x-big5": "big5hkscs",
    "iso-8859-1 latin-1 ascii us-ascii": "cp1252",
    "euc-kr ks_c_5601-1987": "cp949",
    "shift_jis x-sjis shift-jis": "cp932",
}
_CANDIDATES = ("gb18030", "big5hkscs", "cp949", "cp932", "euc_jp")
_SAMPLE = 200_000  # characters that are scored
_CHARACTERS_PER_DAMAGE = 50
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


_ROWS = {  # lead and trail bytes of the frequent half of an encoding's table; kana too
    "gb18030": ["b0d7 a1fe"],
    "big5hkscs": ["a4c6 407e", "a4c6 a1fe"],
    "cp949": ["b0c8 a1fe"],
    "euc_jp": ["b0cf a1fe", "a4a5 a1fe"],
}
_ROWS_OF = {"cp932": "euc_jp"}  # the same characters under other bytes


@cache
def _common_characters(encoding: str) -> frozenset[str]:
    """Characters of everyday use in an encoding: the frequent half of its table, kana, hangul, punctuation."""
    common = set("，。、；：？！“”‘’（）《》〈〉「」『』【】…—·～％　")
    name = _ROWS_OF.get(encoding, encoding)
    for row in _ROWS[name]:
        first, last, low, high = bytes.fromhex(row)
        for lead, trail in product(range(first, last + 1), range(low, high + 1)):
            common.update(bytes((lead, trail)).decode(name, "ignore"))
    return frozenset(common)


# The most frequent characters of running text; they settle what the tables alone leave open.
_FREQUENT = frozenset(
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么心多天"
    "能好用于方成者行法所分作文同理工其这進這個們國來說會時為學對後過"
    "이다는을를의에가은고하한지로기서사도자대인어나시해리과"
    "のにはをたがでてとしれさるいなも"
)


def _score_encoding(text: str, encoding: str) -> float:
    """How usual the characters of a decoded text are for its encoding, from 0 to 2."""
    high = [character for character in text if character > "\x7f"]
    if not high:
        return 0.0
    common = _common_characters(encoding)
    usual = sum(1 for character in high if character in common)
    frequent = sum(1 for character in high if character in _FREQUENT)
    return usual / len(high) + frequent / len(high)


def _decode_nearly(data: bytes, encoding: str) -> str | None:
    """The text, if at most one in 50 of its characters beyond ASCII is damaged: a file cut short, a byte pasted in."""
    try:
        return data.decode(encoding)
    except LookupError:
        return None
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
        return text if text.count("\ufffd") * _CHARACTERS_PER_DAMAGE <= beyond_ascii else None


def _declared_encoding(data: bytes) -> str | None:
    match = _DECLARED.search(data[:4096])
    name = match.group(1).decode("ascii").lower() if match else ""
    return next((wide for names, wide in _ALIASES.items() if name in names.split()), name or None)


def detect(data: bytes, *, markup: bool = False) -> str:
    """The encoding of a text file without a byte order mark, as a Python codec name.

    With ``markup``, a declaration in the first 4 KB (HTML ``meta``, XML) is believed.
    """
    if _decode_nearly(data, "utf-8") is not None:
        return "utf-8"
    if markup:
        name = _declared_encoding(data)
        if name and name != "utf-8" and _decode_nearly(data, name) is not None:
            return name
    best, best_score = "cp1252", 0.55
    for encoding in _CANDIDATES:
        text = _decode_nearly(data, encoding)
        if text is not None:
            score = _score_encoding(text[:_SAMPLE], encoding)
            if score > best_score + 1e-9:
                best, best_score = encoding, score
    return best


def decode(data: bytes, *, markup: bool = False) -> str:
    r"""Text of a file whose encoding is not known; line ends become ``\n``; raises `Unreadable` for binary data.

    Example:
        >>> decode(b"\xef\xbb\xbfhello\r\nworld")
        'hello\nworld'
    """
    marked = (encoding for mark, encoding in _BOMS if data.startswith(mark))
    encoding = next(marked, "") or detect(data, markup=markup)
    if encoding == "cp1252" and data.startswith(b"\x00"):
        encoding = "utf-8"
    text = data.decode(encoding, "replace")
    sample = text[:_SAMPLE]
    strange = len(_CONTROLS.findall(sample)) + sample.count("\ufffd")
    if strange > 0.02 * len(sample) + 1:
        raise Unreadable(
            "it holds binary data, not text",
            "Give it the suffix of its real format, or save it as UTF-8 text",
        )
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
