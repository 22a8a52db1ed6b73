"""Spelling: words of a query that an index lacks are searched by the nearest words that its documents have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from rag_kit.concurrency.notes import write_note
from rag_kit.text.language import fold

WEIGHT = 0.8  # of a corrected word beside one that was found as typed; measured, see docs/benchmarks.md
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LATIN = re.compile("[a-zß-öø-ɏ]{4,40}")  # terms to be corrected: shorter ones have too many neighbours
_MARKS = "aàáâãäåą cçćč dđ eèéêëęě gğ iìíîï lł nñń oòóôõöøő rř sśşš uùúûüůű yý zźżž"
_MARKED = {letters[0]: letters[1:] for letters in _MARKS.split()}  # what is typed so without marks
_MAX_CORRECTED = 32  # words of a query
_MAX_NEAR = 4  # terms near a word that are looked at
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")  # of letters, also "don't"
MAX_TEXTS = 20  # documents that are looked through for a word as it is written there
_MAX_TEXT = 100_000  # characters of each of them

_Analyze = Callable[[str], list[str]]
#: From terms to those that documents have, the most frequent first, each with the texts of up to MAX_TEXTS of these.
FindKnown = Callable[[Iterable[str]], Iterator[tuple[str, Sequence[str]]]]


def edits(word: str) -> set[str]:
    """Return the words one edit away: a letter more, less or other, two neighbours swapped, a mark on equal letters.

    Example:
        >>> sorted({"pump", "pimp", "upmp", "pumps"} & edits("pump"))
        ['pimp', 'pumps', 'upmp']
    """
    splits = [(word[:position], word[position:]) for position in range(len(word) + 1)]
    words = {before + letter + after for before, after in splits for letter in _LETTERS}  # a letter more
    words |= {before + letter + after[1:] for before, after in splits[:-1] for letter in _LETTERS}  # other
    words |= {before + after[1:] for before, after in splits[:-1]}  # less
    words |= {before + after[1] + after[0] + after[2:] for before, after in splits[:-2]}  # swapped
    marks = [(position, mark) for position, letter in enumerate(word) for mark in _MARKED.get(letter, "")]
    words |= {word[:position] + mark + word[position + 1 :] for position, mark in marks}  # a mark more
    words |= {word.replace(word[position], mark) for position, mark in marks}  # "résumé"
    return words - {word}


def correct_spelling(
    query: str,
    weights: Mapping[str, float],
    analyzer: _Analyze,
    is_known: Callable[[str], object],
    find_known: FindKnown,
) -> Mapping[str, float]:
    """Replace each misspelt term of a query by the nearest known one, with less weight and a note in whole words.

    An analyzer without ``typos`` has its terms searched as typed. Words of four Latin letters or more are corrected, by
    the most frequent one with a mark that was left out, else a single edit away: of each 100 mistypings about 80 are
    one edit (Damerau, "A technique for computer detection and correction of spelling errors", 1964). The typed word is
    edited, as a wrong letter may keep the analyzer from taking off the ending; documents may have it with another one.
    Identifiers, numbers, other scripts are searched as typed. `find_known` gives only what the caller may see.
    """
    if not getattr(analyzer, "typos", False):
        return weights
    unknown = [term for term in weights if _LATIN.fullmatch(term) and not is_known(term)]
    nearest: dict[str, str] = {}
    typed_words = dict(_words(query, analyzer)) if unknown else {}
    for term in unknown[:_MAX_CORRECTED]:
        typed = typed_words.get(term, term)
        if found := _nearest(typed, analyzer, find_known):
            nearest[term], word = found
            write_note(f"searched {word!r} for {typed!r}")
    corrected: defaultdict[str, float] = defaultdict(float)
    for term, weight in weights.items():
        # the nearest one may be a term of the query, too
        corrected[nearest.get(term, term)] += weight * WEIGHT if term in nearest else weight
    return corrected


def _nearest(typed: str, analyzer: _Analyze, find_known: FindKnown) -> tuple[str, str] | None:
    """Return the most frequent term near a typed word, and a word that has it; ``None`` if no term is near."""
    near = {word for word in edits(fold(typed)) if _LATIN.fullmatch(word)}  # not "may" for "many"
    best = None
    marked = {word for word in near if typed.isascii() and not word.isascii()}
    found = (find_known(set(analyzer(" ".join(words)))) for words in (marked, near - marked) if words)
    for known, texts in islice(chain.from_iterable(found), _MAX_NEAR):
        written = (match[0] for text in texts for match in _WORD.finditer(text[:_MAX_TEXT]))
        if word := next((word for word in written if fold(word) in near and analyzer(word) == [known]), None):
            return known, word
        if best is None:  # an edit may be no word that people write, and yet have the stem of one
            best = known, next((word for term, word in _words(texts[0], analyzer) if term == known), known)
    return best


def _words(text: str, analyzer: _Analyze) -> Iterator[tuple[str, str]]:
    """Yield each word of a text that has one term, behind its term."""
    for match in _WORD.finditer(text[:_MAX_TEXT]):
        if len(terms := analyzer(match[0])) == 1:
            yield terms[0], match[0]
