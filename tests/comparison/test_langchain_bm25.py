"""LangChain's BM25Retriever beside ours. Each test fails when LangChain's behaviour changes."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from langchain_core.documents import Document

from rag_kit.documents import get_provenance
from rag_kit.retrieval import BM25Retriever

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_community.retrievers import BM25Retriever as LangChainBM25

CHINESE = ["今天天气很好", "机器学习是人工智能的分支", "他喜欢踢足球", "上海在下雨"]
ANIMALS = ["Cats.", "A dog barks.", "Fish swim.", "Birds fly."]


def texts(documents: list[Document]) -> list[str]:
    """The texts of some documents."""
    return [doc.page_content for doc in documents]


def test_row_7_chinese_scores_are_all_zero_there() -> None:
    """Splitting on white space leaves Chinese without a single match; here it is found."""
    theirs = LangChainBM25.from_texts(CHINESE)
    assert not theirs.vectorizer.get_scores(theirs.preprocess_func("机器学习")).any()
    assert texts(BM25Retriever.from_texts(CHINESE).invoke("机器学习")) == [CHINESE[1]]


def test_row_7_inflection_and_punctuation_hide_words_there() -> None:
    """ "cats" does not match "Cats."; here it does."""
    theirs = LangChainBM25.from_texts(ANIMALS)
    assert not theirs.vectorizer.get_scores(theirs.preprocess_func("cats")).any()
    assert texts(BM25Retriever.from_texts(ANIMALS).invoke("cats")) == ["Cats."]


def test_row_8_zero_scores_are_returned_there() -> None:
    """A query that matches nothing still returns k documents; here none."""
    assert len(LangChainBM25.from_texts(ANIMALS, k=3).invoke("zebra")) == 3
    assert BM25Retriever.from_texts(ANIMALS, k=3).invoke("zebra") == []


def test_row_9_results_are_live_objects_there() -> None:
    """An edit of a result shows in the next query; here results are copies."""
    theirs = LangChainBM25.from_texts(ANIMALS)
    theirs.invoke("fish")[0].metadata["edited"] = True
    assert any("edited" in doc.metadata for doc in theirs.invoke("fish"))
    ours = BM25Retriever.from_texts(["a fish"])
    ours.invoke("fish")[0].metadata["edited"] = True
    assert "edited" not in ours.invoke("fish")[0].metadata


@pytest.mark.parametrize("method", ["add_documents", "delete", "save_local", "save", "load"])
def test_row_9_no_life_cycle_there(method: str) -> None:
    """There is no add, delete, save or load; our index has them."""
    assert not hasattr(LangChainBM25, method)
    index: Any = BM25Retriever.from_texts(ANIMALS).index
    assert all(hasattr(index, name) for name in ("add", "delete", "update", "save", "load"))


def test_row_9_filter_and_k_of_the_call_are_ignored_there() -> None:
    """A metadata filter or k given to the call is dropped without a word there; here it selects."""
    metadatas = [{"n": n} for n in range(4)]
    theirs = LangChainBM25.from_texts(ANIMALS, metadatas=metadatas).invoke("fish", filter={"n": 1}, k=1)
    assert {doc.metadata["n"] for doc in theirs} == {0, 1, 2, 3}
    ours = BM25Retriever.from_texts(["a fish"] * 4, metadatas)
    assert [doc.metadata["n"] for doc in ours.invoke("fish", filter={"n": 1})] == [1]


def test_row_3_no_scores_there() -> None:
    """Results carry no score; ours carry score, rank and query."""
    assert all(doc.metadata == {} for doc in LangChainBM25.from_texts(ANIMALS).invoke("fish"))
    stage = get_provenance(BM25Retriever.from_texts(ANIMALS).invoke("fish")[0])["stages"][0]
    assert (stage["stage"], stage["rank"], stage["query"]) == ("bm25", 1, "fish")


def test_same_scores_with_the_same_words() -> None:
    """Given LangChain's own words and parameters, the okapi variant gives its scores."""
    corpus = ["the cat sat", "the dog sat down", "a bird", "the cat and the dog"]
    theirs = LangChainBM25.from_texts(corpus)
    ours = BM25Retriever.from_texts(corpus, k1=1.5, b=0.75, variant="okapi", analyzer=str.split)
    for query in ("the cat", "dog sat sat", "bird"):
        assert ours.index.scores(query) == pytest.approx(
            theirs.vectorizer.get_scores(query.split()), abs=1e-9
        )
