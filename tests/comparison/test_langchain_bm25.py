"""What LangChain's BM25Retriever does, beside ours. Each test fails when LangChain's behaviour changes."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from langchain_core.documents import Document

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
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


def test_a_retriever_of_theirs_is_taken_over_with_its_scores() -> None:
    """from_langchain keeps documents, k, parameters, tokeniser and every score."""
    documents = [Document(f"word{n % 3} and word{n % 5} of page {n}", id=str(n)) for n in range(20)]
    theirs = LangChainBM25.from_documents(documents, bm25_params={"k1": 1.1, "b": 0.3}, k=7)
    ours = BM25Retriever.from_langchain(theirs)
    for query in ("word1", "word2 page 7", "zebra"):
        scores = theirs.vectorizer.get_scores(query.split())
        found = ours.invoke(query, k=20)
        assert len(found) == (scores > 0).sum()
        for document in found:
            assert get_provenance(document)["score"] == pytest.approx(
                scores[int(document.id or "")], abs=1e-9
            )
    assert len(ours.invoke("word1")) == 7
    assert len(BM25Retriever.from_langchain(theirs, k=2).invoke("word1")) == 2


def test_what_would_change_the_scores_is_not_taken_over() -> None:
    """Other documents, another tokeniser, another epsilon or another class are refused with what to do."""
    documents = [Document("a cat"), Document("a dog"), Document("birds fly")]
    theirs = LangChainBM25.from_documents(documents)
    with pytest.raises(InvalidInputError, match="same order"):
        BM25Retriever.from_rank_bm25(theirs.vectorizer, documents[:2], str.split)
    with pytest.raises(InvalidInputError, match="split them"):
        BM25Retriever.from_rank_bm25(theirs.vectorizer, documents, list)
    with pytest.raises(InvalidInputError, match="epsilon"):
        BM25Retriever.from_langchain(LangChainBM25.from_documents(documents, bm25_params={"epsilon": 1.0}))
    with pytest.raises(InvalidInputError, match="langchain_community"):
        BM25Retriever.from_langchain(BM25Retriever.from_documents(documents))
