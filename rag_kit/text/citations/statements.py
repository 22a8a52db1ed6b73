"""An answer taken apart: its statements, each with the numbers that it cites, and the tokens of a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.language import fold
from rag_kit.text.segment import tagged_words
from rag_kit.text.sentences import sentences

MAX_ANSWER = 100_000
"""Characters of an answer that are looked at."""

MAX_STATEMENTS = 500
_MAX_RANGE = 20
_MARK = re.compile(
    r"[\[［【]\s{0,4}(?P<numbers>\d{1,6}(?:\s{0,4}(?:[,，、;；–—~-]|and|和)\s{0,4}\d{1,6}){0,40})\s{0,4}[\]］】]"
)
_BLANK_AND_MARK = re.compile(rf"(?P<blank>\s?){_MARK.pattern}")
_PLAIN = re.compile(r"\[(\d{1,6})\]")
# begins where a run of blanks begins, so that a long run is looked at once and not from each of its blanks
_SPACE_BEFORE = re.compile(r"(?<![ \t])[ \t]++(?=\[\d{1,6}\])")
_LEADING = re.compile(r"^(?:\s*\[\d{1,6}\])+")
_RANGE = re.compile(r"(\d{1,6})\s{0,4}[–—~-]\s{0,4}(\d{1,6})")
_NO_STATEMENT = re.compile(
    r"^\s*(?:#{1,6}\s.*|[-*•·]?\s*(?:\*\*)?[^.!?。！？]{0,120}[:：](?:\*\*)?\s*|[\W_]*)$", re.DOTALL
)


class Statement(NamedTuple):
    """A statement of an answer and the numbers that it cites, each once, in order."""

    text: str
    numbers: tuple[int, ...]


def statements(answer: str) -> list[Statement]:
    """Cut an answer into statements with their citations.

    Marks may be ``[1]``, ``[1, 2]``, ``[1-3]``, ``[1][2]``, ``【1】`` or ``［1］``, before or after the full
    stop, or on the next line. A sentence with several marks is cut at them where each part says something.
    Headings and lines that only introduce a list are no statements.

    Args:
        answer: The answer; MAX_ANSWER characters and MAX_STATEMENTS statements are looked at.

    Example:
        >>> statements("A cat sleeps [1]. Dogs bark loudly 【2、3】。")
        [Statement(text='A cat sleeps.', numbers=(1,)), Statement(text='Dogs bark loudly。', numbers=(2, 3))]
    """
    plain = _SPACE_BEFORE.sub("", _MARK.sub(_normal, answer[:MAX_ANSWER]))
    found: list[Statement] = []
    for sentence in sentences(plain):
        text = sentence.text
        leading = _LEADING.match(text)
        if leading and found and not found[-1].numbers:
            found[-1] = Statement(found[-1].text, _numbers(leading.group()))
            text = text[leading.end() :]
        if len(found) >= MAX_STATEMENTS:
            break
        found.extend(part for part in _parts(text) if part.numbers or not _NO_STATEMENT.match(part.text))
    return found[:MAX_STATEMENTS]


def renumbered(answer: str, numbers: Mapping[int, int]) -> str:
    """An answer with other numbers in its marks; a number that has no other is left out.

    Example:
        >>> renumbered("Tea is hot [1, 2]. So is coffee【3】.", {1: 4, 3: 1})
        'Tea is hot [4]. So is coffee[1].'
        >>> renumbered("Tea is hot [1].", {})
        'Tea is hot.'
    """

    def other(match: re.Match[str]) -> str:
        found = [numbers[n] for n in _numbers(_normal(match)) if n in numbers]
        return match["blank"] + "".join(f"[{n}]" for n in found) if found else ""

    return _BLANK_AND_MARK.sub(other, answer)


def _normal(match: re.Match[str]) -> str:
    """A mark of any form as ``[1][2]``."""
    numbers: list[int] = []
    text = _RANGE.sub(_expanded, match["numbers"])
    for number in map(int, re.findall(r"\d{1,6}", text)):
        if number not in numbers:
            numbers.append(number)
    return "".join(f"[{number}]" for number in numbers)


def _expanded(match: re.Match[str]) -> str:
    first, last = int(match[1]), int(match[2])
    if first <= last < first + _MAX_RANGE:
        return ",".join(map(str, range(first, last + 1)))
    return f"{first},{last}"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(number) for number in _PLAIN.findall(text)))


def _parts(sentence: str) -> list[Statement]:
    """A sentence at its marks: several statements if each part has two content words or more, else one."""
    parts: list[Statement] = []
    start = 0
    for group in re.finditer(r"(?:\[\d{1,6}\]\s{0,3})+", sentence):
        parts.append(Statement(sentence[start : group.start()].strip(" ,，;；、"), _numbers(group.group())))
        start = group.end()
    rest = sentence[start:].strip()
    if (
        len(parts) > 1
        and not content_words(rest)
        and all(len(content_words(part.text)) > 1 for part in parts)
    ):
        return parts
    bare = re.sub(r"\s+([.,;!?])", r"\1", _PLAIN.sub("", sentence)).strip()
    return [Statement(bare, _numbers(sentence))] if bare or parts else []


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
