"""Embeddings that embed no document twice: keys, damage, bounds, sync and async."""

from __future__ import annotations

import logging
import os

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from rag_kit.errors import InvalidInputError, ModelError
from rag_kit.models.vector_cache import CachedEmbeddings


class Counting(Embeddings):
    """Counts its calls."""

    def __init__(self, name: str = "m") -> None:
        self.model = name
        self.calls = 0

    def embed_documents(self, texts):
        self.calls += 1
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text):
        return [float(len(text)), 2.0]


def test_same_model_and_texts_are_embedded_once(tmp_path):
    """The second run reads the file; another model, text or order makes new vectors."""
    model = Counting()
    first = CachedEmbeddings(model, tmp_path / "cache").vectors(["a", "长城"])
    assert np.array_equal(CachedEmbeddings(model, tmp_path / "cache").vectors(["a", "长城"]), first)
    assert model.calls == 1
    other = Counting("other")
    CachedEmbeddings(other, tmp_path / "cache").vectors(["a", "长城"])
    for texts in (["长城", "a"], ["a长", "城"]):
        CachedEmbeddings(model, tmp_path / "cache").vectors(texts)
    assert (model.calls, other.calls) == (3, 1)
    assert all(path.suffix == ".npz" for path in (tmp_path / "cache").iterdir())


async def test_known_texts_are_not_asked_for_again_and_queries_are():
    """As an embedding model it looks documents up, asks for the others, and leaves questions to the model."""
    model = Counting()
    cached = CachedEmbeddings(model)
    cached.vectors(["a", "bb"])
    assert cached.embed_documents(["bb", "a"]) == [[2.0, 1.0], [1.0, 1.0]] and model.calls == 1
    assert await cached.aembed_documents(["a", "ccc"]) == [[1.0, 1.0], [3.0, 1.0]] and model.calls == 2
    assert cached.embed_query("a") == [1.0, 2.0] == await cached.aembed_query("a")


@pytest.mark.parametrize("damage", [b"", b"no zip", "cut", "pickle", "short"])
def test_a_damaged_file_counts_as_missing(tmp_path, damage, caplog):
    """A cut, foreign or pickled file is made anew, never loaded."""
    model = Counting()
    cached = CachedEmbeddings(model, tmp_path)
    good = cached.vectors(["a", "bb"])
    (path,) = tmp_path.iterdir()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-30])
    elif damage == "pickle":
        np.savez(path, vectors=np.array([{"a": 1}], dtype=object))
    elif damage == "short":
        np.savez(path, vectors=good[:1])
    else:
        path.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        again = cached.vectors(["a", "bb"])
    assert np.array_equal(again, good) and model.calls == 2
    assert cached.vectors(["a", "bb"]) is not None and model.calls == 2


def test_the_folder_is_bounded(tmp_path):
    """Past the limit the files unused for longest go; the newest stays."""
    model = Counting()
    cached = CachedEmbeddings(model, tmp_path, max_bytes=1200)
    for number in range(4):
        cached.vectors([str(number)] * 20)
        for path in tmp_path.iterdir():
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1200
    calls = model.calls
    cached.vectors(["3"] * 20)
    assert model.calls == calls
    cached.vectors(["0"] * 20)
    assert model.calls == calls + 1


def test_a_failing_model_leaves_no_file_and_a_file_is_no_folder(tmp_path):
    """An error while embedding is the kit's, and nothing is kept; a file given as the folder is refused."""

    class Failing(Counting):
        def embed_documents(self, texts):
            raise RuntimeError("no model")

    with pytest.raises(ModelError):
        CachedEmbeddings(Failing(), tmp_path).vectors(["a"])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInputError, match="is a file"):
        CachedEmbeddings(Counting(), tmp_path / "file")
