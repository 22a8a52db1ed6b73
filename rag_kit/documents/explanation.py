"""Why these documents: provenance as text, and as a table in Jupyter."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.documents.clean import clean_text
from rag_kit.documents.identity import document_key
from rag_kit.documents.provenance import get_provenance
from rag_kit.documents.tables import Markup, Table, tables_html
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document

_WHERE = ("page", "sheet", "slide", "heading")
#: Metadata key of a sentence, made by a model, that is searched with a chunk and says where it stands in its document.
SITUATION = "situating_sentence"
#: Metadata field of a chunk whose text somebody corrected.
CORRECTED = "corrected_by_hand"


@dataclass(frozen=True)
class _Row:
    rank: str
    score: str
    where: str
    text: str
    stages: tuple[str, ...]
    notes: tuple[str, ...]


class Explanation:
    """Where documents came from. ``str()`` gives text; Jupyter shows a table.

    Whatever a document holds is inert in both: HTML is escaped, control characters (ANSI escapes among them),
    bidirectional and invisible characters are shown as escapes.
    """

    def __init__(self, rows: Sequence[_Row], notes: Sequence[str], width: int) -> None:
        self._rows = rows
        self._notes = notes
        self._width = width

    def __str__(self) -> str:
        if not self._rows:
            return "no documents"
        lines: list[str] = []
        for row in self._rows:
            head = f"{row.rank:>3}. {row.score}  {row.where}"
            lines.append(_cut(head.rstrip(), self._width))
            lines.extend(_cut(f"     {stage}", self._width) for stage in row.stages)
            lines.extend(
                textwrap.wrap(
                    row.text, self._width, initial_indent="     | ", subsequent_indent="     | ", max_lines=2
                )
            )
            lines.extend(_cut(f"     ! {note}", self._width) for note in row.notes)
        lines.extend(_cut(f"! {note}", self._width) for note in self._notes)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        names = ("rank", "score", "document", "how it was found", "text")
        rows = [
            (row.rank, row.score, row.where, _lines_of(row.stages), _lines_of((row.text, *row.notes)))
            for row in self._rows
        ]
        return tables_html("", [Table(names, rows)], self._notes if rows else ["no documents"])


def _lines_of(texts: Sequence[str]) -> Markup:
    return Markup("<br>".join(f"<bdi>{html.escape(text)}</bdi>" for text in texts))


def explain(documents: Sequence[Document], *, width: int = 100) -> Explanation:
    """Show which stages, queries, ranks and scores brought documents here.

    Args:
        documents: Results of any retriever; those without provenance are listed by position.
        width: Widest line of the text, in characters (at least 40).

    Returns:
        An explanation: ``print`` it, or leave it as the last expression of a Jupyter cell.

    Raises:
        InvalidInputError: If ``width`` is below 40, or ``documents`` holds something else.

    Example:
        >>> from langchain_core.documents import Document
        >>> from rag_kit.documents import with_provenance
        >>> doc = Document("Rank fusion joins lists.", metadata={"file": "a.md"})
        >>> doc = with_provenance(doc, score=2.5, rank=1, stage="bm25", retriever="keyword", query="fusion")
        >>> print(explain([doc]))
          1. 2.5  a.md
             bm25 · keyword · rank 1 · score 2.5 · query "fusion"
             | Rank fusion joins lists.
    """
    if isinstance(width, bool) or not isinstance(width, int) or width < 40:
        raise InvalidInputError(f"width={width!r} was given; it must be a whole number of at least 40.")
    _check_documents(documents)
    records = [get_provenance(doc) for doc in documents]
    # A note that every document carries is about the call, so it is printed once.
    shared = [
        note
        for note in (records[0].get("notes", []) if records else [])
        if all(note in record.get("notes", []) for record in records)
    ]
    rows = [
        _row(doc, record, position, shared)
        for position, (doc, record) in enumerate(zip(documents, records, strict=True), start=1)
    ]
    return Explanation(rows, [_line(note) for note in shared], width)


def _check_documents(documents: Any) -> None:
    if isinstance(documents, (str, bytes)) or not isinstance(documents, Sequence):
        raise InvalidInputError(
            f"documents is a {type(documents).__name__}; give the list of documents that a retriever returned."
        )
    for number, doc in enumerate(documents, start=1):
        if not hasattr(doc, "page_content") or not hasattr(doc, "metadata"):
            raise InvalidInputError(
                f"item {number} of documents is a {type(doc).__name__}; explain() takes documents."
            )


def _row(doc: Document, record: dict[str, Any], position: int, shared: Sequence[str]) -> _Row:
    """One document of the explanation; notes that all documents share are left out."""
    lines = [_stage(stage) for stage in record.get("stages", [])]
    if isinstance(sentence := doc.metadata.get(SITUATION), str):
        lines.append(_line(f'searched with "{sentence}"'))
    rank = record.get("rank")
    return _Row(
        rank=_line(str(rank if rank is not None else position)),
        score=_number(record.get("score")),
        where=_place(doc),
        text=_line(doc.page_content[:400]),
        stages=tuple(lines),
        notes=tuple(
            [_line(note) for note in record.get("notes", []) if note not in shared]
            + ["the text was corrected by hand"] * (doc.metadata.get(CORRECTED) is True)
        ),
    )


def _place(doc: Document) -> str:
    metadata = doc.metadata
    parts = [
        str(name) for name in (metadata.get("file") or metadata.get("source"), metadata.get("title")) if name
    ]
    parts += [f"{key} {metadata[key]}" for key in _WHERE if metadata.get(key) not in (None, "")]
    return _line(", ".join(parts) or document_key(doc)[:40])


def _stage(stage: dict[str, Any]) -> str:
    # a retriever that is named for what it does is named once
    parts = list(dict.fromkeys(str(stage.get(key, "?")) for key in ("stage", "retriever")))
    parts += [
        f"{key} {_number(stage[key])}" for key in ("rank", "score", "weight") if stage.get(key) is not None
    ]
    if stage.get("query") not in (None, ""):
        parts.append(f'query "{stage["query"]}"')
    return _line(" · ".join(parts))


def _number(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:.4g}"
    return "-" if value is None else _line(str(value))


def _line(text: str) -> str:
    """One safe line: newlines and tabs become blanks, then everything hostile an escape."""
    return clean_text(text.replace("\n", " ").replace("\t", " ").strip())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
