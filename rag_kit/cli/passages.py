"""Passages at the terminal: a list of them, why each was found, and their form as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_kit.cli.output import flat, say

if TYPE_CHECKING:
    from langchain_core.documents import Document

_MARKS = re.compile(r"^(?:#{1,6}\s+|```.*$)", re.MULTILINE)


def say_passages(documents: list[Document], question: str | None = None) -> None:
    """Print the source and the beginning of each passage.

    Args:
        documents: The passages.
        question: If given, the retrievers that found a passage are named too, with the queries that differ from it.
    """
    from rag_kit.documents import get_provenance

    if not documents:
        say(
            "Nothing was found: no passage shares a word with the question and matches the filter, if one was given."
        )
    for number, document in enumerate(documents, 1):
        say(f"[{number}] {where(document.metadata)}", style="bold")
        if question is not None:
            stages = get_provenance(document).get("stages", [])
            found = "; ".join(dict.fromkeys(_stage(stage, question) for stage in stages))
            say(f"found by {found or 'no provenance'}", style="dim", indent="    ")
        say(shorten(_MARKS.sub("", document.page_content)), indent="    ")


def _stage(stage: Mapping[str, Any], question: str) -> str:
    """A retrieval stage in words: name, rank, score, and the query unless it is the question."""
    parts = [shorten(str(stage.get("stage", "?")), 24)]
    if stage.get("rank") is not None:
        parts.append(f"rank {stage['rank']}")
    if isinstance(score := stage.get("score"), (int, float)):
        parts.append(f"({score:.3g})")
    if (query := shorten(str(stage.get("query") or ""))) not in ("", shorten(question)):
        parts.append(f"for “{query}”")
    return " ".join(parts)


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


def passage_notes(documents: list[Document]) -> list[str]:
    """What was degraded while these passages were found; each note once."""
    from rag_kit.documents import get_provenance

    return list(dict.fromkeys(note for each in documents for note in get_provenance(each).get("notes", [])))


def plain(document: Document) -> dict[str, Any]:
    """A document as JSON."""
    from rag_kit.documents import PROVENANCE_KEY, get_provenance
    from rag_kit.documents.identity import to_plain

    metadata = {**document.metadata, PROVENANCE_KEY: get_provenance(document)}
    value: dict[str, Any] = to_plain({"id": document.id, "text": document.page_content, "metadata": metadata})
    return value
