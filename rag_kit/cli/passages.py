"""Print passages, or convert them to JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rag_kit.cli.output import flat, say

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
    from rag_kit.documents.plain import to_plain

    metadata = {**document.metadata, PROVENANCE_KEY: get_provenance(document)}
    value: dict[str, Any] = to_plain({"id": document.id, "text": document.page_content, "metadata": metadata})
    return value
