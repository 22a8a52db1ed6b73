from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from rag_kit.concurrency.notes import use_notes
from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, MultiQueryRetriever, VectorRetriever
from rag_kit.retrieval.fusion import reciprocal_rank_fusion


def test_ranks_count_from_one() -> None:
    """The first place of a list is worth weight / (60 + 1)."""
    assert reciprocal_rank_fusion([["a", "b"]]) == [("a", 1 / 61), ("b", 1 / 62)]
    assert dict(reciprocal_rank_fusion([["a"], ["b", "a"]], weights=[2, 3], k=10))["a"] == pytest.approx(
        2 / 11 + 3 / 12
    )


def test_row_13_duplicates_within_a_list_count_once() -> None:
    """An item repeated in one list counts there once, with its first rank; the others keep their places."""
    scores = dict(reciprocal_rank_fusion([["a", "a", "a", "b"]]))
    assert scores == {"a": 1 / 61, "b": 1 / 64}
    fused = reciprocal_rank_fusion([["x", "d", "d", "d"], ["x"]])
    assert fused[0][0] == "x"


def test_ties_keep_the_first_seen_order() -> None:
    """Equal scores are in the order of first sight, whatever rounding does to the sums."""
    assert [key for key, _ in reciprocal_rank_fusion([["a", "b"], ["c", "d"]])] == ["a", "c", "b", "d"]
    for order in itertools.permutations([("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")]):
        assert [key for key, _ in reciprocal_rank_fusion(order)] == list(order[0])
    generator = random.Random(1)
    for _ in range(50):
        first = generator.sample("abcdefg", 7)
        lists = [first[i:] + first[:i] for i in range(7)]
        assert [key for key, _ in reciprocal_rank_fusion(lists)] == first


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"weights": [1, -0.5]}, r"-0\.5"),
        ({"weights": [1]}, "for 2 lists"),
        ({"weights": [0, 0]}, "All weights are 0"),
        ({"weights": [1, float("nan")]}, "nan"),
        ({"weights": [1, True]}, "True"),
        ({"weights": "ab"}, "ab"),
        ({"k": -1}, "k=-1"),
        ({"k": float("inf")}, "k=inf"),
        ({"k": True}, "k=True"),
    ],
)
def test_wrong_arguments(kwargs: dict[str, object], says: str) -> None:
    """Negative weights and other wrong arguments are refused by a message that shows them."""
    with pytest.raises(InvalidInputError, match=says):
        reciprocal_rank_fusion([["a"], ["b"]], **kwargs)  # type: ignore[arg-type]


@given(st.lists(st.lists(st.integers(0, 20), max_size=30), min_size=1, max_size=6), st.integers(0, 100))
def test_equals_the_definition(rankings: list[list[int]], k: int) -> None:
    """The result is the formula's, sorted."""
    expected: dict[int, float] = {}
    for ranking in rankings:
        for key in dict.fromkeys(ranking):
            expected[key] = expected.get(key, 0.0) + 1 / (k + ranking.index(key) + 1)
    fused = reciprocal_rank_fusion(rankings, k=k)
    assert dict(fused) == pytest.approx(expected)
    assert all(a >= b - 1e-11 for (_, a), (_, b) in itertools.pairwise(fused))
    assert fused == reciprocal_rank_fusion(rankings, k=k)


def test_what_lists_may_be() -> None:
    """Any iterables of hashable keys, also empty ones; a list of weight 0 is left out, a string is none."""
    assert [k for k, _ in reciprocal_rank_fusion([((1, 2), (3,)), iter([(3,)])])] == [(3,), (1, 2)]
    assert [key for key, _ in reciprocal_rank_fusion([["a"], ["b"]], weights=[0, 1])] == ["b"]
    assert reciprocal_rank_fusion([]) == [] == reciprocal_rank_fusion([[], []])
    with pytest.raises(InvalidInputError):
        reciprocal_rank_fusion(["abc", "abd"])


# The same chunks in two stores

TEXTS = ["The fan is loud.", "The pump hums.", "风扇很吵。"]
NOTE = "same text under 2 ids; in Python id_key= makes them one"


def chunks(prefix: str = "", page: int = 0) -> list[Document]:
    """Without ids, as splitters give them, or with ids of one's own."""
    return [
        Document(text, id=f"{prefix}{n}" if prefix else None, metadata={"page": page + n, "chunk": text})
        for n, text in enumerate(TEXTS)
    ]


def stored(documents: list[Document]) -> VectorRetriever:
    """A store, which makes up an id for each document that has none."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents(documents)
    return VectorRetriever(vectorstore=store)


@pytest.mark.parametrize("fusion", ["rrf", "convex"])
async def test_ids_that_two_stores_made_up_are_one_document(fusion: str) -> None:
    """Each chunk comes once, with the stages of both stores; a third list without ids joins in."""
    both = EnsembleRetriever(retrievers=[stored(chunks()), stored(chunks())], k=9, fusion=fusion)
    for found in (both.invoke("fan 风扇"), await both.ainvoke("fan 风扇")):
        assert sorted(doc.page_content for doc in found) == sorted(TEXTS)
        assert [len(get_provenance(doc)["stages"]) for doc in found] == [3, 3, 3]
    three = EnsembleRetriever(retrievers=[*both.retrievers, BM25Retriever.from_documents(chunks())], k=9)
    assert sorted(doc.page_content for doc in three.invoke("fan 风扇")) == sorted(TEXTS)


Make = Callable[[], list[BaseRetriever]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: [stored(chunks("a")), stored(chunks("b"))],
        lambda: [stored(chunks("a")), stored(chunks())],
        lambda: [stored(chunks()), stored(chunks(page=5))],  # the same sentence of two pages
    ],
)
def test_other_ids_stay_apart_and_a_note_says_so(make: Make) -> None:
    """Ids that somebody gave, or metadata that differ, may be meant; ``id_key`` settles it."""
    retrievers = make()
    with use_notes() as notes:
        found = EnsembleRetriever(retrievers=retrievers, k=9).invoke("fan")
    assert notes.texts == [NOTE]
    assert len(found) == 6 and all(NOTE in get_provenance(doc)["notes"] for doc in found)
    named = EnsembleRetriever(retrievers=retrievers, k=9, id_key="chunk").invoke("fan")
    assert len(named) == 3 and not any(NOTE in get_provenance(doc)["notes"] for doc in named)


def test_a_text_that_one_store_holds_twice_stays_two_documents() -> None:
    """Within one list ids are what they are, also in the searches of several versions of a question."""
    twice = stored([*chunks(), *chunks()])
    model = FakeListChatModel(responses=['{"queries": ["loud fan"]}'])
    found = MultiQueryRetriever.from_llm(model, twice, k=9, fetch_k=9).invoke("fan")
    assert len(found) == 6 and NOTE in get_provenance(found[0])["notes"]
