"""Align a statement with the sentence that it cites, to find words that were put in the place of others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from difflib import SequenceMatcher

from rag_kit.text.citations.contrast import is_negation, opposites
from rag_kit.text.citations.statements import Token

_LONG = 4
"""Words beside a part at the beginning or the end that must be the same for it to stand in the same place."""
_KEPT = 0.6
"""Share of a statement that must be word for word for its other words to stand in the place of others for sure."""
_TIGHT = 2
"""Content words of a part that is one name or one thing."""
_PREFIX = 4

_VOICE = frozenset(["by", "被", "由", "把", "将"])


def alike(a: str, b: str) -> bool:
    """Whether two words are forms of one: the same beginning, or for Chinese words one that is a part of the other.

    Example:
        >>> alike("invent", "inventor"), alike("长", "长度"), alike("red", "blue"), alike("最大", "最小")
        (True, True, False, False)
    """
    if a == b:
        return True
    if a.isascii() and b.isascii():
        shorter = min(len(a), len(b))
        needed = max(_PREFIX, round(0.7 * shorter))
        return shorter >= needed and a[:needed] == b[:needed] and not a[0].isdigit()
    return a in b or b in a


def replaced(cited: list[Token], said: list[Token], passage: Set[str]) -> str:
    """Why a statement that has the words of a sentence says something else: a reason, or "".

    The two are aligned. Where the words around are the same, what stands in one place must be the same too: another
    number, another name, an opposite, or words that the passage has elsewhere, are another statement. A wording
    of its own, which the passage does not have, is free; where it is the only difference, nothing tells which it is.

    Args:
        cited: The tokens of the cited sentence.
        said: Those of the statement.
        passage: All content words of the passage.
    """
    matcher = SequenceMatcher(None, [one.key for one in cited], [one.key for one in said], autojunk=False)
    codes = matcher.get_opcodes()
    kept = sum(b - a for kind, a, b, *_ in codes if kind == "equal") / (len(said) or 1)
    spare = Counter(one.key for one in cited)
    spare.subtract(one.key for one in said)
    negates = sum(count for key, count in spare.items() if is_negation(key)) != 0
    alone = sum(code[0] != "equal" for code in codes) == 1
    sole = (
        sum(any(one.content for one in said[code[3] : code[4]]) for code in codes if code[0] != "equal") == 1
    )
    for index, (kind, a, b, c, d) in enumerate(codes):
        before, after = _flanks(codes, index)
        if kind == "equal" or not (alone or (before and after) or before + after >= _LONG):
            continue
        old, new = cited[a:b], said[c:d]
        if negates and max(b - a, d - c) <= _TIGHT and any(is_negation(one.key) for one in (*old, *new)):
            return "negation"
        came = [one for one in new if one.content]
        gone = _without([one for one in old if one.content], came)
        came = _without(came, gone)
        if not gone or not came:
            continue
        inside = (before and after) or (a == c == 0 and after >= _LONG)
        tight = bool(inside) and max(len(came), len(gone)) <= _TIGHT
        if reason := _differs(gone, came, spare, passage, tight=tight, sole=sole):
            return "joined" if reason == "changed" and kept < _KEPT else reason
    return "order" if _exchanged(cited, said) else ""


def _flanks(codes: Sequence[tuple[str, int, int, int, int]], index: int) -> tuple[int, int]:
    """How many tokens are the same before and after a part."""
    before, after = (codes[i] if 0 <= i < len(codes) else ("", 0, 0, 0, 0) for i in (index - 1, index + 1))
    return before[2] - before[1], after[2] - after[1]


def _without(found: list[Token], others: list[Token]) -> list[Token]:
    """The tokens that have no like among others."""
    return [one for one in found if not any(alike(one.key, other.key) for other in others)]


def _differs(
    gone: list[Token],
    came: list[Token],
    spare: Counter[str],
    passage: Set[str],
    *,
    tight: bool,
    sole: bool,
) -> str:
    """Why the words that came say something else than those that are gone: a reason, or "".

    Args:
        gone: Content words of the sentence in this place.
        came: Those of the statement.
        spare: How often more the sentence has a word than the statement.
        passage: All content words of the passage.
        tight: Whether one name or thing stands for one other.
        sole: Whether nothing else is new in the statement.
    """
    # what the statement says more often than the sentence was brought from elsewhere, or repeated
    brought = [one for one in came if spare[one.key] < 0]
    things = [one for one in gone if one.thing]
    number_gone = any(one.number for one in gone)
    if number_gone and any(one.number for one in brought):
        return "number"
    if any(one.name for one in brought) and any(one.name for one in gone):
        return "name"
    if all(spare[one.key] <= 0 for one in things or gone):
        return ""  # the statement says it elsewhere
    if things and any(one.number for one in brought):
        return "number"
    if any(opposites(x.key, y.key) for x in came for y in gone):
        return "opposite"
    if number_gone and any(one.name for one in brought):
        return "name"
    if things and (any(one.key in passage for one in brought) or (tight and not brought)):
        return "changed"
    return "other" if tight and sole and all(one.thing for one in came) else ""


def _exchanged(cited: list[Token], said: list[Token]) -> bool:
    """Whether two words changed places: each stands beside what the other stands beside in the sentence.

    A passive ("was paid by"), the members of an enumeration, a time and a place, and a word and its attribute change
    places and say the same.
    """
    if {one.key for one in said} & _VOICE != {one.key for one in cited} & _VOICE:
        return False
    strict = {one.key for one in said if one.number or one.name}
    ours, theirs = _beside(said), _beside(cited)
    beside: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, (left, right) in theirs.items():
        beside["left", left].append(key)
        beside["right", right].append(key)
    for a, (left, right) in ours.items():
        if a not in theirs:
            continue
        others = (beside["left", left] if left else []) + (beside["right", right] if right else [])
        for b in others:
            if b == a or b not in ours or a[0].isdigit() != b[0].isdigit():
                continue
            if a not in strict and b in theirs[a]:
                continue
            # equal on the right for both: not they, but what follows them changed places
            if ours[b][0] and ours[b][0] == theirs[a][0]:
                return True
    return False


def _beside(found: list[Token]) -> dict[str, tuple[str, str]]:
    """Content word that occurs once -> the content words before and after it."""
    words = [one.key for one in found if one.content]
    count = Counter(words)
    around = zip(["", *words], words, [*words[1:], ""], strict=False)
    return {word: (left, right) for left, word, right in around if count[word] == 1}
