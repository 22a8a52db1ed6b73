"""Conditions joined as the words between them say: and, or, not, lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from langchain_core.structured_query import Comparator, Comparison, FilterDirective, Operation, Operator

from rag_kit.query_construction.ir import all_of, none_of
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.alternatives import weakest
from rag_kit.query_construction.rules.atoms import Atom

_OPENS = re.compile(r"\beither\b|\bany\s+of\b|\bone\s+of\b|\(|要么", re.IGNORECASE)


def join(text: str, atoms: Sequence[Atom]) -> tuple[FilterDirective | None, list[Atom]]:
    """Join conditions by the words between them.

    Conditions on one field that stand in one list ("A, B or C") belong together most closely, then what stands
    side by side or is joined by "and", then what is joined by "or".

    Args:
        text: The question.
        atoms: The conditions, in the order of the text.

    Returns:
        The conditions joined, and those that were left out because an arm of their or-list is not known.
    """
    groups = _lists(text, atoms)
    lists = [_list(text, members) for members in groups]
    spans = [(members[0].begin, members[-1].end) for members in groups]
    dropped = [atom for members, made in zip(groups, lists, strict=True) if made is None for atom in members]
    alternatives: list[list[FilterDirective | None]] = [[]]
    for place, directive in enumerate(lists):
        if place and _connector(text[spans[place - 1][1] : spans[place][0]]) == "or":
            if _of_both(groups[place - 1], groups[place]):
                # "phones rated below 3 or priced over 1000": what stands around is of both
                alternatives[-1][-1] = weakest([[alternatives[-1][-1]], [directive]])
                continue
            alternatives.append([])
        _add(alternatives[-1], directive, groups[place])
    joined = weakest(alternatives) if atoms else None
    return joined, [atom for atom in (dropped if joined is not None else atoms) if atom.directive is not None]


def _add(
    parts: list[FilterDirective | None], directive: FilterDirective | None, members: Sequence[Atom]
) -> None:
    """Add a condition; two values that one field cannot have at once are alternatives."""
    if members[0].exclusive and _values(directive):
        for place, part in enumerate(parts):
            if _values(part) and isinstance(part, Comparison) and part.attribute == members[0].field:
                values = list(dict.fromkeys([*_values(part), *_values(directive)]))
                if len(values) > len(_values(part)):
                    parts[place] = Comparison(Comparator.IN, members[0].field, values)
                return
    if directive not in parts:
        parts.append(directive)


def _values(directive: FilterDirective | None) -> list[Any]:
    """The values of which a condition asks for one."""
    if not isinstance(directive, Comparison) or directive.value is None:
        return []
    if directive.comparator == Comparator.IN:
        return list(directive.value)
    return [directive.value] if directive.comparator == Comparator.EQ else []


def _of_both(before: Sequence[Atom], after: Sequence[Atom]) -> bool:
    """Whether two fields are compared with dates or numbers on the two sides of an "or"."""
    return before[0].field != after[0].field and all(atom.measured for atom in (*before, *after))


def _lists(text: str, atoms: Sequence[Atom]) -> list[list[Atom]]:
    """Neighbours on one field that are joined by nothing but commas, and, or."""
    groups: list[list[Atom]] = []
    for atom in atoms:
        if groups and _one_list(text, groups[-1][-1], atom):
            groups[-1].append(atom)
        else:
            groups.append([atom])
    return groups


def _one_list(text: str, one: Atom, other: Atom) -> bool:
    between = text[one.end : other.begin]
    found = _connector(between)
    if one.field != other.field or one.exclusive != other.exclusive or found is None or found == "but":
        return False
    if found == "and" and _OPENS.search(between) and not cues.BOTH.search(between):
        return False
    # "tagged A, from B": a comma alone joins only where nothing stands between
    if found == "comma" and not re.fullmatch(r"[\s,、/;\"“”'‘’「」]*", between):
        return False
    if one.negated:
        return other.negated
    return not other.negated


def carries_on(text: str, one: Atom, end: int, begin: int) -> bool:
    """Whether a negation goes on over what stands between two conditions: "without A or B"."""
    between = text[end:begin]
    found = _connector(between)
    if found == "nor":
        return True
    pure = re.fullmatch(
        r"(?:\s|[,、/;\"“”'‘’「」]|\b(?:and|or|and/or|the|a)\b|或者?|和|与|及|以及)*", between, re.IGNORECASE
    )
    if found not in ("or", "and", "comma") or pure is not None:
        return pure is not None and found is not None
    # "ignoring papers about A and papers about B"
    again = re.search(r"\b(?:papers?|articles?|studies|those|ones|anything)\b", between, re.IGNORECASE)
    return not _turns(between) and (found == "or" or (found == "and" and again is not None))


def _turns(between: str) -> bool:
    return re.search(r"\b(?:with|but)\b|有|但", between, re.IGNORECASE) is not None


def _connector(between: str) -> str | None:
    """What joins two conditions; ``None`` if other words stand between, ``""`` for nothing at all."""
    match = None
    for match in cues.CONNECTOR.finditer(between):
        if match.lastgroup != "comma":
            break
    if match is None:
        return None if between.strip(" \t\"“”'‘’「」『』") else ""
    rest = (between[: match.start()] + " " + between[match.end() :]).replace(",", " ").replace("、", " ")
    rest = re.sub(r"[\"“”'‘’「」『』)）;/]", " ", rest)
    if match.lastgroup != "comma" and not _only_light(rest):
        return None
    if match.lastgroup == "comma":
        return "comma"
    if match.group().lower() == "nor":
        return "nor"
    kind = (match.lastgroup or "and").removeprefix("zh_")
    return "but" if kind == "not" else kind


def _only_light(rest: str) -> bool:
    return cues.ALL_LIGHT.fullmatch(rest) is not None


def _list(text: str, members: Sequence[Atom]) -> FilterDirective | None:
    if len(members) == 1:
        return _alone(members[0])
    words = [_connector(text[one.end : other.begin]) for one, other in pairwise(members)]
    # a comma joins as the next "and" or "or" of its list does
    for place in range(len(words) - 1, -1, -1):
        if not words[place] and members[place].directive is None:
            words[place] = "and"  # "or severe Obesity": the unknown words narrow the known one
        if words[place] in ("comma", ""):
            words[place] = words[place + 1] if place + 1 < len(words) else "and"
    if members[0].negated:
        inner = [member.directive for member in members if member.directive is not None]
        if members[0].both and "or" not in words:
            return none_of(all_of(inner) or inner[0])
        return _shorter(weakest([[_alone(member) for member in members]]) or inner[0])
    alternatives: list[list[FilterDirective | None]] = [[members[0].directive]]
    for word, before, member in zip(words, members, members[1:], strict=False):
        if word in ("or", "nor") or (member.exclusive and before.directive is not None):
            alternatives.append([])
        alternatives[-1].append(member.directive)
    joined = weakest(alternatives)
    return None if joined is None else _shorter(joined)


def _alone(atom: Atom) -> FilterDirective | None:
    if not atom.negated or atom.directive is None:
        return atom.directive
    if atom.denial is not None:
        return atom.denial
    directive = atom.directive
    if (
        isinstance(directive, Comparison)
        and directive.comparator == Comparator.EQ
        and directive.value is not None
    ):
        return Comparison(Comparator.NE, directive.attribute, directive.value)
    return none_of(directive)


def _shorter(directive: FilterDirective) -> FilterDirective:
    """``year = 2010 or year = 2012`` as ``year in (2010, 2012)``, and the same for "not"."""
    if not isinstance(directive, Operation) or directive.operator == Operator.NOT:
        return directive
    any_ = directive.operator == Operator.OR
    wanted, short = (Comparator.EQ, Comparator.IN) if any_ else (Comparator.NE, Comparator.NIN)
    parts = directive.arguments
    plain = [part for part in parts if isinstance(part, Comparison) and part.comparator == wanted]
    if len(plain) < len(parts) or len({part.attribute for part in plain}) > 1:
        return directive
    values = list(dict.fromkeys(part.value for part in plain))
    if len(values) == 1 or None in values:
        return plain[0]
    return Comparison(short, plain[0].attribute, values)
