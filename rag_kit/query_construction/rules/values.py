"""Values of the collection that a question names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rag_kit.query_construction.cues import HAN, longest_spans, singular
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.text import content_words
from rag_kit.text.analysis import load_segmenter
from rag_kit.text.values.periods import TextSpan
from rag_kit.text.values.reading import level

# the s of "Crohn's disease" is not a word: the value is "Crohn Disease"
_WORD = re.compile(r"(?!(?<=['’])s\b)[^\W_]+")
_HAN_RUN = re.compile(r"[\u3400-\u9fff]{1,8}")
_JOINED = re.compile(r"(?:[\s\-‐,/'’().&:]|['’]s\b)*")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_MAX_WORDS = 16
_WORDS = tomllib.loads(Path(__file__).with_name("values.toml").read_text("utf-8"))
_FRAME = frozenset(map(singular, _WORDS["frame"].split()))
_COMMON = frozenset(_WORDS["common"].split())
_IN_SENTENCE = re.compile(r"[^\s.?!:;。？！\"'“‘(][\s\"'“‘(]*$")
_AFTER_PLACE = re.compile(r"\b(?:in(?!\s+(?:general|short|special)\b)|of|from)\s+(?:the\s+)?$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class NamedValue(TextSpan):
    """A value named in a text."""

    field: MetadataField
    value: Any
    exact: bool  # written as the value is, not at the beginning of the text
    sure: bool  # no ordinary word of a question: several words, or exact, or not generic
    name: bool  # written as a name: "Acme" or "ACME" for "Acme", not "financial" for "Financials"


class ValueIndex:
    """Finds the values of a schema in texts; the longest one at each position."""

    def __init__(self, schema: Schema) -> None:
        self._by_first_word: dict[str, list[tuple[tuple[str, ...], MetadataField, Any]]] = {}
        self._chinese: list[tuple[str, MetadataField, Any]] = []
        for field in schema:
            if field.type == "bool":
                self._add_flag(field, field.name)
            elif field.type == "str" and not field.unique:
                for value in map(str, field.values):
                    self._add_value(field, value)

    def _add_flag(self, field: MetadataField, name: str) -> None:
        """Index a flag by its field's name, and by the words for its opposite: "unpublished", "out of stock"."""
        if HAN.search(name):
            folded = level(name.casefold())
            forms = {folded, folded.removeprefix("是否"), folded.removeprefix("已")}  # 归档 for 已归档
            self._chinese += [(form, field, True) for form in forms if form]
            return
        words = _words(re.sub(r"^(?:is|has)_", "", name))
        if words:
            self._add_words(words, field, True)
        if len(words) == 1:
            self._add_words(("un" + words[0],), field, False)
        elif words and words[0] == "in":
            self._add_words(("out", "of", *words[1:]), field, False)

    def _add_value(self, field: MetadataField, value: str) -> None:
        """Index a value: a Chinese one as text, any other by the words of the forms in which people write it."""
        if HAN.search(value):
            self._chinese.append((level(value.casefold()), field, value))
            return
        bare = re.sub(r"\s*\([^()]*\)\s*$", "", value)  # without "(disorder)" at the end
        # people write "X-Ray Computed Tomography" for "Tomography, X-Ray Computed"
        first, *others = bare.split(",")
        reordered = " ".join([*reversed(others), first])
        for words in map(_words, dict.fromkeys([value, bare, reordered])):
            has_long_word = any(len(word) > 1 for word in words)
            if (has_long_word or _VERSION.fullmatch(value)) and len(words) <= _MAX_WORDS:
                self._add_words(words, field, value)

    def _add_words(self, words: tuple[str, ...], field: MetadataField, value: Any) -> None:
        self._by_first_word.setdefault(words[0], []).append((words, field, value))

    def find(self, text: str) -> list[NamedValue]:
        """Find the values named in a text, in order, without overlap."""
        named = [*self._find_latin(text), *self._find_chinese(text)]
        # of equal spans the first one, here an exact one, stays
        return longest_spans(sorted(named, key=lambda value: not value.exact))

    def _find_latin(self, text: str) -> Iterator[NamedValue]:
        """Find values whose words are in the text one after the other, in singular or plural."""
        matches = list(_WORD.finditer(HAN.sub(" ", text)))
        words = tuple(singular(match.group().casefold()) for match in matches)
        for start, first in enumerate(words):
            for value_words, field, value in self._by_first_word.get(first, ()):
                stop = start + len(value_words)
                if words[start:stop] != value_words:
                    continue
                neighbours = pairwise(matches[start:stop])
                if all(_JOINED.fullmatch(text, left.end(), right.start()) for left, right in neighbours):
                    span = TextSpan(matches[start].start(), matches[stop - 1].end())
                    # "2, 10" is no version 2.10
                    if not _VERSION.fullmatch(str(value)) or text[span.begin : span.end] == value:
                        yield _latin_value(text, span, field, value, value_words)

    def _find_chinese(self, text: str) -> Iterator[NamedValue]:
        """Find values in Chinese, in simplified or traditional characters."""
        folded = level(text.casefold())
        has_same_offsets = len(folded) == len(text)
        if not HAN.search(folded) or not has_same_offsets:
            return
        for written, field, value in self._chinese:
            is_common = written in _COMMON
            is_sure = not is_common and len(written) > 1
            for match in re.finditer(re.escape(written), folded):
                is_name = not is_common and _is_whole(folded, *match.span())
                yield NamedValue(*match.span(), field, value, exact=not is_common, sure=is_sure, name=is_name)


def _latin_value(
    text: str, span: TextSpan, field: MetadataField, value: Any, words: tuple[str, ...]
) -> NamedValue:
    """Make the named value of words in a text; decide whether it is exact, sure and a name (see `NamedValue`)."""
    begin, end, is_single = span.begin, span.end, len(words) == 1
    is_frame = is_single and words[0] in _FRAME  # "paper" frames a request
    if isinstance(value, bool):
        return NamedValue(begin, end, field, value, exact=False, sure=not is_frame, name=False)
    written = text[begin:end]
    if is_single and is_common(text, span, written):
        return NamedValue(begin, end, field, value, exact=False, sure=False, name=False)
    is_at_beginning = not text[:begin].strip(" \"'“(")
    is_same = written in (value, value + "s")
    has_capital = written[:1].isupper() and value[:1].isupper() and not is_at_beginning
    is_as_written = (is_same or has_capital) and not (is_at_beginning and is_single)
    # a field of one value sorts documents into kinds: its names are meant, however they are written
    exact = is_as_written or (not field.many and not is_frame)
    # "AIDS" and "aids" are not the same word, nor are "financial" and the sector "Financials"
    is_abbreviation = value.isupper() and len(value) > 1
    is_shorter = is_single and written.islower() and not value.islower() and len(written) < len(value)
    is_other_word = is_shorter or (is_abbreviation and not is_same)
    is_vague = is_frame or (is_single and len(words[0]) < 3)
    sure = not is_other_word and (exact or not is_vague)
    return NamedValue(begin, end, field, value, exact, sure, _is_name(written, value))


def is_common(text: str, span: TextSpan, written: str) -> bool:
    """Tell whether a word such as "may" is an ordinary one in a text: no capital inside a sentence, no "in" before."""
    word = written.lower()
    if word not in _COMMON and content_words(word):
        return False
    left = text[: span.begin]
    has_capital = written[:1].isupper() and not text.isupper() and _IN_SENTENCE.search(left)
    return not (has_capital or _AFTER_PLACE.search(left))


def _is_name(written: str, value: str) -> bool:
    """Tell whether a value is written as a name: "Acme" and "ACME" for "Acme", not "financial" for "Financials"."""
    for form in (written, value):
        if form == form.lower() and not re.search(r"\d", form):
            return False
    if value.isupper() and written != value:
        return False
    return set(_WORD.findall(written.casefold())) <= set(_WORD.findall(value.casefold()))


def _is_whole(text: str, begin: int, end: int) -> bool:
    """Tell whether a Chinese value is a name by itself: 金融 in 金融资产 is not."""
    following = _HAN_RUN.match(text, end)
    if end - begin != 2 or following is None:
        return end - begin >= 2
    next_word = load_segmenter()(following.group())[0]
    return not content_words(next_word)


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text, each in the singular."""
    return tuple(singular(word.casefold()) for word in _WORD.findall(text))
