"""BM25Index and BM25Retriever refuse arguments of the wrong type, and say what to give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from rag_kit.errors import IndexMissingError, InvalidInputError
from rag_kit.indexing import BM25Index
from rag_kit.indexing.sparse.index import SparseIndex
from rag_kit.retrieval import BM25Retriever, SparseRetriever, TrigramRetriever

OWNERS: list[Any] = [BM25Index, BM25Retriever, SparseIndex, SparseRetriever, TrigramRetriever]


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_every_class_checks_what_it_is_built_of(owner: Any) -> None:
    """Texts, documents, metadata and ids are checked by the functions that the tests below call by ``BM25Index``."""
    for call in (
        lambda: owner.from_texts("one string"),
        lambda: owner.from_documents(["text"]),
        lambda: owner.from_texts(["a"], [1]),
        lambda: owner.from_texts(["a"], ids=["a", "b"]),
    ):
        with pytest.raises(InvalidInputError):
            call()
    assert owner.from_texts(["a b", "b"], [None, {"n": 1}], ids=iter(["1", "2"])) is not None


@pytest.mark.parametrize(
    ("texts", "says"),
    [("one string", "texts is str"), ({"a": "text"}, "texts is dict"), (["fine", 7], "texts holds int"),
     ([Document("a")], "from_documents")],
)  # fmt: skip
def test_texts(texts: Any, says: str) -> None:
    """A string is not taken for a list of its characters; what is no text is named."""
    with pytest.raises(InvalidInputError, match=says) as caught:
        BM25Index.from_texts(texts)
    assert "give a list of strings" in str(caught.value)


@pytest.mark.parametrize("documents", [None, Document("a"), ["text"]])
def test_documents(documents: Any) -> None:
    """Only a collection of documents is taken, not one document by itself."""
    with pytest.raises(InvalidInputError, match=r"documents (is|holds)"):
        BM25Index.from_documents(documents)


@pytest.mark.parametrize(
    ("metadatas", "says"), [("a", "metadatas is str"), ([1], "holds int"), ([{}, {}], "1 texts but 2")]
)
def test_metadatas(metadatas: Any, says: str) -> None:
    """One dict or None for each text."""
    with pytest.raises(InvalidInputError, match=says):
        BM25Index.from_texts(["a"], metadatas)


@pytest.mark.parametrize("ids", ["a", [1], ["a", "b"], [""]])
def test_ids(ids: Any) -> None:
    """Ids are a list of as many non-empty strings; nothing else."""
    with pytest.raises(InvalidInputError):
        BM25Index.from_texts(["a"], ids=ids)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"k1": -1}, r"k1=-1 .*0\.9 is the default"),
        ({"k1": float("inf")}, "k1=inf"),
        ({"b": 2}, r"b=2 .*0\.5 is the default"),
        ({"variant": "plus"}, "lucene, okapi"),
    ],
)
def test_settings(settings: dict[str, Any], says: str) -> None:
    """Settings out of range are refused, and the message names the kit's own defaults."""
    with pytest.raises(InvalidInputError, match=says):
        BM25Index.from_texts(["a"], **settings)
    assert BM25Index(k1=np.float32(0.5)).k1 == 0.5  # type: ignore[arg-type]


@pytest.mark.parametrize("analyzer", [str.lower, lambda text: None, lambda text: len(text)])
def test_an_analyzer_that_returns_no_list(analyzer: Callable[[str], Any]) -> None:
    """A string of an analyzer is not taken for one term a character."""
    with pytest.raises(InvalidInputError, match="must return a list"):
        BM25Index.from_texts(["a b"], analyzer=analyzer)


def test_other_arguments() -> None:
    """Queries, k, and ids to delete or get."""
    index = BM25Index.from_texts(["a cat"], analyzer=str.split)
    for call in (
        lambda: index.search(None),  # type: ignore[arg-type]
        lambda: index.search(3),  # type: ignore[arg-type]
        lambda: index.scores(b"cat"),  # type: ignore[arg-type]
        lambda: index.maximum(None),  # type: ignore[arg-type]
        lambda: index.search("cat", k=0),
        lambda: index.search("cat", k=True),
        lambda: index.delete("cat"),
        lambda: index.delete([1]),  # type: ignore[list-item]
        lambda: index.get("cat"),
        lambda: index.get(None),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInputError):
            call()


@pytest.mark.parametrize("owner", [BM25Index, SparseIndex])
def test_paths(owner: Any, tmp_path: Path) -> None:
    """A folder is no file; a folder that is not there is named; nothing is written."""
    index = owner.from_texts(["a cat"])
    with pytest.raises(InvalidInputError, match="no ordinary file"):
        index.save(tmp_path)
    with pytest.raises(OSError, match="nowhere"):
        index.save(tmp_path / "nowhere" / "index")
    with pytest.raises(IndexMissingError):
        owner.load(tmp_path / "nowhere" / "index")
    assert list(tmp_path.iterdir()) == []
