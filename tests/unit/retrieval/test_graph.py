"""GraphRetriever: a second passage is found through what it shares with the first one."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import BM25Index, DocumentIndex, IngestOptions, ingest
from rag_kit.indexing.document_index.views import KeywordView
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever, GraphRetriever, HybridRetriever, index_retriever
from rag_kit.retrieval.indexed import reader_of

NOISE = [f"A note about subject{i} and subject{i + 1}." for i in range(30)]
EN = ["The Zorvan engine was designed by Mirabel Quist.", "Mirabel Quist studied in Lund."]
ZH = ["佐万引擎的设计者是米拉贝尔。", "米拉贝尔早年住隆德。"]


@pytest.mark.parametrize(
    ("texts", "question"),
    [
        (EN, "Where did the designer of the Zorvan engine go to college?"),
        (ZH, "佐万引擎的设计者小时候家在哪座城市？"),
    ],
)
async def test_the_second_passage_is_found_by_a_shared_name(texts: list[str], question: str) -> None:
    """Keyword search misses it; the walk comes to it, and the provenance names the way."""
    index = BM25Index.from_texts([*NOISE, *texts])
    assert texts[1] not in [doc.page_content for doc in BM25Retriever(index=index).invoke(question)]
    retriever = GraphRetriever(index=index, k=2)
    found = retriever.invoke(question)
    assert [doc.page_content for doc in found] == texts
    assert await retriever.ainvoke(question) == found
    stage = get_provenance(found[1])["stages"][-1]
    assert stage["stage"] == "graph" and stage["rank"] == 2
    assert any(term in index.analyzer(texts[0]) for term in stage["terms"])
    assert get_provenance(found[0])["stages"][-1]["rank_before"] == 1
    assert found[0].metadata.get("tenant") is None and GraphRetriever(index=index, k=99).invoke("zzz") == []


def test_the_walk_is_personalised_pagerank() -> None:
    """The masses are those of the power method on the whole matrix, stopped after two rounds."""
    texts = ["ada babbage engine", "babbage london", "london bridge", "ada lovelace bridge", "alone"]
    index = BM25Index.from_texts(texts, ids=list("12345"))
    terms = sorted({word for text in texts for word in index.analyzer(text)})
    holds = np.array([[word in index.analyzer(text) for word in terms] for text in texts], float)
    frequency = holds.sum(axis=0)
    holds[:, frequency < 2] = 0
    rarity = np.log(1 + (5 - frequency + 0.5) / (frequency + 0.5))
    forth = holds * rarity
    forth /= np.maximum(forth.sum(axis=1, keepdims=True), 1e-9)
    back = holds / frequency
    seeds = mass = np.array([0.75, 0, 0, 0, 0.25])
    for _ in range(2):
        mass = 0.5 * seeds + 0.25 * back @ (mass @ forth)
    found = {doc.id: weight for doc, weight, _ in index.spread({"1": 3.0, "5": 1.0, "gone": 9.0}, k=9)}
    assert found == {
        key: pytest.approx(weight, rel=1e-6) for key, weight in zip("12345", mass, strict=True) if weight
    }


def test_a_filter_bounds_the_walk_itself() -> None:
    """A passage that a filter refuses is no bridge either: neither for the retriever's filter nor the inner one's."""
    bridge = Document("Quist met Orla.", id="bridge", metadata={"tenant": "b"})
    ends = [Document("Zorvan and Quist.", id="first"), Document("Orla paints.", id="last")]
    for doc in ends:
        doc.metadata["tenant"] = "a"
    index = BM25Index.from_documents([bridge, *ends])
    own = {"tenant": "a"}
    assert {doc.id for doc in GraphRetriever(index=index).invoke("Zorvan")} == {"first", "bridge", "last"}
    inner = BM25Retriever(index=index, filter=own)
    for retriever in (GraphRetriever(index=index, filter=own), GraphRetriever(index=index, retriever=inner)):
        assert [doc.id for doc in retriever.invoke("Zorvan")] == ["first"]
    assert [doc.id for doc in GraphRetriever(index=index).invoke("Zorvan", filter=own, k=1)] == ["first"]


def test_follows_an_index_in_a_folder(tmp_path: Path) -> None:
    """Rows written and deleted are in the graph at once; the default search is hybrid."""
    with DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings()) as index:
        index.upsert([Document(text, id=f"d{i}") for i, text in enumerate([*NOISE, *EN])])
        assert isinstance(GraphRetriever(index=index).retriever, HybridRetriever)
        retriever = GraphRetriever(index=index, retriever=index_retriever(index, "bm25"))
        question = "Where did the designer of the Zorvan engine go to college?"
        assert {"d30", "d31"} <= {doc.id for doc in retriever.invoke(question)}
        index.upsert([Document("Mirabel Quist taught in Gent.", id="d31")])
        assert "Mirabel Quist taught in Gent." in [doc.page_content for doc in retriever.invoke(question)]
        index.delete(["d31"])
        assert "d31" not in [doc.id for doc in retriever.invoke(question)]


async def test_the_store_is_read_once_and_not_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walk and what it looks up see one state of the index, from a thread."""
    threads: list[int] = []

    def recorded(index: DocumentIndex) -> BM25Index | KeywordView:
        threads.append(threading.get_ident())
        return reader_of(index)

    monkeypatch.setattr("rag_kit.retrieval.graph.reader_of", recorded)
    with DocumentIndex.create(tmp_path / "index") as index:
        index.upsert([Document(text, id=f"d{i}") for i, text in enumerate(EN)])
        assert await GraphRetriever(index=index).ainvoke("Zorvan engine")
    assert len(threads) == 1 and threads[0] != threading.get_ident()


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    """An index without terms, another index than the retriever's, an argument that is none."""
    index = BM25Index.from_texts(EN)
    with pytest.raises(InvalidInputError, match="BM25Index or a DocumentIndex"):
        GraphRetriever(index=None)
    with pytest.raises(InvalidInputError, match="depth"):
        GraphRetriever(index=index, depth=3)
    other = BM25Retriever.from_documents([Document("Zorvan elsewhere", id="x")])
    found = GraphRetriever(index=index, retriever=other).invoke("Zorvan")
    assert [doc.id for doc in found] == ["x"]  # nothing that was found is lost
    assert "not in the index" in str(get_provenance(found[0])["notes"])
    with DocumentIndex.create(tmp_path / "index") as folder:
        folder.upsert([Document(EN[0], id="1")])
        assert GraphRetriever(index=folder, retriever=index_retriever(folder, "bm25")).invoke("Zorvan")


@pytest.mark.parametrize(
    ("texts", "question"),
    [(EN, "Where did the designer of the Zorvan engine study?"), (ZH, "佐万引擎的设计者早年住在哪里？")],
)
async def test_an_index_with_representations_gives_passages(
    tmp_path: Path, texts: list[str], question: str
) -> None:
    """No summary or keywords of a passage are in the first results or in the walk."""
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    ingest(
        tmp_path,
        tmp_path / "index",
        options=IngestOptions(represent=["summary"], llm=chat_model("extractive")),
    )
    with DocumentIndex.open(tmp_path / "index") as index:
        assert len(index.ids()) == 4
        retriever = GraphRetriever(index=index, k=6)
        found = retriever.invoke(question)
        assert [doc.page_content for doc in found] == texts
        assert await retriever.ainvoke(question) == found
