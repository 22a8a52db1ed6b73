from __future__ import annotations

from uuid import uuid4

import pytest
from langchain_core.documents import Document

from rag_kit.documents import content_hash, copy_document, document_keys
from rag_kit.documents.identity import document_key
from rag_kit.errors import InvalidInputError


def test_key_order() -> None:
    """A document is identified by id_key, else its id, else its text."""
    doc = Document("text", id="a", metadata={"isbn": 7})
    assert document_key(doc, "isbn") == "7"
    assert document_key(doc) == "a"
    assert document_key(Document("text")) == content_hash("text")
    assert document_key(Document("text", metadata={"score": 1})) == document_key(Document("text"))


def test_missing_id_key_is_named() -> None:
    """A document without the id_key is refused by an error that names the key and what there is."""
    with pytest.raises(InvalidInputError, match=r"id_key='isbn'.*title"):
        document_key(Document("text", metadata={"title": "T"}), "isbn")


def test_text_without_id_joins_the_same_text_with_id() -> None:
    """Across lists, a text without an id is the document with that text and an id."""
    lists = [[Document("x"), Document("y")], [Document("y", id="7"), Document("z", id="8")]]
    assert document_keys(lists) == [["text:x", "7"], ["7", "8"]]


def test_uuids_of_one_text_are_one_document_beside_other_copies() -> None:
    """Two stores' UUIDs are one document, also where a first list has the text without an id, or with a given id."""
    first, second = str(uuid4()), str(uuid4())
    copies = [[Document("x", id=first)], [Document("x", id=second)]]
    assert document_keys(copies) == [[first], [first]]
    assert document_keys([[Document("x")], *copies]) == [[first], [first], [first]]
    assert document_keys([[Document("x", id="7")], *copies]) == [["7"], [first], [first]]
    # as many ids as texts, and yet a text with two ids
    assert document_keys([[Document("old", id=first), *copies[0]], copies[1]]) == [[first, first], [first]]


def test_lone_surrogates_have_a_hash() -> None:
    """A text that UTF-8 cannot hold is hashed, and is not its escaped spelling's double by accident of an error."""
    assert content_hash("\ud800").startswith("sha256:")


def test_copies_share_nothing() -> None:
    """Edits to a copy's metadata, at any depth, do not reach the original."""
    original = Document("t", id="1", metadata={"a": {"b": [1]}, "o": {1, 2}})
    twin = copy_document(original)
    twin.metadata["a"]["b"].append(2)
    twin.metadata["o"].add(3)
    twin.metadata["new"] = 1
    assert original.metadata == {"a": {"b": [1]}, "o": {1, 2}}
    assert twin.id == "1"
