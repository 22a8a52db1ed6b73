"""index_retriever: keyword, dense and hybrid retrieval from a DocumentIndex."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from support.embedding import WordEmbeddings

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import DocumentIndex
from rag_kit.retrieval import index_retriever
from rag_kit.retrieval.hybrid import HybridRetriever

DOCUMENTS = [
    Document(f"heron number{i} at lake{i % 5}", id=f"h{i}", metadata={"lake": i % 5, "n": i})
    for i in range(80)
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentIndex]:
    with DocumentIndex.create(
        tmp_path_factory.mktemp("retriever") / "i", embeddings=WordEmbeddings(512)
    ) as index:
        index.upsert(DOCUMENTS)
        yield index


@pytest.fixture
def keyword_only(tmp_path: Path) -> Iterator[DocumentIndex]:
    with DocumentIndex.create(tmp_path / "index") as index:
        index.upsert(DOCUMENTS)
        yield index


@pytest.mark.parametrize("pipeline", ["bm25", "dense", "hybrid"])
async def test_each_pipeline_finds_with_provenance(index: DocumentIndex, pipeline: str) -> None:
    """Sync and async give k copies, best first, whose provenance names the legs, ranks and scores."""
    retriever = index_retriever(index, pipeline, k=3)  # type: ignore[arg-type]
    found = retriever.invoke("heron number42 at lake2")
    assert [document.id for document in found] == [
        d.id for d in await retriever.ainvoke("heron number42 at lake2")
    ]
    assert found[0].id == "h42" and len(found) == 3
    stages = {stage["stage"] for stage in get_provenance(found[0])["stages"]}
    expected = {"bm25": {"bm25"}, "dense": {"dense"}, "hybrid": {"bm25", "dense", "fusion:convex"}}
    assert stages == expected[pipeline]
    assert [get_provenance(document)["rank"] for document in found] == [1, 2, 3]
    found[0].metadata["n"] = "changed by the caller"
    assert retriever.invoke("heron number42 at lake2")[0].metadata["n"] == 42


@pytest.mark.parametrize("pipeline", ["bm25", "dense", "hybrid"])
def test_filters_and_k_of_a_call(index: DocumentIndex, pipeline: str) -> None:
    """A call's k overrides, its filter is ANDed with the retriever's own, in every leg."""
    retriever = index_retriever(index, pipeline, k=2, filter={"lake": 3})  # type: ignore[arg-type]
    assert len(retriever.invoke("heron")) == 2
    found = retriever.invoke("heron", k=60, filter={"n": {"$lt": 40}})
    assert sorted(document.metadata["n"] for document in found) == [3, 8, 13, 18, 23, 28, 33, 38]


def test_hybrid_legs_look_deeper_than_k(index: DocumentIndex) -> None:
    """Each leg fetches ten times k, at least 50, or what was asked for."""
    assert [index_retriever(index, k=k).fetch_k for k in (1, 5, 20)] == [100, 100, 200]  # type: ignore[attr-defined]
    assert index_retriever(index, fetch_k=7).fetch_k == 7  # type: ignore[attr-defined]


def test_hybrid_may_be_fused_otherwise(index: DocumentIndex) -> None:
    """By default weights follow the query; weights given are of z-scores; rrf or rrf_k asks for reciprocal rank."""
    default = index_retriever(index)
    assert isinstance(default, HybridRetriever) and default.fusion == "convex"  # type: ignore[attr-defined]
    assert index_retriever(index, weights=[1, 3]).weights == [1, 3]  # type: ignore[attr-defined]
    for settings in ({"rrf_k": 10}, {"fusion": "rrf"}):
        by_rank = index_retriever(index, **settings)
        assert (by_rank.fusion, by_rank.weights) == ("rrf", None)  # type: ignore[attr-defined]


def test_without_vectors_hybrid_is_keyword_and_says_so(keyword_only: DocumentIndex) -> None:
    """Hybrid over an index without vectors is keyword search with a note; dense is refused."""
    found = index_retriever(keyword_only).invoke("number42")
    assert found[0].id == "h42" and "no vectors" in get_provenance(found[0])["notes"][0]
    assert get_provenance(index_retriever(keyword_only, "bm25").invoke("number42")[0])["notes"] == []
    with pytest.raises(InvalidInputError, match="--embedding-model"):
        index_retriever(keyword_only, "dense")


def test_wrong_arguments_are_refused(index: DocumentIndex) -> None:
    """An unknown pipeline, a wrong k, and vectors without their model are refused in words; others are taken."""
    with pytest.raises(InvalidInputError, match="hybrid, bm25, dense"):
        index_retriever(index, "fancy")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        index_retriever(index, k=0)
    for pipeline in ("bm25", "dense", "hybrid"):
        settings = {"id_key": "id", "metadata": {"a": 1}, "name": "mine", "tags": ["b"]}
        made = index_retriever(index, pipeline, c=60, **settings)  # type: ignore[arg-type]
        assert made.model_dump(include=set(settings)) == settings
        with pytest.raises(InvalidInputError, match=r"'timeot' is no argument \(did you mean 'timeout'\?\)"):
            index_retriever(index, pipeline, timeot=3)  # type: ignore[arg-type]
    index.flush()
    with (
        DocumentIndex.open(index.folder) as reader,
        pytest.raises(InvalidInputError, match=r"WordEmbeddings\[512\]"),
    ):
        index_retriever(reader)


@pytest.mark.parametrize("pipeline", ["dense", "hybrid"])
def test_a_query_is_embedded_anew_after_reembed(tmp_path: Path, pipeline: Any) -> None:
    """A vector of the old model, of the same size, is neither searched for nor used for feedback."""

    class Chosen(Embeddings):
        def __init__(self, name: str, like: str) -> None:
            self.name, self.like, self.queries = name, like, 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0] if text in ("q", self.like) else [0.0, 1.0] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            self.queries += 1
            return [1.0, 0.0] if self.name == "old" else [0.0, 1.0]

    old, new = Chosen("old", "apple"), Chosen("new", "apple")
    with DocumentIndex.create(tmp_path / "index", embeddings=old) as index:
        index.upsert([Document("apple", id="a"), Document("pear", id="p")])
        retriever = index_retriever(index, pipeline, k=1)
        assert [retriever.invoke("q")[0].id for _ in range(2)] == ["a", "a"] and old.queries == 1
        index.reembed(new)
        assert [retriever.invoke("q")[0].id for _ in range(2)] == ["p", "p"] and new.queries == 1
