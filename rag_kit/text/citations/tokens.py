"""The tokens in which a statement is compared with its passage: words, names and numbers in one form."""

from __future__ import annotations

import re
import unicodedata
from itertools import islice
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.language import fold
from rag_kit.text.segment import tag_words

_MAX_TOKENS = 1200
_MAX_NUMERAL = 30
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HAN_DIGITS = "〇零一二两三四五六七八九"
_TOKEN = re.compile(
    rf"(?P<number>\d+(?:[.,]\d+)*)(?P<factor>[万亿]?)|(?P<han>[{_HAN}]+)|[%$€£¥]"
    rf"|[^\W\d_{_HAN}]+(?:['’][^\W\d_{_HAN}]+)*"
)
_COUNTED = "年月日天周秒岁个名位次倍度点米公厘毫千英元块只本部章层条项座家种国所人分小时届世支台辆间号件页吨克升群万亿"
# A Chinese numeral is one where it counts something; elsewhere it is a part of a word (一直, 万一, 三明治).
_HAN_NUMBER = re.compile(rf"([{_HAN_DIGITS}十百千万亿]{{2,}}|[{_HAN_DIGITS}十百千万](?=[{_COUNTED}]))")
_NAME_TAGS = ("nr", "ns", "nt")
_ACTION_TAGS = "vdpcrfquyeo"
"""Parts of speech in which a paraphrase varies freely: verbs, adverbs, prepositions, conjunctions ..."""
_COUNTING = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_NUMBERS = {word: str(value) for value, word in enumerate(_COUNTING.split())}
_NUMBERS |= {word: f"{tens}0" for tens, word in enumerate(_TENS.split(), start=3)}


class Token(NamedTuple):
    """A token: its normal form, and whether it is a number, a name, a content word, and one for a thing.

    Content words are stemmed, so that "founded" and "founds" are the same token. Of English words nothing tells which
    are verbs, so that each content word counts as a thing.
    """

    key: str
    number: bool = False
    name: bool = False
    content: bool = False
    thing: bool = False


def tokens(text: str) -> list[Token]:
    """The tokens of a text; Chinese is cut into words, and "three", "三" and "3" are the same number.

    Example:
        >>> [token.key for token in tokens("Ada paid $1,200 给他三年")]
        ['ada', 'paid', '$', '1200', '给', '他', '3', '年']
    """
    row: list[Token] = []
    for match in islice(_TOKEN.finditer(text), _MAX_TOKENS):
        if match["number"]:
            row.append(_number(_plain_number(match["number"], match["factor"])))
        elif match["han"]:
            row.extend(_han_tokens(fold(match["han"])))
        else:
            row.append(_latin_token(match.group()))
    if row and row[0].name and not (len(row) > 1 and row[1].name):
        row[0] = row[0]._replace(name=False)  # the first word of a sentence has its capital from there
    return row


def _number(key: str) -> Token:
    return Token(key, number=True, content=True, thing=True)


def _plain_number(digits: str, factor: str) -> str:
    """A number without separators of thousands, and ``1.5万`` as ``15000``."""
    digits = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", digits)
    try:
        return f"{float(digits) * unicodedata.numeric(factor):.0f}" if factor else digits
    except ValueError:  # 1.2.3, which counts nothing
        return digits


def _latin_token(word: str) -> Token:
    """A word by its stem, or a number in words by its digits; "one" counts nothing."""
    key = fold(word)
    if key in _NUMBERS:
        return Token(key) if key == "one" else _number(_NUMBERS[key])
    stems = content_words(word)
    if not stems:
        return Token(key)
    return Token(stems[0], name=word[0].isupper(), content=True, thing=True)


def _han_tokens(run: str) -> list[Token]:
    """The words and numbers of a run of Chinese characters; 一 alone counts nothing."""
    row: list[Token] = []
    for place, part in enumerate(_HAN_NUMBER.split(run)):
        if place % 2:
            row.append(Token("1") if part == "一" else _number(han_number(part)))
            continue
        for word, tag in tag_words(part) if part else []:
            content = bool(content_words(word))
            name = content and len(word) > 1 and tag.startswith(_NAME_TAGS)
            thing = content and (tag == "vn" or tag[0] not in _ACTION_TAGS)
            row.append(Token(word, name=name, content=content, thing=thing))
    return row


def han_number(text: str) -> str:
    """``二十三`` as ``23``; digits one by one (一九三三) as they stand.

    Example:
        >>> han_number("二十三"), han_number("一九三三"), han_number("两千"), han_number("一亿二千万")
        ('23', '1933', '2000', '120000000')
    """
    digits = [int(unicodedata.numeric(mark, 2)) for mark in text]  # 两 has no value of its own there
    return "".join(map(str, digits)) if max(digits) < 10 else str(_add_up(digits[:_MAX_NUMERAL]))


def _add_up(values: list[int]) -> int:
    """The sum of numerals such as 2, 10, 3: what stands before the highest multiplies it, the rest is added."""
    highest = max(values, default=0)
    if highest < 10:
        return values[-1] if values else 0
    place = values.index(highest)
    return (_add_up(values[:place]) or 1) * highest + _add_up(values[place + 1 :])
