"""Why these documents: provenance as text, and as a table in Jupyter."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.documents.display import Table, cut, one_line, tables_html
from rag_kit.documents.identity import document_key
from rag_kit.documents.provenance import get_provenance, passage_notes
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document

_PLACE_FIELDS = ("page", "sheet", "slide", "heading")
_MAX_TEXT = 400  # characters of a document's text in an explanation
#: Metadata key of a sentence, made by a model, that is searched with a chunk and says where it stands in its document.
SITUATION = "situating_sentence"
#: Metadata field of a chunk whose text somebody corrected.
CORRECTED = "corrected_by_hand"


class _Row(NamedTuple):
    """One document of an explanation; each text is one line without control or invisible characters."""

    rank: str
    score: str
    source: str
    stages: list[str]
    text: str
    notes: list[str]  # of this document alone


class Explanation:
    """Explanation of where documents came from: text by ``str()``, a table in Jupyter."""

    def __init__(self, documents: Sequence[Document], width: int) -> None:
        records = [get_provenance(doc) for doc in documents]
        note_lists = [record.get("notes", []) for record in records]
        # a note that every document has is about the call, so it is printed once, below them
        call_notes = [note for note in passage_notes(documents) if all(note in notes for notes in note_lists)]
        self._notes = [one_line(note) for note in call_notes]
        self._rows = [
            _explain_document(doc, record, position, left_out=call_notes)
            for position, (doc, record) in enumerate(zip(documents, records, strict=True), start=1)
        ]
        self._width = width

    def __str__(self) -> str:
        lines = [] if self._rows else ["no documents"]
        bar = "     | "
        for rank, score, source, stages, text, notes in self._rows:
            lines.append(f"{rank:>3}. {score}  {source}".rstrip())
            lines += [f"     {stage}" for stage in stages]
            lines += textwrap.wrap(text, self._width, initial_indent=bar, subsequent_indent=bar, max_lines=2)
            lines += [f"     ! {note}" for note in notes]
        lines += [f"! {note}" for note in self._notes]
        return "\n".join(cut(line, self._width) for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header = ("rank", "score", "document", "how it was found", "text")
        rows = [(row.rank, row.score, row.source, row.stages, [row.text, *row.notes]) for row in self._rows]
        return tables_html("", [Table(header, rows)], self._notes if rows else ["no documents"])


def explain(documents: Sequence[Document], *, width: int = 100) -> Explanation:
    """Show which stages, queries, ranks and scores brought documents here: ``print`` it, or end a Jupyter cell with it.

    HTML and characters that steer or hide are shown as escapes.

    Args:
        documents: Results of any retriever; those without provenance are listed by position.
        width: Widest line of the text, in columns of a terminal; at least 40.

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
    if not isinstance(documents, (list, tuple)):
        raise InvalidInputError(f"documents is {type(documents).__name__}; give a list of documents.")
    return Explanation(documents, max(40, width))


def _explain_document(doc: Document, record: dict[str, Any], position: int, left_out: Sequence[str]) -> _Row:
    """Describe a document by its provenance, but for some notes; ``position`` is the rank if the record has none."""
    stages = [_describe_stage(stage) for stage in record.get("stages", [])]
    if isinstance(sentence := doc.metadata.get(SITUATION), str):
        stages.append(one_line(f'searched with "{sentence}"'))
    notes = [one_line(note) for note in record.get("notes", []) if note not in left_out]
    if doc.metadata.get(CORRECTED) is True:
        notes.append("the text was corrected by hand")
    rank = one_line(str(position if record.get("rank") is None else record["rank"]))
    score, text = _format_number(record.get("score")), one_line(doc.page_content[:_MAX_TEXT])
    return _Row(rank, score, _describe_source(doc), stages, text, notes)


def _describe_source(doc: Document) -> str:
    """Describe a document's source: file, title and place in it, else its identity."""
    metadata = doc.metadata
    names = (metadata.get("file") or metadata.get("source"), metadata.get("title"))
    parts = [str(name) for name in names if name]
    parts += [f"{key} {metadata[key]}" for key in _PLACE_FIELDS if metadata.get(key) not in (None, "")]
    return one_line(", ".join(parts) or document_key(doc)[:40])


def _describe_stage(stage: dict[str, Any]) -> str:
    """Write one stage of a provenance as a line: ``bm25 · keyword · rank 1 · score 2.5``."""
    # a retriever whose name is that of its stage is written once
    parts = list(dict.fromkeys(str(stage.get(key, "?")) for key in ("stage", "retriever")))
    numbers = [key for key in ("rank", "score", "weight") if stage.get(key) is not None]
    parts += [f"{key} {_format_number(stage[key])}" for key in numbers]
    if stage.get("query") not in (None, ""):
        parts.append(f'query "{stage["query"]}"')
    return one_line(" · ".join(parts))


def _format_number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else one_line(value)
