"""The tokens in which a statement is compared with its passage, and how two words stand to each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from rag_kit.text.analysis import content_words, tag_words
from rag_kit.text.language import cache_of_texts, fold
from rag_kit.text.values.reading import Value, find_values

_MAX_TOKENS = 1200
_MAX_REMEMBERED = 50_000  # words
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"(?P<han>[{_HAN}]+)|[^\W\d_{_HAN}]+(?:['’][^\W\d_{_HAN}]+)*")
_NAME_TAGS = ("nr", "ns", "nt")
# parts of speech in which a paraphrase varies freely: verbs, adverbs, prepositions, conjunctions ...
_ACTION_TAGS = "vdpcrfquyeo"


class Token(NamedTuple):
    """A word or value of a text in normal form, with its kinds.

    Content words are stemmed, so that "founded" and "founds" are the same token. Of English words nothing tells which
    are verbs, so that each content word counts as a thing.
    """

    key: str
    name: bool = False
    content: bool = False
    thing: bool = False
    value: Value | None = None


def tokens(text: str, values: Sequence[Value] | None = None) -> list[Token]:
    """The tokens of a text; Chinese is cut into words, and equal values ("three years", 36个月) are the same token.

    Args:
        values: Those of the text, where they are known; None: they are read.

    Example:
        >>> [token.key for token in tokens("Ada paid $1,200 给他三年")]
        ['ada', 'paid', '1200 USD', '给', '他', '36 months']
    """
    return [token for _, token in placed_tokens(text, values)]


def placed_tokens(text: str, values: Sequence[Value] | None = None) -> list[tuple[int, Token]]:
    """Pair each token of a text with its start; a Chinese word has the start of its run of Chinese characters."""
    row: list[tuple[int, Token]] = []
    done = 0
    for value in find_values(text) if values is None else values:
        row += _words(text, done, value.begin)
        row.append((value.start, Token(value.normal, value.dimension == "id", True, True, value)))
        done = value.end
        if len(row) > _MAX_TOKENS:
            return row[:_MAX_TOKENS]
    row += _words(text, done, len(text))
    if row and row[0][1].name and not row[0][1].value and not (len(row) > 1 and row[1][1].name):
        # a capital at the beginning of a sentence makes no name
        row[0] = (row[0][0], row[0][1]._replace(name=False))
    return row[:_MAX_TOKENS]


def _words(text: str, start: int, end: int) -> list[tuple[int, Token]]:
    """Pair each word of a stretch of text, which holds no value, with its start."""
    row: list[tuple[int, Token]] = []
    for match in islice(_WORD.finditer(text, start, end), _MAX_TOKENS):
        if match["han"]:
            row += [(match.start(), _han_token(word, tag)) for word, tag in tag_words(fold(match["han"]))]
        else:
            row.append((match.start(), _latin_token(match.group())))
    return row


@cache_of_texts(_MAX_REMEMBERED, 100)
def _latin_token(word: str) -> Token:
    """Make the token of a word in Latin letters; its key is the stem."""
    key = fold(word)
    stems = [] if is_negation(key) else content_words(word)
    if not stems:
        return Token(key)
    return Token(stems[0], name=word[0].isupper(), content=True, thing=True)


@cache_of_texts(_MAX_REMEMBERED, 100)
def _han_token(word: str, tag: str) -> Token:
    """Make the token of a Chinese word from its part of speech in jieba's letters."""
    content = bool(content_words(word))
    name = content and len(word) > 1 and tag.startswith(_NAME_TAGS)
    return Token(
        word, name=name, content=content, thing=content and (tag == "vn" or tag[0] not in _ACTION_TAGS)
    )


_MIN_PREFIX, _MIN_HAN = 4, 2
_NEGATION = re.compile(
    r"not|no|never|neither|nor|none|cannot|without|nobody|nothing|hardly|\w+n't|nicht|nie|ohne|kein(?:e[mnrs]?)?"
    # a negation with what only carries it: 不会, 没有, 并未, 无人; not a word of its own such as 不足, 不同, 无线
    r"|[并从绝也都尚可]?[不没未无非勿莫][有能会是可要应得曾用须需人许准由为被在以]?"
)
# The words of a class exclude one another, those joined by commas mean the same.
_CLASSES = (
    "red/blue/green/yellow/black/white/brown/grey/gray/orange/purple/pink north/south/east/west "
    "northern/southern/eastern/western first/second/third/fourth/fifth/sixth/seventh/last spring/summer/autumn/winter "
    "january/february/march/april/may/june/july/august/september/october/november/december "
    "monday/tuesday/wednesday/thursday/friday/saturday/sunday "
    "increase,rise,rose,risen,grow,grew,grown,climb,raise"
    "/decrease,reduce,fall,fell,fallen,drop,decline,shrink,shrank "
    "more/less,fewer before/after largest,biggest/smallest highest/lowest higher/lower high/low large/small "
    "win,won/lose,lost allow,permit/forbid,prohibit true/false always/never start,begin/end include/exclude "
    "above/below up/down left/right oldest/youngest male/female positive/negative success/failure "
    "accept,approve/reject,refuse "
    "best/worst better/worse early/late longest/shortest most/least maximum/minimum enable/disable required/optional "
    "public/private minor/major month/year/week/day/hour monthly/yearly,annual/weekly/daily/hourly strong/weak "
    "inside/outside import/export buy,bought/sell,sold open/close terminate,cancel/extend,renew "
    "buyer/seller,vendor landlord,lessor/tenant,lessee "
    "增加,增长,上升,上涨,提高,升高,增多/减少,下降,下跌,下滑,降低,缩减 成功/失败 允许/禁止 开始/结束 支持/反对 "
    "解除,终止/延长,续签 同意/拒绝,反对 盈利/亏损 买入,购买/卖出,出售 进口/出口 批准,通过/驳回,否决"
)
# Two Chinese words that differ by these characters alone exclude one another too: 以东, 以西; 周一, 周日; 最大, 最小.
_ZH_CLASSES = (
    "年月日周 红蓝绿黄黑白 东南西北 甲乙丙丁 春夏秋冬 一二三四五六日 "
    "男女 雄雌 买卖 大小 多少 高低 长短 前后 上下 左右 内外"
)


@cache
def _classes() -> dict[str, dict[int, int]]:
    """Map each word, its stem, and each character of `_ZH_CLASSES` to class number -> number of its group there."""
    classes: dict[str, dict[int, int]] = {}
    members = [*(names.split("/") for names in _CLASSES.split()), *map(list, _ZH_CLASSES.split())]
    for number, groups in enumerate(members):
        for group, words in enumerate(groups):
            for form in {form for word in words.split(",") for form in (word, *content_words(word))}:
                classes.setdefault(form, {})[number] = group
    return classes


def is_negation(key: str) -> bool:
    """Tell whether a token negates.

    Example:
        >>> is_negation("not"), is_negation("didn't"), is_negation("并未"), is_negation("note"), is_negation("不同")
        (True, True, True, False, False)
    """
    return _NEGATION.fullmatch(key) is not None


def are_opposites(a: str, b: str) -> bool:
    """Tell whether two words exclude one another: opposites, two colours, two months.

    Example:
        >>> are_opposites("increased", "decreased"), are_opposites("red", "blue"), are_opposites("red", "bridge")
        (True, True, False)
        >>> are_opposites("以东", "以西"), are_opposites("以东", "以前")
        (True, False)
    """
    if not a.isascii() and len(a) == len(b):
        differing = [pair for pair in zip(a, b, strict=True) if pair[0] != pair[1]]
        a, b = differing[0] if len(differing) == 1 else (a, b)
    return any(one != other for one, other in _groups(a, b))


def are_equal(a: str, b: str) -> bool:
    """Tell whether two words are in the same group of a class, as "rise" and "grew" are.

    Example:
        >>> are_equal("rise", "grew"), are_equal("rise", "fell"), are_equal("rise", "bridge")
        (True, False, False)
    """
    return any(one == other for one, other in _groups(a, b))


def _groups(a: str, b: str) -> list[tuple[int, int]]:
    """List, for each class that has both words, the groups of the two."""
    one, other = _groups_of(a), _groups_of(b)
    return [(one[number], other[number]) for number in one.keys() & other.keys()]


def _groups_of(word: str) -> dict[int, int]:
    """Map the classes of a word to its group in each; a compound such as 解除合同 has those of its first part."""
    classes = _classes()
    stem = word[:2] if word > "\u2fff" else (content_words(word) or [word])[0]
    return classes.get(word) or classes.get(stem) or {}


def _differ_by_one(a: str, b: str) -> bool:
    return sum(one != other for one, other in zip(a, b, strict=True)) == 1


def are_alike(a: str, b: str) -> bool:
    """Tell whether two words are forms of one: the same beginning, or in Chinese one that is a part of the other.

    Example:
        >>> are_alike("invent", "inventor"), are_alike("长", "长度"), are_alike("最大", "最小")
        (True, True, False)
    """
    if a == b:
        return True
    if not (a.isascii() and b.isascii()):
        one_differs = len(a) == len(b) > _MIN_HAN and _differ_by_one(a, b) and not are_opposites(a, b)
        return one_differs or a in b or b in a
    shorter = min(len(a), len(b))
    prefix = max(_MIN_PREFIX, round(0.7 * shorter))
    return shorter >= prefix and a[:prefix] == b[:prefix] and not a[0].isdigit()


def has_alike(key: str, others: Iterable[str]) -> bool:
    """Tell whether one of some words is a form of another."""
    return any(are_alike(key, other) for other in others)
