"""What search tools give, in all its shapes, as documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from langchain_core.documents import Document

from rag_kit.documents import clean_text, copy_document, with_provenance

_TEXTS = ("page_content", "content", "snippet", "text", "body", "description", "summary", "answer")
_TITLES = ("title", "name", "heading")
_LINKS = ("url", "link", "href", "source")
_LISTS = (
    "results",
    "organic",
    "organic_results",
    "items",
    "webPages",
    "web",
    "value",
    "documents",
    "data",
    "hits",
    "pages",
    "news",
)
_MAX_DEPTH = 4
_MAX_LINK = 2_000
_MAX_TITLE = 300
_MAX_TEXT = 2_000_000  # of a text that may be JSON


def web_documents(value: Any, *, most: int, chars: int, query: str, tool: str) -> list[Document]:
    """Turn what a search tool gave into documents that say where they are from.

    Args:
        value: Documents; a list of dicts or texts; a dict that holds such a list; the same as JSON; or plain text.
        most: Most documents.
        chars: Most characters of each.
        query: What was searched for.
        tool: Who gave it.

    Returns:
        Documents with ``origin: web``, ``source`` (the address, else ``web``), ``url`` and ``title`` where known.
        Control characters and other invisible ones are shown as escapes.

    Example:
        >>> [found] = web_documents([{"url": "https://a.example/b", "snippet": "Rain."}],
        ...                         most=5, chars=100, query="rain", tool="search")
        >>> found.page_content, found.metadata["origin"], found.metadata["source"]
        ('Rain.', 'web', 'https://a.example/b')
    """
    found: list[Document] = []
    seen: set[str] = set()
    for document in _documents(value, 0):
        text = clean_text(document.page_content[:chars]).strip()[:chars]
        if not text or text in seen:
            continue
        seen.add(text)
        marked = copy_document(document)
        marked.page_content = text
        link = _link(document.metadata)
        marked.metadata["origin"] = "web"
        marked.metadata["source"] = link or "web"
        marked.metadata.pop("url", None)
        if link:
            marked.metadata["url"] = link
        title = _first(document.metadata, _TITLES)
        if title:
            marked.metadata["title"] = " ".join(clean_text(title).split())[:_MAX_TITLE]
        rank = len(found) + 1
        found.append(with_provenance(marked, score=None, rank=rank, stage="web", retriever=tool, query=query))
        if len(found) >= most:
            break
    return found


def _documents(value: Any, depth: int) -> Iterator[Document]:
    if depth > _MAX_DEPTH or value is None:
        return
    if isinstance(value, Document):
        yield value
    elif isinstance(value, str):
        yield from _from_text(value, depth)
    elif isinstance(value, Mapping):
        yield from _from_mapping(value, depth)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for item in value:
            yield from _documents(item, depth + 1)


def _from_text(text: str, depth: int) -> Iterator[Document]:
    if text.lstrip()[:1] in ("[", "{") and len(text) <= _MAX_TEXT:
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, list | dict):
            yield from _documents(parsed, depth + 1)
            return
    yield Document(text)


def _from_mapping(item: Mapping[Any, Any], depth: int) -> Iterator[Document]:
    lists = [item[name] for name in _LISTS if isinstance(item.get(name), list | tuple | Mapping)]
    if lists:
        for inner in lists:
            yield from _documents(inner, depth + 1)
        return
    text = _first(item, _TEXTS)
    if text:
        inner = item.get("metadata")
        known = dict(inner) if isinstance(inner, Mapping) else {}
        link, title = _first({**known, **item}, _LINKS), _first({**known, **item}, _TITLES)
        yield Document(text, metadata={"url": link, "title": title})


def _first(item: Mapping[Any, Any], names: Sequence[str]) -> str:
    for name in names:
        value = item.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _link(metadata: Mapping[str, Any]) -> str:
    """The address of a page; others than of the web (``javascript:`` and the like) are dropped."""
    for name in _LINKS:
        value = metadata.get(name)
        if not isinstance(value, str):
            continue
        link = clean_text(value).strip()[:_MAX_LINK]
        try:
            parts = urlsplit(link)
        except ValueError:
            continue
        if parts.scheme.lower() in ("http", "https") and parts.netloc:
            return link
    return ""
