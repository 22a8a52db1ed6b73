"""A statement about several cells of a table, cut into statements about one of them each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rag_kit.text.citations.source import PassageSource
from rag_kit.text.citations.tokens import Token, are_alike, tokens

_JOINT = re.compile(
    r"，(?:而|但是?|且|并且?|也)?|、|；|,\s(?:and |but |while )?|;\s|\s(?:and|but|while|whereas)\s|但是?|以及|和|与"
)


def cut_by_cells(statement: str, passage: PassageSource) -> list[str]:
    """Cut a statement at its joints; a part that names no row, or no column, begins with the one named before it.

    A part that names neither begins with what the statement is about: of both, the one that it names first. Before that
    it belongs to the part after it, as a condition or a time.

    Example:
        >>> table = "| | Guest | Owner |\\n|---|---|---|\\n| Read files | yes | yes |\\n| Delete files | no | yes |"
        >>> cut_by_cells("A guest may read files, but not delete files; the owner may", PassageSource(table))
        ['A guest may read files', 'Guest not delete files', 'Delete files the owner may']
    """
    rows = _Names((row.row[0].text, row.cells[0].text) for row in passage.rows)
    cells = (pair for row in passage.rows for pair in zip(row.row[1:], row.cells[1:], strict=True))
    columns = _Names((source.header, cell.header) for source, cell in cells)
    parts: list[str] = []
    row = column = ""  # those named last
    is_about_column = False
    opening = ""
    for segment in map(str.strip, _JOINT.split(statement)):
        words = [token for token in tokens(segment) if token.content]
        (own_row, row_position), (own_column, column_position) = rows.find(words), columns.find(words)
        if not row and not column:
            if not own_row and not own_column:
                opening += f"{segment} "
                continue
            is_about_column = column_position < row_position
            segment = opening + segment
        if own_row or own_column:
            carried = [row if not own_row else "", column if not own_column else ""]
        else:
            carried = [column if is_about_column else row]
        parts += [" ".join(filter(None, [*carried, segment]))] if words else []
        row, column = own_row or row, own_column or column
    return parts


class _Names:
    """The names of the rows, or the headers of the columns, of a table."""

    def __init__(self, names: Iterable[tuple[str, Sequence[Token]]]) -> None:
        self._words = {name: [word for word in words if word.content] for name, words in names}

    def find(self, words: Sequence[Token]) -> tuple[str, int]:
        """Return the longest name that some words have, "" if none, and where it begins among them."""
        found = ("", len(words))
        for name, own in self._words.items():
            positions = [next((n for n, word in enumerate(words) if _is_same(word, one)), -1) for one in own]
            if own and min(positions) >= 0 and len(own) > len(self._words.get(found[0], ())):
                found = (name, min(positions))
        return found


def _is_same(word: Token, other: Token) -> bool:
    """Tell whether two words are the same, or forms of one if they are no values and no names."""
    is_exact = word.value or other.value or word.name
    return word.key == other.key if is_exact else are_alike(word.key, other.key)
