"""The result of a statement, and the limits that it runs under."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, count, islice
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple, Self

from langchain_core.documents import Document

from rag_kit.documents import PROVENANCE_KEY, with_provenance
from rag_kit.documents.identity import to_plain
from rag_kit.errors import StatementError

MAX_COLUMNS = 100
MAX_STATEMENT = 20_000
_TO_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
# metadata by which citations and prompts say where a passage is from: a row is from its database, whatever it holds
_ORIGIN = (PROVENANCE_KEY, "source", "file", "title", "heading", "page", "slide", "sheet", "url", "picture")


class RefusalError(Exception):
    """A statement is refused; the text names what is not allowed in it."""


@contextmanager
def say_refusal(statement: str, advice: str) -> Iterator[None]:
    """Turn a `RefusalError` into the error for the model and the caller, with what to write instead."""
    try:
        yield
    except RefusalError as refusal:
        raise StatementError(f"{refusal} is not allowed. {advice}", statement, refused=True) from None


class Limits(NamedTuple):
    """Most rows to fetch, most characters of a cell, most seconds of a statement."""

    rows: int
    chars: int
    seconds: float


@dataclass(frozen=True)
class QueryResult:
    """A question, the statement that a model wrote for it, and the rows that the database returned.

    Attributes:
        statement: The statement as it ran; empty where the model found that the tables cannot answer.
        columns: Names of the columns; a second ``name`` is ``name_2``.
        rows: One tuple a row: numbers, truth values, ``None`` and texts.
        truncated: There are more rows than ``max_rows``.
        question: The question as it was asked.
        reason: What the model says about its statement.
        attempts: Statements that were refused or failed before, each with the error.
        answer: The answer in words, whose ``[n]`` cites row n; ``None`` where none was asked for.
        kind: ``"sql"`` or ``"cypher"``.
    """

    statement: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    truncated: bool = False
    question: str = ""
    reason: str = ""
    attempts: tuple[tuple[str, str], ...] = ()
    answer: str | None = None
    kind: str = "sql"

    @classmethod
    def from_rows(cls, statement: str, columns: Iterable[Any], rows: Iterable[Any], limits: Limits) -> Self:
        """Make a result of the first rows, long cells cut; one row more is read, to know if there are more."""
        read = [tuple(cut_cell(cell, limits.chars) for cell in row) for row in islice(rows, limits.rows + 1)]
        names = tuple(_free_names(str(name)[: limits.chars] for name in columns))
        return cls(statement, names, tuple(read[: limits.rows]), len(read) > limits.rows)

    @property
    def documents(self) -> list[Document]:
        """Make a document of each row: its columns as text and as metadata; a column ``source`` is ``source_2`` there.

        Example:
            >>> result = QueryResult('SELECT count(*) AS "Tracks" FROM t', columns=("Tracks",), rows=((3,),))
            >>> result.documents[0].page_content
            'Tracks: 3'
        """
        notes = [f"{self.kind}: {self.statement}"]
        if self.truncated:
            notes.append(f"{self.kind}: only the first {len(self.rows)} rows were fetched")
        stage: dict[str, Any] = {"stage": self.kind, "retriever": self.kind, "query": self.question}
        stage |= {"score": None, "statement": self.statement, "notes": notes}
        return [
            with_provenance(self._row_document(row), rank=number, row=number, **stage)
            for number, row in enumerate(self.rows, start=1)
        ]

    def _row_document(self, row: tuple[Any, ...]) -> Document:
        """Make a document of a row: a line and a metadata field for each column."""
        lines: list[str] = []
        metadata: dict[str, Any] = {"source": self.kind}
        for name, key, cell in zip(self.columns, _free_names(self.columns, _ORIGIN), row, strict=True):
            lines.append(f"{name}: {'NULL' if cell is None else cell}")
            metadata[key] = float(cell) if isinstance(cell, Decimal) else to_plain(cell)
        return Document(page_content="\n".join(lines), metadata=metadata)


def _free_names(names: Iterable[str], taken: Iterable[str] = ()) -> Iterator[str]:
    """Yield names; one that is taken, or was yielded before, gets a number: ``name_2``."""
    used = set(taken)
    for name in names:
        free = next(each for each in chain([name], (f"{name}_{n}" for n in count(2))) if each not in used)
        used.add(free)
        yield free


def fold_name(name: str) -> str:
    """Fold a name as databases compare names: only A to Z equal a to z, so that ``Été`` is another table."""
    return name.translate(_TO_LOWER)


def cut_cell(cell: Any, chars: int) -> Any:
    """Return a number, a truth value or ``None`` as it is, any other cell as a text of at most `chars` characters."""
    if cell is None or isinstance(cell, (bool, int, float)):
        return cell
    if isinstance(cell, (bytes, memoryview)):
        return f"{len(cell)} bytes"
    text = str(cell)
    if len(text) > chars:
        return text[:chars] + "…"
    return cell if isinstance(cell, Decimal) else text
