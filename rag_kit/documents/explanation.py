"""Why these documents: provenance as text, and as a table in Jupyter."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.documents.identity import document_key
from rag_kit.documents.provenance import get_provenance
from rag_kit.documents.tables import Markup, Table, cut, one_line, tables_html

if TYPE_CHECKING:
    from langchain_core.documents import Document

_WHERE = ("page", "sheet", "slide", "heading")
#: Metadata key of a sentence, made by a model, that is searched with a chunk and says where it stands in its document.
SITUATION = "situating_sentence"
#: Metadata field of a chunk whose text somebody corrected.
CORRECTED = "corrected_by_hand"


class _Row(NamedTuple):
    """What is printed of one document: single lines in which nothing can steer or hide."""

    rank: str
    score: str
    place: str
    text: str
    stages: list[str]
    notes: list[str]


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
        lines = [] if self._rows else ["no documents"]
        for row in self._rows:
            lines += [f"{row.rank:>3}. {row.score}  {row.place}".rstrip()]
            lines += [f"     {stage}" for stage in row.stages]
            bar = "     | "
            lines += textwrap.wrap(
                row.text, self._width, initial_indent=bar, subsequent_indent=bar, max_lines=2
            )
            lines += [f"     ! {note}" for note in row.notes]
        lines += [f"! {note}" for note in self._notes]
        return "\n".join(cut(line, self._width) for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        names = ("rank", "score", "document", "how it was found", "text")
        rows = [
            (row.rank, row.score, row.place, _below(row.stages), _below([row.text, *row.notes]))
            for row in self._rows
        ]
        return tables_html("", [Table(names, rows)], self._notes if rows else ["no documents"])


def _below(texts: Sequence[str]) -> Markup:
    """Texts one below the other in a cell."""
    return Markup("<br>".join(f"<bdi>{html.escape(text)}</bdi>" for text in texts))


def explain(documents: Sequence[Document], *, width: int = 100) -> Explanation:
    """Show which stages, queries, ranks and scores brought documents here.

    Args:
        documents: Results of any retriever; those without provenance are listed by position.
        width: Widest line of the text, in columns of a terminal; at least 40.

    Returns:
        An explanation: ``print`` it, or leave it as the last expression of a Jupyter cell.

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
    return Explanation(rows, [one_line(note) for note in shared], max(40, width))


def _row(doc: Document, record: dict[str, Any], position: int, shared: Sequence[str]) -> _Row:
    """What is printed of one document; notes that all documents share are left out."""
    stages = [_describe_stage(stage) for stage in record.get("stages", [])]
    if isinstance(sentence := doc.metadata.get(SITUATION), str):
        stages.append(one_line(f'searched with "{sentence}"'))
    notes = [one_line(note) for note in record.get("notes", []) if note not in shared]
    if doc.metadata.get(CORRECTED) is True:
        notes.append("the text was corrected by hand")
    rank = record.get("rank")
    return _Row(
        rank=one_line(str(rank if rank is not None else position)),
        score=_number(record.get("score")),
        place=_describe_source(doc),
        text=one_line(doc.page_content[:400]),
        stages=stages,
        notes=notes,
    )


def _describe_source(doc: Document) -> str:
    """Where a document comes from: file, title and place in it, else its identity."""
    metadata = doc.metadata
    names = (metadata.get("file") or metadata.get("source"), metadata.get("title"))
    parts = [str(name) for name in names if name]
    parts += [f"{key} {metadata[key]}" for key in _WHERE if metadata.get(key) not in (None, "")]
    return one_line(", ".join(parts) or document_key(doc)[:40])


def _describe_stage(stage: dict[str, Any]) -> str:
    """One stage of a provenance as a line."""
    # a retriever that is named for what it does is named once
    parts = list(dict.fromkeys(str(stage.get(key, "?")) for key in ("stage", "retriever")))
    numbers = [key for key in ("rank", "score", "weight") if stage.get(key) is not None]
    parts += [f"{key} {_number(stage[key])}" for key in numbers]
    if stage.get("query") not in (None, ""):
        parts.append(f'query "{stage["query"]}"')
    return one_line(" · ".join(parts))


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else one_line(value)
