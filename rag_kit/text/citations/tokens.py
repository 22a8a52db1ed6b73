"""Tokens for comparing a statement with its source: words, numbers and names of both languages in one form."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.fold import fold
from rag_kit.text.segment import tagged_words

_HAN_CLASS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HAN = re.compile(f"[{_HAN_CLASS}]")
_HAN_DIGITS = "〇零一二两三四五六七八九十百千万亿"
_TOKEN = re.compile(
    rf"(?P<number>\d+(?:[.,]\d+)*)(?P<myriads>[万亿]?)|(?P<han>[{_HAN_CLASS}]+)|(?P<sign>[%$€£¥])"
    rf"|[^\W\d_{_HAN_CLASS}]+(?:['’][^\W\d_{_HAN_CLASS}]+)*"
)
_COUNTED = "年月日天周秒岁个名位次倍度点米公厘毫千英元块只本部章层条项座家种国所人分小时届世支台辆间号件页吨克升群万亿"
# A Chinese numeral is one where it counts something; elsewhere it is a part of a word (一直, 万一, 三明治).
_HAN_NUMBER = re.compile(rf"([{_HAN_DIGITS}]{{2,}}|[{_HAN_DIGITS[:-2]}](?=[{_COUNTED}]))")
_NAME_TAGS = frozenset(["nr", "ns", "nt", "nrt", "nrfg"])
_ACTION_TAGS = "vdpcrfquyeo"
"""Parts of speech in which a paraphrase varies freely: verbs, adverbs, prepositions, conjunctions ..."""
_COUNTING = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTING.split())}
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_NUMBER_WORDS |= {word: f"{number}0" for number, word in enumerate(_TENS.split(), start=3)}
_UNITS = {
    name: names.split()[0]
    for names in (
        "m metre metres meter meters 米", "km kilometre kilometres kilometer kilometers 公里 千米",
        "cm centimetre centimetres centimeter centimeters 厘米", "kg kilogram kilograms kilo kilos 公斤 千克",
        "% percent 百分", "$ dollar dollars 美元", "€ euro euros 欧元", "£ pound pounds 英镑", "¥ yuan 元",
        "mm millimetre millimetres millimeter millimeters 毫米", "am a.m", "pm p.m", "天 日",
    )
    for name in names.split()
}  # fmt: skip
UNITS = frozenset(_UNITS.values())


class Token(NamedTuple):
    """A token: its normal form, and whether it is a number, a name, a content word, and one for a thing.

    Content words are stemmed, so that "founded" and "founds" are the same token. Of English words nothing tells which
    are verbs, so that each content word counts as a thing.
    """

    key: str
    number: bool
    name: bool
    content: bool
    thing: bool


def tokens(text: str, *, limit: int = 1200) -> list[Token]:
    """The tokens of a text; Chinese is cut into words, and "three", "三" and "3" are the same number.

    Example:
        >>> [token.key for token in tokens("Ada paid $1,200 给他三年")]
        ['ada', 'paid', '$', '1200', '给', '他', '3', '年']
    """
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        if len(found) >= limit:
            break
        raw = match.group()
        if match["number"]:
            number = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", match["number"])
            if match["myriads"]:
                number = _times(number, 10_000 if match["myriads"] == "万" else 100_000_000)
            found.append(Token(number, True, False, True, True))
        elif match["han"]:
            found.extend(_han_tokens(fold(raw), counted=bool(found) and found[-1].number))
        else:
            found.append(_latin_token(raw))
    if found and found[0].name and not (len(found) > 1 and found[1].name):
        found[0] = found[0]._replace(name=False)  # the first word of a sentence has its capital from there
    return found[:limit]


def _times(number: str, factor: int) -> str:
    """``1.5`` times 10,000 as ``15000``; what is no decimal number stays."""
    whole, _, part = number.partition(".")
    if not f"{whole}{part}".isdecimal() or len(part) > 8:
        return number
    value = int(whole + part) * factor // 10 ** len(part)
    return str(value)


def _latin_token(raw: str) -> Token:
    key = fold(raw)
    if key in _UNITS:
        return Token(_UNITS[key], False, False, False, False)
    if key in _NUMBER_WORDS:
        return Token(_NUMBER_WORDS[key], key != "one", False, key != "one", key != "one")
    stems = content_words(raw)
    return Token(
        stems[0] if stems else key, False, bool(stems) and raw[0].isupper(), bool(stems), bool(stems)
    )


def _han_tokens(run: str, *, counted: bool) -> list[Token]:
    if counted and run[0] in "年月日":  # "31 日前": what a number counts is no part of the word behind
        unit = Token(_UNITS.get(run[0], run[0]), False, False, False, False)
        return [unit, *_han_tokens(run[1:], counted=False)]
    found: list[Token] = []
    for place, part in enumerate(_HAN_NUMBER.split(run)):
        if place % 2:
            number = _han_number(part)
            counts = part != "一"
            found.append(Token(number, counts, False, counts, counts))
            continue
        for word, tag in tagged_words(part) if part else []:
            measure = _UNITS.get(word)
            content = not measure and bool(content_words(word))
            name = content and len(word) > 1 and tag in _NAME_TAGS
            thing = content and (tag == "vn" or tag[0] not in _ACTION_TAGS)
            found.append(Token(measure or word, False, name, content, thing))
    return found


def _han_number(text: str) -> str:
    """``二十三`` as ``23``; digits one by one (一九三三) as they stand.

    Example:
        >>> _han_number("二十三"), _han_number("一九三三"), _han_number("四百"), _han_number("十")
        ('23', '1933', '400', '10')
    """
    digits = {mark: value for value, mark in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
    if not any(mark in "十百千万亿" for mark in text):
        return "".join(str(digits[mark]) for mark in text)
    total = section = digit = 0
    for mark in text:
        if mark in digits:
            digit = digits[mark]
        elif mark in "万亿":
            total = (total + section + digit or 1) * (10_000 if mark == "万" else 100_000_000)
            section = digit = 0
        else:
            section += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[mark]
            digit = 0
    return str(total + section + digit)
