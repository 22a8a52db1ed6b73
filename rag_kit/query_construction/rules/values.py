"""Values of the collection that a question names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.words import HAN, simplified, singular
from rag_kit.text import content_words
from rag_kit.text.segment import load_segmenter

# the s of "Crohn's disease" is no word: the value is "Crohn Disease"
_WORD = re.compile(r"(?!(?<=['’])s\b)[^\W_]+")
_DIGIT = re.compile(r"\d")
_CAPITAL_BEFORE = re.compile(r"\w[ ,]+([A-Z][a-z]+) $")
_HAN_RUN = re.compile(r"[\u3400-\u9fff]{1,8}")
_JOINED = re.compile(r"(?:[\s\-‐,/'’().&:]|['’]s\b)*")
_MAX_WORDS = 16
# Single words that frame requests, so that they name nothing: what is asked for anyway, and what only joins words.
_FRAME_WORDS = """
document article paper study research work result record text file source data information question answer value term
name author title number role and or not the all any yes no true false none unknown new first last other
"""
_FRAME = frozenset(map(singular, _FRAME_WORDS.split()))


@dataclass(frozen=True)
class Named:
    """A value named in a text.

    Attributes:
        exact: Written as the value is, not at the beginning of the text.
        sure: No ordinary word of a question: several words, or exact, or not generic.
        name: Written as names are written: with capitals or figures, in the number of the value.
    """

    begin: int
    end: int
    field: str
    value: Any
    exact: bool
    sure: bool
    name: bool


class ValueIndex:
    """Finds the values of a schema in texts; the longest one at each place."""

    def __init__(self, schema: Schema) -> None:
        self._first: dict[str, list[tuple[tuple[str, ...], str, Any]]] = {}
        self._han: list[tuple[str, str, Any]] = []
        self._many = {field.name for field in schema if field.many}
        for field in schema:
            if field.type == "bool":
                self._add_flag(field)
            elif field.type == "str" and not field.unique:
                for value in map(str, field.values):
                    if HAN.search(value):
                        self._han.append((simplified(value.casefold()), field.name, value))
                    else:
                        self._add_value(field.name, value)
        for entries in self._first.values():
            entries.sort(key=lambda entry: -len(entry[0]))
        self._han.sort(key=lambda entry: -len(entry[0]))

    def _add_flag(self, field: MetadataField) -> None:
        """A flag is named by its field, or by what says that it is off."""
        for name in field.all_names:
            if HAN.search(name):
                name = simplified(name.casefold())
                self._han += [(form, field.name, True) for form in {name, name.removeprefix("是否")} if form]
                continue
            on = tuple(singular(word) for word in _words(re.sub(r"^(?:is|has)_", "", name)))
            off: list[tuple[str, ...]] = (
                [(prefix + on[0],) for prefix in ("un", "in", "non")] if len(on) == 1 else []
            )
            if on[0] == "in" and len(on) > 1:  # "out of stock"
                off = [("out", "of", *on[1:])]
            for words, value in ((on, True), *((words, False) for words in off)):
                self._first.setdefault(words[0], []).append((words, field.name, value))

    def _add_value(self, field: str, value: str) -> None:
        for form in _forms(value):
            words = tuple(singular(word) for word in _words(form))
            if words and len(words) <= _MAX_WORDS and any(len(word) > 1 for word in words):
                self._first.setdefault(words[0], []).append((words, field, value))

    def find(self, text: str) -> list[Named]:
        """The values named in a text, in order, without overlap."""
        taken: list[Named] = []
        for named in sorted(
            (*self._latin(text), *self._chinese(text)),
            key=lambda item: (item.begin - item.end, item.begin, not item.exact),
        ):
            if not any(named.begin < other.end and other.begin < named.end for other in taken):
                taken.append(named)
        return sorted(taken, key=lambda item: item.begin)

    def _latin(self, text: str) -> Iterator[Named]:
        found = list(_WORD.finditer(HAN.sub(" ", text)))
        words = [singular(match.group().casefold()) for match in found]
        for start, first in enumerate(words):
            for wanted, field, value in self._first.get(first, ()):
                matches = found[start : start + len(wanted)]
                if tuple(words[start : start + len(wanted)]) == wanted and all(
                    _JOINED.fullmatch(text, one.end(), other.start()) for one, other in pairwise(matches)
                ):
                    begin, end = matches[0].start(), matches[-1].end()
                    yield _named(text, begin, end, field, value, wanted, field in self._many)

    def _chinese(self, text: str) -> Iterator[Named]:
        folded = simplified(text.casefold())
        if not HAN.search(folded) or len(folded) != len(text):
            return
        for wanted, field, value in self._han:
            begin = folded.find(wanted)
            while begin >= 0:
                end = begin + len(wanted)
                yield Named(begin, end, field, value, True, len(wanted) > 1, _whole(folded, begin, end))
                begin = folded.find(wanted, begin + len(wanted))


def _named(
    text: str, begin: int, end: int, field: str, value: Any, words: tuple[str, ...], many: bool
) -> Named:
    if isinstance(value, bool):
        sure = len(words) > 1 or (words[0] not in _FRAME and len(words[0]) > 2)
        return Named(begin, end, field, value, exact=False, sure=sure, name=False)
    written = text[begin:end]
    initial = not text[:begin].strip(" \"'“(¿")
    alone = len(words) == 1
    frame = alone and words[0] in _FRAME
    same = written in (value, value + "s")
    capitals = written[:1].isupper() and value[:1].isupper() and not initial
    # a field of one value sorts documents into kinds: its names are meant, however they are written
    exact = ((same or capitals) and not (initial and alone)) or (not many and not frame)
    # "AIDS" and "aids" are not the same word, nor are "financial" and the sector "Financials"
    other = value.isupper() and len(value) > 1 and not same
    other |= alone and written.islower() and not value.islower() and len(written) < len(value)
    sure = not other and (exact or not (frame or (alone and len(words[0]) < 3)))
    return Named(begin, end, field, value, exact, sure, _is_name(text, begin, end, value))


def _is_name(text: str, begin: int, end: int, value: str) -> bool:
    """Whether a text names a value as names are written: "Acme" and "ACME" for "Acme", but not "financial" for
    "Financials", and not the "Norman" of "player Josh Norman"."""
    written = text[begin:end]
    plain = any(form == form.lower() and not _DIGIT.search(form) for form in (written, value))
    if plain or (value.isupper() and written != value):
        return False
    words = _words(written)
    before = _CAPITAL_BEFORE.search(text, 0, begin) if len(words) == 1 else None
    return set(words) <= set(_words(value)) and (before is None or not content_words(before.group(1)))


def _whole(text: str, begin: int, end: int) -> bool:
    """Whether a Chinese value is a name by itself: 金融 in 金融资产 is not."""
    following = _HAN_RUN.match(text, end)
    if end - begin != 2 or following is None:
        return end - begin >= 2
    return not content_words(load_segmenter()(following.group())[0])


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text.replace("_", " "))]


def _forms(value: str) -> list[str]:
    """The value, and the way people say it: "Tomography, X-Ray Computed" is "X-Ray Computed Tomography"."""
    bare = re.sub(r"\s*\([^()]*\)\s*$", "", value)
    parts = [part.strip() for part in bare.split(",")]
    forms = [value, *([bare] if bare != value else [])]
    if 2 <= len(parts) <= 4 and all(parts):
        forms.append(" ".join([*reversed(parts[1:]), parts[0]]))
    return forms
