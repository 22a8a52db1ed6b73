"""The cache of vectors: keys, damage, bounds."""

from __future__ import annotations

import logging
import os

import numpy as np
import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.embedding_cache import EmbeddingCache


class Embedder:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, texts):
        self.calls += 1
        return [[float(len(text)), 1.0] for text in texts]


def test_same_model_and_texts_are_embedded_once(tmp_path):
    """The second request reads the file; another model, text or order makes new vectors."""
    cache, embed = EmbeddingCache(tmp_path / "cache"), Embedder()
    first = cache.vectors("m", ["a", "bb"], embed)
    assert np.array_equal(cache.vectors("m", ["a", "bb"], embed), first) and embed.calls == 1
    cache.vectors("other", ["a", "bb"], embed)
    cache.vectors("m", ["bb", "a"], embed)
    cache.vectors("m", ["ab", "b"], embed)
    assert embed.calls == 4
    assert all(path.suffix == ".npz" for path in (tmp_path / "cache").iterdir())


@pytest.mark.parametrize("damage", [b"", b"no zip", "cut", "pickle", "short"])
def test_a_damaged_file_counts_as_missing(tmp_path, damage, caplog):
    """A cut, foreign or pickled file is made anew, never loaded."""
    cache, embed = EmbeddingCache(tmp_path), Embedder()
    good = cache.vectors("m", ["a", "bb"], embed)
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
        again = cache.vectors("m", ["a", "bb"], embed)
    assert np.array_equal(again, good) and embed.calls == 2
    assert cache.vectors("m", ["a", "bb"], embed) is not None and embed.calls == 2


def test_the_folder_is_bounded(tmp_path):
    """Past the limit the files unused for longest go; the newest stays."""
    cache, embed = EmbeddingCache(tmp_path, max_bytes=1200), Embedder()
    for number in range(4):
        cache.vectors("m", [str(number)] * 20, embed)
        for path in tmp_path.iterdir():
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1200
    calls = embed.calls
    cache.vectors("m", ["3"] * 20, embed)
    assert embed.calls == calls
    cache.vectors("m", ["0"] * 20, embed)
    assert embed.calls == calls + 1


def test_a_failing_model_leaves_no_file(tmp_path):
    """An error while embedding is passed on and nothing is kept."""

    def fail(texts):
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError, match="no model"):
        EmbeddingCache(tmp_path).vectors("m", ["a"], fail)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_cache_folder(tmp_path):
    """A file given as the folder is refused."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInputError, match="is a file"):
        EmbeddingCache(tmp_path / "file")
