"""The identity of a document (a metadata key, its id, or a hash of its text), copies, and values as plain JSON."""

from __future__ import annotations

import copy
import datetime
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document


_UUID = re.compile("[0-9a-fA-F]{8}(-?)[0-9a-fA-F]{4}(?:\\1[0-9a-fA-F]{4}){2}\\1[0-9a-fA-F]{12}")
_SCALARS = (str, int, float, bool, type(None))


def content_hash(text: str) -> str:
    """Hash a text: ``"sha256:"`` and 64 hexadecimal digits.

    Lone surrogates, which UTF-8 cannot hold, are hashed by their escape, so that no text raises.

    Example:
        >>> content_hash("rank fusion")[:15]
        'sha256:d324c728'
    """
    return "sha256:" + hashlib.sha256(text.encode("utf-8", errors="backslashreplace")).hexdigest()


def document_key(doc: Document, id_key: str | None = None) -> str:
    """Identify a document.

    Args:
        doc: The document.
        id_key: Metadata key that holds the identity. Without it ``doc.id`` counts, and without an id the
        text.

    Returns:
        The identity as a string.

    Raises:
        InvalidInputError: If ``id_key`` is given and the document has no such metadata.

    Example:
        >>> from langchain_core.documents import Document
        >>> document_key(Document("text", id="a1"))
        'a1'
        >>> document_key(Document("text", id="a1", metadata={"isbn": 123}), "isbn")
        '123'
    """
    if id_key is not None:
        value = doc.metadata.get(id_key)
        if value is None:
            raise InvalidInputError(
                f"id_key={id_key!r} was given, but a document has no such metadata (it has "
                f"{sorted(map(str, doc.metadata))[:20]}; its text starts {doc.page_content[:60]!r}). "
                "Name a key that every document has, or leave id_key out."
            )
        return str(value)
    return doc.id if doc.id else content_hash(doc.page_content)


def document_keys(
    rankings: Sequence[Sequence[Document]], id_key: str | None = None, *, hashed: bool = True
) -> list[list[str]]:
    """Identify the documents of several result lists that are to be merged.

    As ``document_key``, but a document without an id is taken for the one that has an id and the same text,
    since one store may hand out ids where another does not. So are two documents of two lists whose ids are UUIDs,
    which stores make up, if their texts are the same and their metadata do not contradict each other.

    Args:
        rankings: Result lists.
        id_key: As for ``document_key``.
        hashed: Whether a text that stands for a document is hashed; as it is, it serves as a key in memory, and is
            had at once.

    Returns:
        The keys, in the shape of ``rankings``.

    Raises:
        InvalidInputError: If ``id_key`` is given and a document lacks it.

    Example:
        >>> from langchain_core.documents import Document
        >>> document_keys([[Document("same", id="7")], [Document("same"), Document("other", id="8")]])
        [['7'], ['7', '8']]
    """
    if id_key is not None:
        return [[document_key(doc, id_key) for doc in ranking] for ranking in rankings]
    ids = [[doc.id or "" for doc in ranking] for ranking in rankings]
    if all(map(all, ids)):
        same = _made_up_twice(rankings, ids) if len(rankings) > 1 else {}
        return [[same.get(key, key) for key in of_one] for of_one in ids] if same else ids
    all_documents = [doc for ranking in rankings for doc in ranking]
    if not hashed and not any(doc.id for doc in all_documents):
        # no id is there that a text could be taken for
        return [[doc.page_content for doc in ranking] for ranking in rankings]
    by_text: dict[str, str] = {}
    for doc in all_documents:
        if doc.id:
            by_text.setdefault(doc.page_content, doc.id)
    same = _made_up_twice(rankings, ids)
    name = content_hash if hashed else "text:".__add__
    for doc in all_documents:
        if not doc.id and doc.page_content not in by_text:
            by_text[doc.page_content] = name(doc.page_content)
    keys = [[doc.id or by_text[doc.page_content] for doc in ranking] for ranking in rankings]
    return [[same.get(key, key) for key in of_one] for of_one in keys] if same else keys


def _made_up_twice(rankings: Sequence[Sequence[Document]], ids: Sequence[Sequence[str]]) -> dict[str, str]:
    """For ids that several stores made up for one chunk: id of a later list -> id of the first."""
    if len(set().union(*ids)) <= len({doc.page_content for ranking in rankings for doc in ranking}):
        return {}  # no text has two ids
    first: dict[str, Document] = {}
    same: dict[str, str] = {}
    several: set[str] = set()  # texts of which one list has several documents
    for ranking in rankings:
        last = {doc.page_content: doc.id for doc in ranking}
        several.update(doc.page_content for doc in ranking if last[doc.page_content] != doc.id)
        for doc in ranking:
            other = first.setdefault(doc.page_content, doc)
            made_up = all(_UUID.fullmatch(one.id or "") for one in (doc, other))
            if doc.id != other.id and made_up and _agree(doc.metadata, other.metadata):
                same[doc.id or ""] = other.id or ""
    known = {doc.id for ranking in rankings for doc in ranking if doc.page_content in several}
    return {key: other for key, other in same.items() if key not in known}


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[key] == other[key] for key in one.keys() & other.keys() if key != "rag_kit")


def copy_document(doc: Document) -> Document:
    """Copy a document with its metadata, to any depth, so that no edit reaches the original.

    Example:
        >>> from langchain_core.documents import Document
        >>> original = Document("text", metadata={"tags": ["a"]})
        >>> copy_document(original).metadata["tags"].append("b")
        >>> original.metadata
        {'tags': ['a']}
    """
    return doc.model_copy(update={"metadata": copy_value(doc.metadata)})


def copy_value(value: Any) -> Any:
    """Copy a metadata value to any depth, with a short way for JSON data, which metadata nearly always is."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        return {key: copy_value(item) for key, item in value.items()}
    if kind is list:
        return [copy_value(item) for item in value]
    return copy.deepcopy(value)


_MAX_DEPTH = 32
_PLAIN = frozenset({str, int, bool, type(None)})


def to_plain(value: Any, *, _above: tuple[int, ...] = ()) -> Any:
    """Turn a value into plain JSON data, as a copy.

    Args:
        value: Anything. numpy scalars and arrays become Python numbers and lists, sets sorted lists, dates
            ISO strings, mappings dicts with string keys, not-a-number and infinities ``None``, bytes and
            unknown objects strings. What contains itself, or is nested too deeply, ends in the name of its type.

    Returns:
        Only ``None``, ``bool``, ``int``, ``float``, ``str``, ``list`` and ``dict``.

    Example:
        >>> import datetime
        >>> to_plain({"when": datetime.date(2026, 1, 2), "tags": {"b", "a"}, "at": (1, 2.5)})
        {'when': '2026-01-02', 'tags': ['a', 'b'], 'at': [1, 2.5]}
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if len(_above) >= _MAX_DEPTH or id(value) in _above:
        return kind.__name__
    below = (*_above, id(value))
    # most items are plain or finite floats, and a call for each would take most of the time
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _PLAIN else to_plain(item, _above=below) for item in value]
    if kind is dict or isinstance(value, Mapping):
        return {
            key if type(key) is str else str(key): item
            if (kind := type(item)) in _PLAIN or (kind is float and item - item == 0.0)
            else to_plain(item, _above=below)
            for key, item in value.items()
        }
    if isinstance(value, (set, frozenset)):
        items = [to_plain(item, _above=below) for item in value]
        return sorted(items, key=lambda item: (str(type(item)), str(item)))
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    return _from_object(value, below)


def _from_object(value: Any, above: tuple[int, ...]) -> Any:
    """Subclasses of the plain types, numpy values (by ``tolist``, without importing numpy), the rest."""
    if kind := next((base for base in (bool, int, float, str) if isinstance(value, base)), None):
        return to_plain(str.__str__(value) if kind is str else kind(value), _above=above)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", errors="backslashreplace")
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        converted = tolist()
        if converted is not value:
            return to_plain(converted, _above=above)
    return str(value)
