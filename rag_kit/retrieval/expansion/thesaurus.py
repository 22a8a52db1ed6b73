"""A user's thesaurus: which terms of a question bring which others."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.text import Analyzer, fold
from rag_kit.text.language import CLOSE

# a character of a script that is written without spaces, or a word of another
_WORD_OR_CHARACTER = re.compile(f"[{CLOSE}]|[^\\W_{CLOSE}]+")
_analyzer = cache(lambda: Analyzer(stop_words=False))  # made at its first use
Entries = Mapping[str, str | Iterable[str]] | Iterable[Iterable[str]]


class Thesaurus:
    """Terms, and the related terms to search for besides.

    A term may have several words. English words match in any form ("heart attacks" is "heart attack"), but only
    as whole words; Chinese terms match wherever their characters stand, in either script. Of terms that overlap
    in a question the longest counts. The entries are a dict from a term to its related terms (a string or a list of
    them), or a list of lists, each of terms that all bring each other.

    Example:
        >>> thesaurus = Thesaurus({"heart attack": ["myocardial infarction"], "电脑": "计算机"})
        >>> thesaurus.find("Two heart attacks and a 電腦")
        {'heart attacks': ['myocardial infarction'], '電腦': ['计算机']}
    """

    def __init__(self, entries: Entries) -> None:
        self._related: dict[tuple[str, ...], dict[str, None]] = {}  # stems of a term -> its related terms
        self._longest: dict[str, int] = {}  # first stem of terms -> number of stems of the longest such term
        for term, related in _pairs(entries):
            stems = _stems(term)
            if not stems:
                raise InvalidInputError(f"The term {term!r} has no word in it.")
            others = [other for other in related if _stems(other) != stems]  # not the term itself
            self._related.setdefault(stems, {}).update(dict.fromkeys(others))
            self._longest[stems[0]] = max(len(stems), self._longest.get(stems[0], 0))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Thesaurus:
        """Read the entries from a ``.json`` file, or a ``.csv`` with a term and its related terms a row; UTF-8."""
        entries = _read_entries(path)
        try:
            return cls(entries)
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {error}") from error

    def find(self, text: str) -> dict[str, list[str]]:
        """Map each term of the thesaurus in a text, as it is written there, to its related terms."""
        folded = fold(text)
        # if folding kept the length, positions in both agree, and terms can be returned as the user wrote them
        written = text if len(folded) == len(text) else folded
        words = list(_WORD_OR_CHARACTER.finditer(folded))
        stems = [_stem(word[0]) for word in words]
        result: dict[str, list[str]] = {}
        start = 0
        while start < len(stems):
            size = min(self._longest.get(stems[start], 0), len(stems) - start)
            while size and not self._related.get(tuple(stems[start : start + size])):
                size -= 1  # down to the longest term that begins here, or to 0
            if size:
                term = written[words[start].start() : words[start + size - 1].end()]
                result.setdefault(term, list(self._related[tuple(stems[start : start + size])]))
            start += size or 1
        return result


def _pairs(entries: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield each term of a thesaurus with its related terms; in a group of synonyms these are all the others."""
    if isinstance(entries, Mapping):
        for key, related in entries.items():
            [term] = _terms([key])
            yield term, _terms([related] if isinstance(related, str) else related)
        return
    for group in entries if isinstance(entries, (list, tuple)) else [entries]:
        terms = _terms(group)
        for term in terms:
            yield term, [other for other in terms if other != term]


def _terms(value: Any) -> list[str]:
    """Return the terms of a list or set, with single blanks; refuse anything but a list of texts that are not empty."""
    is_filled_list = isinstance(value, (list, tuple, set)) and len(value) > 0
    if not is_filled_list or not all(isinstance(term, str) and term.strip() for term in value):
        raise InvalidInputError(
            f"{value!r:.80} ({type(value).__name__}) was given in a thesaurus; give a dict from a term to a list of "
            "terms, or a list of lists of terms. A term is a text that is not empty, a list holds at least one."
        )
    return [" ".join(term.split()) for term in value]


def _stems(term: str) -> tuple[str, ...]:
    return tuple(map(_stem, _WORD_OR_CHARACTER.findall(fold(term))))


def _stem(unit: str) -> str:
    return (_analyzer()(unit) or [unit])[0]


def _read_entries(path: str | PathLike[str]) -> Any:
    file = Path(path)
    try:
        text = file.read_text("utf-8-sig")
        if file.suffix.lower() == ".json":
            return json.loads(text)
        if file.suffix.lower() == ".csv":
            return _table_entries(text)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise InvalidInputError(f"{path} cannot be read as a thesaurus: {error}") from error
    raise InvalidInputError(f"{file} is neither .json nor .csv; a thesaurus is one of these.")


def _table_entries(text: str) -> dict[str, list[str]]:
    """Read the entries of a table: in each row a term, and its related terms in the other cells."""
    entries: dict[str, list[str]] = {}
    reader = csv.reader(io.StringIO(text, newline=""))
    for row in reader:
        cells = [cell.strip() for cell in row if cell.strip()]
        if len(cells) == 1:
            raise ValueError(f"line {reader.line_num}: {cells[0]!r} stands alone, without a related term")
        if cells:
            entries.setdefault(cells[0], []).extend(cells[1:])
    return entries
