from __future__ import annotations

import json
from pathlib import Path

import pytest
from langchain_core.documents import Document

from rag_kit.documents import get_provenance, with_provenance
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.retrieval import BM25Retriever

TEXTS = ["Cats sleep all day.", "A cat and a dog.", "Dogs bark.", "猫在睡觉。", "The cat's toys"]


@pytest.fixture
def retriever() -> BM25Retriever:
    """Five short texts, numbered in the metadata."""
    return BM25Retriever.from_texts(TEXTS, [{"n": n, "even": n % 2 == 0} for n in range(5)], k=3)


def test_row_7_finds_by_word_form_and_in_chinese(retriever: BM25Retriever) -> None:
    """Inflections match, Chinese is found, what shares no word is left out."""
    assert {doc.metadata["n"] for doc in retriever.invoke("cats")} == {0, 1, 4}
    assert [doc.metadata["n"] for doc in retriever.invoke("睡觉的猫")] == [3]
    assert retriever.invoke("zebra") == []
    assert retriever.invoke("") == []


def test_provenance_is_that_of_with_provenance(retriever: BM25Retriever) -> None:
    """The stage, set without a further copy, has the common shape and is plain JSON."""
    for rank, doc in enumerate(retriever.invoke("sleeping cats"), start=1):
        found = get_provenance(doc)
        bare = Document(doc.page_content, metadata={"n": doc.metadata["n"]})
        same = with_provenance(
            bare,
            score=found["score"],
            rank=rank,
            stage="bm25",
            retriever="BM25Retriever",
            query="sleeping cats",
            max_score=retriever.index.search("sleeping cats").maximum,
        )
        assert doc.metadata["rag_kit"] == same.metadata["rag_kit"]
        assert type(found["score"]) is float
        assert found["score"] > 0
        json.dumps(doc.metadata)


def test_settings_reach_the_index(tmp_path: Path) -> None:
    """from_documents hands its settings on; a saved index serves a new retriever."""
    made = BM25Retriever.from_documents(
        [Document("a b", id="1")], k=2, k1=1.5, b=0.75, variant="okapi", analyzer=str.split, name="words"
    )
    assert (made.index.k1, made.index.b, made.index.variant) == (1.5, 0.75, "okapi")
    assert (made.k, made.get_name()) == (2, "words")
    default = BM25Retriever.from_texts(TEXTS)
    default.index.save(tmp_path / "index")
    loaded = BM25Retriever(index=BM25Index.load(tmp_path / "index"))
    assert loaded.invoke("cats") == default.invoke("cats")


def test_row_8_nothing_without_a_score_is_returned(retriever: BM25Retriever) -> None:
    """A document that shares no word with the query is no result, however large k is."""
    assert [doc.metadata["n"] for doc in retriever.invoke("barking", k=5)] == [2]


def test_row_9_the_index_lives(tmp_path: Path) -> None:
    """Documents come and go, the index is saved and loaded, filters hold, results are copies."""
    index = BM25Index.from_documents([Document("old news", id="1", metadata={"year": 1})])
    index.add([Document("new news", id="2", metadata={"year": 2})])
    index.delete(["1"])
    index.save(tmp_path / "news")
    words = BM25Retriever(index=BM25Index.load(tmp_path / "news"))
    for _ in range(2):
        [found] = words.invoke("news", filter={"year": 2})
        assert found.id == "2"
        found.metadata["year"] = 3
