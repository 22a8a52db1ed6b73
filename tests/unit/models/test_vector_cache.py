"""Embeddings that embed no document twice: keys, damage, bounds, sync and async."""

from __future__ import annotations

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from rag_kit.errors import InvalidInputError, ModelError
from rag_kit.models.json_cache import JsonCache
from rag_kit.models.vector_cache import CachedEmbeddings


class Counting(Embeddings):
    """Counts the texts that it is given."""

    def __init__(self, name: str = "m") -> None:
        self.model = name
        self.texts = 0

    def embed_documents(self, texts):
        self.texts += len(texts)
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text):
        return [float(len(text)), 2.0]


def test_each_text_is_embedded_once_by_each_model(tmp_path):
    """A second run reads the file; of a changed list only what is new is embedded; another model makes its own."""
    model, other = Counting(), Counting("other")
    first = CachedEmbeddings(model, tmp_path / "cache").vectors(["a", "长城", "a"])
    assert first.dtype == np.float32 and model.texts == 2
    again = CachedEmbeddings(model, tmp_path / "cache")
    assert np.array_equal(again.vectors(["长城", "a"]), first[[1, 0]]) and model.texts == 2
    assert again.vectors(["a", "new"]).tolist() == [[1.0, 1.0], [3.0, 1.0]] and model.texts == 3
    CachedEmbeddings(other, tmp_path / "cache").vectors(["a", "长城"])
    assert other.texts == 2


@pytest.mark.parametrize("damaged", ["AAAA", "AAAAAA==", "", "é", None, 3])
@pytest.mark.parametrize("new", [[], ["new"]])
async def test_a_damaged_vector_is_made_anew(tmp_path, damaged, new):
    """Bytes that are no vector, or one of another length, are replaced, in the file as well."""
    texts = ["a", "bb", *new]
    cached = CachedEmbeddings(Counting(), tmp_path)
    expected = cached.vectors(texts).tolist()
    for is_one_known in (False, True):
        JsonCache(tmp_path / "vectors.sqlite").put({cached._key("a"): damaged})
        again = CachedEmbeddings(Counting(), tmp_path)
        if is_one_known:
            again.vectors(["bb"])
        assert await again.aembed_documents(texts) == expected
        model = Counting()
        assert CachedEmbeddings(model, tmp_path).vectors(texts).tolist() == expected and model.texts == 0


async def test_known_texts_are_not_asked_for_again_and_queries_are():
    """As an embedding model it looks documents up, asks for the others, and leaves questions to the model."""
    model = Counting()
    cached = CachedEmbeddings(model)
    cached.vectors(["a", "bb"])
    assert cached.embed_documents(["bb", "a"]) == [[2.0, 1.0], [1.0, 1.0]] and model.texts == 2
    assert await cached.aembed_documents(["a", "ccc"]) == [[1.0, 1.0], [3.0, 1.0]] and model.texts == 3
    assert cached.embed_query("a") == [1.0, 2.0] == await cached.aembed_query("a")


def test_a_failing_model_is_the_kits_error_and_a_file_is_no_folder(tmp_path):
    """An error while embedding is the kit's; a file given as the folder is refused."""

    class Failing(Counting):
        def embed_documents(self, texts):
            raise RuntimeError("no model")

    with pytest.raises(ModelError):
        CachedEmbeddings(Failing(), tmp_path).vectors(["a"])
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInputError, match="cannot be opened"):
        CachedEmbeddings(Counting(), tmp_path / "file")
