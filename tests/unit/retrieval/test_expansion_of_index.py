"""ExpansionRetriever over the keyword leg of a DocumentIndex: the same as over a BM25Index, writes followed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.blocking import blockbuster_ctx
from support.embedding import WordEmbeddings
from support.rewriters import both, corpus, ids, notes, sent

from rag_kit.documents import get_provenance
from rag_kit.errors import FilterError, InvalidInputError
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, ExpansionRetriever, index_retriever

DOCS = corpus(a="aspirin thins blood", b="aspirin thins blood well", c="warfarin thins blood", d="tea")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[DocumentIndex]:
    """A small index without vectors."""
    with DocumentIndex.create(tmp_path / "index") as made:
        made.upsert(DOCS)
        yield made


def expansion(searched: Any, **settings: Any) -> ExpansionRetriever:
    """Expansion by a thesaurus, over a keyword retriever or that of an index."""
    leg = index_retriever(searched, "bm25") if isinstance(searched, DocumentIndex) else searched
    return ExpansionRetriever.from_thesaurus({"aspirin": ["warfarin"]}, leg, **settings)


def scores(found: list[Document]) -> list[tuple[str | None, float]]:
    return [(doc.id, pytest.approx(get_provenance(doc)["score"])) for doc in found]


async def test_terms_over_an_index_are_those_over_bm25(index: DocumentIndex) -> None:
    """Terms, weights, scores and order are those of the same documents in a BM25Index, sync and async."""
    memory = BM25Retriever(index=BM25Index.from_documents(DOCS))
    for query in ("aspirin", "warfarin well", "aspirin tea"):
        found = await both(expansion(index), query)
        expected = await both(expansion(memory), query)
        assert found and scores(found) == scores(expected)
        last = [get_provenance(doc)["stages"][-1].get("terms") for doc in (found[0], expected[0])]
        assert last[0] == last[1]
    assert ids(await both(index_retriever(index, "bm25"), "aspirin")) == ["a", "b"]
    assert ids(await both(expansion(index), "aspirin"))[2:] == ["c"]


async def test_a_hybrid_without_vectors_will_do(index: DocumentIndex) -> None:
    """It is keyword search, whose note reaches the results."""
    found = await both(expansion(index_retriever(index), k=3), "aspirin")
    assert ids(found)[2:] == ["c"] and any("no vectors" in note for note in notes(found))


async def test_expansion_follows_writes(index: DocumentIndex) -> None:
    """What is written or deleted after the retriever was made counts at once."""
    retriever = expansion(index)
    index.delete(["a", "b", "c"])
    assert await both(retriever, "aspirin") == []
    index.upsert(corpus(e="aspirin and willow bark", f="warfarin"))
    assert ids(await both(retriever, "aspirin")) == ["e", "f"]


async def test_filters_hold_for_added_terms(tmp_path: Path) -> None:
    """Nothing is told about, or returned of, documents of another tenant."""
    docs = [
        Document("aspirin", metadata={"tenant": "a"}, id="a1"),
        Document("warfarin", metadata={"tenant": "a"}, id="a2"),
        Document("warfarin secretword", metadata={"tenant": "b"}, id="b1"),
    ]
    own = {"tenant": "a"}
    with DocumentIndex.create(tmp_path / "index") as index:
        index.upsert(docs)
        cases: list[tuple[ExpansionRetriever, dict[str, Any]]] = [
            (expansion(index), {"filter": own}),
            (expansion(index, filter=own), {}),
            (expansion(index_retriever(index, "bm25", filter=own)), {}),
        ]
        for retriever, arguments in cases:
            found = await both(retriever, "aspirin", **arguments)
            assert ids(found) == ["a1", "a2"]
            assert "secretword" not in json.dumps([doc.metadata for doc in found])
        with pytest.raises(FilterError):
            expansion(index).invoke("aspirin", filter={"tenant": {"$near": 1}})


async def test_a_thesaurus_weighs_terms_over_an_index(index: DocumentIndex) -> None:
    """Terms join the question's words in one search with weights, as over a BM25Retriever."""
    retriever = ExpansionRetriever.from_thesaurus({"aspirin": ["warfarin"]}, index_retriever(index, "bm25"))
    found = await both(retriever, "aspirin")
    assert ids(found) == ["a", "b", "c"] and sent(found) == ["aspirin warfarin"]
    assert get_provenance(found[0])["stages"][-1]["terms"][0]["weight"] == 0.5
    heavy = ExpansionRetriever.from_thesaurus(
        {"aspirin": ["warfarin"]}, index_retriever(index, "bm25"), term_weight=3
    )
    assert ids(await both(heavy, "aspirin"))[0] == "c"


async def test_expansion_is_one_leg_of_a_hybrid(tmp_path: Path) -> None:
    """The expanded keyword leg and the dense leg of one index fuse; each is in the provenance."""
    with DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings()) as index:
        index.upsert(DOCS)
        legs = [expansion(index, k=10), index_retriever(index, "dense", k=10)]
        found = await both(EnsembleRetriever(retrievers=legs, k=4), "aspirin")
    stages = {stage["stage"] for doc in found for stage in get_provenance(doc)["stages"]}
    assert {"bm25", "dense"} <= stages and "c" in ids(found)


async def test_nothing_blocks_the_event_loop(index: DocumentIndex) -> None:
    """Reading the store is done on a thread."""
    retriever = expansion(index)
    with blockbuster_ctx():
        assert ids(await retriever.ainvoke("aspirin"))[2:] == ["c"]


async def test_a_failing_store_is_told(index: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the terms cannot be read, the question alone is searched for, and the notes say so."""

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is away")

    monkeypatch.setattr("rag_kit.retrieval.expansion.retriever.reader_of", fail)
    found = await both(expansion(index), "aspirin")
    assert ids(found) == ["a", "b"]
    assert any(note.startswith("degraded: keyword index failed: OSError") for note in notes(found))


def test_a_view_searches_with_weights(index: DocumentIndex) -> None:
    """Weighted terms are searched with filter and k; equal scores are ordered by id; bad input is refused."""
    view = index.keyword_view()
    assert view.analyzer("thinning") == ["thin"]
    assert [doc.id for doc, _ in view.search_weighted({"warfarin": 1, "tea": 9}, 1)] == ["d"]
    assert [doc.id for doc, _ in view.search_weighted({"tea": 1, "aspirin": 1}, 4, {"name": "a"})] == ["a"]
    assert view.maximum({"aspirin": 2}) == pytest.approx(2 * view.maximum("aspirin"))
    index.upsert(corpus(z="oak", y="oak"))
    assert [doc.id for doc, _ in index.keyword_view().search_weighted({"oak": 1})] == ["y", "z"]
    for terms, k in (({"tea": -1}, 1), ({"tea": 1}, 0)):
        with pytest.raises(InvalidInputError):
            view.search_weighted(terms, k)
