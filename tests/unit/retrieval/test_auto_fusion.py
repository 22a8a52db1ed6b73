"""Weights chosen per query from the scores."""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import fmean, pstdev

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, index_retriever
from rag_kit.retrieval.base import RagKitRetriever, Request
from rag_kit.retrieval.convex import RankedList, dense_share, fuse, lead, normalise
from rag_kit.retrieval.fusion import reciprocal_rank_fusion


def _keyword(scores: list[float], names: str = "k", maximum: float = 20.0) -> RankedList:
    keys = [f"{names}{number}" for number in range(len(scores))]
    return RankedList(keys, scores, 1.0, "bm25", maximum)


def _dense(scores: list[float], names: str = "d") -> RankedList:
    return RankedList([f"{names}{number}" for number in range(len(scores))], scores, 1.0, "dense")


def _noise(high: float, low: float, seed: int = 0, count: int = 100) -> list[float]:
    """Scores without a leader, falling evenly."""
    draw = random.Random(seed)
    return sorted((draw.uniform(low, high) for _ in range(count)), reverse=True)


class Cosines(RagKitRetriever):
    """A dense retriever with set scores."""

    scores: list[tuple[str, float]]

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        return [
            Document(key, id=key, metadata={"rag_kit": {"score": score, "stages": [], "notes": []}})
            for key, score in self.scores
        ]


def test_the_share_by_hand() -> None:
    """Leads are first minus tenth in standard deviations; the dense side moves .06 for each, within .25 and .75."""
    keyword = normalise([12.0, *[4.0] * 8, 2.0, 1.0], "z-score")
    dense = normalise([0.8, *[0.5] * 8, 0.4, 0.1], "z-score")
    leads = [10 / pstdev([12.0, *[4.0] * 8, 2.0, 1.0]), 0.4 / pstdev([0.8, *[0.5] * 8, 0.4, 0.1])]
    assert [lead(keyword), lead(dense)] == pytest.approx(leads)
    assert dense_share(keyword, dense) == pytest.approx(0.45 + 0.06 * (leads[1] - leads[0]))
    clear = normalise([100.0, *[1.0] * 30], "z-score")
    assert dense_share(clear, normalise([0.5] * 20, "z-score")) == 0.25
    assert dense_share(normalise([5.0] * 20, "z-score"), clear) == 0.75


def test_a_short_keyword_list_is_filled_up_with_zeros() -> None:
    """Two hits out of a hundred asked for stand far above the rest; among themselves they would be +1 and -1."""
    alone = normalise([4.0, 2.0], "z-score")
    filled = normalise([4.0, 2.0], "z-score", depth=100)
    assert alone.values == [1.0, -1.0] and alone.absent == -1.0
    whole = [4.0, 2.0, *[0.0] * 98]
    expected = [(score - fmean(whole)) / pstdev(whole) for score in (4.0, 2.0, 0.0)]
    assert [*filled.values, filled.absent] == pytest.approx(expected)
    bm25 = BM25Retriever.from_texts(["red fox", "red dog", "blue bird"], k=3)
    other = RunnableLambda(lambda query: [Document("blue bird")])
    convex = EnsembleRetriever(retrievers=[bm25, other], fusion="convex", normalisation="z-score")
    first = get_provenance(convex.invoke("red fox")[0])["stages"][0]
    assert first["normalised"] > 5


def test_follows_the_keyword_list_when_the_dense_one_is_noise() -> None:
    """Exact matches beside cosines without a leader: the first two are the keyword list's, unlike RRF's."""
    keyword = _keyword([18.0, 17.0, *_noise(3.0, 1.0)])
    dense = _dense(_noise(0.32, 0.3))
    fused = fuse("auto", [keyword, dense])
    assert [key for key, _ in fused[:2]] == ["k0", "k1"]
    assert fused.weights[0] == pytest.approx(0.75)
    assert [key for key, _ in reciprocal_rank_fusion([keyword.keys, dense.keys])[:2]] == ["k0", "d0"]


def test_follows_the_dense_list_when_the_keyword_one_is_noise() -> None:
    """A clear cosine beside words that match little of the question: the first two are the dense list's."""
    keyword = _keyword(_noise(3.0, 2.5))
    dense = _dense([0.8, 0.78, *_noise(0.3, 0.1)])
    fused = fuse("auto", [keyword, dense])
    assert [key for key, _ in fused[:2]] == ["d0", "d1"]
    assert fused.weights[1] == pytest.approx(0.75)
    assert [key for key, _ in reciprocal_rank_fusion([keyword.keys, dense.keys])[:2]] == ["k0", "d0"]


def test_order_of_the_lists_does_not_matter() -> None:
    """Which of the two comes first changes nothing but the order of the weights."""
    keyword, dense = _keyword([9.0, 5.0, 1.0], "x"), _dense([0.6, 0.5, 0.2, 0.1], "x")
    forward, backward = fuse("auto", [keyword, dense]), fuse("auto", [dense, keyword])
    assert dict(forward) == pytest.approx(dict(backward))
    assert forward.weights == pytest.approx(backward.weights[::-1])
    assert forward.extra == backward.extra


def test_branch_weights_multiply_the_odds() -> None:
    """A weight of 3 for one branch triples its odds."""
    keyword, dense = _keyword([9.0, 1.0]), _dense([0.6, 0.4])
    plain = fuse("auto", [keyword, dense]).weights
    heavy = RankedList(keyword.keys, keyword.scores, 3.0, "bm25", keyword.maximum)
    weighed = fuse("auto", [heavy, dense]).weights
    assert weighed[0] / weighed[1] == pytest.approx(3 * plain[0] / plain[1])


def _cases() -> list[tuple[str, list[RankedList], str]]:
    keyword, dense = _keyword([9.0, 1.0]), _dense([0.6, 0.4])
    return [
        ("mute", [keyword, RankedList(["a", "b"], [None, None], 1.0)], "no scores"),
        ("no keyword list", [dense, dense], "highest score"),
        ("two keyword lists", [keyword, keyword], "highest score"),
    ]


@pytest.mark.parametrize(("lists", "reason"), [case[1:] for case in _cases()], ids=[c[0] for c in _cases()])
def test_missing_evidence_is_said(lists: list[RankedList], reason: str) -> None:
    """What cannot be compared is fused over z-scores, with a note that says why."""
    fused = fuse("auto", lists)
    assert fused.weights == pytest.approx([1 / len(lists)] * len(lists))
    assert any(reason in note and "own weights" in note for note in fused.notes)
    assert "dense_share" not in fused.extra


@pytest.mark.parametrize("empty", [0, 1])
def test_an_empty_list_leaves_the_other(empty: int) -> None:
    """Beside an empty list the other keeps its order, without a note."""
    lists = [_keyword([9.0, 5.0, 1.0]), _dense([0.6, 0.5, -0.2])]
    lists[empty] = RankedList([], [], 1.0)
    fused = fuse("auto", lists)
    assert [key for key, _ in fused] == list(lists[1 - empty].keys)
    assert fused.notes == []
    assert fuse("auto", [RankedList([], [], 1.0)] * 2) == []


def test_one_result_each_and_equal_scores() -> None:
    """Lists of one document, or of equal scores, fuse without error."""
    assert {key for key, _ in fuse("auto", [_keyword([2.0]), _dense([-0.5])])} == {"k0", "d0"}
    fused = fuse("auto", [_keyword([2.0] * 3), _dense([0.5] * 3)])
    assert len(fused) == 6
    assert all(math.isfinite(score) for _, score in fused)


async def test_ensemble_explains_itself() -> None:
    """Evidence and weights are in the provenance, asynchronously the same."""
    bm25 = BM25Retriever.from_documents([Document(t, id=t) for t in ("red fox", "red dog", "blue bird")])
    dense = Cosines(scores=[("blue bird", 0.41), ("red dog", 0.405), ("red fox", 0.4)])
    ensemble = EnsembleRetriever(retrievers=[bm25, dense], fusion="auto", k=2)
    found = ensemble.invoke("red fox")
    assert found[0].id == "red fox"
    *branches, last = get_provenance(found[0])["stages"]
    assert 0.25 <= last["dense_share"] <= 0.75
    assert sum(stage["weight"] for stage in branches) == pytest.approx(1)
    assert sum(stage["weight"] * stage["normalised"] for stage in branches) == pytest.approx(last["score"])
    assert await ensemble.ainvoke("red fox") == found


async def test_over_a_document_index(tmp_path: Path) -> None:
    """A hybrid over an index has what auto needs, asynchronously as well."""
    index = DocumentIndex.create(tmp_path / "index", embeddings=DeterministicFakeEmbedding(size=16))
    index.upsert([Document(t, id=t) for t in ("red fox", "red dog", "blue bird")])
    hybrid = index_retriever(index, fusion="auto")
    found = hybrid.invoke("red fox")
    provenance = get_provenance(found[0])
    assert "dense_share" in provenance["stages"][-1]
    assert provenance["notes"] == []
    assert [doc.id for doc in await hybrid.ainvoke("red fox")] == [doc.id for doc in found]
    index.close()


async def test_over_an_index_that_was_opened_without_its_model(tmp_path: Path) -> None:
    """A missing model is a half that fails: skipped with a note where that is asked for, else refused."""
    with DocumentIndex.create(tmp_path / "index", embeddings=DeterministicFakeEmbedding(size=16)) as written:
        written.upsert([Document("red fox", id="fox")])
    with DocumentIndex.open(tmp_path / "index") as index:
        degraded = index_retriever(index, on_error="skip")
        for found in (degraded.invoke("red fox"), await degraded.ainvoke("red fox")):
            assert "opened without its embedding model" in get_provenance(found[0])["notes"][0]
        for settings in ({}, {"on_error": "raise"}, {"pipeline": "dense", "on_error": "skip"}):
            with pytest.raises(InvalidInputError, match="needs the embedding model"):
                index_retriever(index, **settings)
