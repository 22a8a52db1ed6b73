"""A statement looked up in a table: each of its parts at the row and the column that it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal
from weakref import WeakKeyDictionary

from rag_kit.text.citations.placing import supports
from rag_kit.text.citations.source import ANSWERS, PassageSource, Span
from rag_kit.text.citations.tokens import Token, are_alike, content_keys, is_negation, tokens
from rag_kit.text.language import HAN, word_list, word_set
from rag_kit.text.values.tables import TableCell
from rag_kit.text.values.units import dimensions_agree

Finding = Literal["covered", "number", "moved", "negation", ""]
_JOINT = re.compile(
    rf"，(?:而|但是?|且|并且?|也)?|、|；|,(?=[{HAN}])|,\s(?:and |but |while )?|;\s"
    r"|\s(?:and|but|while|whereas)\s|但是?|以及|和|与"
)
_IN_BRACKETS = re.compile(r"[(（][^()（）]*[)）]")
# words that say more than single cells do, or the same of several
_BEYOND_CELLS = word_list("beyond cells")
_OF_SEVERAL = word_set("both same 都 均 同")
_MAX_UNKNOWN = 4  # content words of a part that neither the table nor its titles have


def find_in_cells(statement: str, passage: PassageSource) -> Finding:
    """Return "covered" if each part of a statement is what a table has at the row and the column that it names.

    A part that names no row, or no column, is about the one named before; what it says of several rows, or columns,
    must hold in each. Returns the reason if a part says what another cell of its row has ("number") or denies what its
    cell affirms ("negation"); "" if a part names no cell, or says more than single cells do.

    Example:
        >>> table = "| | Guest | Owner |\\n|---|---|---|\\n| Read files | yes | yes |\\n| Delete files | no | yes |"
        >>> [find_in_cells(text, PassageSource(table)) for text in (
        ...     "A guest may read files, but not delete files", "Guests may delete files", "Guests are welcome")]
        ['covered', 'negation', '']
    """
    table = _tables.get(passage) or _tables.setdefault(passage, _Table(passage))
    rows: list[Span] = []  # that were named last
    headers: list[str] = []  # of the columns that were named last
    names_rows_first = True  # the first part that names anything names a row
    opening: list[Token] = []  # a time, a condition, or the name of a row: it belongs to the part behind it
    claims: list[Token] = []  # of the part before
    says_both = any(token.key in _OF_SEVERAL for token in tokens(statement))  # of what a joint would part
    for segment in [statement] if says_both else _JOINT.split(statement):
        words = [*opening, *tokens(segment)]
        own_rows, own_headers = table.rows_named(words), table.headers_named(words)
        if not _BEYOND_CELLS.isdisjoint(word.key for word in words):
            return ""
        if not rows and not headers:
            if not own_rows and not own_headers:
                opening = words
                continue
            names_rows_first = bool(own_rows)
        rows = own_rows or rows
        if own_headers:
            headers = own_headers
        elif names_rows_first and not own_rows:  # it says something more of the row, in whichever column
            headers = []
        if not rows:
            return ""
        rest = table.without_names(words, rows, headers)
        parts = [_Part(table, row, header, words, rest, claims) for row in rows for header in headers or [""]]
        opening = words if own_rows and not headers and not parts[0].claims else []
        if opening:
            continue
        findings = {part.finding() for part in parts}
        if findings != {"covered"}:
            return findings.pop() if len(findings) == 1 else ""
        claims = parts[0].claims
    return "covered" if rows and not opening else ""


class _Table:
    """The rows of a passage's tables by their names, and the headers of their columns."""

    def __init__(self, passage: PassageSource) -> None:
        self.rows = passage.rows
        self._row_names = {row: _name_words(_name_of(row)) for row in self.rows}
        headers = dict.fromkeys(cell.header for row in self.rows for cell in row.row[1:])
        self._headers = {header: _name_words(header) for header in headers}
        self.titles = passage.context_keys.union(*(content_keys(row.caption) for row in self.rows))
        self.body = content_keys(token for row in self.rows for cell in row.cells[1:] for token in cell.text)

    def rows_named(self, words: Sequence[Token]) -> list[Span]:
        """Return the rows whose names some words have, without those whose names are a part of another's."""
        named = _longest(words, list(self._row_names.values()))
        return [row for row, name in self._row_names.items() if name in named]

    def headers_named(self, words: Sequence[Token]) -> list[str]:
        """Return the headers that some words have; of those that differ in brackets alone, the one that they have."""
        named = _longest(words, list(self._headers.values()))
        headers = [header for header, name in self._headers.items() if name in named]
        if len(headers) > 1 and len({self._headers[header] for header in headers}) == 1:
            counts = {header: _count_named(header, words) for header in headers}
            headers = [header for header in headers if counts[header] == max(counts.values())]
        return headers

    def has_elsewhere(self, cell: TableCell, claim: Token) -> bool:
        """Tell whether a claimed value is not in its cell, which has another of its kind, but below the same header."""
        in_column = (other for row in self.rows for other in row.row if other.header == cell.header)
        return _is_rival(cell, claim) and any(_has(other, claim) for other in in_column)

    def without_names(
        self, words: Sequence[Token], rows: Sequence[Span], headers: Sequence[str]
    ) -> list[Token]:
        """Return the content words that name none of some rows and columns."""
        names = [name for row in rows for name in self._row_names[row]]
        names += [name for header in headers for name in self._headers[header]]
        return [word for word in words if word.content and not any(_is_same(word, name) for name in names)]


_tables: WeakKeyDictionary[PassageSource, _Table] = WeakKeyDictionary()  # as long as their passages live


class _Part:
    """A part of a statement, about a row and, if it names one, a column.

    `words` are all of the part, `rest` its content words without the names of row and column. Its `claims` are those
    of the rest that are values or in the table, else those of the part before.
    """

    def __init__(
        self,
        table: _Table,
        row: Span,
        header: str,
        words: Sequence[Token],
        rest: Sequence[Token],
        claims_before: list[Token],
    ) -> None:
        self._table, self._row, self._header, self._words = table, row, header, words
        self._own_claims = [word for word in rest if word.value or word.key in table.body]
        self.claims = self._own_claims or claims_before
        headers = content_keys(token for cell in row.cells for token in cell.header)
        known = {*table.titles, *headers, *(word.key for word in self.claims)}
        self._unknown = [word for word in rest if word.key not in known]

    def finding(self) -> Finding:
        """Compare the part with its cell, or with the row if it names no column."""
        says_more = len(self._unknown) > _MAX_UNKNOWN or any(word.name for word in self._unknown)
        if says_more or any(is_negation(word.key) for word in tokens(self._header)):
            return ""
        is_denied = sum(is_negation(word.key) for word in self._words) % 2 == 1  # two negations affirm
        cells = [cell for cell in self._row.row[1:] if cell.header == self._header]
        answer = _answer_of(cells[0]) if cells else None
        if answer is not None and not any(word.value for word in self._own_claims):
            return "covered" if answer != is_denied else "negation"
        denials = sum(is_negation(token.key) for cell in cells for token in tokens(cell.text))
        if not self.claims or is_denied != (denials % 2 == 1):
            return ""
        findings = [self._find(claim, cells) for claim in self.claims]
        return next((one for one in findings if one != "covered"), "covered")

    def _find(self, claim: Token, cells: Sequence[TableCell]) -> Finding:
        """Find a value or a word of the part in its cell, or in another of the row whose header it names better."""
        if claim.key in self._table.titles or any(_has(cell, claim) for cell in cells):
            return "covered"
        holders = [cell for cell in self._row.row[1:] if _has(cell, claim)]
        asked = cells or self._row.row[1:]
        rivals = [cell for cell in asked if cell not in holders and _is_rival(cell, claim)]
        rivals += [cell for cell in cells if claim.value and cell.values and cell not in rivals]
        if not holders:
            is_of_other_row = claim.value and any(self._table.has_elsewhere(cell, claim) for cell in rivals)
            return "number" if is_of_other_row else ""
        # how many words of the header that is named best
        holder_named, rival_named = (
            max((_count_named(cell.header, self._words) for cell in group), default=0)
            for group in (holders, rivals)
        )
        # a word of another column than the named one competes with a word there, a value with anything
        has_competition = rivals or (claim.value and cells)
        if holder_named > rival_named or not has_competition:
            return "covered"
        words_of_rivals = ([word for word in tokens(rival.text) if word.content] for rival in rivals)
        if rival_named == holder_named or any(_has_all(self._words, words) for words in words_of_rivals):
            return ""
        if not claim.value:
            return "moved"
        # of "from 5 to 7" the other value may be in the cell
        is_only_value = sum(bool(word.value) for word in self.claims) == 1
        return "number" if is_only_value else ""


def _answer_of(cell: TableCell) -> bool | None:
    """Return whether a cell affirms or denies its header, as 0 does; None if it says something else."""
    is_zero = bool(cell.values) and all(value.amount == 0 and not value.key for value in cell.values)
    return False if is_zero else ANSWERS.get(cell.text.lower())


def _count_named(header: str, words: Sequence[Token]) -> int:
    """Count the words of a header that a part has, also "before" and those in brackets, less a "not" that it lacks."""
    count = 0
    for word in tokens(header):
        # 保管人 is named by 由李明保管, too
        if any(_is_same(one, word) or (one.key[1:] > "\u2fff" and one.key in word.key) for one in words):
            count += 1
        elif is_negation(word.key):
            count -= 1
    return count


def _is_rival(cell: TableCell, claim: Token) -> bool:
    """Tell whether a cell may hold what a claim competes with: a value of its kind, or words if it is a word."""
    if not claim.value:
        return not cell.values
    return any(dimensions_agree(value.dimension, claim.value.dimension) for value in cell.values)


def _has(cell: TableCell, claim: Token) -> bool:
    """Tell whether a cell has a value or a word."""
    if claim.value:
        return any(supports(value, claim.value) for value in cell.values)
    return any(_is_same(claim, word) for word in tokens(cell.text))


def _name_of(row: Span) -> str:
    """Return the name of a row: its first cell, or the one behind the number of the row."""
    for cell in row.row[:-1]:
        if all(value.dimension != "ordinal" for value in cell.values):
            return cell.text
    return row.row[-1].text


def _name_words(name: str) -> tuple[Token, ...]:
    """Return the content words of the name of a row, or of a header, without what is in brackets."""
    return tuple(word for word in tokens(_IN_BRACKETS.sub("", name)) if word.content)


def _longest(words: Sequence[Token], names: Sequence[Sequence[Token]]) -> list[Sequence[Token]]:
    """Return the names that some words have whole, without those that are a part of a longer one of them."""
    named = [name for name in names if name and _has_all(words, name)]
    keys = [content_keys(name) for name in named]
    return [name for name, own in zip(named, keys, strict=True) if not any(own < other for other in keys)]


def _has_all(words: Sequence[Token], name: Sequence[Token]) -> bool:
    """Tell whether some words have each word of a name."""
    return all(any(_is_same(word, one) for word in words) for one in name)


def _is_same(word: Token, other: Token) -> bool:
    """Tell whether two words are the same, or forms of one if they are no values and no identifiers."""
    if word.value or other.value:
        return bool(word.value and other.value and supports(other.value, word.value))
    return are_alike(word.key, other.key) if word.key < "\u2fff" else word.key == other.key
