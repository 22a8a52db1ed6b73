"""One identity for documents: a named metadata key, else ``Document.id``, else a hash of the text."""

from __future__ import annotations

import copy
import hashlib
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
    all_documents = [doc for ranking in rankings for doc in ranking]
    if not all_documents or all(doc.id for doc in all_documents):
        same = _made_up_twice(rankings) if len(rankings) > 1 else {}
        return [[same.get(doc.id or "", doc.id or "") for doc in ranking] for ranking in rankings]
    if not hashed and not any(doc.id for doc in all_documents):
        # no id is there that a text could be taken for
        return [[doc.page_content for doc in ranking] for ranking in rankings]
    by_text: dict[str, str] = {}
    for doc in all_documents:
        if doc.id:
            by_text.setdefault(doc.page_content, doc.id)
    same = _made_up_twice(rankings)
    name = content_hash if hashed else "text:".__add__
    for doc in all_documents:
        if not doc.id and doc.page_content not in by_text:
            by_text[doc.page_content] = name(doc.page_content)
    keys = [[doc.id or by_text[doc.page_content] for doc in ranking] for ranking in rankings]
    return [[same.get(key, key) for key in of_one] for of_one in keys] if same else keys


def _made_up_twice(rankings: Sequence[Sequence[Document]]) -> dict[str, str]:
    """For ids that several stores made up for one chunk: id of a later list -> id of the first."""
    everything = [doc for ranking in rankings for doc in ranking]
    if len({doc.id for doc in everything}) <= len({doc.page_content for doc in everything}):
        return {}  # no text has two ids
    first: dict[str, Document] = {}
    same: dict[str, str] = {}
    twice: set[str] = set()  # texts that one list holds under several ids, which are several documents there
    for ranking in rankings:
        ids = {doc.page_content: doc.id for doc in ranking}
        for doc in ranking:
            text = doc.page_content
            other = first.setdefault(text, doc)
            if ids[text] != doc.id:
                twice.add(text)
            elif (
                doc.id != other.id
                and doc.id
                and other.id
                and text not in twice
                and (
                    _UUID.fullmatch(doc.id)
                    and _UUID.fullmatch(other.id)
                    and _agree(doc.metadata, other.metadata)
                )
            ):
                same[doc.id] = other.id
    if twice:
        several = {doc.id for doc in everything if doc.page_content in twice}
        return {key: other for key, other in same.items() if key not in several}
    return same


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
