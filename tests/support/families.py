"""Documents whose parts are easy to tell apart, for tests of parents and sentence windows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import get_provenance


def numbered(name: str, parts: int = 6, **metadata: Any) -> Document:
    """A document of short sentences, each with a word of its own: ``name0``, ``name1``..."""
    return _sentences(name, map(str, range(parts)), metadata)


def lettered(name: str, letters: str, **metadata: Any) -> Document:
    """As `numbered`, with words that share no part: ``nameb``, ``namec``..."""
    return _sentences(name, letters, metadata)


def _sentences(name: str, ends: Iterable[str], metadata: dict[str, Any]) -> Document:
    text = " ".join(f"Here {name}{end} is told of by {name}." for end in ends)
    return Document(text, id=name, metadata=metadata)


async def both(retriever: Any, query: str, **call: Any) -> list[Document]:
    """Return what a retriever finds, checked to be the same sync and async, and plain JSON."""
    found: list[Document] = retriever.invoke(query, None, **call)
    assert await retriever.ainvoke(query, None, **call) == found
    for document in found:
        json.dumps(document.metadata, allow_nan=False)
    return found


def children(document: Document) -> list[dict[str, Any]]:
    """The matched children in a result's provenance."""
    stage = get_provenance(document)["stages"][-1]
    found: list[dict[str, Any]] = stage["children"]
    return found


def lines(documents: Any) -> Iterator[Document]:
    """A splitter that cuts at line ends and keeps no metadata."""
    for document in documents:
        for line in document.page_content.splitlines():
            yield Document(line)
