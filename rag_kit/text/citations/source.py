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
    r"(?<![0-9０-９])，|，(?![0-9０-９])|[；：]|[,;:](?=\s)|\s(?=(?:but|while|whereas|aber)\s)"
)
_AND = re.compile(r"\s(?=(?:and|und)\s)|(?=而(?!且))")
_MARK = re.compile(r"\s?\[\d{1,4}(?:[,，–-] ?\d{1,4})*\]")
_WITHIN_NUMBER = re.compile(rf"[\d{HAN_DIGITS}十百千万亿]{{2}}")
_NOT_WORD = re.compile(r"[^\w$€£¥%‰℃℉°]+|_+")
# stems of what says that money is counted by a time
_PERIODS = {
    "month": "month",
    "year": "year",
    "annual": "year",
    "week": "week",
    "daili": "day",
    "hour": "hour",
}
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


class ValueMention(NamedTuple):
    """A value where a passage mentions it, with the content words around it."""

    value: Value
    own: frozenset[str]  # words of its clause or table cell
    within: frozenset[str] = frozenset()  # words of the earlier clauses of its sentence
    before: frozenset[str] = frozenset()  # words of the sentence before
    subject: frozenset[str] = frozenset()  # names before it in the last clause that has any
    sentence: int = -1  # number of its sentence
    order: int = 0  # position among the mentions of the passage


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
        """Map the start of each table row to the row."""
        return {row.start: row for row in table_rows(self.text)}

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """List start and end of each sentence and table row, in order."""
        rows = [(row.start, row.end) for row in self.rows.values()]
        found = [(one.start, one.end) for one in sentences(self.text)[:_MAX_SENTENCES]]
        return sorted([*rows, *(one for one in found if not any(a <= one[0] < b for a, b in rows))])

    @cached_property
    def tokens(self) -> list[list[Token]]:
        """List the tokens of each sentence; a table row has those of its cells and their headers."""
        of_rows = {start: [part for cell in cells for part in cell] for start, cells in self._cells.items()}
        parts = (of_rows.get(start) or self.clauses[start] for start, _ in self.spans)
        return [[token for part in sentence for token in part] for sentence in parts]

    @cached_property
    def _cells(self) -> dict[int, list[tuple[list[Token], list[Token]]]]:
        """Map the start of each table row to its cells: the tokens of header and text."""
        return {
            start: [(tokens(cell.header), tokens(cell.text, cell.values)) for cell in row.cells]
            for start, row in self.rows.items()
        }

    @cached_property
    def clauses(self) -> dict[int, list[list[Token]]]:
        """Map the start of each sentence to the tokens of its clauses; table rows and headers have none."""
        texts = {start: self.plain(start, end) for start, end in self.spans if start not in self.rows}
        return {
            start: [[]] if self.rows and text.count("|") > 1 else clauses(text)
            for start, text in texts.items()
        }

    def plain(self, start: int, end: int) -> str:
        """Return a span of the text without the marks of footnotes."""
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
    def mentions(self) -> list[ValueMention]:
        """List each mention of a value in the passage and in its title and headings."""
        found: list[ValueMention] = []
        before: frozenset[str] = frozenset()
        for number, ((start, _), sentence) in enumerate(zip(self.spans, self.tokens, strict=True)):
            if cells := self._cells.get(start):
                found += _row_mentions(cells)
                continue
            within = subject = frozenset[str]()
            for clause in self.clauses[start]:
                own = frozenset(content_keys(clause))
                for position, token in enumerate(clause):
                    subject = frozenset(one.key for one in clause[: position + 1] if one.name) or subject
                    if token.value:
                        found.append(
                            ValueMention(token.value, own - {token.key}, within, before, subject, number)
                        )
                within |= own
            before = frozenset(content_keys(sentence))
        found += [
            ValueMention(token.value, frozenset(), self.all_keys, frozenset())
            for token in self.context_tokens
            if token.value
        ]
        return [mention._replace(order=order) for order, mention in enumerate(found)]

    @cached_property
    def values(self) -> dict[str, Value]:
        """The distinct values by their normal form."""
        return {mention.value.normal: mention.value for mention in self.mentions}

    @cached_property
    def counted(self) -> dict[str, str]:
        """Map "900 EUR/month" to "900 EUR" where the passage says "a monthly rent of 900 EUR"."""
        return {
            counted_by(mention.value, unit).normal: mention.value.normal
            for mention in self.mentions
            if is_money(mention.value.dimension)
            for name in mention.own & _PERIODS.keys()
            for unit, _ in filter(None, [unit_at(_PERIODS[name], 0)])
        }

    def best_sentences(self, statement: str, stated: Sequence[Token]) -> tuple[int, range]:
        """Return the number of the sentence that shares most words with a statement, and the range to quote.

        The range holds that sentence, and a neighbour of it that has further words of the statement.
        """
        letters, keys = letters_of(statement), content_keys(stated)
        for number, sentence in enumerate(self.letters):
            if holds(sentence, letters):
                return number, range(number, number + 1)
        shared = [keys & sentence for sentence in self.keys]
        numbers = range(len(shared))
        best = max(numbers, key=lambda n: (len(shared[n]), -abs(len(self.keys[n]) - len(keys))))
        if self.spans[best][0] in self.rows:
            return best, range(best, best + 1)
        neighbours = [
            number
            for number in (best - 1, best + 1)
            if number in numbers and shared[number] - shared[best] and self.spans[number][0] not in self.rows
        ]
        return best, range(min([best, *neighbours]), max([best, *neighbours]) + 1)

    def best_clause(self, sentence: int, stated: Sequence[Token]) -> list[Token]:
        """Choose the clause that shares most with a statement: values, words up to its end, own words."""
        keys, values = content_keys(stated), {token.key for token in stated if token.value}
        so_far: set[str] = set()
        ranked = []
        for clause in self.clauses[self.spans[sentence][0]]:
            own = content_keys(clause)
            so_far |= own
            ranked.append((len(values & own), len(keys & so_far), len(keys & own), -len(clause), clause))
        return max(ranked, key=lambda entry: entry[:-1])[-1]


def clauses(text: str) -> list[list[Token]]:
    """Map the start of each sentence to the tokens of its clauses; lines of a table, with their bars, have none."""
    found = placed_tokens(text)
    values = [(token.value.start, token.value.end) for _, token in found if token.value]
    ends = [match.start() for match in _CLAUSE.finditer(text)]
    ends = [end for end in ends if not any(start <= end < stop for start, stop in values)]
    ands = [match.start() for match in _AND.finditer(text)]
    parts: list[list[Token]] = [[]]
    bounds = sorted([*((end, True) for end in ends), *((start, False) for start in ands)])
    for start, token in found:
        while bounds and bounds[0][0] <= start:
            parts.append([] if bounds.pop(0)[1] else [_JOINT])
        if token.key not in _JOINTS:
            parts[-1].append(token)
    return _joined(parts)


_JOINT = Token("")
_JOINTS = ("and", "und", "but", "aber", "而", "但")


def _joined(parts: list[list[Token]]) -> list[list[Token]]:
    """Join a part that begins with "and" to the part before it, unless both have a value."""
    joined: list[list[Token]] = []
    for part in parts:
        begins_with_and = bool(part) and part[0] is _JOINT
        words = part[1:] if begins_with_and else part
        both_have_values = bool(joined) and all(any(t.value for t in side) for side in (joined[-1], words))
        if begins_with_and and joined and not both_have_values:
            joined[-1] += words
        elif words:
            joined.append(words)
    return joined or [[]]


def _row_mentions(cells: Sequence[tuple[list[Token], list[Token]]]) -> list[ValueMention]:
    """List the values of a table row, each with the words of its column's header and of the cells that name the row."""
    row_names = frozenset(
        key
        for header, cell in cells
        if not any(map(_is_measured, cell))
        for key in content_keys([*header, *cell])
    )
    return [
        ValueMention(token.value, (row_names | content_keys([*header, *cell])) - {token.key})
        for header, cell in cells
        for token in cell
        if token.value
    ]


def _is_measured(token: Token) -> bool:
    """Tell whether a token is an amount, not an identifier."""
    return token.value is not None and token.value.dimension != "id"


def leaves_open(sentence: str) -> bool:
    """Tell whether a sentence leaves a question open, as the aim of a study does, and so neither states nor denies.

    Example:
        >>> leaves_open("We sought to determine whether tea is safe."), leaves_open("Tea is safe.")
        (True, False)
    """
    return _OPEN_QUESTION.search(sentence) is not None


def content_keys(words: Iterable[Token]) -> set[str]:
    """The keys of the content words."""
    return {token.key for token in words if token.content}


def letters_of(text: str) -> str:
    """Reduce a text to what is compared word for word: folded, without citation marks and punctuation."""
    return _BESIDE_HAN.sub("", f" {_NOT_WORD.sub(' ', fold(_MARK.sub('', text)))} ".replace("  ", " "))


def holds(passage: str, statement: str) -> bool:
    """Tell whether a passage holds a statement word for word, not inside a longer number; both as from `letters_of`.

    Example:
        >>> holds(letters_of("在十四世纪"), letters_of("四世纪")), holds(letters_of("3-day trip"), letters_of("3 day"))
        (False, True)
    """
    if not statement.strip():
        return False
    start = passage.find(statement)
    while start >= 0:
        end = start + len(statement)
        edges = (passage[start - 1 : start] + statement[0], statement[-1] + passage[end : end + 1])
        if not any(_WITHIN_NUMBER.fullmatch(edge) for edge in edges):
            return True
        start = passage.find(statement, start + 1)
    return False
