"""The tokens in which a statement is compared with its passage, and how two words stand to each other."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import islice
from typing import NamedTuple

from rag_kit.text.analysis import content_words, tag_words
from rag_kit.text.language import fold

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
# parts of speech in which a paraphrase varies freely: verbs, adverbs, prepositions, conjunctions ...
_ACTION_TAGS = "vdpcrfquyeo"
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


_MIN_PREFIX = 4
_NEGATION = re.compile(
    r"not|no|never|neither|nor|none|cannot|without|nobody|nothing|hardly|\w+n't"
    # a negation with what only carries it: 不会, 没有, 并未, 无人; not a word of its own such as 不足, 不同, 无线
    r"|[并从绝也都尚]?[不没未无非勿莫][有能会是可要应得曾用须需人许准]?"
)
# The words of a class exclude one another.
_CLASSES = (
    "red/blue/green/yellow/black/white/brown/grey/gray/orange/purple/pink north/south/east/west "
    "northern/southern/eastern/western first/second/third/fourth/fifth/sixth/seventh/last spring/summer/autumn/winter "
    "january/february/march/april/may/june/july/august/september/october/november/december "
    "monday/tuesday/wednesday/thursday/friday/saturday/sunday increase/decrease rise/fall rose/fell more/less/fewer "
    "before/after largest/smallest biggest/smallest highest/lowest higher/lower high/low large/small win/lose won/lost "
    "allow/forbid/prohibit true/false always/never start/end begin/end include/exclude above/below up/down left/right "
    "oldest/youngest male/female positive/negative success/failure accept/reject best/worst better/worse early/late "
    "longest/shortest most/least maximum/minimum enable/disable required/optional public/private minor/major "
    "strong/weak inside/outside import/export buy/sell bought/sold open/close "
    "增加/减少 上升/下降 提高/降低 成功/失败 允许/禁止 开始/结束 支持/反对"
)
# Two Chinese words that differ by these characters alone exclude one another too: 以东, 以西; 周一, 周日; 最大, 最小.
_ZH_CLASSES = (
    "红蓝绿黄黑白 东南西北 甲乙丙丁 春夏秋冬 一二三四五六日 男女 雄雌 大小 多少 高低 长短 前后 上下 左右 内外"
)


@cache
def _classes() -> dict[str, frozenset[int]]:
    """Word or character -> the classes that it is in; words in their stemmed form and as they are."""
    classes: dict[str, frozenset[int]] = {}
    members = [*(names.split("/") for names in _CLASSES.split()), *map(list, _ZH_CLASSES.split())]
    for number, words in enumerate(members):
        for form in {form for word in words for form in (word, *content_words(word))}:
            classes[form] = classes.get(form, frozenset()) | {number}
    return classes


def is_negation(key: str) -> bool:
    """Whether a token negates.

    Example:
        >>> is_negation("not"), is_negation("didn't"), is_negation("并未"), is_negation("note"), is_negation("不同")
        (True, True, True, False, False)
    """
    return _NEGATION.fullmatch(key) is not None


def are_opposites(a: str, b: str) -> bool:
    """Whether two words exclude one another: opposites, two colours, two months.

    Example:
        >>> are_opposites("increased", "decreased"), are_opposites("red", "blue"), are_opposites("red", "bridge")
        (True, True, False)
        >>> are_opposites("以东", "以西"), are_opposites("以东", "以前")
        (True, False)
    """
    if not a.isascii() and len(a) == len(b):
        differing = [pair for pair in zip(a, b, strict=True) if pair[0] != pair[1]]
        a, b = differing[0] if len(differing) == 1 else (a, b)
    classes = _classes()
    first, second = (word if word in classes else (content_words(word) or [word])[0] for word in (a, b))
    return first != second and not classes.get(first, frozenset()).isdisjoint(classes.get(second, ()))


def are_alike(a: str, b: str) -> bool:
    """Whether two words are forms of one: the same beginning, or for Chinese words one that is a part of the other.

    Example:
        >>> are_alike("invent", "inventor"), are_alike("长", "长度"), are_alike("最大", "最小")
        (True, True, False)
    """
    if a == b or not (a.isascii() and b.isascii()):
        return a in b or b in a
    shorter = min(len(a), len(b))
    prefix = max(_MIN_PREFIX, round(0.7 * shorter))
    return shorter >= prefix and a[:prefix] == b[:prefix] and not a[0].isdigit()
