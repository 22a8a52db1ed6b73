"""Spelling: words of a query that an index lacks are searched by the nearest words that its documents have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from rag_kit.concurrency.notes import write_note

WEIGHT = 0.8  # of a corrected word beside one that was found as typed; measured, see docs/benchmarks.md
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST = 4  # letters; shorter words have too many neighbours
_MOST = 32  # words of a query that are corrected
_WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LONGEST_TEXT = 100_000  # characters of a document that are looked through for a word as it is written there


class SpellingCorrection(NamedTuple):
    """A term that no document has, the nearest one that some have, and the text of one of them."""

    term: str
    nearest: str
    text: str


#: Gives those of some terms that documents have: term, and the text of one of them; the most frequent term first.
FindKnown = Callable[[Iterable[str]], Iterator[tuple[str, str]]]


def edits(word: str) -> set[str]:
    """Give the words one edit away: a letter more, less or other, or two neighbours swapped.

    Example:
        >>> sorted({"pump", "pimp", "upmp", "pumps"} & edits("pump"))
        ['pimp', 'pumps', 'upmp']
    """
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    found = {a + b[1:] for a, b in splits if b}
    found |= {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1}
    found |= {a + letter + b[1:] for a, b in splits if b for letter in _LETTERS}
    found |= {a + letter + b for a, b in splits for letter in _LETTERS}
    return found - {word}


def correct(
    weights: Mapping[str, float], is_known: Callable[[str], bool], find_known: FindKnown
) -> tuple[Mapping[str, float], list[SpellingCorrection]]:
    """Put the nearest known term in the place of each misspelt one, with less weight.

    Terms of four Latin letters or more are corrected, by the most frequent term one edit away: of each 100 mistypings
    about 80 are one edit (Damerau, "A technique for computer detection and correction of spelling errors", 1964).
    Identifiers, numbers and other scripts are searched as typed. `find_known` gives only what the caller may see.
    """
    corrections = list[SpellingCorrection]()
    for term in [term for term in weights if _can_be_misspelt(term) and not is_known(term)][:_MOST]:
        if nearest := next(find_known(edits(term)), None):
            corrections.append(SpellingCorrection(term, *nearest))
    if not corrections:
        return weights, []
    instead = {correction.term: correction.nearest for correction in corrections}
    corrected: dict[str, float] = {}
    for term, weight in weights.items():
        added = weight * WEIGHT if term in instead else weight
        corrected[instead.get(term, term)] = corrected.get(instead.get(term, term), 0.0) + added
    return corrected, corrections


def _can_be_misspelt(term: str) -> bool:
    return len(term) >= _SHORTEST and term.isascii() and term.isalpha()


def note_corrections(
    query: str, corrections: Iterable[SpellingCorrection], analyzer: Callable[[str], list[str]]
) -> None:
    """Write a note for each correction, in the words that the query and a document have for the terms."""
    for term, nearest, text in corrections:
        write_note(
            f"searched {_word_for(nearest, text, analyzer)!r} for {_word_for(term, query, analyzer)!r}"
        )


def _word_for(term: str, text: str, analyzer: Callable[[str], list[str]]) -> str:
    words = _WORDS.finditer(text[:_LONGEST_TEXT])
    return next((match[0] for match in words if analyzer(match[0]) == [term]), term)
