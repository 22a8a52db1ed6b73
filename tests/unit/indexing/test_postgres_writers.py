"""Several writers of one index in PostgreSQL: what one has read, another may change before the first one writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.indexing import DocumentIndex

pytest.importorskip("psycopg_pool")


@pytest.fixture
def url(postgres_url: str, request: pytest.FixtureRequest) -> str:
    """The URL of an index of the test's own."""
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name.lower())
    return f"{postgres_url}&index=w_{name[:50]}"


def after_each_read(
    monkeypatch: pytest.MonkeyPatch, index: DocumentIndex, write: Callable[[int], object], times: int
) -> None:
    """Let another process write after each of the next reads of an index, which are counted from 0."""
    read, done = index._store.reading, 0

    @contextmanager
    def reading() -> Iterator[Any]:
        nonlocal done
        with read() as connection:
            yield connection
        if done < times:
            done += 1
            write(done - 1)

    monkeypatch.setattr(index._store, "reading", reading)


@pytest.mark.parametrize("former", [WordEmbeddings(16), None])
def test_vectors_are_those_of_the_present_texts(
    url: str, monkeypatch: pytest.MonkeyPatch, former: WordEmbeddings | None
) -> None:
    """Vectors are made while another process changes texts, between any two reads: each is that of its text."""
    monkeypatch.setattr("rag_kit.indexing.document_index.embedding.EMBED_BATCH", 1)
    model = WordEmbeddings(3001)
    with DocumentIndex.create(url, embeddings=former) as other:
        other.upsert([Document(f"first {key}", id=key) for key in "abcd"])
        with DocumentIndex.open(url, mode="w", check=False) as index:

            def write(number: int) -> None:
                if number % 2 == 0:
                    other.upsert([Document(f"later {number}", id=key) for key in "abcd"])

            after_each_read(monkeypatch, index, write, times=7)
            index.reembed(model)
            monkeypatch.undo()
            assert index.get(["d"])[0].page_content == "later 6"
            for document in index.get(list("abcd")):
                found = index.vectors([document.id])[document.id]
                assert np.allclose(found, model.vector(document.page_content))
            assert index.verify().ok
