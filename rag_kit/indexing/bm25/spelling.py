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
    """Return the words one edit away: a letter more, less or other, neighbours swapped, a mark on one or equal letters.

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

    Misspelt are terms of four Latin letters or more that no document has; others, and all of an analyzer without
    ``typos``, are searched as typed. The nearest term is that of a word with a mark that was left out, else of a word
    one edit away, as about 80 of 100 mistypings are (Damerau, "A technique for computer detection and correction of
    spelling errors", 1964). The word is edited, not its term: a wrong letter may have kept the ending in the term.
    """
    if not getattr(analyzer, "typos", False):
        return weights
    unknown = [term for term in weights if _LATIN.fullmatch(term) and not is_known(term)]
    nearest_terms: dict[str, str] = {}  # by the unknown term
    typed_words = dict(_terms_and_words(query, analyzer)) if unknown else {}  # by term
    for term in unknown[:_MAX_CORRECTED]:
        typed = typed_words.get(term, term)
        if nearest := _nearest(typed, analyzer, find_known):
            nearest_terms[term], written = nearest
            write_note(f"searched {written!r} for {typed!r}")
    corrected: defaultdict[str, float] = defaultdict(float)
    for term, weight in weights.items():
        if term in nearest_terms:
            corrected[nearest_terms[term]] += weight * WEIGHT  # added, for it may be a term of the query, too
        else:
            corrected[term] += weight
    return corrected


def _nearest(typed: str, analyzer: _Analyze, find_known: FindKnown) -> tuple[str, str] | None:
    """Return the most frequent term near a typed word, and a word of documents that has it: ("pump", "pumps")."""
    near_words = {word for word in edits(fold(typed)) if _LATIN.fullmatch(word)}  # not "may" for "many"
    # words with a mark that was left out come first: for "cafe" rather "café" than "cave"
    with_mark = {word for word in near_words if typed.isascii() and not word.isascii()}
    groups = [words for words in (with_mark, near_words - with_mark) if words]
    known = chain.from_iterable(find_known(set(analyzer(" ".join(words)))) for words in groups)  # lazily
    first = None
    for term, texts in islice(known, _MAX_NEAR):
        for word in chain.from_iterable(map(_split_words, texts)):
            if fold(word) in near_words and analyzer(word) == [term]:
                return term, word
        if first is None:  # an edit may be no word that people write, and yet have the stem of one
            words_of_term = (word for other, word in _terms_and_words(texts[0], analyzer) if other == term)
            first = term, next(words_of_term, term)
    return first


def _split_words(text: str) -> Iterator[str]:
    return (match[0] for match in _WORD.finditer(text[:_MAX_TEXT]))


def _terms_and_words(text: str, analyzer: _Analyze) -> Iterator[tuple[str, str]]:
    """Yield (term, word) for each word of a text that the analyzer makes one term of: ("pump", "Pumps")."""
    for word in _split_words(text):
        if len(terms := analyzer(word)) == 1:
            yield terms[0], word
