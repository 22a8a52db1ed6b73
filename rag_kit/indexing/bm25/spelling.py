"""Spelling: words of a query that an index lacks are searched by the nearest words that its documents have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from rag_kit.concurrency.notes import write_note

WEIGHT = 0.8  # of a corrected word beside one that was found as typed; measured, see docs/benchmarks.md
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MIN_LETTERS = 4  # shorter words have too many neighbours
_MAX_CORRECTED = 32  # words of a query
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")  # of letters, also "don't"
_MAX_TEXT = 100_000  # characters of a document that are looked through for a word as it is written there

#: From terms to those among them that documents have, the most frequent first, each with the text of one document.
FindKnown = Callable[[Iterable[str]], Iterator[tuple[str, str]]]


def edits(word: str) -> set[str]:
    """Return the words one edit away: a letter more, less or other, or two neighbours swapped.

    Example:
        >>> sorted({"pump", "pimp", "upmp", "pumps"} & edits("pump"))
        ['pimp', 'pumps', 'upmp']
    """
    splits = [(word[:position], word[position:]) for position in range(len(word) + 1)]
    words = {before + letter + after for before, after in splits for letter in _LETTERS}  # a letter more
    words |= {before + letter + after[1:] for before, after in splits[:-1] for letter in _LETTERS}  # other
    words |= {before + after[1:] for before, after in splits[:-1]}  # less
    words |= {before + after[1] + after[0] + after[2:] for before, after in splits[:-2]}  # swapped
    return words - {word}


def correct(
    query: str,
    weights: Mapping[str, float],
    analyzer: Callable[[str], list[str]],
    is_known: Callable[[str], object],
    find_known: FindKnown,
) -> Mapping[str, float]:
    """Replace each misspelt term of a query by the nearest known one, with less weight and a note in whole words.

    An analyzer without ``typos`` has its terms searched as typed. Terms of four Latin letters or more are corrected, by
    the most frequent term one edit away: of each 100 mistypings about 80 are one edit (Damerau, "A technique for
    computer detection and correction of spelling errors", 1964). Identifiers, numbers and other scripts are searched
    as typed. `find_known` gives only what the caller may see.
    """
    if not getattr(analyzer, "typos", False):
        return weights
    words = (term for term in weights if len(term) >= _MIN_LETTERS and term.isascii() and term.isalpha())
    unknown = [term for term in words if not is_known(term)]
    nearest: dict[str, str] = {}
    for term in unknown[:_MAX_CORRECTED]:
        for known, text in find_known(edits(term)):
            nearest[term] = known
            searched, typed = _word_for(known, text, analyzer), _word_for(term, query, analyzer)
            write_note(f"searched {searched!r} for {typed!r}")
            break  # the first is the most frequent one
    corrected: defaultdict[str, float] = defaultdict(float)
    for term, weight in weights.items():
        # the nearest one may be a term of the query, too
        corrected[nearest.get(term, term)] += weight * WEIGHT if term in nearest else weight
    return corrected


def _word_for(term: str, text: str, analyzer: Callable[[str], list[str]]) -> str:
    """Return the first word of a text that is analysed to a term; the term itself if there is none."""
    words = (match[0] for match in _WORD.finditer(text[:_MAX_TEXT]))
    return next((word for word in words if analyzer(word) == [term]), term)
