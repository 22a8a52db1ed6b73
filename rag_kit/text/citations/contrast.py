"""Words that turn a statement round: negations and opposites, English and Chinese."""

from __future__ import annotations

import re

_NEGATION_WORDS = "not no never neither nor none cannot without nobody nothing hardly"
_NEGATIONS = frozenset(_NEGATION_WORDS.split())
NEGATIVE_HAN = frozenset("不没未无非勿莫")
_ZH_NEGATION = re.compile(r"不|没|未|无(?![线锡])|非(?![常洲])|勿")
# Words in which the character negates nothing.
_ZH_HARMLESS = re.compile(
    r"不过|不仅|不但|不断|不久|不少|不止|不管|不论|不同|不只|非常|非洲|无线|无论|未来|除非|没收|不得不|无不|并非不"
)
_PAIRS = (
    "increase decrease|increased decreased|increases decreases|rise fall|rose fell|more less|more fewer|before after"
    "|first last|largest smallest|biggest smallest|highest lowest|higher lower|high low|large small|win lose|won lost"
    "|north south|east west|northern southern|eastern western|allow forbid|allowed forbidden|allowed prohibited"
    "|true false|always never|start end|started ended|begin end|began ended|include exclude|includes excludes"
    "|included excluded|above below|up down|left right|oldest youngest|male female|positive negative|success failure"
    "|accept reject|accepted rejected|best worst|better worse|early late|earlier later|longest shortest|most least"
    "|maximum minimum|enable disable|enabled disabled|required optional|public private|minor major|strong weak"
    "|with without|inside outside|import export|buy sell|bought sold|open close|opened closed|possible impossible"
)
_OPPOSITES: dict[str, set[str]] = {}
for _pair in _PAIRS.split("|"):
    _a, _b = _pair.split()
    _OPPOSITES.setdefault(_a, set()).add(_b)
    _OPPOSITES.setdefault(_b, set()).add(_a)


def is_negation(key: str) -> bool:
    """Whether a token negates.

    Example:
        >>> is_negation("not"), is_negation("didn't"), is_negation("未"), is_negation("note")
        (True, True, True, False)
    """
    return key in _NEGATIONS or key.endswith("n't") or key in NEGATIVE_HAN


def negations(text: str) -> int:
    """How many negations a text has.

    Example:
        >>> negations("It isn't here, and never was."), negations("不仅没来，而且未说")
        (2, 2)
    """
    lowered = text.casefold().replace("’", "'")
    words = re.findall(r"[a-z]+(?:'[a-z]+)?", lowered)
    return sum(map(is_negation, words)) + len(_ZH_NEGATION.findall(_ZH_HARMLESS.sub("", text)))


def opposites(a: str, b: str) -> bool:
    """Whether two words are opposites.

    Example:
        >>> opposites("increased", "decreased"), opposites("red", "blue")
        (True, False)
    """
    return b in _OPPOSITES.get(a, ())
