"""Conditions joined as the words between them say: and, or, not, lists, also with arms that are no known value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rag_kit.query_construction.clauses import Clause, all_of, any_of, none_of, single
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom

_OPENS = re.compile(r"\beither\b|\bany\s+of\b|\bone\s+of\b|\(|要么", re.IGNORECASE)
_MARKS = "\"“”'‘’「」『』"
_AGAIN = re.compile(r"\b(?:papers?|articles?|studies|those|ones|anything)\b", re.IGNORECASE)
_TURNS = re.compile(r"\b(?:with|but)\b|有|但", re.IGNORECASE)
_PURE = re.compile(rf"(?:[\s,、/;{_MARKS}]|\b(?:and|or|and/or|the|a)\b|或者?|和|与|及|以及)*", re.IGNORECASE)


def join(text: str, atoms: Sequence[Atom]) -> tuple[Clause | None, list[Atom]]:
    """Join conditions by the words between them.

    Conditions on one field that stand in one list ("A, B or C") belong together most closely, then what stands
    side by side or is joined by "and", then what is joined by "or".

    Args:
        text: The question.
        atoms: The conditions, in the order of the text.

    Returns:
        The conditions joined, and those that were left out because an arm of their or-list is not known.
    """
    groups: list[list[Atom]] = []
    for atom in atoms:
        if groups and _one_list(text, groups[-1][-1], atom):
            groups[-1].append(atom)
        else:
            groups.append([atom])
    dropped: list[Atom] = []
    alternatives: list[list[Clause | None]] = [[]]
    for place, members in enumerate(groups):
        made = _list(text, members)
        dropped += members if made is None else []
        before = groups[place - 1]
        if place and _connector(text[before[-1].end : members[0].begin]) == "or":
            if before[0].field != members[0].field and all(atom.measured for atom in (*before, *members)):
                # "phones rated below 3 or priced over 1000": what stands around is of both
                alternatives[-1][-1] = _weakest([[alternatives[-1][-1]], [made]])
                continue
            alternatives.append([])
        _add(alternatives[-1], made, members[0])
    joined = _weakest(alternatives) if atoms else None
    left_out = dropped if joined is not None else atoms
    return joined, [atom for atom in left_out if atom.where is not None]


def _weakest(alternatives: Sequence[Sequence[Clause | None]]) -> Clause | None:
    """OR of ANDs, of which a condition that is not known (``None``) is met by everything."""
    parts = [all_of([part for part in parts if part is not None]) for parts in alternatives]
    return None if None in parts else any_of([part for part in parts if part is not None])


def _add(parts: list[Clause | None], made: Clause | None, first: Atom) -> None:
    """Add a condition; two values that one field cannot have at once are alternatives."""
    if first.exclusive and (more := _values(made)):
        for place, part in enumerate(parts):
            known = _values(part)
            if known and single(part)[0] == first.field:
                values = list(dict.fromkeys([*known, *more]))
                if len(values) > len(known):
                    parts[place] = {first.field: {"$in": values}}
                return
    if made not in parts:
        parts.append(made)


def _values(part: Clause | None) -> list[Any]:
    """The values of which a condition asks for one."""
    _, operator, operand = single(part)
    return list(operand) if operator == "$in" else [operand] if operator == "$eq" else []


def _one_list(text: str, one: Atom, other: Atom) -> bool:
    """Whether neighbours on one field are joined by nothing but commas, and, or."""
    between = text[one.end : other.begin]
    found = _connector(between)
    if one.field != other.field or one.exclusive != other.exclusive or found is None or found == "but":
        return False
    if found == "and" and _OPENS.search(between) and not cues.BOTH.search(between):
        return False
    # "tagged A, from B": a comma alone joins only where nothing stands between
    if found == "comma" and not re.fullmatch(rf"[\s,、/;{_MARKS}]*", between):
        return False
    return one.negated == other.negated


def carries_on(between: str) -> bool:
    """Whether a negation goes on over what stands between two conditions: "without A or B"."""
    found = _connector(between)
    if found == "nor" or _PURE.fullmatch(between):
        return found is not None
    # "ignoring papers about A and papers about B"
    again = found == "or" or (found == "and" and _AGAIN.search(between) is not None)
    return again and not _TURNS.search(between)


def _connector(between: str) -> str | None:
    """What joins two conditions; ``None`` if other words stand between, ``""`` for nothing at all."""
    match = None
    for match in cues.CONNECTOR.finditer(between):
        if match.lastgroup != "comma":
            break
    if match is None:
        return None if between.strip(" \t" + _MARKS) else ""
    kind = (match.lastgroup or "and").removeprefix("zh_")
    if kind == "comma":
        return kind
    rest = re.sub(rf"[{_MARKS})）;/,、]", " ", between[: match.start()] + " " + between[match.end() :])
    if not cues.ALL_LIGHT.fullmatch(rest):
        return None
    return "nor" if match.group().lower() == "nor" else "but" if kind == "not" else kind


def _list(text: str, members: Sequence[Atom]) -> Clause | None:
    """The condition of one list; ``None`` if it is met by everything."""
    if len(members) == 1:
        return _alone(members[0])
    words = [_connector(text[one.end : other.begin]) for one, other in pairwise(members)]
    # a comma joins as the next "and" or "or" of its list does
    for place in range(len(words) - 1, -1, -1):
        if not words[place] and members[place].where is None:
            words[place] = "and"  # "or severe Obesity": the unknown words narrow the known one
        if words[place] in ("comma", ""):
            words[place] = words[place + 1] if place + 1 < len(words) else "and"
    if members[0].negated:
        inner = [member.where for member in members if member.where is not None]
        if members[0].both and "or" not in words:
            return none_of(all_of(inner) or inner[0])
        return _shorter(_weakest([[_alone(member) for member in members]]) or inner[0])
    alternatives: list[list[Clause | None]] = [[members[0].where]]
    for word, (before, member) in zip(words, pairwise(members), strict=True):
        if word in ("or", "nor") or (member.exclusive and before.where is not None):
            alternatives.append([])
        alternatives[-1].append(member.where)
    joined = _weakest(alternatives)
    return None if joined is None else _shorter(joined)


def _alone(atom: Atom) -> Clause | None:
    if not atom.negated or atom.where is None:
        return atom.where
    field, operator, operand = single(atom.where)
    return atom.denial or ({field: {"$ne": operand}} if operator == "$eq" else none_of(atom.where))


def _shorter(where: Clause) -> Clause:
    """``year = 2010 or year = 2012`` as ``year in (2010, 2012)``, and the same for "not"."""
    any_ = "$or" in where
    wanted, short = ("$eq", "$in") if any_ else ("$ne", "$nin")
    parts = [single(part) for part in where.get("$or" if any_ else "$and", [])]
    if not parts or any((field, operator) != (parts[0][0], wanted) for field, operator, _ in parts):
        return where
    values = list(dict.fromkeys(operand for _, _, operand in parts))
    return {parts[0][0]: {short: values} if len(values) > 1 else {wanted: values[0]}}


# 或许 and 或缺 are words of their own
_OR = r"(?:\b(?:and/)?or\b(?!\s+not\b)|(?:抑或|(?<!不可)或(?![许缺然多]|以[前后上下]|更|等于)者?是?))"
_CLOSING = r"[\s\"”’」』)）]*+"
_RIGHT = re.compile(rf"{_CLOSING}(?:[,，、]?\s*(?P<or>{_OR})|[,，、])", re.IGNORECASE)
_LEFT = re.compile(
    rf"{_CLOSING}(?:[,，、]?\s*(?P<or>{_OR})|(?P<mark>[,，、]))(?:{cues.LIGHT}|{cues.ZH_LIGHT})*+$",
    re.IGNORECASE,
)
_LIGHT = re.compile(rf"(?:{cues.LIGHT}|{cues.ZH_LIGHT})++", re.IGNORECASE)
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_](?:(?![\u3400-\u9fff])[\w.'’-])*")
# "or so", "or more" say nothing of their own; so do the words of a question before its first thing
_NOTHING = re.compile(
    r"(?:so|else|even|thereabouts|more|less|fewer|later|earlier|older|newer|above|below|over|higher|lower|greater|larger|"
    r"smaller|better|worse|not|rather|does|did|can|could|will|would|is|are|how|why|whether|which|what|before|after|since|"
    r"until|between|without|except|excluding|never|than)\b",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    r"\b(?:about|on|by|from|regarding|concerning|of|with|tagged|named|called|for)\s", re.IGNORECASE
)
_OR_FOLLOWS = re.compile(rf"[^.;?!。；？！]{{0,60}}?{_OR}", re.IGNORECASE)
_MAX_WORDS = 12


def unknown_arms(text: str, atoms: Sequence[Atom], used: Sequence[tuple[int, int]]) -> list[Atom]:
    """What stands beside a known value in an or-list and is no known value ("Stroke or insomnia").

    Args:
        text: The question.
        atoms: Its conditions, in the order of the text.
        used: What else of it is understood.

    Returns:
        Conditions that everything meets.
    """
    taken = [*((atom.begin, atom.end) for atom in atoms), *used]
    found: list[Atom] = []
    for place, atom in enumerate(atoms):
        if atom.negated:
            continue
        before = max([0, atom.begin - cues.REACH, *(end for _, end in taken if end <= atom.begin)])
        after = min([len(text), atom.end + cues.REACH, *(begin for begin, _ in taken if begin >= atom.end)])
        spans = _after(text, atom, after)
        if atom.measured:
            spans = [span for span in spans if _TOPIC.search(text[atom.end : span[0]])]
        else:
            spans += _before(text, atom, before)
        nearest = atoms[place + 1].where if place + 1 < len(atoms) else None
        # "Acme phones or Globex phones", "after 2010 or about sleep": another clause, not another value of the field
        field = "" if atom.measured or nearest == atom.where else atom.field
        for begin, end in spans:
            if not any(begin < arm.end and arm.begin < end for arm in found):
                found.append(Atom(begin, end, field, None, exclusive=atom.exclusive))
    return found


def _after(text: str, atom: Atom, stop: int) -> list[tuple[int, int]]:
    """The unknown arms after a known value: "stroke or insomnia", "stroke, insomnia or apnea"."""
    arms: list[tuple[int, int]] = []
    end = atom.end
    while joined := _RIGHT.match(text, end, stop):
        light = _LIGHT.match(text, joined.end(), stop)
        begin = light.end() if light else joined.end()
        end = begin
        for word in _words(text, begin, stop):
            if text[end : word.start()].strip(" -"):
                break
            end = word.end()
        if end == begin or _NOTHING.match(text, begin):
            break
        arms.append((begin, end))
        if joined["or"]:
            return arms
    return []


def _before(text: str, atom: Atom, start: int) -> list[tuple[int, int]]:
    """The unknown arms before a known value: "insomnia or stroke", "insomnia, apnea or stroke"."""
    arms: list[tuple[int, int]] = []
    end = atom.begin
    while joined := _LEFT.search(text[start:end]):
        stop = start + joined.start()
        begin = stop
        for word in reversed(list(_WORD.finditer(text, start, stop))[-_MAX_WORDS:]):
            if text[word.end() : begin].strip(" -") or _says_nothing(text, word, stop):
                break
            begin = word.start()
        if begin == stop or _NOTHING.match(text, begin):
            break
        # a comma ends many things: what stands before one is of the list if it is plainly named
        sure = arms or joined["or"] or joined["mark"] == "、" or _topic_before(text, begin)
        if not sure or not (arms or joined["or"] or _OR_FOLLOWS.match(text, atom.end)):
            break
        arms.append((begin, stop))
        end = begin
    return arms


def _words(text: str, begin: int, stop: int) -> list[re.Match[str]]:
    """The words from a place on, up to a light word or one that joins."""
    found: list[re.Match[str]] = []
    for word in _WORD.finditer(text, begin, stop):
        if len(found) == _MAX_WORDS or _says_nothing(text, word, stop):
            break
        found.append(word)
    return found


def _says_nothing(text: str, word: re.Match[str], stop: int) -> bool:
    light = _LIGHT.match(text, word.start(), stop)
    joins = cues.CONNECTOR.match(text, word.start(), stop)
    return joins is not None or (light is not None and light.end() >= word.end())


def _topic_before(text: str, begin: int) -> bool:
    """Whether a preposition stands before; one that opens the text ("For students, ...") sets the scene."""
    found = _TOPIC.search(text, max(0, begin - 12), begin)
    scene = ("for", "from", "with", "on", "of", "by")
    opens = found is not None and not text[: found.start()].strip() and found.group().strip().lower() in scene
    return found is not None and not opens
