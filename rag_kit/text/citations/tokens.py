"""The tokens in which a statement is compared with its passage, and how two words stand to each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
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
    """A token: its normal form, and whether it is a name, a content word, one for a thing, or which value it is.

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
    """The tokens of a text, each with the place where it begins, or where its run of Chinese characters does."""
    row: list[tuple[int, Token]] = []
    place = 0
    for value in find_values(text) if values is None else values:
        row += _words(text, place, value.begin)
        if row and row[-1][1].key in _DIRECTIONS:  # up 12 percent
            row[-1] = row[-1][0], row[-1][1]._replace(content=True)
        row.append((value.start, Token(value.normal, value.dimension == "id", True, True, value)))
        place = value.end + text.startswith("内", value.end)  # 4小时内
        if len(row) > _MAX_TOKENS:
            return row[:_MAX_TOKENS]
    row += _words(text, place, len(text))
    if row and row[0][1].name and not row[0][1].value and not (len(row) > 1 and row[1][1].name):
        # the first word of a sentence has its capital from there
        row[0] = row[0][0], row[0][1]._replace(name=False)
    return row[:_MAX_TOKENS]


def _words(text: str, start: int, end: int) -> list[tuple[int, Token]]:
    """The tokens of a part of a text without values."""
    row: list[tuple[int, Token]] = []
    for match in islice(_WORD.finditer(text, start, end), _MAX_TOKENS):
        if match["han"]:
            row += [(match.start(), _han_token(word, tag)) for word, tag in tag_words(fold(match["han"]))]
        else:
            row.append((match.start(), _latin_token(match.group())))
    return row


@cache_of_texts(_MAX_REMEMBERED, 100)
def _latin_token(word: str) -> Token:
    """A word by its stem."""
    key = fold(word)
    stems = [] if is_negation(key) else content_words(word)
    if not stems:
        return Token(key)
    return Token(stems[0], name=word[0].isupper(), content=True, thing=True)


@cache_of_texts(_MAX_REMEMBERED, 100)
def _han_token(word: str, tag: str) -> Token:
    """A Chinese word with its part of speech."""
    content = bool(content_words(word))
    name = content and len(word) > 1 and tag.startswith(_NAME_TAGS)
    return Token(
        word, name=name, content=content, thing=content and (tag == "vn" or tag[0] not in _ACTION_TAGS)
    )


_DIRECTIONS = ("up", "down")
_MIN_PREFIX, _MIN_HAN = 4, 2
_NEGATION = re.compile(
    r"not|no|never|neither|nor|none|cannot|without|nobody|nothing|hardly|\w+n't|nicht|nie|ohne|kein(?:e[mnrs]?)?"
    # a negation with what only carries it: 不会, 没有, 并未, 无人; not a word of its own such as 不足, 不同, 无线
    r"|[并从绝也都尚可]?[不没未无非勿莫][有能会是可要应得曾用须需人许准由为被在以]?"
)
_BY_TIME = re.compile("[每按逐]?([年季月日周])$")
_OPPOSITES = Path(__file__).with_name("opposites.txt").read_text(encoding="utf-8")


@cache
def _classes() -> dict[str, dict[int, int]]:
    """Word or character -> its classes, with its group in each; words in their stemmed form and as they are."""
    classes: dict[str, dict[int, int]] = {}
    members = [line.split("/") for line in _OPPOSITES.splitlines() if not line.startswith("#")]
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
    if (one := _BY_TIME.match(a)) and (other := _BY_TIME.match(b)):
        return one[1] != other[1]
    if _is_modified(a, b) or _is_modified(b, a):
        return True
    pairs = _groups(a, b)
    if not a.isascii() and len(a) == len(b):
        differing = [pair for pair in zip(a, b, strict=True) if pair[0] != pair[1]]
        pairs = _groups(*differing[0]) or pairs if len(differing) == 1 else pairs
    return any(one != other for one, other in pairs)


def _is_modified(word: str, other: str) -> bool:
    """Tell whether a Chinese word is another with a part before it that makes it something else, as 副经理 is."""
    return word[0] in "副非前代" and len(other) > 1 and word[1:] == other


def are_equal(a: str, b: str) -> bool:
    """Tell whether two words mean the same where others exclude them, as "rise" and "grew" do.

    Example:
        >>> are_equal("rise", "grew"), are_equal("rise", "fell"), are_equal("rise", "bridge")
        (True, False, False)
    """
    return any(one == other for one, other in _groups(a, b))


def _groups(a: str, b: str) -> list[tuple[int, int]]:
    """The groups of two words in each class that has both."""
    one, other = _groups_of(a), _groups_of(b)
    return [(one[number], other[number]) for number in one.keys() & other.keys()]


def _groups_of(word: str) -> dict[int, int]:
    """The group of a word in each of its classes; a compound such as 解除合同 has those of its first part."""
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
    if a == b or not (a.isascii() and b.isascii()):
        return not (_is_modified(a, b) or _is_modified(b, a)) and (
            a in b
            or b in a
            or (len(a) == len(b) > _MIN_HAN and _differ_by_one(a, b) and not are_opposites(a, b))
        )
    shorter = min(len(a), len(b))
    prefix = max(_MIN_PREFIX, round(0.7 * shorter))
    return shorter >= prefix and a[:prefix] == b[:prefix] and not a[0].isdigit()


def has_alike(key: str, others: Iterable[str]) -> bool:
    """Tell whether one of some words is a form of another."""
    return any(are_alike(key, other) for other in others)
