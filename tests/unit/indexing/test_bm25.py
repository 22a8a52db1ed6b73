"""BM25Index: scores, weights, bounds, writes in any order, filters, threads, and arguments that are refused."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from rag_kit.documents import add_note
from rag_kit.errors import FilterError, InvalidInputError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.sparse.index import SparseIndex
from rag_kit.retrieval import BM25Retriever, SparseRetriever, TrigramRetriever

OWNERS: list[Any] = [BM25Index, BM25Retriever, SparseIndex, SparseRetriever, TrigramRetriever]
WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=8).map(" ".join)
VARIANTS = st.sampled_from(["lucene", "okapi"])


def make(texts: list[str], **arguments: Any) -> BM25Index:
    """An index that splits on white space, with ids "0", "1"..."""
    ids = [str(n) for n in range(len(texts))]
    return BM25Index.from_texts(texts, ids=ids, analyzer=str.split, **arguments)


def found(index: BM25Index, query: str, k: int = 4, **arguments: Any) -> list[str]:
    """Texts of the hits."""
    return [doc.page_content for doc, _ in index.search(query, k, **arguments)]


@settings(max_examples=30, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=12).filter(lambda texts: any(texts)), WORDS)
def test_okapi_equals_rank_bm25(texts: list[str], query: str) -> None:
    """The okapi variant gives rank_bm25's scores within 1e-9, negative and repeated terms included."""
    from rank_bm25 import BM25Okapi

    reference = BM25Okapi([text.split() for text in texts], k1=1.5, b=0.75).get_scores(query.split())
    index = make(texts, variant="okapi", k1=1.5, b=0.75)
    np.testing.assert_allclose(index.scores(query), reference, atol=1e-9, rtol=0)
    assert all(score > 0 for _, score in index.search(query, 20))


def test_lucene_formula_by_hand() -> None:
    """idf * tf / (tf + k1 (1 - b + b length / mean)), worked out for one document."""
    index = make(["a a b", "b c", "c"], k1=0.9, b=0.5)
    expected = np.log(1 + (3 - 1 + 0.5) / (1 + 0.5)) * 2 / (2 + 0.9 * (0.5 + 0.5 * 3 / 2))
    assert index.scores("a")[0] == pytest.approx(expected, rel=1e-6)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(WORDS, max_size=3)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 12), max_size=3)),
        st.tuples(st.just("update"), st.lists(st.tuples(st.integers(0, 12), WORDS), max_size=3)),
        st.tuples(st.just("search"), WORDS),
    ),
    max_size=12,
)


@settings(max_examples=30, deadline=None)
@given(OPERATIONS, VARIANTS, WORDS)
def test_scores_after_any_writes_are_those_of_a_fresh_build(
    operations: list[Any], variant: Any, query: str
) -> None:
    """After add, delete and update in any order, scores and order equal a fresh build's exactly."""
    index = BM25Index(analyzer=str.split, variant=variant)
    model: dict[str, str] = {}
    next_id = 0
    for name, argument in operations:
        if name == "add":
            ids = [str(next_id + n) for n in range(len(argument))]
            next_id += len(argument)
            index.add([Document(text) for text in argument], ids=ids)
            model.update(zip(ids, argument, strict=True))
        elif name == "delete":
            wanted = {str(n) for n in argument}
            assert index.delete([str(n) for n in argument]) == len(wanted & set(model))
            model = {key: text for key, text in model.items() if key not in wanted}
        elif name == "update":
            changes = {str(key): text for key, text in argument}
            index.update([Document(text) for text in changes.values()], ids=list(changes))
            model = {key: text for key, text in model.items() if key not in changes} | changes
            next_id = max([next_id, *(int(key) + 1 for key in changes)])
        else:
            index.search(argument)
    fresh = BM25Index.from_texts(model.values(), ids=list(model), analyzer=str.split, variant=variant)
    assert index.ids == fresh.ids == list(model)
    assert len(index) == len(model)
    assert index.scores(query).tolist() == fresh.scores(query).tolist()
    assert index.search(query, 5) == fresh.search(query, 5)


@pytest.mark.parametrize("size", [1, 63, 300, 2049, 8193, pytest.param(33000, marks=pytest.mark.slow)])
def test_top_k_equals_a_full_sort(size: int) -> None:
    """Blocks and dense rows change nothing: the k best by score, then insertion, at every size and k."""
    rng = np.random.default_rng(size)
    texts = [" ".join(rng.choice(list("abcdefghijklmnop"), rng.integers(0, 6))) for _ in range(size)]
    texts[0] = "rare " + texts[0]
    index = make(texts)
    for query in ("a", "a b c", "rare a", "zzz", "p o"):
        scores = index.scores(query)
        order = np.lexsort((np.arange(size), -scores))
        order = order[scores[order] > 0]
        for k in (1, 3, 10, 200, size + 5):
            assert [doc.page_content for doc, _ in index.search(query, k)] == [texts[n] for n in order[:k]]


@pytest.mark.parametrize("query", ["", "   ", "unknown"])
def test_empty_corpus_and_empty_query(query: str) -> None:
    """Nothing in, nothing out, no error."""
    assert BM25Index().search(query) == []
    assert make([]).scores(query).tolist() == []
    assert make(["", ""]).search(query) == []
    assert make(["a"]).search(query) == []


def test_results_are_copies_and_inputs_are_copied() -> None:
    """Editing a result, or the document that was added, changes nothing in the index; provenance is not stored."""
    source = Document("a cat", metadata={"tags": ["x"], "n": 1}, id="7")
    index = BM25Index.from_documents([add_note(source, "of another search")])
    source.metadata["tags"].append("leak")
    first = index.search("cat")[0][0]
    first.metadata["tags"].append("leak")
    first.metadata["n"] = 2
    again = index.search("cat")[0][0]
    assert again.metadata == {"tags": ["x"], "n": 1}
    assert again.id == "7"
    assert index.get(["7", "none"]) == [again]


def test_ids() -> None:
    """Given ids, else Document.id, else the text's hash with a number for repeats; doubles are refused whole."""
    index = BM25Index()
    assert index.add([Document("a", id="1"), Document("b", id="2")], ids=["x", "y"]) == ["x", "y"]
    assert [found.id for found, _ in index.search("b")] == ["y"]  # what is found has its id in the index
    assert index.update([Document("b b")], ids=["y"]) == ["y"] and index.search("b")[0][0].id == "y"
    assert index.get(["x", "y"])[0].id == "x"
    assert index.add([Document("c", id="3")]) == ["3"]
    hashed = index.add([Document("same"), Document("same")])
    assert hashed[0].startswith("sha256:")
    assert hashed[1] == hashed[0] + "#2"
    assert index.add([Document("same")]) == [hashed[0] + "#3"]
    before = index.ids
    for ids in (["new", "x"], ["new", "new"], ["new", ""], ["new"], "xy"):
        with pytest.raises(InvalidInputError):
            index.add([Document("d"), Document("e")], ids=ids)
    assert index.ids == before
    assert "x" in index
    assert "new" not in index


def test_filter() -> None:
    """Only documents that pass are returned, the best first, however many better ones fail."""
    texts = [f"x {'x ' * (n % 5)}" for n in range(3000)]
    metadatas = [{"n": n, "even": n % 2 == 0} for n in range(3000)]
    index = BM25Index.from_texts(texts, metadatas, analyzer=str.split)
    scores = index.scores("x")
    for where, passes in (
        ({"n": {"$gte": 2990}}, lambda n: n >= 2990),
        ({"even": True, "n": {"$lt": 50}}, lambda n: n % 2 == 0 and n < 50),
        ({"n": 77}, lambda n: n == 77),
        ({"n": -1}, lambda n: False),
        ({}, lambda n: True),
    ):
        expected = sorted((n for n in range(3000) if passes(n)), key=lambda n: (-scores[n], n))[:7]
        assert [doc.metadata["n"] for doc, _ in index.search("x", 7, filter=where)] == expected
    sparse, key = SparseIndex.from_texts(["x"]), index.ids[0]
    for wrong in ({"n": {"$near": 1}}, [], "", 0):  # what is empty and no filter does not let all pass
        for call in (
            lambda where: index.search("x", filter=where),
            lambda where: index.search_weighted({"x": 1}, filter=where),
            lambda where: index.spread({key: 1.0}, filter=where),
            lambda where: sparse.search("x", filter=where),
        ):
            with pytest.raises(FilterError):
                call(wrong)


def test_add_analyses_only_what_is_new() -> None:
    """A write never analyses the documents that were there before."""
    seen: list[str] = []
    index = BM25Index(analyzer=lambda text: seen.append(text) or text.split())  # type: ignore[func-returns-value]
    index.add([Document("a"), Document("b")])
    index.search("q")
    index.add([Document("c")])
    index.delete([index.ids[0]])
    index.current()
    assert seen == ["a", "b", "q", "c"]


def test_failing_analyzer_leaves_the_index_as_it_was() -> None:
    """An exception in the middle of an add adds nothing."""

    def analyze(text: str) -> list[str]:
        if text == "bad":
            raise RuntimeError("no")
        return text.split()

    index = BM25Index(analyzer=analyze)
    index.add([Document("a", id="1")])
    with pytest.raises(RuntimeError):
        index.add([Document("c"), Document("bad")])
    assert index.ids == ["1"]
    assert found(index, "c") == []
    assert len(index.search("a")) == 1


def test_unused_terms_are_forgotten(tmp_path: Path) -> None:
    """A file that is read gives no terms of deleted documents, and scores stay right."""
    index = make([f"only{n} shared" for n in range(50)])
    index.delete([str(n) for n in range(1, 50)])
    assert found(index, "only0") == ["only0 shared"]
    index.save(tmp_path / "index")
    index = BM25Index.load(tmp_path / "index", analyzer=index.analyzer)
    assert len(index._vocabulary) == 2 and found(index, "only0") == ["only0 shared"]
    index.add([Document("only0 more")], ids=["x"])
    assert found(index, "more") == ["only0 more"]


def test_many_small_adds_stay_small() -> None:
    """Single adds do not each keep something of the size of the vocabulary."""
    index = make([" ".join(f"w{n}" for n in range(20_000))])
    for n in range(300):
        index.add([Document(f"w{n} new{n}")], ids=[f"n{n}"])
    assert (
        sum(run.terms.nbytes + run.documents.nbytes + run.counts.nbytes for run in index._added_runs) < 10_000
    )
    assert found(index, "new7") == ["w7 new7"]


def test_searches_during_writes_see_whole_states() -> None:
    """Readers beside a writer see all documents of an add or none, and never an error."""
    index = BM25Index(analyzer=str.split)
    index.add([Document("x start", id="s")])
    problems: list[object] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                seen = len(index.search("x", 10_000))
                if seen % 10 != 1:
                    problems.append(seen)
        except Exception as error:  # noqa: BLE001 - whatever happens in the thread fails the test
            problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    [reader.start() for reader in readers]
    for n in range(30):
        index.add([Document(f"x {n} {m}") for m in range(10)], ids=[f"{n}-{m}" for m in range(10)])
    for n in range(10):
        index.delete([f"{n}-{m}" for m in range(10)])
    stop.set()
    [reader.join() for reader in readers]
    assert problems == []
    assert len(index.search("x", 10_000)) == 201


def test_writers_in_parallel_lose_nothing() -> None:
    """Adds from several threads all arrive, each document once."""
    index = BM25Index(analyzer=str.split)

    def write(name: str) -> None:
        for n in range(40):
            index.add([Document(f"x {name}{n}")], ids=[f"{name}{n}"])
            index.search("x")

    writers = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    [writer.start() for writer in writers]
    [writer.join() for writer in writers]
    assert sorted(index.ids) == sorted(f"{name}{n}" for name in "abcd" for n in range(40))
    assert all(found(index, f"{name}7") == [f"x {name}7"] for name in "abcd")


# Weighted terms, and the bound of a score


@settings(max_examples=30, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=20), WORDS, VARIANTS)
def test_weight_one_is_the_plain_search(texts: list[str], query: str, variant: str) -> None:
    """With the number of its occurrences as each term's weight, the result is that of the query."""
    index = make(texts, variant=variant)
    weights = {term: query.split().count(term) for term in query.split()}
    wanted = {doc.id: pytest.approx(score, rel=1e-5) for doc, score in index.search(query, 30)}
    assert {doc.id: score for doc, score in index.search_weighted(weights, 30)} == wanted
    hits = index.search(query, 30)
    assert index.search_weighted(weights, 30).maximum == pytest.approx(hits.maximum)
    assert all(score <= hits.maximum * (1 + 1e-5) for _, score in hits)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(WORDS, min_size=1, max_size=20),
    st.dictionaries(st.sampled_from("abcdefghz"), st.just(0.0) | st.floats(1e-6, 100), max_size=5),
)
def test_scores_are_weighted_sums(texts: list[str], weights: dict[str, float]) -> None:
    """Each score is the sum of the terms' own scores times their weights; none is zero, ties by insertion."""
    index = make(texts)
    sums = np.zeros(len(texts))
    for term, weight in weights.items():
        sums += index.scores(term).astype(float) * weight
    found = index.search_weighted(weights, 30)
    hits = [(int(doc.id or ""), score) for doc, score in found]
    assert all(score > 0 and score == pytest.approx(sums[n], rel=1e-4) for n, score in hits)
    assert {n for n, _ in hits} == set(np.flatnonzero(sums > 1e-30))
    assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
    assert all(score <= found.maximum * (1 + 1e-5) for _, score in hits)


@pytest.mark.parametrize(
    "terms", ["x", ["x"], {"x": -1}, {"x": float("nan")}, {"x": "1"}, {1.5: 1.0}, {"x": True}],
)  # fmt: skip
def test_weights_that_are_refused(terms: Any) -> None:
    """Anything but a dict from terms to finite numbers of 0 or more is refused with what to give."""
    with pytest.raises(InvalidInputError, match="give"):
        make(["x"]).search_weighted(terms)


def test_a_query_of_a_megabyte_is_quick() -> None:
    """Repeats are counted before anything is summed, so that a huge query costs little more than its analysis."""
    index = BM25Index.from_texts(["common rare"] + ["common"] * 20_000)
    begun = time.monotonic()
    hits = index.search("common " * 150_000, 3)
    assert len(hits) == 3 and time.monotonic() - begun < 5


def test_the_maximum_by_hand() -> None:
    """The sum of the idf of the query's terms, repeats counted, unknown ones as rarest; it follows writes."""
    index = BM25Index.from_texts(["red fox", "red dog", "blue bird", "green bird sings"])
    red, fox, unknown = math.log1p(2.5 / 2.5), math.log1p(3.5 / 1.5), math.log1p(4.5 / 0.5)
    assert index.search("red fox").maximum == pytest.approx(red + fox)
    assert index.search("fox fox zebra").maximum == pytest.approx(2 * fox + unknown)
    assert index.search("").maximum == 0 == BM25Index().search("fox").maximum
    index.add([Document("red fox", id="again")])
    assert index.search("fox").maximum < fox


# Arguments that are refused


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_every_class_checks_what_it_is_built_of(owner: Any) -> None:
    """Texts, documents, metadata and ids are checked by the functions that the test below calls by ``BM25Index``."""
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
    ("build", "says"),
    [
        (lambda: BM25Index.from_texts("one string"), "texts is str.*give a list of strings"),
        (lambda: BM25Index.from_texts({"a": "text"}), "texts is dict.*give a list of strings"),
        (lambda: BM25Index.from_texts(["fine", 7]), "texts holds int.*give a list of strings"),
        (lambda: BM25Index.from_texts([Document("a")]), "from_documents"),
        (lambda: BM25Index.from_documents(None), "documents is"),
        (lambda: BM25Index.from_documents(Document("a")), "documents (is|holds)"),
        (lambda: BM25Index.from_documents(["text"]), "documents holds"),
        (lambda: BM25Index.from_texts(["a"], "a"), "metadatas is str"),
        (lambda: BM25Index.from_texts(["a"], [1]), "holds int"),
        (lambda: BM25Index.from_texts(["a"], [{}, {}]), "1 texts but 2"),
        (lambda: BM25Index.from_texts(["a"], ids=[1]), "ids holds int"),
        (lambda: BM25Index.from_texts(["a"], ids=[""]), "not allowed"),
        (lambda: BM25Index(k1=-1), r"k1=-1 .*0\.9 is the default"),
        (lambda: BM25Index(k1=float("inf")), "k1=inf"),
        (lambda: BM25Index(k1=float("nan")), "k1=nan"),
        (lambda: BM25Index(k1="x"), "k1='x'"),
        (lambda: BM25Index(b=2), r"b=2 .*0\.5 is the default"),
        (lambda: BM25Index(variant="plus"), "lucene, okapi"),
        (lambda: BM25Index.from_texts(["a b"], analyzer=str.lower), "must return a list"),
        (lambda: BM25Index.from_texts(["a b"], analyzer=lambda text: None), "must return a list"),
    ],
)
def test_what_an_index_is_not_built_of(build: Callable[[], Any], says: str) -> None:
    """Errors name the wrong argument and what to give: no string is taken for a list of its characters."""
    with pytest.raises(InvalidInputError, match=says):
        build()


def test_other_arguments() -> None:
    """Queries, k, and ids to delete or get."""
    assert BM25Index(k1=np.float32(0.5)).k1 == 0.5  # type: ignore[arg-type]
    index: Any = BM25Index.from_texts(["a cat"], analyzer=str.split)
    for call in (
        *(lambda query=query: index.search(query) for query in (None, 3)),
        *(lambda k=k: index.search("cat", k=k) for k in (0, -1, 1.5, True, None)),
        lambda: index.search_weighted({"cat": 1}, 0),
        lambda: index.scores(b"cat"),
        *(lambda ids=ids: index.delete(ids) for ids in ("cat", [1])),
        *(lambda ids=ids: index.get(ids) for ids in ("cat", None)),
    ):
        with pytest.raises(InvalidInputError):
            call()
