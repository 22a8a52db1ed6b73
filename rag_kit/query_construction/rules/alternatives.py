"""What stands beside a known value in an or-list and is no known value: "Stroke or insomnia"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.structured_query import FilterDirective

from rag_kit.query_construction.ir import all_of, any_of
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom

# 或许 and 或缺 are words of their own
_ZH_OR = r"(?:抑或|(?<!不可)或(?![许缺然多]|以[前后上下]|更|等于)者?是?)"
_OR = rf"(?:\b(?:and/)?or\b(?!\s+not\b)|{_ZH_OR})"
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
_MAX_WORDS = 6


def unknown_arms(text: str, atoms: Sequence[Atom], used: Sequence[tuple[int, int]]) -> list[Atom]:
    """The arms of or-lists that are no known value, as conditions that everything meets.

    Args:
        text: The question.
        atoms: Its conditions, in the order of the text.
        used: What else of it is understood.
    """
    taken = [*((atom.begin, atom.end) for atom in atoms), *used]
    found: list[Atom] = []
    for place, atom in enumerate(atoms):
        if atom.negated:
            continue
        before = max([0, atom.begin - cues.REACH, *(end for _, end in taken if end <= atom.begin)])
        following = min(
            [len(text), atom.end + cues.REACH, *(begin for begin, _ in taken if begin >= atom.end)]
        )
        nearest = atoms[place + 1].directive if place + 1 < len(atoms) else None
        # "Acme phones or Globex phones", "after 2010 or about sleep": another clause, not another value of the field
        clause = atom.measured or nearest == atom.directive
        spans = _after(text, atom, following)
        if atom.measured:
            spans = [span for span in spans if _TOPIC.search(text[atom.end : span[0]])]
        else:
            spans += _before(text, atom, before)
        for span in spans:
            if not any(span[0] < arm.end and arm.begin < span[1] for arm in found):
                found.append(Atom(*span, "" if clause else atom.field, None, exclusive=atom.exclusive))
    return found


def _after(text: str, atom: Atom, stop: int) -> list[tuple[int, int]]:
    """The unknown arms after a known value: "stroke or insomnia", "stroke, insomnia or apnea"."""
    arms: list[tuple[int, int]] = []
    end = atom.end
    while joined := _RIGHT.match(text, end, stop):
        light = _LIGHT.match(text, joined.end(), stop)
        begin = light.end() if light else joined.end()
        end = _run(text, begin, stop)
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
        begin = _run_back(text, start, stop)
        if begin == stop or _NOTHING.match(text, begin):
            break
        # a comma ends many things: what stands before one is of the list if it is plainly named
        sure = arms or joined["or"] or joined["mark"] == "、" or _named(text, begin)
        if not sure or not (arms or joined["or"] or _OR_FOLLOWS.match(text, atom.end)):
            break
        arms.append((begin, stop))
        end = begin
    return arms


def _named(text: str, begin: int) -> bool:
    """Whether a preposition stands before; one that opens the text ("For students, ...") sets the scene."""
    found = _TOPIC.search(text, max(0, begin - 12), begin)
    opens = found is not None and not text[: found.start()].strip()
    return found is not None and not (
        opens and found.group().strip().lower() in ("for", "from", "with", "on", "of", "by")
    )


def _run(text: str, begin: int, stop: int) -> int:
    """Where the words that stand together from here end: at a light word, a mark or what is understood."""
    end, place = begin, begin
    for _ in range(_MAX_WORDS * 2):
        word = _WORD.match(text, place, stop)
        light = _LIGHT.match(text, place, stop)
        joins = cues.CONNECTOR.match(text, place, stop)
        if word is None or joins is not None or (light is not None and light.group().strip()):
            break
        end = place = word.end()
        while place < stop and text[place] in " -":
            place += 1
    return end


def _run_back(text: str, start: int, end: int) -> int:
    """Where the words that stand together up to here begin."""
    begin = end
    words = list(_WORD.finditer(text, start, end))
    for word in reversed(words[-_MAX_WORDS * 2 :]):
        light = _LIGHT.match(text, word.start(), end)
        joins = cues.CONNECTOR.match(text, word.start(), end)
        gap = text[word.end() : begin]
        if joins is not None or (light is not None and light.end() >= word.end()) or gap.strip(" -"):
            break
        begin = word.start()
    return begin


def weakest(alternatives: Sequence[Sequence[FilterDirective | None]]) -> FilterDirective | None:
    """OR of ANDs, of which a condition that is not known (``None``) is met by everything.

    Example:
        >>> from langchain_core.structured_query import Comparator, Comparison
        >>> known = Comparison(Comparator.EQ, "color", "red")
        >>> weakest([[known, None]]) == known, weakest([[known], [None]])
        (True, None)
    """
    parts = [all_of([part for part in parts if part is not None]) for parts in alternatives]
    return None if None in parts else any_of([part for part in parts if part is not None])
