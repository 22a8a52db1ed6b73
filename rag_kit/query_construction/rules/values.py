"""Values of the collection that a question names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rag_kit.query_construction.coercion import singular
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules.scripts import simplified
from rag_kit.text import content_words
from rag_kit.text.segment import load_segmenter

# the s of "Crohn's disease" is no word: the value is "Crohn Disease"
_WORD = re.compile(r"(?!(?<=['’])s\b)[^\W_]+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_DIGIT = re.compile(r"\d")
_CAPITAL_BEFORE = re.compile(r"\w[ ,]+([A-Z][a-z]+) $")
_HAN_RUN = re.compile(r"[\u3400-\u9fff]{1,8}")
_JOINED = re.compile(r"(?:[\s\-‐,/'’().&:]|['’]s\b)*")
_MAX_WORDS = 16
# Single words that frame requests, so that they name nothing: what is asked for anyway, and what only joins words.
_FRAME = """
document article paper study research work result record text file source data information question answer value term
name author title number role and or not the all any yes no true false none unknown new first last other
"""
FRAME = frozenset(map(singular, _FRAME.split()))


@dataclass(frozen=True)
class Named:
    """A value named in a text.

    Attributes:
        begin: First character.
        end: Character after the last.
        field: The field.
        value: The value.
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
    """Finds the values of a schema in texts; the longest one at each place.

    Args:
        schema: Fields with values.
    """

    def __init__(self, schema: Schema) -> None:
        self._first: dict[str, list[tuple[tuple[str, ...], str, Any]]] = {}
        self._han: list[tuple[str, str, Any]] = []
        self._many = {field.name for field in schema if field.many}
        for field in schema:
            if field.type == "bool":
                self._add_name(field)
            elif field.type == "str" and not field.unique:
                for value in field.values:
                    self._add(field.name, str(value))
        for entries in self._first.values():
            entries.sort(key=lambda entry: -len(entry[0]))
        self._han.sort(key=lambda entry: -len(entry[0]))

    def _add_name(self, field: MetadataField) -> None:
        for name in (field.name, *field.aliases):
            if _HAN.search(name):
                name = simplified(name.casefold())
                self._han += [(form, field.name, True) for form in {name, name.removeprefix("是否")} if form]
                continue
            said = tuple(singular(word) for word in _words(re.sub(r"^(?:is|has)_", "", name)))
            for words, value in ((said, True), *((words, False) for words in _opposites(said))):
                self._first.setdefault(words[0], []).append((words, field.name, value))

    def _add(self, field: str, value: str) -> None:
        if _HAN.search(value):
            self._han.append((simplified(value.casefold()), field, value))
            return
        for form in _forms(value):
            words = tuple(singular(word) for word in _words(form))
            if words and len(words) <= _MAX_WORDS and any(len(word) > 1 for word in words):
                self._first.setdefault(words[0], []).append((words, field, value))

    def find(self, text: str) -> list[Named]:
        """The values named in a text, in order, without overlap."""
        taken: list[Named] = []
        for named in sorted(
            (*self._latin(text), *self._chinese(text)),
            key=lambda item: (-(item.end - item.begin), item.begin, not item.exact),
        ):
            if not any(named.begin < other.end and other.begin < named.end for other in taken):
                taken.append(named)
        return sorted(taken, key=lambda item: item.begin)

    def _latin(self, text: str) -> Iterator[Named]:
        words = [
            (match.start(), match.end(), singular(match.group().casefold()))
            for match in _WORD.finditer(_spaced(text))
        ]
        for start, (begin, _, first) in enumerate(words):
            for wanted, field, value in self._first.get(first, ()):
                stop = start + len(wanted)
                if stop > len(words) or tuple(word for _, _, word in words[start:stop]) != wanted:
                    continue
                if any(
                    not _JOINED.fullmatch(text, words[at][1], words[at + 1][0])
                    for at in range(start, stop - 1)
                ):
                    continue
                yield _named(text, begin, words[stop - 1][1], field, value, wanted, field in self._many)

    def _chinese(self, text: str) -> Iterator[Named]:
        folded = simplified(text.casefold())
        if not _HAN.search(folded) or len(folded) != len(text):
            return
        for wanted, field, value in self._han:
            begin = folded.find(wanted)
            while begin >= 0:
                end = begin + len(wanted)
                yield Named(begin, end, field, value, True, len(wanted) > 1, _whole(folded, begin, end))
                begin = folded.find(wanted, begin + len(wanted))


def _named(
    text: str, begin: int, end: int, field: str, value: Any, words: Sequence[str], many: bool
) -> Named:
    written = text[begin:end]
    initial = not text[:begin].strip(" \"'“(¿")
    exact = isinstance(value, str) and (
        _same(written, value) or (written[:1].isupper() and value[:1].isupper() and not initial)
    )
    frame = len(words) == 1 and words[0] in FRAME
    # a field of one value sorts documents into kinds: its names are meant, however they are written
    exact = (exact and not (initial and len(words) == 1)) or (
        not many and not frame and isinstance(value, str)
    )
    # "RESULTS" and "results" are not the same word; neither are "AIDS" and "aids"
    capitals = isinstance(value, str) and value.isupper() and len(value) > 1 and not _same(written, value)
    generic = frame or (len(words) == 1 and len(words[0]) < 3)
    # "financial" is another word than the sector "Financials"; "reports" is the plural of "Report"
    if len(words) == 1 and isinstance(value, str) and written.islower() and not value.islower():
        capitals = capitals or len(written) < len(value)
    return Named(
        begin,
        end,
        field,
        value,
        exact,
        not capitals and (exact or not generic),
        _is_name(text, begin, end, value),
    )


def _is_name(text: str, begin: int, end: int, value: Any) -> bool:
    """Whether a text names a value as names are written: "Acme" and "ACME" for "Acme", but not "financial" for
    "Financials", and not the "Norman" of "player Josh Norman"."""
    written, whole = text[begin:end], str(value)
    if written == written.lower() and not _DIGIT.search(written):
        return False
    if whole == whole.lower() and not _DIGIT.search(whole):
        return False
    if whole.isupper() and written != whole:
        return False
    words = _words(written)
    before = _CAPITAL_BEFORE.search(text, 0, begin) if len(words) == 1 else None
    return set(words) <= set(_words(whole)) and (before is None or not content_words(before.group(1)))


def _whole(text: str, begin: int, end: int) -> bool:
    """Whether a Chinese value is a name by itself: 金融 in 金融资产 is not."""
    if end - begin > 2:
        return True
    following = _HAN_RUN.match(text, end)
    if end - begin < 2 or following is None:
        return end - begin == 2
    return not content_words(load_segmenter()(following.group())[0])


def _same(written: str, value: str) -> bool:
    """Whether a value is written as it is, or in its other number: "reports" for "report"."""
    if written == value:
        return True
    stem = max(1, min(len(written), len(value)) - 1)
    return (written[:stem] == value[:stem] and written.isupper() == value.isupper()) or (
        value.isupper() and written in (value + "s", value + "es")
    )


def _opposites(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What says that a flag is off: "out of stock" for ``in_stock``, "unpublished", "inactive"."""
    if words[:1] == ("in",) and len(words) > 1:
        return [("out", "of", *words[1:])]
    return [(prefix + words[0],) for prefix in ("un", "in", "non")] if len(words) == 1 else []


def _spaced(text: str) -> str:
    """Chinese characters as blanks, so that words end where they begin."""
    return _HAN.sub(" ", text)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text.replace("_", " "))]


def _forms(value: str) -> list[str]:
    """The value, and the way people say it: "Tomography, X-Ray Computed" is "X-Ray Computed Tomography"."""
    forms = [value]
    bare = re.sub(r"\s*\([^()]*\)\s*$", "", value)
    if bare and bare != value:
        forms.append(bare)
    parts = [part.strip() for part in bare.split(",")]
    if 2 <= len(parts) <= 4 and all(parts):
        forms.append(" ".join([*reversed(parts[1:]), parts[0]]))
    return forms
