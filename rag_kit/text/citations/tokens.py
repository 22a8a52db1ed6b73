"""The tokens in which a statement is compared with its passage, and whether two words are alike or opposites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice, pairwise, permutations
from pathlib import Path
from typing import NamedTuple

from rag_kit.text.analysis import content_words, tag_words
from rag_kit.text.language import SURNAMES, cache_of_texts, fold, word_list, word_set
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.value import Value

_MAX_TOKENS = 1200  # of one text
_MAX_REMEMBERED = 50_000  # words
_MAX_WORD = 128  # letters; a longer run is cut
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"(?P<han>[{_HAN}]+)|[^\W\d_{_HAN}]+(?:['’][^\W\d_{_HAN}]+)*")
# a letter that tells apart, as in "group B"
_LABEL = re.compile(r"(?<=[a-z] )[A-HJ-Z](?![\w.'’&/-])|(?<![A-Za-z\d])[A-H](?=[\u4e00-\u9fff])|^[A-HJ-Z]$")
_MAX_NAME = 3  # characters of the name of a person
_NAME_TAGS = ("nr", "ns", "nt")  # jieba's tags of persons, places and organisations
# parts of speech in which a paraphrase varies freely: verbs, adverbs, prepositions, conjunctions ...
_ACTION_TAGS = "vdpcrfquyeo"


class Token(NamedTuple):
    """A word or value in the form in which it is compared.

    Content words are stemmed, so that "founded" and "founds" are the same token. No tag tells English verbs from nouns,
    so each English content word counts as a thing.
    """

    key: str  # normal form: stem, folded word, or normal form of the value
    name: bool = False  # a proper name or identifier
    content: bool = False  # not a function word
    thing: bool = False  # names a thing rather than an action
    value: Value | None = None


class PlacedToken(NamedTuple):
    """A token and its offset in the text; a Chinese word has that of the run of characters it was cut from."""

    start: int
    token: Token


def tokens(text: str, values: Sequence[Value] | None = None) -> list[Token]:
    """Return the tokens of a text; Chinese is cut into words, and equal values ("three years", 36个月) are one token.

    `values` are those of the text, if they were read already.

    Example:
        >>> [token.key for token in tokens("Ada paid $1,200 给他三年")]
        ['ada', 'paid', '1200 USD', '给', '他', '36 months']
    """
    return [placed.token for placed in placed_tokens(text, values)]


def content_keys(words: Iterable[Token]) -> set[str]:
    """Return the keys of the content words."""
    return {token.key for token in words if token.content}


def placed_tokens(text: str, values: Sequence[Value] | None = None) -> list[PlacedToken]:
    """Return the tokens of a text, as `tokens` does, with their offsets."""
    placed: list[PlacedToken] = []
    end = 0  # of the value before
    for value in find_values(text) if values is None else values:
        placed += _word_tokens(text, end, value.begin)
        if placed and placed[-1].token.key in _DIRECTIONS:  # "up 12 percent" differs from "down 12 percent"
            placed[-1] = placed[-1]._replace(token=placed[-1].token._replace(content=True))
        token = Token(value.normal, name=value.dimension == "id", content=True, thing=True, value=value)
        placed.append(PlacedToken(value.start, token))
        end = value.end + text.startswith("内", value.end)  # 4小时内 is no other value than 4小时
        if len(placed) > _MAX_TOKENS:
            break
    placed += _word_tokens(text, end, len(text))
    first, second = (*(one.token for one in placed[:2]), Token(""), Token(""))[:2]
    if first.name and not first.value and not second.name:
        # the first word of a sentence has a capital anyway; it is a name if a name follows, as in "Ada Lovelace"
        placed[0] = placed[0]._replace(token=first._replace(name=False))
    return placed[:_MAX_TOKENS]


def _word_tokens(text: str, start: int, end: int) -> list[PlacedToken]:
    """Return the tokens of ``text[start:end]``, in which no value is."""
    placed: list[PlacedToken] = []
    for match in islice(_WORD.finditer(text, start, end), _MAX_TOKENS):
        if match["han"]:
            for word, tag in _with_whole_names(tag_words(fold(match["han"]))):
                is_denial = word.startswith("不能") and len(word) > 3  # 不能转让; 不可抗力 is a thing
                parts = (word[:2], word[2:]) if is_denial else _CUT.get(word, (word,))
                if placed and word in _AFTER_EVENT:  # 验收后: another event is another time
                    placed[-1] = placed[-1]._replace(token=placed[-1].token._replace(thing=True))
                placed += [PlacedToken(match.start(), _han_token(part, tag)) for part in parts]
        elif _LABEL.match(text, match.start()):
            label = Token(match[0].lower(), name=True, content=True, thing=True)
            placed.append(PlacedToken(match.start(), label))
        else:
            word = match[0][:_MAX_WORD]
            new = [PlacedToken(match.start(), _latin_token(part)) for part in _CUT.get(word.lower(), (word,))]
            if placed and placed[-1].token.key == "non":  # non-members are no members
                new[0] = new[0]._replace(token=new[0].token._replace(key=f"non{new[0].token.key}"))
                placed.pop()
            placed += new
    return [_as_negation(one, after) for one, after in pairwise([*placed, PlacedToken(end, Token(""))])]


def _as_negation(placed: PlacedToken, after: PlacedToken) -> PlacedToken:
    """Return "not" for a word that denies what follows it: "failed to pay", "denied having paid"."""
    denies = after.token.key in _DENYING_BEFORE.get(placed.token.key, ())
    return placed._replace(token=Token("not")) if denies else placed


def _with_whole_names(words: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join a surname and the one or two characters after it, as a name that is in no dictionary is cut.

    Example:
        >>> _with_whole_names([("由", "p"), ("陈", "nr"), ("思", "n"), ("远", "a"), ("负责", "v")])
        [('由', 'p'), ('陈思远', 'nr'), ('负责', 'v')]
    """
    joined: list[tuple[str, str]] = []
    for word, tag in words:
        before, tag_before = joined[-1] if joined else ("", "")
        begins_with_surname = before[:1] in SURNAMES and bool(before)
        is_begun_name = begins_with_surname and len(before) < _MAX_NAME and tag_before == "nr"
        is_surname = begins_with_surname and len(before) == 1 and content_words(before)
        may_be_given_name = len(word) == 1 and content_words(word) and not is_negation(word)
        if (is_begun_name or is_surname) and may_be_given_name:
            joined[-1] = (before + word, "nr")
        else:
            joined.append((word, tag))
    return joined


@cache_of_texts(_MAX_REMEMBERED, 100)
def _latin_token(word: str) -> Token:
    """Return the token of a word in letters: its stem, or the folded word if it is a function word or negation."""
    key = fold(word)
    stems = [] if is_negation(key) else content_words(word)
    if not stems:
        return Token(key)
    agent = key if key in _agents() else key.removesuffix("s")  # "employees", but "employs"
    stem = agent if agent in _agents() else stems[0]
    return Token(stem, name=word[0].isupper(), content=True, thing=stem not in _LIGHT_VERBS)


@cache_of_texts(_MAX_REMEMBERED, 100)
def _han_token(word: str, tag: str) -> Token:
    """Return the token of a Chinese word with its part of speech (jieba's tag)."""
    if not content_words(word):
        return Token(word)
    is_name = len(word) > 1 and tag.startswith(_NAME_TAGS) and word not in _classes()  # 延后 is tagged as one
    is_thing = tag == "vn" or tag[0] not in _ACTION_TAGS  # vn: a verb used as a noun
    return Token(word, name=is_name, content=True, thing=is_thing)


_DIRECTIONS = ("up", "down")
_LIGHT_VERBS = word_list("light verbs")
_AFTER_EVENT = word_set("前 后 之前 之后 以前 以后 之日 之日起 时")
_DENYING_BEFORE = {"fail": ("to",), "deni": ("that", "having")}
# words with a negation in them, and how they are cut, and words that are compared as others
_CUT = {
    "unable": ("cannot",),
    "unless": ("if", "not"),
    "lack": ("not", "have"),
    "lacks": ("not", "has"),
    "lacked": ("not", "had"),
    "width": ("wide",),
    "length": ("long",),
    "depth": ("deep",),
    "height": ("high",),
    "tall": ("high",),
    "不适": ("不", "适"),
    "概不负责": ("不", "负责"),
    "恕不": ("不",),
    "可否": ("是否",),
}
# forms of one English word begin with the same letters: at least so many, and this share of the shorter word
_MIN_PREFIX, _PREFIX_SHARE = 4, 0.7
_MIN_HAN = 2  # longer Chinese words of one length are forms of one where a single character differs
_NEGATION = re.compile(
    r"not|no|never|neither|nor|none|cannot|without|nobody|nothing|hardly|\w+n't|nicht|nie|ohne|kein(?:e[mnrs]?)?"
    # a negation with what only carries it: 不会, 没有, 并未, 无人; not a word of its own such as 不足, 不同, 无线
    r"|[并从绝也都尚可概请切]?[不没未无非勿莫][有能会是可要应得获曾用须需人许准由为被在以予再法]?"
)
JOINING = word_set("and or 和 与 及 以及 或")
PRONOUNS = word_set("he she it they him them his her its their 他 她 它 他们 它们 该 其 此")
MODALS = word_set("may can must shall 可 可以 能够 有权 应 应当 须 必须 务必")
_BY_TIME = re.compile("[每按逐]?([年季月日周])(?:$|(?=[息利租薪费均产收销付]))")  # 每月, 按季, 年息
# Each line is a class of words, as rise,grow/fall,sink: words of a group mean the same, two groups exclude each other.
# Below the second comment are characters, by which longer words may differ.
_OPPOSITES = Path(__file__).with_name("opposites.txt").read_text(encoding="utf-8")
_CHARACTERS = _OPPOSITES.rpartition("#")[2]


@cache
def _classes(table: str = _OPPOSITES) -> dict[str, dict[int, int]]:
    """Map each word, as it is and stemmed, to its group in each class: "grow" -> {3: 0}, "sink" -> {3: 1}."""
    classes: dict[str, dict[int, int]] = {}
    lines = [line for line in table.splitlines() if line and line[0] != "#"]
    for number, line in enumerate(lines):
        for group, words in enumerate(line.split("/")):
            for word in words.split(","):
                stems = [] if word in _agents() else content_words(word)
                for form in (word, *stems):
                    classes.setdefault(form, {})[number] = group
    return classes


@cache
def _agents() -> frozenset[str]:
    """Return the English words of `_OPPOSITES` whose stem begins one of another group: "insurer", "insured"."""
    agents: set[str] = set()
    for line in filter(str.isascii, _OPPOSITES.splitlines()):
        groups = [[(word, *content_words(word)) for word in group.split(",")] for group in line.split("/")]
        for group, other in permutations(groups, 2):
            stems = tuple(stem for _, *found in group for stem in found if len(stem) >= _MIN_PREFIX)
            of_other = {word for word, *found in other if "".join(found).startswith(stems)}
            if stems and of_other:
                agents |= of_other | {word for word, *_ in group}
    return frozenset(agents)


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
    period, other_period = _BY_TIME.match(a), _BY_TIME.match(b)
    if period and other_period:  # 月薪, 年薪
        return period[1] != other_period[1]
    if differ_by_prefix(a, b):
        return True
    pairs = _group_pairs(_groups_of(a), _groups_of(b))
    if not a.isascii() and len(a) == len(b):
        differing = [characters for characters in zip(a, b, strict=True) if characters[0] != characters[1]]
        if len(differing) == 1:  # 以东 and 以西
            classes = _classes(_CHARACTERS)
            pairs = _group_pairs(*(classes.get(character, {}) for character in differing[0])) or pairs
    return any(group != other for group, other in pairs)


def differ_by_prefix(a: str, b: str) -> bool:
    """Tell whether a word is another with a prefix that changes it: "unpaid" and "paid", 副经理 and 经理."""
    shorter, longer = sorted((a, b), key=len)
    if shorter.isascii():
        return len(shorter) > 3 and longer == f"un{shorter}"
    return longer[0] in "副非前代不未无" and len(shorter) > 1 and longer[1:] == shorter


def are_equal(a: str, b: str) -> bool:
    """Tell whether two words are of one group of `_OPPOSITES`, as "rise" and "grew" are.

    Example:
        >>> are_equal("rise", "grew"), are_equal("rise", "fell"), are_equal("rise", "bridge")
        (True, False, False)
    """
    return any(group == other for group, other in _group_pairs(_groups_of(a), _groups_of(b)))


def _group_pairs(groups: Mapping[int, int], others: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the groups of two words, given by class, as a pair for each class that both belong to."""
    return [(groups[number], others[number]) for number in groups.keys() & others.keys()]


def _groups_of(word: str) -> dict[int, int]:
    """Return a word's group by class; a compound such as 解除合同 has those of its first two characters."""
    classes = _classes()
    stem = word[:2] if word > "\u2fff" else (content_words(word) or [word])[0]
    return classes.get(word) or classes.get(stem) or {}


def are_alike(a: str, b: str) -> bool:
    """Tell whether two words are forms of one: the same beginning, or in Chinese one that is a part of the other.

    Example:
        >>> are_alike("invent", "inventor"), are_alike("长", "长度"), are_alike("最大", "最小")
        (True, True, False)
    """
    if a == b:
        return True
    if a.isascii() and b.isascii():
        shorter = min(len(a), len(b))
        prefix = max(_MIN_PREFIX, round(_PREFIX_SHARE * shorter))
        return shorter >= prefix and a[:prefix] == b[:prefix] and not a[0].isdigit()
    if differ_by_prefix(a, b):
        return False
    if a in b or b in a:
        return True
    differing = sum(mine != other for mine, other in zip(a, b, strict=False))
    # a first character tells things apart: 借款人 and 贷款人, 大学生 and 小学生
    return len(a) == len(b) > _MIN_HAN and a[0] == b[0] and differing == 1 and not are_opposites(a, b)


def has_alike(key: str, others: Iterable[str]) -> bool:
    """Tell whether any of the other words is a form of a word; see `are_alike`."""
    return any(are_alike(key, other) for other in others)


def has_form_or_synonym(key: str, others: Iterable[str]) -> bool:
    """Tell whether any of the other words is a form of a word, or means the same; see `are_equal`."""
    return any(are_alike(key, other) or are_equal(key, other) for other in others)
