"""Passages at the terminal: a list of them, why each was found, and their form as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_kit.cli.output import flat, say, say_table

if TYPE_CHECKING:
    from langchain_core.documents import Document


_MARKS = re.compile(r"^(?:#{1,6}\s+|```.*$)", re.MULTILINE)


def show(documents: list[Document]) -> None:
    """Print the source and the beginning of each passage."""
    if not documents:
        say(
            "Nothing was found: no passage shares a word with the question and matches the filter, if one was given."
        )
    for number, document in enumerate(documents, 1):
        say(f"[{number}] {where(document.metadata)}", style="bold")
        say(preview(document), indent="    ")


def where(metadata: dict[str, Any]) -> str:
    """The source of a passage in a line: file, page or slide or sheet, heading."""
    parts = [str(metadata.get("file") or metadata.get("source") or metadata.get("title") or "(no source)")]
    parts += [
        f"{name} {metadata[name]}" for name in ("page", "slide", "sheet") if metadata.get(name) is not None
    ]
    if metadata.get("heading"):
        parts.append(str(metadata["heading"]))
    return flat(" · ".join(parts))


def shorten(text: str, width: int = 160) -> str:
    """One line of at most ``width`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def preview(document: Document) -> str:
    """The beginning of a passage in a line, without the marks of Markdown headings and code."""
    return shorten(_MARKS.sub("", document.page_content))


def plain(document: Document) -> dict[str, Any]:
    """A document as JSON."""
    from rag_kit.documents import PROVENANCE_KEY, get_provenance
    from rag_kit.documents.identity import to_plain

    metadata = {**document.metadata, PROVENANCE_KEY: get_provenance(document)}
    value: dict[str, Any] = to_plain({"id": document.id, "text": document.page_content, "metadata": metadata})
    return value


def step_text(event: Mapping[str, Any]) -> str:
    """A step that a graph reports, in a line.

    Example:
        >>> step_text({"event": "graded_support", "round": 1, "supported": True})
        'graded support: round 1, supported yes.'
        >>> step_text({"event": "split", "parts": ["tea in Ghent", "coffee in Ghent"]})
        'split: parts “tea in Ghent”, “coffee in Ghent”.'
    """
    details = ", ".join(
        f"{key.replace('_', ' ')} {_value(value)}" for key, value in event.items() if key != "event"
    )
    name = str(event.get("event", "step")).replace("_", " ")
    return shorten(f"{name}: {details}" if details else name, 300) + "."


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (list, tuple)):
        return str(value)
    if value and all(isinstance(each, str) for each in value):
        return ", ".join(f"“{each}”" for each in value)
    return " ".join(map(str, value))


def say_passages(documents: list[Document], question: str) -> None:
    """Print a table of passages with the retrievers that found them, their ranks, scores and queries."""
    from rag_kit.documents import get_provenance

    records = [get_provenance(document) for document in documents]
    stages = [stage for record in records for stage in record.get("stages", [])]
    queries = list(dict.fromkeys(str(stage["query"]) for stage in stages if stage.get("query")))
    for number, query in enumerate(queries, 1):
        if len(queries) > 1:
            say(f"Query {number}: “{shorten(query)}”")
        elif " ".join(query.split()) != " ".join(question.split()):
            say(f"Searched for “{shorten(query)}”")
    rows: list[list[str | tuple[str, str]]] = []
    for place, (document, record) in enumerate(zip(documents, records, strict=True), 1):
        found = "\n".join(dict.fromkeys(_stage(stage, queries) for stage in record.get("stages", [])))
        passage = "\n".join([where(document.metadata), preview(document)])
        rows.append([(f"[{place}]", "bold"), (found or "no provenance", "dim"), passage])
    say_table(rows, ("", "found by", "passage"))
    for note in dict.fromkeys(note for record in records for note in record.get("notes", [])):
        say(f"Note: {note}", style="yellow")


def _stage(stage: Mapping[str, Any], queries: list[str]) -> str:
    """A retrieval stage in words: name, rank, score, and which of several queries."""
    parts = [shorten(str(stage.get("stage", "?")), 24)]
    if stage.get("rank") is not None:
        parts.append(f"rank {stage['rank']}")
    if isinstance(score := stage.get("score"), (int, float)):
        parts.append(f"({score:.3g})")
    if len(queries) > 1 and stage.get("query"):
        parts.append(f"for query {queries.index(str(stage['query'])) + 1}")
    return " ".join(parts)
