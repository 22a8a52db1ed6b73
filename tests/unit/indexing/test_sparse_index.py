"""SparseIndex: inner product, any encoder, TF-IDF; its writes and files are tested with those of BM25Index."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from support.blocking import blockbuster_ctx

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.sparse.index import SparseIndex
from rag_kit.text import default_analyzer

VECTORS = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.just(0.0) | st.floats(0.001, 100), max_size=5),
    min_size=1,
    max_size=12,
)
CORPUS = ["red fox jumps", "red dog", "the fox and the dog and the fox", ""]


def words(texts: list[str]) -> list[dict[str, float]]:
    """Each word weighs 1."""
    return [dict.fromkeys(text.split(), 1.0) for text in texts]


def given_vectors(vectors: list[Any]) -> Callable[[list[str]], list[Any]]:
    """An encoder of texts "0", "1"... whose vectors are there."""
    return lambda texts: [vectors[int(text)] for text in texts]


@settings(max_examples=25, deadline=None)
@given(VECTORS, st.dictionaries(st.sampled_from("abcdefz"), st.floats(0.001, 100), max_size=5), st.data())
def test_scores_are_inner_products(
    vectors: list[dict[str, float]], query: dict[str, float], data: st.DataObject
) -> None:
    """After writes in any order: the inner product for each document that shares a term, ties by insertion."""
    index = SparseIndex(given_vectors(vectors))
    index.add([Document(str(n), id=str(n)) for n in range(len(vectors))])
    gone = data.draw(st.sets(st.sampled_from(index.ids)))
    if data.draw(st.booleans()):
        index.search_vector(query)
    index.delete(gone)
    expected = []
    for n, vector in enumerate(vectors):
        if str(n) not in gone:
            score = math.fsum(weight * query.get(term, 0) for term, weight in vector.items())
            if score > 0:
                expected.append((str(n), score))
    hits = index.search_vector(query, 50)
    assert {doc.id: pytest.approx(score, rel=1e-4) for doc, score in hits} == dict(expected)
    order = [(-score, int(doc.page_content)) for doc, score in hits]
    assert order == sorted(order)
    assert all(score <= hits.maximum * (1 + 1e-5) for _, score in hits)


def test_the_largest_weights_are_ranked() -> None:
    """Scores of long vectors of the largest weights that are taken are numbers, by which documents are ordered."""
    words = [str(number) for number in range(2000)]

    def largest(texts: list[str]) -> list[dict[str, float]]:
        return [dict.fromkeys(text.split(), 1e15) for text in texts]

    index = SparseIndex.from_texts([" ".join(words[:1000]), " ".join(words)], encoder=largest)
    found = index.search(" ".join(words))
    assert [document.page_content.count(" ") for document, _ in found] == [1999, 999]
    assert all(math.isfinite(score) for _, score in found)
    with pytest.raises(InvalidInputError, match="give numbers"):
        index.search_vector({"1": 1e16})


def test_terms_may_be_numbers() -> None:
    """SPLADE gives token numbers, bge-m3 their strings: 7 and "7" are one term; numpy's scalars are taken."""
    assert SparseIndex().search("anything") == [] == SparseIndex(words).search_vector({})
    index = SparseIndex(given_vectors([{7: np.float32(2)}, {np.int64(8): 1.5}]))
    index.add([Document("0"), Document("1")])
    assert [(doc.page_content, score) for doc, score in index.search_vector({"7": 1, 8: 1})] == [
        ("0", 2.0),
        ("1", 1.5),
    ]


def test_a_query_encoder_of_its_own() -> None:
    """Documents and queries may have different encoders."""
    index = SparseIndex.from_texts(
        ["cat", "dog"], encoder=words, query_encoder=lambda texts: [{"dog": 2.0}] * len(texts)
    )
    assert [(doc.page_content, score) for doc, score in index.search("whatever")] == [("dog", 2.0)]


@pytest.mark.parametrize(
    "vector", [{"a": -0.1}, {"a": np.float32("nan")}, {"a": "1"}, {"a": True}, {"a": 1e30}, {1.5: 1}, {True: 1},
               {7: 1, "7": 1}, ["a"], None],
)  # fmt: skip
def test_vectors_that_are_refused(vector: Any) -> None:
    """Negative, infinite and other weights that are none are refused; nothing is added then."""
    index = SparseIndex(given_vectors([{"a": 1}, vector]))
    with pytest.raises(InvalidInputError, match=r"give (numbers|strings|a dict)"):
        index.add([Document("0"), Document("1")])
    assert len(index) == 0
    with pytest.raises(InvalidInputError):
        index.search_vector(vector)
    queries = SparseIndex(words, query_encoder=lambda texts: [vector])
    queries.add([Document("a")])
    with pytest.raises(InvalidInputError):
        queries.search("a")


@pytest.mark.parametrize("given", ["a", {"a": 1}, None, [{}, {}]])
def test_answers_of_encoders_that_are_refused(given: Any) -> None:
    """Not one vector for each text: refused."""
    with pytest.raises(InvalidInputError, match="encoder returned"):
        SparseIndex.from_texts(["a"], encoder=lambda texts: given)


def test_arguments_that_are_refused() -> None:
    """A query, k or filter that is none."""
    index = SparseIndex.from_texts(["a"], encoder=words)
    for call in (
        lambda: index.search(None),
        lambda: index.search("a", k=0),
        lambda: index.search_vector("a"),
    ):  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError):
            call()


def test_batches() -> None:
    """The encoder is given at most 64 texts at a time, in order."""
    sizes: list[int] = []

    def counting(texts: list[str]) -> list[dict[str, float]]:
        sizes.append(len(texts))
        return words(texts)

    SparseIndex.from_texts(["a"] * 130, encoder=counting)
    assert sizes == [64, 64, 2]


async def test_async_encoders() -> None:
    """One is awaited in the caller's loop, and serves synchronous calls, inside a loop too; others run on a thread."""
    loops: list[Any] = []

    async def encoder(texts: list[str]) -> list[dict[str, float]]:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return words(texts)

    index = SparseIndex.from_documents([Document("a b"), Document("b")], encoder=encoder)
    loops.clear()
    with blockbuster_ctx():
        hits = index.search_vector(await index.aencode_query("a"))
    assert set(loops) == {asyncio.get_running_loop()}
    assert [doc.page_content for doc, _ in hits] == ["a b"]
    assert index.search("a") == hits  # a synchronous call while this loop runs
    assert (await asyncio.to_thread(index.search, "a")) == hits

    async def failing(texts: list[str]) -> list[dict[str, float]]:
        raise ConnectionError("the encoder is down")

    with pytest.raises(ConnectionError, match="is down"):
        SparseIndex.from_texts(["a"], encoder=failing)
    with pytest.raises(ConnectionError, match="is down"):
        await SparseIndex(failing).aencode_query("a")

    def on_thread(texts: list[str]) -> list[dict[str, float]]:
        assert threading.current_thread() is not threading.main_thread()
        return words(texts)

    await SparseIndex(on_thread).aencode_query("a")


def test_tfidf_equals_scikit_learn() -> None:
    """Scores are the cosines of scikit-learn's TfidfVectorizer over the same terms, known words or not."""
    index = SparseIndex.from_texts(CORPUS)
    analyse = default_analyzer()
    counts = [Counter(analyse(text)) for text in CORPUS]
    idf = {
        term: math.log(5 / (1 + sum(term in one for one in counts))) + 1
        for term in ("red", "fox", "dog", "jump", "zebra")
    }
    query = {"red": idf["red"], "fox": 2 * idf["fox"], "zebra": idf["zebra"]}
    for document, score in index.search("red fox fox zebra"):
        vector = {term: count * idf[term] for term, count in Counter(analyse(document.page_content)).items()}
        product = sum(weight * vector.get(term, 0) for term, weight in query.items())
        assert score == pytest.approx(product / math.hypot(*query.values()) / math.hypot(*vector.values()))
    index.add([Document("red wombat")])  # a word that the documents before lacked
    assert [document.page_content for document, _ in index.search("wombat")] == ["red wombat"]


def test_round_trip_with_tfidf(tmp_path: Path) -> None:
    """An index without an encoder comes back whole, and goes on growing."""
    index = SparseIndex.from_texts(
        ["Cats sleep.", "Dogs bark", "猫在睡觉", "odd \ud800\nline"],
        [{"n": n, "deep": {"x": [1, None]}} for n in range(4)],
    )
    index.delete([index.ids[1]])
    index.save(tmp_path / "i")
    loaded = SparseIndex.load(tmp_path / "i")
    for one in (index, loaded):
        one.add([Document("more cats")], ids=["more"])
    assert loaded.ids == index.ids
    for query in ("cats", "猫", "sleep more"):
        assert loaded.search(query) == index.search(query)


def test_round_trip_with_other_encoders(tmp_path: Path) -> None:
    """Encoders are asked for, by role."""
    path = tmp_path / "i"
    SparseIndex.from_texts(["a b", "b"], encoder=words).save(path)
    with pytest.raises(InvalidInputError, match="with encoder="):
        SparseIndex.load(path)
    assert len(SparseIndex.load(path, encoder=words).search("a")) == 1
    SparseIndex.from_texts(["cat"], query_encoder=words).save(path)
    with pytest.raises(InvalidInputError, match="with query_encoder="):
        SparseIndex.load(path)
    assert len(SparseIndex.load(path, query_encoder=words).search("cat")) == 1
    with pytest.raises(InvalidInputError, match="without encoder="):
        SparseIndex.load(path, encoder=words, query_encoder=words)
