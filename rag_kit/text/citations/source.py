"""A cited passage, prepared for many statements: sentences and table rows, their words, and the values beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from rag_kit.text.citations.tokens import Token, placed_tokens, tokens
from rag_kit.text.language import HAN, fold
from rag_kit.text.sentences import sentences
from rag_kit.text.values.numbers import HAN_DIGITS
from rag_kit.text.values.reading import Value, counted_by
from rag_kit.text.values.tables import TableRow, table_rows
from rag_kit.text.values.units import is_money, unit_at

_MAX_SENTENCES = 2000
_CLAUSE = re.compile(
    rf"(?<![0-9０-９])，|，(?![0-9０-９])|[；：]|[,;:](?=\s)|(?<=[{HAN}%])[,;:](?=[{HAN}\d])|\s(?=(?:but|while|whereas|aber)\s)"
)
_PART = re.compile(rf"(?<=；)|(?<=;)(?:\s|(?=[{HAN}]))")
_LABELLED = re.compile(
    r"(?:^|[\u3000\t，；。]|  )\W{0,4}(?P<label>[^\s：:|，；。]{2,16})[：:] ?"
    r"(?P<text>[^\n|\u3000，；。]{2,60}?)(?=  |[\u3000\t，；。]|$)",
    re.MULTILINE,
)
_LABEL = re.compile(r"[^，；,;：:]{1,16}(?::\s|：)")
_AND = re.compile(r"\s(?=(?:and|und|from|versus|vs\.?|compared (?:with|to))\s)|(?=而(?!且))")
_MARK = re.compile(r"\s?\[\d{1,4}(?:[,，–-] ?\d{1,4})*\]")
_WITHIN_NUMBER = re.compile(rf"[\d{HAN_DIGITS}十百千万亿]{{2}}")
_NOT_WORD = re.compile(r"[^\w$€£¥%‰℃℉°]+|_+")
# stems of what says that money is counted by a time
_PERIODS = {word: word for word in ("month", "year", "week", "hour")} | {"annual": "year", "daili": "day"}
_BESIDE_HAN = re.compile(rf" (?=[{HAN}])|(?<=[{HAN}]) ")
_STUDY = (
    r"(?:determine|evaluate|examine|investigate|assess|compare|explore|estimate|characteri[sz]e|study|test|analy[sz]e"
    r"|identify|clarify|establish)"
)
_OPEN_QUESTION = re.compile(
    rf"\b(?:{_STUDY}|(?:evaluat|examin|investigat|unknown|unclear|uncertain|question|know|ask)\w*)\b.{{0,60}}\bwhether\b"
    rf"|^(?:in order )?to {_STUDY}\b|\b(?:sought|aim(?:s|ed)?|wish(?:ed)?) to\b|hypothesi[sz]e"
    r"|\b(?:aim|purpose|objective|goal)s?\b.{0,40}\b(?:was|were|is) to\b"
    r"|(?:研究|探讨|评估|分析|考察|调查|确定|不清楚|不确定|未知|不明).{0,20}是否|旨在|目的(?:是|在于)",
    re.IGNORECASE,
)


class ValuePlace(NamedTuple):
    """A value of a passage, and the words of its clause or cell, of its sentence up to it, and of the one before.

    `part` holds the words up to it of its part of the sentence, between semicolons.
    """

    value: Value
    own: frozenset[str]
    within: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    part: frozenset[str] = frozenset()
    # the names and identifiers before it, of the last clause that has any
    subject: frozenset[str] = frozenset()
    section: tuple[int, int] = (-1, 0)  # the numbers of its sentence and of its part there
    order: int = 0


class PassageSource:
    """A passage prepared for many statements.

    Args:
        text: Its text; quotes are spans of it.
        context: What its title and headings say; the passage counts as saying it.
    """

    def __init__(self, text: str, context: str = "") -> None:
        self.text, self.context = text, context

    @cached_property
    def rows(self) -> dict[int, TableRow]:
        """The rows of its tables by the place where they begin."""
        return {row.start: row for row in table_rows(self.text)}

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """The spans of its sentences and rows."""
        inside = [(row.start, row.end) for row in self.rows.values()]
        found = [(one.start, one.end) for one in sentences(self.text)[:_MAX_SENTENCES]]
        return sorted([*inside, *(one for one in found if not any(a <= one[0] < b for a, b in inside))])

    @cached_property
    def tokens(self) -> list[list[Token]]:
        """The tokens of each sentence; of a row, those of its cells and their headers."""
        return [
            [token for cell in cells for part in cell for token in part]
            if (cells := self._cells.get(start))
            else [token for clause in self.clauses[start] for token in clause]
            for start, _ in self.spans
        ]

    @cached_property
    def _cells(self) -> dict[int, list[tuple[list[Token], list[Token]]]]:
        """The tokens of header and text of each cell of each row, by the row's start."""
        return {
            start: [(tokens(cell.header), tokens(cell.text, cell.values)) for cell in row.cells]
            for start, row in self.rows.items()
        }

    @cached_property
    def _parts(self) -> dict[int, list[list[list[Token]]]]:
        """The tokens of the clauses of the parts of each sentence, by its start; rows and their headers have none."""
        texts = {start: self.plain(start, end) for start, end in self.spans if start not in self.rows}
        return {
            start: [[[]]]
            if self.rows and text.count("|") > 1
            else [clauses(part) for part in _PART.split(text)]
            for start, text in texts.items()
        }

    @cached_property
    def clauses(self) -> dict[int, list[list[Token]]]:
        """The tokens of the clauses of each sentence, by its start."""
        return {start: [clause for part in parts for clause in part] for start, parts in self._parts.items()}

    @cached_property
    def labels(self) -> dict[str, set[str]]:
        """The texts beside each label, in letters: of cells below a header or beside it, and of lines "label: text"."""
        pairs = [(cell.header, cell.text) for row in self.rows.values() for cell in row.cells]
        pairs += [(match["label"], match["text"]) for match in _LABELLED.finditer(self.text)]
        found: dict[str, set[str]] = {}
        for label, text in pairs:
            for name in filter(None, re.split(r"[（()）\s]+", label)):
                found.setdefault(letters_of(name).strip(), set()).add(letters_of(text).strip())
        return found

    def plain(self, start: int, end: int | None) -> str:
        """A span of the text without marks of footnotes."""
        return _MARK.sub("", self.text[start:end])

    @cached_property
    def keys(self) -> list[set[str]]:
        """The content words of each sentence."""
        return [content_keys(sentence) for sentence in self.tokens]

    @cached_property
    def all_keys(self) -> frozenset[str]:
        """The content words of all sentences."""
        return frozenset().union(*self.keys)

    @cached_property
    def letters(self) -> list[str]:
        """Each sentence as `letters_of` gives it."""
        return [letters_of(self.text[start:end]) for start, end in self.spans]

    @cached_property
    def context_tokens(self) -> list[Token]:
        """The tokens of title and headings."""
        return [token for line in self.context.splitlines() for token in tokens(line)]

    @cached_property
    def places(self) -> list[ValuePlace]:
        """The values with the words beside them: in the clause, and before it in the sentence and the one before."""
        found: list[ValuePlace] = []
        before: frozenset[str] = frozenset()
        for number, ((start, _), sentence) in enumerate(zip(self.spans, self.tokens, strict=True)):
            if cells := self._cells.get(start):
                found += _row_places(cells)
                continue
            within = subject = frozenset[str]()
            for section, part in enumerate(self._parts[start]):
                passed = frozenset[str]()
                for clause in part:
                    own = frozenset(content_keys(clause))
                    for at, token in enumerate(clause):
                        subject = frozenset(one.key for one in clause[: at + 1] if one.name) or subject
                        if token.value:
                            words = (own - {token.key}, within, before, passed, subject)
                            found.append(ValuePlace(token.value, *words, (number, section)))
                    within, passed = within | own, passed | own
            before = frozenset(content_keys(sentence))
        found += [
            ValuePlace(token.value, frozenset(), self.all_keys, frozenset())
            for token in self.context_tokens
            if token.value
        ]
        return [place._replace(order=order) for order, place in enumerate(found)]

    @cached_property
    def values(self) -> dict[str, Value]:
        """The distinct values by their normal form."""
        return {place.value.normal: place.value for place in self.places}

    @cached_property
    def counted(self) -> dict[str, str]:
        """Normal form of a value counted by a time -> that of the bare value, as in a "monthly rent of 900 EUR"."""
        return {
            counted_by(place.value, unit).normal: place.value.normal
            for place in self.places
            if is_money(place.value.dimension)
            for name in place.own & _PERIODS.keys()
            for unit, _ in filter(None, [unit_at(_PERIODS[name], 0)])
        }

    def best_sentences(self, statement: str, stated: Sequence[Token]) -> tuple[int, range]:
        """The number of the sentence that has most of a statement's words, and the range to quote.

        The range holds that sentence, and a neighbour of it that has further words of the statement.
        """
        letters, keys = letters_of(statement), content_keys(stated)
        for place, sentence in enumerate(self.letters):
            if holds(sentence, letters):
                return place, range(place, place + 1)
        shared = [keys & sentence for sentence in self.keys]
        places = range(len(shared))
        best = max(places, key=lambda place: (len(shared[place]), -abs(len(self.keys[place]) - len(keys))))
        if self.spans[best][0] in self.rows:
            return best, range(best, best + 1)
        near = [
            place
            for place in (best - 1, best + 1)
            if place in places and shared[place] - shared[best] and self.spans[place][0] not in self.rows
        ]
        return best, range(min([best, *near]), max([best, *near]) + 1)

    def best_clause(self, place: int, stated: Sequence[Token]) -> list[Token]:
        """The clause of a sentence that has most of a statement's values and words, its own or those before it."""
        keys, values = content_keys(stated), {token.key for token in stated if token.value}
        within: set[str] = set()
        ranked = []
        for clause in self.clauses[self.spans[place][0]]:
            own = content_keys(clause)
            within |= own
            ranked.append((len(values & own), len(keys & within), len(keys & own), -len(clause), clause))
        return max(ranked, key=lambda entry: entry[:-1])[-1]


def clauses(text: str) -> list[list[Token]]:
    """The tokens of the clauses of a sentence; "and" parts them where both sides have a value."""
    row = placed_tokens(text)
    inside = [(token.value.start, token.value.end) for _, token in row if token.value]
    ends = [match.start() for match in _CLAUSE.finditer(text)]
    labels = [
        match
        for match in _LABEL.finditer(text)
        if not any(match.start() <= at < match.end() for at, _ in inside)
    ]
    ends = sorted({*ends} - {text.find(match[0].rstrip()[-1], match.start()) for match in labels})
    joints = [match.start() for match in _AND.finditer(text)]
    ends = [end for end in ends if not any(start <= end < stop for start, stop in inside)]
    parts: list[list[Token]] = [[]]
    bounds = sorted([*((end, True) for end in ends), *((joint, False) for joint in joints)])
    for place, token in row:
        while bounds and bounds[0][0] <= place:
            parts.append([] if bounds.pop(0)[1] else [_JOINT])
        if token.key not in _JOINTS:
            parts[-1].append(token)
    return _joined(parts)


_JOINT = Token("")
_JOINTS = ("and", "und", "but", "aber", "而", "但")


def _joined(parts: list[list[Token]]) -> list[list[Token]]:
    """Parts that "and" begins go with the part before where only one of the two has a value."""
    rows: list[list[Token]] = []
    for part in parts:
        joint = bool(part) and part[0] is _JOINT
        words = part[1:] if joint else part
        both = any(t.value for t in words) and bool(rows) and any(t.value for t in rows[-1])
        both = both and not words[0].value  # "and 4:15 p.m." is one more value of the part before
        if joint and rows and not both:
            rows[-1] += words
        elif words:
            rows.append(words)
    return rows or [[]]


def _row_places(cells: Sequence[tuple[list[Token], list[Token]]]) -> list[ValuePlace]:
    """The values of a row; beside each stand its column's header and the cells that name the row."""
    names = frozenset(
        key
        for header, cell in cells
        if not any(map(_measures, cell))
        for key in content_keys([*header, *cell])
    )
    return [
        ValuePlace(token.value, (names | content_keys([*header, *cell])) - {token.key})
        for header, cell in cells
        for token in cell
        if token.value
    ]


def _measures(token: Token) -> bool:
    """Tell whether a token is a value that is measured or counted, not an identifier."""
    return token.value is not None and token.value.dimension != "id"


def leaves_open(sentence: str) -> bool:
    """Tell whether a sentence only asks: the aim of a study, or whether something is so; it denies and says nothing.

    Example:
        >>> leaves_open("We sought to determine whether tea is safe."), leaves_open("Tea is safe.")
        (True, False)
    """
    return _OPEN_QUESTION.search(sentence) is not None


def content_keys(words: Iterable[Token]) -> set[str]:
    """The keys of the content words."""
    return {token.key for token in words if token.content}


def letters_of(text: str) -> str:
    """A text without marks and punctuation, folded, in words: what is compared word for word."""
    return _BESIDE_HAN.sub("", f" {_NOT_WORD.sub(' ', fold(_MARK.sub('', text)))} ".replace("  ", " "))


def holds(passage: str, statement: str) -> bool:
    """Tell whether a passage has a statement word for word, both as `letters_of` gives them, and no part of a number.

    Example:
        >>> holds(letters_of("在十四世纪"), letters_of("四世纪")), holds(letters_of("3-day trip"), letters_of("3 day"))
        (False, True)
    """
    if not statement.strip():
        return False
    place = passage.find(statement)
    while place >= 0:
        end = place + len(statement)
        edges = (passage[place - 1 : place] + statement[0], statement[-1] + passage[end : end + 1])
        if not any(_WITHIN_NUMBER.fullmatch(edge) for edge in edges):
            return True
        place = passage.find(statement, place + 1)
    return False
