"""A Chroma collection searched in memory: equal to Chroma, and never what it held before a change."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from support.chroma import memory_client

from rag_kit.documents import get_provenance
from rag_kit.documents.provenance import strip_provenance
from rag_kit.errors import FilterError, InvalidInputError
from rag_kit.retrieval import HyDERetriever, VectorRetriever
from rag_kit.retrieval.compose import call_retriever
from rag_kit.retrieval.exact.retriever import ExactVectorRetriever
from rag_kit.retrieval.exact.store import ExactVectorStore

EMBEDDING = DeterministicFakeEmbedding(size=16)
QUIET = Settings(anonymized_telemetry=False)
DOCS = [
    Document(f"text {n}", id=f"id{n}", metadata={"n": n, "odd": bool(n % 2), "lang": "zh" if n % 3 else "en"})
    for n in range(120)
]
FILTERS: list[Any] = [
    None,
    {"lang": "en"},
    {"n": {"$gte": 50.5, "$lt": 90}, "odd": True},
    {"$or": [{"n": {"$in": [3, 4]}}, {"lang": {"$ne": "zh"}}]},
    {"$not": {"n": {"$gt": 5}}},
    {"n": {"$in": []}},
    {"lang": {"$exists": True}, "n": {"$lte": 7}},
    {"lang": {"$gt": "en"}},
]


def old(folder: Path) -> None:
    """Make the files of a collection look as if they had been written a while ago."""
    for path in folder.glob("chroma.sqlite3*"):
        stamp = path.stat().st_mtime_ns - 10_000_000_000
        os.utime(path, ns=(stamp, stamp))


def change(store: Chroma, text: str, **values: Any) -> None:
    """Change the row id3 in place; its vector stays."""
    store._collection.update(
        ids=["id3"], documents=[text], embeddings=[EMBEDDING.embed_query("text 3")], **values
    )


def make(folder: Path, space: str = "l2", documents: list[Document] = DOCS) -> Chroma:
    client = chromadb.PersistentClient(str(folder), settings=QUIET)
    store = Chroma("exact", EMBEDDING, client=client, collection_metadata={"hnsw:space": space})
    if documents:
        store.add_documents(documents)
    old(folder)
    return store


@pytest.mark.parametrize("space", ["l2", "cosine", "ip"])
async def test_equal_to_chroma(tmp_path: Path, space: str) -> None:
    """Documents, order, scores and provenance are those of the same search in Chroma, for each kind of filter."""
    chroma = make(tmp_path, space)
    exact = ExactVectorStore(chroma)
    plain, fast = (VectorRetriever(vectorstore=store, k=7, name="dense") for store in (chroma, exact))
    for where in FILTERS:
        for query in ("text 3", "text 88", "another"):
            expected = plain.invoke(query, filter=where)
            found = fast.invoke(query, filter=where)
            assert found == await fast.ainvoke(query, filter=where)
            assert [(doc.id, doc.page_content) for doc in found] == [
                (doc.id, doc.page_content) for doc in expected
            ]
            for mine, theirs in zip(found, expected, strict=True):
                record, other = get_provenance(mine), get_provenance(theirs)
                assert strip_provenance(mine).metadata == strip_provenance(theirs).metadata
                for name in ("score", "store_score"):
                    assert record["stages"][0].pop(name) == pytest.approx(
                        other["stages"][0].pop(name), rel=2e-6, abs=2e-6
                    )
                assert record["stages"] == other["stages"]
    assert exact.answered["store"] == 0 and exact.loads == 1


def test_every_write_is_seen(tmp_path: Path) -> None:
    """Added, changed and deleted rows are seen by the very next search, whoever wrote them, at any moment."""
    chroma = make(tmp_path)
    exact = ExactVectorStore(chroma)

    def texts() -> list[str]:
        return [doc.page_content for doc, _ in exact.similarity_search_with_score("text 3", k=2)]

    assert texts()[0] == "text 3"
    for aged in (False, True):
        for number in range(15):
            change(chroma, f"text 3, changed {number}")
            if aged:
                old(tmp_path)
            assert texts()[0] == f"text 3, changed {number}"
    other = Chroma("exact", EMBEDDING, client=chromadb.PersistentClient(str(tmp_path), settings=QUIET))
    other.delete(["id3"])
    assert "changed" not in texts()[0]
    exact.add_texts(["text 3"], [{"n": 3}], ids=["new"])
    assert texts()[0] == "text 3" and exact.get_by_ids(["new"])[0].page_content == "text 3"
    exact.refresh()
    exact.answered["store"] = 0
    assert texts()[0] == "text 3" and exact.answered["store"] == 0
    exact.delete(["new"])
    assert texts()[0] != "text 3"


def test_a_collection_made_anew(tmp_path: Path) -> None:
    """A collection that was reset is another one, though its name is the same."""
    chroma = make(tmp_path)
    exact = ExactVectorStore(chroma)
    assert exact.similarity_search("text 3", k=1)[0].id == "id3"
    chroma.reset_collection()
    assert exact.similarity_search("text 3", k=1) == []
    chroma.add_documents(DOCS[5:6])
    old(tmp_path)
    assert [doc.id for doc in exact.similarity_search("text 3", k=1)] == ["id5"]


def test_while_it_is_written_to_chroma_answers(tmp_path: Path) -> None:
    """A file younger than a step of the clock proves nothing: no reading, and no answer from memory."""
    chroma = make(tmp_path)
    exact = ExactVectorStore(chroma)
    os.utime(tmp_path / "chroma.sqlite3")
    for where in FILTERS:
        found = exact.similarity_search_with_score("text 3", 4, where)
        old(tmp_path)
        assert [doc.id for doc, _ in found] == [
            doc.id for doc, _ in exact.similarity_search_with_score("text 3", 4, where)
        ]
        os.utime(tmp_path / "chroma.sqlite3")
        exact._read = None
    assert exact.answered == {"memory": len(FILTERS), "store": len(FILTERS)}


def test_changed_while_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read while rows changed is thrown away, and read again."""
    chroma = make(tmp_path)
    exact = ExactVectorStore(chroma)
    read, calls = exact._reader.read, []

    def disturbed(most: int) -> Any:
        snapshot = read(most)
        calls.append(1)
        if len(calls) == 1:
            change(chroma, "text 3, changed")
            old(tmp_path)
            os.utime(tmp_path / "chroma.sqlite3", ns=(1, 1))
        return snapshot

    monkeypatch.setattr(exact._reader, "read", disturbed)
    assert exact.similarity_search("text 3", k=1)[0].page_content == "text 3, changed"
    assert len(calls) == 2


def test_manual(tmp_path: Path) -> None:
    """A collection that tells nothing needs `changes="manual"`; then rows added, own writes and refresh() show."""
    client = memory_client()
    chroma = Chroma("exact_manual", EMBEDDING, client=client)
    chroma.add_documents(DOCS[:10])
    with pytest.raises(InvalidInputError, match="changes='manual'"):
        ExactVectorStore(chroma)
    exact = ExactVectorStore(chroma, changes="manual")
    assert exact.similarity_search("text 3", k=1)[0].page_content == "text 3"
    change(chroma, "changed")
    exact.refresh()
    assert exact.similarity_search("text 3", k=1)[0].page_content == "changed"
    chroma.add_texts(["text 99"], ids=["id99"])
    assert exact.similarity_search("text 99", k=1)[0].id == "id99"
    exact.delete(["id99"])
    exact.add_texts(["text 98"], ids=["id98"])
    assert exact.similarity_search("text 98", k=1)[0].id == "id98"
    client.delete_collection("exact_manual")


def test_refused(tmp_path: Path) -> None:
    """Other stores, unknown settings, wrong filters and vectors, and more than the memory allowed."""
    chroma = make(tmp_path)
    with pytest.raises(InvalidInputError, match="vectorstore is InMemoryVectorStore; exact search in memory"):
        ExactVectorStore(InMemoryVectorStore(EMBEDDING))
    with pytest.raises(InvalidInputError, match="allowed: 'detect', 'manual'"):
        ExactVectorStore(chroma, changes="never")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"120 rows.*max_bytes=20,000"):
        ExactVectorStore(chroma, max_bytes=20_000).similarity_search("text 3")
    with pytest.raises(InvalidInputError, match=r"120 rows.*max_bytes=100"):
        ExactVectorStore(chroma, max_bytes=100).similarity_search("text 3")
    exact = ExactVectorStore(chroma)
    with pytest.raises(FilterError, match="Unknown operator"):
        exact.similarity_search("text 3", filter={"n": {"$near": 3}})
    with pytest.raises(InvalidInputError, match="k=0 was given"):
        exact.similarity_search("text 3", k=0)
    with pytest.raises(InvalidInputError, match="names no embedding model"):
        ExactVectorStore(Chroma("none", client=chroma._client))
    with pytest.raises(InvalidInputError, match="searches a Chroma that is there"):
        ExactVectorStore.from_texts(["a"], EMBEDDING)


def test_results_are_copies(tmp_path: Path) -> None:
    """Changing a result changes no later one."""
    exact = ExactVectorStore(make(tmp_path))
    exact.similarity_search("text 3", k=1)[0].metadata["n"] = "changed"
    assert exact.similarity_search("text 3", k=1)[0].metadata["n"] == 3


def test_many_threads(tmp_path: Path) -> None:
    """Threads that search while another writes always see a whole state: the row's text and number agree."""
    chroma = make(tmp_path)
    exact = ExactVectorStore(chroma)
    wrong: list[Any] = []
    stop = threading.Event()

    def search() -> None:
        while not stop.is_set():
            (doc, _), *_ = exact.similarity_search_with_score("text 3", k=1)
            if doc.page_content != f"text 3 v{doc.metadata['n']}" and doc.page_content != "text 3":
                wrong.append(doc)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(12):
        change(chroma, f"text 3 v{number}", metadatas=[{"n": number}])
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong and exact.similarity_search("text 3", k=1)[0].page_content == "text 3 v11"


def test_it_composes(tmp_path: Path) -> None:
    """LangChain's own retriever over it keeps its static filter, and HyDE searches it by vector."""
    from langchain_core.language_models import FakeListChatModel

    exact = ExactVectorStore(make(tmp_path))
    leaf = exact.as_retriever(search_kwargs={"k": 9, "filter": {"odd": True}})
    assert {doc.id for doc in call_retriever(leaf, "text", k=9, filter={"n": {"$lt": 5}})} == {"id1", "id3"}
    hyde = HyDERetriever.from_llm(
        FakeListChatModel(responses=["text 8"]), VectorRetriever(vectorstore=exact), mode="vector", k=3
    )
    assert "id8" in {doc.id for doc in hyde.invoke("text 8", filter={"odd": False})}


async def test_over_documents() -> None:
    """`ExactVectorRetriever` over documents: cosines, ties in their order, filters, and fitting vectors."""
    retriever = ExactVectorRetriever.from_documents(DOCS, EMBEDDING, k=3)
    found = retriever.invoke("text 8", filter={"odd": False})
    assert found == await retriever.ainvoke("text 8", filter={"odd": False})
    assert found[0].id == "id8" and get_provenance(found[0])["score"] == pytest.approx(1.0)
    assert all(not doc.metadata["odd"] for doc in found)
    twins = ExactVectorRetriever.from_documents([Document("a", id=i) for i in "cab"], EMBEDDING)
    assert [doc.id for doc in twins.invoke("a")] == ["c", "a", "b"]
    assert ExactVectorRetriever.from_documents([], EMBEDDING).invoke("a") == []
    with pytest.raises(InvalidInputError, match="give one row a document"):
        ExactVectorRetriever.from_documents(DOCS, EMBEDDING, vectors=np.eye(3))
    wrong = ExactVectorRetriever.from_documents(DOCS[:3], EMBEDDING, vectors=np.eye(3))
    with pytest.raises(InvalidInputError, match="16 dimensions, the documents' have 3"):
        wrong.invoke("a")


class TestLangChainStandard(RetrieversIntegrationTests):
    """The standard tests of LangChain for retrievers."""

    @property
    def retriever_constructor(self) -> Any:
        def construct(**settings: Any) -> ExactVectorRetriever:
            return ExactVectorRetriever.from_documents(DOCS, EMBEDDING, **settings)

        return construct

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {}

    @property
    def retriever_query_example(self) -> str:
        return "text 3"
