"""Comparisons of a field with the dates or numbers that a question names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.amounts import Amount
from rag_kit.query_construction.rules.atoms import Atom
from rag_kit.query_construction.words import Span

_LISTED = re.compile(r"(?:\s|[,、/]|\b(?:and|or|nor)\b|或者?|和|与|及)*", re.IGNORECASE)
_NEXT = re.compile(r"\s*(?:the\s+)?(?:years?\s+)?")


def read_comparisons(text: str, amounts: Sequence[Amount], others: Sequence[Span]) -> list[Atom]:
    """Read how each date or number is compared; no cue reaches over `others`, which the text names too."""
    atoms: list[Atom] = []
    rest = list(amounts)
    while rest:
        low, high = rest.pop(0), None
        floor = max(cues.floor_of(low, others), *(atom.end for atom in atoms[-1:]), 0)
        left = text[floor : low.begin]
        following = rest[0] if rest else None
        if following and following.field is low.field and _is_range(text, left, low, following):
            high = rest.pop(0)
            opening = cues.BETWEEN.search(left) or cues.FROM.search(left)
            operator, start, end = "$eq", opening.start() if opening else len(left), high.end
        else:
            operator, start, end = _read_operator(text, left, low, following)
        begin = max(floor, min(floor + start, low.name_begin))
        begin, end, negated = cues.with_negation(text, floor, begin, end)
        if atoms and atoms[-1].negated and operator == atoms[-1].operator == "$eq":  # "not in 2010 or 2012"
            negated = negated or _LISTED.fullmatch(text[atoms[-1].end : begin]) is not None
        top = high and high.value
        atoms.append(Atom(begin, end, low.field, operator, low.value, top, negated, low.quarter))
    return atoms


def _is_range(text: str, left: str, first: Amount, second: Amount) -> bool:
    """Whether two amounts are the ends of a range: "5 to 7", "between 5 and 7"."""
    between = text[first.end : second.begin]
    if cues.RANGE_TO.fullmatch(between):
        return True
    if not cues.RANGE_AND.fullmatch(between):
        return False
    opening = cues.BETWEEN.search(left)
    # 在 stands before plain lists too, so 之间 must follow
    sure = opening is not None and opening.group() != "在"
    return sure or text[second.end :].lstrip().startswith(("之间", "年间"))


def _read_operator(text: str, left: str, amount: Amount, following: Amount | None) -> tuple[str, int, int]:
    """How one amount is compared ("at least 5", "5 or more"), where in `left` that is said, and where it ends."""
    operator, start, end = "$eq", len(left), amount.end
    for pattern, meaning in cues.LEFT:
        if match := pattern.search(left):
            operator, start = meaning, match.start()
            break
    opening = cues.FROM.search(left)
    for pattern, meaning in (*cues.RIGHT, *([(cues.ONWARD, "$gte")] if opening else [])):
        match = pattern.match(text, amount.end)
        # in "before 1995 or after 2015" the words are of the next
        if match and not (following and _NEXT.fullmatch(text, match.end(), following.begin)):
            operator, end = meaning, match.end()
            break
    if opening and operator == "$gte":
        start = min(start, opening.start())
    return operator, start, end
