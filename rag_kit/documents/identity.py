"""The identity of a document (a metadata key, its id, or a hash of its text), copies, and values as plain JSON."""

from __future__ import annotations

import copy
import datetime
import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document

# 32 hexadecimal digits, with all four hyphens ("123e4567-e89b-12d3-a456-426614174000") or with none
_UUID = re.compile("[0-9a-fA-F]{8}(-?)[0-9a-fA-F]{4}(?:\\1[0-9a-fA-F]{4}){2}\\1[0-9a-fA-F]{12}")


def content_hash(text: str) -> str:
    """Hash a text: ``"sha256:"`` and 64 hexadecimal digits.

    Lone surrogates, which UTF-8 cannot hold, are hashed by their escape, so that no text raises.

    Example:
        >>> content_hash("rank fusion")[:15]
        'sha256:d324c728'
    """
    return "sha256:" + hashlib.sha256(text.encode("utf-8", errors="backslashreplace")).hexdigest()


def document_key(doc: Document, id_key: str | None = None) -> str:
    """Return the key of a document: its metadata ``id_key`` if one is given, else its id, else a hash of its text.

    Raises:
        InvalidInputError: It has no such metadata.
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


def document_keys(rankings: Sequence[Sequence[Document]], id_key: str | None = None) -> list[list[str]]:
    """Identify the documents of several result lists that are to be merged: the keys, in the shape of ``rankings``.

    A document is identified by its metadata ``id_key``; without one by its id, or else its text. One without an id is
    taken for the one that has an id and the same text, since one store may hand out ids where another does not. So are
    two documents of two lists whose ids are UUIDs, which stores make up, if their texts are the same and their metadata
    do not contradict each other.

    Raises:
        InvalidInputError: A document lacks ``id_key``.

    Example:
        >>> from langchain_core.documents import Document
        >>> document_keys([[Document("same", id="7")], [Document("same"), Document("other", id="8")]])
        [['7'], ['7', '8']]
    """
    if id_key is not None:
        return [[document_key(doc, id_key) for doc in ranking] for ranking in rankings]
    with_ids = [doc for doc in chain.from_iterable(rankings) if doc.id]
    id_of_text = {doc.page_content: doc.id for doc in reversed(with_ids)}  # the first id: later entries win
    keys = [
        [doc.id or id_of_text.get(doc.page_content) or f"text:{doc.page_content}" for doc in ranking]
        for ranking in rankings
    ]
    if len({(doc.page_content, doc.id) for doc in with_ids}) == len(id_of_text):
        return keys  # no text has two ids
    first_uuid = _first_uuids(rankings)
    return [[first_uuid.get(key, key) for key in ranking] for ranking in keys]


def _first_uuids(rankings: Sequence[Sequence[Document]]) -> dict[str, str]:
    """Map each UUID of a chunk that has several to the first one; a chunk has the same text and agreeing metadata."""
    repeated: set[str] = set()  # texts that one list has under several ids: they are chunks of their own
    for ranking in rankings:
        id_counts = Counter(text for text, _ in {(doc.page_content, doc.id) for doc in ranking})
        repeated.update(text for text, count in id_counts.items() if count > 1)
    first_of_text: dict[str, Document] = {}
    first_uuid: dict[str, str] = {}
    for doc in chain.from_iterable(rankings):
        if not doc.id or not _UUID.fullmatch(doc.id) or doc.page_content in repeated:
            continue
        first = first_of_text.setdefault(doc.page_content, doc)
        shared_keys = doc.metadata.keys() & first.metadata.keys() - {"rag_kit"}
        agree = all(doc.metadata[key] == first.metadata[key] for key in shared_keys)
        if agree and first.id and first.id != doc.id:
            first_uuid[doc.id] = first.id
    return first_uuid


ORIGINAL_ID_KEY = "original_id"  # metadata key of a text that was shortened: the id of the whole one


def copy_document(doc: Document) -> Document:
    """Copy a document with its metadata, to any depth, so that no edit reaches the original.

    Example:
        >>> from langchain_core.documents import Document
        >>> original = Document("text", metadata={"tags": ["a"]})
        >>> copy_document(original).metadata["tags"].append("b")
        >>> original.metadata
        {'tags': ['a']}
    """
    return doc.model_copy(update={"metadata": copy_metadata(doc)})


def copy_metadata(doc: Document, *, without: str | None = None) -> dict[str, Any]:
    """Copy metadata, to any depth, except for one key; a lock or an open file raises InvalidInputError."""
    copied = {}
    for key, value in doc.metadata.items():
        if key != without:
            try:
                copied[key] = copy_value(value)
            except Exception as error:  # a value's own code may raise anything
                name = f"{doc.id!r} " if doc.id else ""
                raise InvalidInputError(
                    f"The metadata of the document {name}({doc.page_content[:40]!r}) hold {type(value).__name__} "
                    f"under {key!r}, which cannot be copied ({error}). Leave it out, or keep its name in its place."
                ) from error
    return copied


def copy_value(value: Any) -> Any:
    """Copy a metadata value to any depth, quickly where it is JSON data."""
    value_type = type(value)
    if value_type in (str, int, float, bool, type(None)):
        return value
    if value_type is dict:
        return {key: copy_value(item) for key, item in value.items()}
    if value_type is list:
        return [copy_value(item) for item in value]
    return copy.deepcopy(value)


_MAX_DEPTH = 32  # of `to_plain`
_PLAIN_TYPES = frozenset({str, int, bool, type(None)})


def field_of(value: Any, name: str) -> Any:
    """Return a mapping's value or an object's attribute of a name; ``None`` where it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def to_plain(value: Any, *, _around: tuple[int, ...] = ()) -> Any:
    """Turn any value into plain JSON data, as a copy.

    numpy's numbers and arrays become Python's, sets sorted lists, dates ISO texts, keys and other objects texts,
    not-a-number and infinities ``None``. What contains itself, or is nested too deeply, ends in the name of its type.

    Example:
        >>> to_plain({"when": datetime.date(2026, 1, 2), "tags": {"b", "a"}, "at": (1, math.inf)})
        {'when': '2026-01-02', 'tags': ['a', 'b'], 'at': [1, None]}
    """
    if type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):  # of a subclass, such as an enumeration, whose own str() may be another text
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", errors="backslashreplace")
    if len(_around) >= _MAX_DEPTH or id(value) in _around:  # it contains itself
        return type(value).__name__
    path = (*_around, id(value))  # the ids of the values that an item of this one is nested in
    # plain items, which are most of a record, need no call of their own
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _PLAIN_TYPES else to_plain(item, _around=path) for item in value]
    if isinstance(value, (dict, Mapping)):  # the first is quicker to check
        plain = {str(key): item for key, item in value.items()}
        for key, item in plain.items():
            if type(item) not in _PLAIN_TYPES:
                plain[key] = to_plain(item, _around=path)
        return plain
    if isinstance(value, (set, frozenset)):
        items = [to_plain(item, _around=path) for item in value]
        return sorted(items, key=lambda item: (str(type(item)), str(item)))
    if callable(tolist := getattr(value, "tolist", None)):  # numpy's arrays and scalars
        return to_plain(tolist(), _around=path)
    return str(value)


#: Keys of the metadata that say how new a document is, in English and Chinese.
VERSION_KEYS = (
    "date", "effective_date", "valid_from", "published", "updated", "year", "version", "revision", "edition", "status",
    "日期", "生效日期", "发布日期", "年份", "版本", "状态",
)  # fmt: skip
_NUMBERED_KEYS = ("version", "revision", "edition", "版本")  # a number is written with a "v"
_MAX_VERSION = 80  # characters


def version_text(metadata: Mapping[str, Any]) -> str:
    """Describe a document's version by its metadata, for people and models; "" where nothing says it.

    Example:
        >>> version_text({"year": 2024, "version": "2.1", "status": "draft"})
        '2024, v2.1, draft'
    """
    texts: dict[str, None] = {}  # without repeats
    for key in VERSION_KEYS:
        value = metadata.get(key)
        if value is None or isinstance(value, (list, dict)):
            continue
        text = " ".join(str(value).split())
        if key in _NUMBERED_KEYS and text.replace(".", "").isdecimal():
            text = f"v{text}"
        texts[text] = None
    return ", ".join(filter(None, texts))[:_MAX_VERSION]
