"""Keyword and vector search with feedback: the default over an index with vectors."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda

from rag_kit.concurrency import fan_out
from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import DocumentIndex
from rag_kit.models.clients import QueryVectors
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, ExactVectorRetriever, explain, index_retriever
from rag_kit.retrieval.fusion import RankedIds
from rag_kit.retrieval.hybrid import HybridRetriever

WORDS = ("pump", "valve", "lake", "heron", "fish", "motor")


class WordVectors(Embeddings):
    """One number a word; "engine" is near "motor". Counts the queries that it embeds."""

    english_only = True

    def __init__(self) -> None:
        self.queries = 0

    def _vector(self, text: str) -> list[float]:
        words = text.lower().replace("engine", "motor").split()
        counts = [float(words.count(word)) for word in WORDS]
        return [*counts, 0.1 if any(counts) else 1.0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries += 1
        return self._vector(text)


TEXTS = {
    "a": "the pump has a motor",
    "b": "pump and motor and valve",
    "c": "a heron eats fish in the lake",
    "d": "the lake freezes",
    "e": "valve and motor",
    "泵": "水泵 在 四十 度 启动",
}
DOCUMENTS = [
    Document(text, id=key, metadata={"tenant": "x" if key < "c" else "y"}) for key, text in TEXTS.items()
]


@pytest.fixture(params=["index", "memory"])
def hybrid(request, tmp_path):
    """The hybrid over an index, and over retrievers in memory."""
    model = WordVectors()
    if request.param == "memory":
        halves = [
            BM25Retriever.from_documents(DOCUMENTS),
            ExactVectorRetriever.from_documents(DOCUMENTS, model),
        ]
        yield HybridRetriever(retrievers=halves, k=3), model
        return
    with DocumentIndex.create(tmp_path / "index", embeddings=model) as index:
        index.upsert(DOCUMENTS)
        yield index_retriever(index, k=3), model


async def test_three_lists_are_fused_and_the_query_is_embedded_once(hybrid):
    """The second dense list is in the provenance, moves the scores, and costs no call to the model."""
    retriever, model = hybrid
    before = model.queries
    found = retriever.invoke("pump engine")
    assert model.queries == before + 1
    assert {document.id for document in found} == {"a", "b", "e"}
    *branches, last = get_provenance(found[0])["stages"]
    assert [stage["stage"] for stage in branches] == ["bm25", "dense", "dense"]
    assert branches[2]["role"] == "feedback" and branches[2]["score"] != branches[1]["score"]
    assert branches[2]["weight"] / branches[1]["weight"] == pytest.approx(0.45 / 0.55)
    assert sum(stage["weight"] for stage in branches) == pytest.approx(1)
    assert sum(stage["weight"] * stage["normalised"] for stage in branches) == pytest.approx(last["score"])
    assert "feedback" in str(explain(found))
    again = await retriever.ainvoke("pump engine")
    assert [document.id for document in again] == [document.id for document in found]


async def test_texts_are_read_of_the_results_alone(tmp_path, monkeypatch):
    """The index is asked for the k best; of all that is ranked, only those that the feedback needs are documents."""
    read, made = [], []
    get, item = DocumentIndex.get, RankedIds.__getitem__
    monkeypatch.setattr(DocumentIndex, "get", lambda self, ids: read.extend(ids) or get(self, ids))
    monkeypatch.setattr(RankedIds, "__getitem__", lambda self, key: made.append(key) or item(self, key))
    with DocumentIndex.create(tmp_path / "index", embeddings=WordVectors()) as index:
        index.upsert(DOCUMENTS)
        retriever = index_retriever(index, k=2)
        found = retriever.invoke("pump engine")
        again = await retriever.ainvoke("pump engine")
    assert again == found and read == [document.id for document in [*found, *found]]
    assert len(made) <= 2 * 3  # three for each of the two calls


def test_the_moved_query_finds_what_is_like_the_first_results(hybrid):
    """By hand: the query's vector and half of the mean of the first three, each of length 1."""
    retriever, model = hybrid
    found = {
        document.id: get_provenance(document)["stages"] for document in retriever.invoke("pump engine", k=6)
    }
    unit = {key: np.array(model._vector(text)) for key, text in TEXTS.items()}
    unit = {key: vector / np.linalg.norm(vector) for key, vector in unit.items()}
    query = np.array(model._vector("pump engine"))
    moved = query / np.linalg.norm(query) + 0.5 * np.mean([unit[key] for key in list(found)[:3]], axis=0)
    for key, stages in found.items():
        expected = float(unit[key] @ moved / np.linalg.norm(moved))
        (score,) = [stage["score"] for stage in stages if stage.get("role") == "feedback"]
        assert score == pytest.approx(expected, abs=1e-5)


async def test_filters_hold_in_the_feedback_too(hybrid):
    """Nothing of another tenant comes in by the second dense search, though it is the nearest."""
    retriever, _ = hybrid
    where = {"tenant": "y"}
    found = retriever.invoke("pump engine", filter=where, k=6)
    assert found and all(document.metadata["tenant"] == "y" for document in found)
    assert await retriever.ainvoke("pump engine", filter=where, k=6) == found


def test_a_question_that_the_model_does_not_read_is_searched_by_keyword(hybrid):
    """English vectors of a Chinese question are noise; the note says what was done."""
    retriever, model = hybrid
    before = model.queries
    found = retriever.invoke("水泵什么时候启动？")
    assert model.queries == before and found[0].id == "泵"
    assert any("English only" in note for note in get_provenance(found[0])["notes"])


def test_a_fusion_of_ones_own_has_no_feedback(tmp_path):
    """Who names weights or a fusion gets an ordinary ensemble of the two halves."""
    with DocumentIndex.create(tmp_path / "index", embeddings=WordVectors()) as index:
        index.upsert(DOCUMENTS)
        plain = index_retriever(index, weights=[0.6, 0.4])
        assert type(plain) is EnsembleRetriever and plain.fusion == "convex"
        assert {stage.get("role") for stage in get_provenance(plain.invoke("pump")[0])["stages"]} == {None}
    with pytest.raises(InvalidInputError, match="EnsembleRetriever"):
        HybridRetriever(retrievers=[BM25Retriever.from_documents(DOCUMENTS)] * 2)


def test_the_vectors_of_queries_asked_at_once_are_all_kept():
    """Two threads used to replace each other's table, and a query lost its feedback; the table stays bounded."""
    kept, model = QueryVectors(), WordVectors()
    names = [f"query {number}" for number in range(200)]
    fan_out([partial(kept.keep, model, name, [1.0]) for name in names], max_concurrency=32)
    assert all(kept.get(model, name) == [1.0] for name in names)
    for number in range(256):
        kept.keep(model, f"later {number}", [0.0])
    assert kept.get(model, "query 0") is None and kept.get(model, "later 0") == [0.0]


def test_documents_of_an_index_may_be_identified_by_a_field(tmp_path):
    documents = [Document(text, id=key, metadata={"page": key[0]}) for key, text in TEXTS.items()]
    documents.append(Document("pump and motor", id="a2", metadata={"page": "a"}))
    with DocumentIndex.create(tmp_path / "pages", embeddings=WordVectors()) as index:
        index.upsert(documents)
        found = index_retriever(index, k=7, id_key="page").invoke("pump motor")
    pages = [document.metadata["page"] for document in found]
    assert len(pages) == len(set(pages)) and {"a", "b"} <= {*pages}


def test_feedback_may_find_another_text_under_the_id_of_a_first_result():
    """The keyword store and the vector store have id "x" with other texts; only the feedback brings both together."""
    angles = {"pump": 0.0, "up one": 25.0, "up two": 26.0, "down one": -27.0, "down two": -28.0}
    vectors = {text: [np.cos(np.radians(angle)), np.sin(np.radians(angle))] for text, angle in angles.items()}

    class Angles(WordVectors):
        def _vector(self, text: str) -> list[float]:
            return [float(number) for number in vectors[text]]

    words = [Document("pump pump", id="x"), Document("pump", id="z")]
    near = zip(("y", "w", "x", "z"), list(vectors)[1:], strict=True)
    dense = ExactVectorRetriever.from_documents([Document(text, id=key) for key, text in near], Angles())
    both = HybridRetriever(retrievers=[BM25Retriever.from_documents(words), dense], k=2, fetch_k=2)
    found = both.invoke("pump", k=6)
    assert {doc.page_content for doc in both.invoke("pump")} <= {doc.page_content for doc in found}
    assert any("x" in note and "different texts" in note for note in get_provenance(found[0])["notes"])


async def test_passages_that_are_deleted_or_moved_during_a_search_are_left_out(tmp_path, monkeypatch):
    """Text is read after the search; what no longer passes the filter is not handed over, and ranks have no gap."""
    with DocumentIndex.create(tmp_path / "index", embeddings=WordVectors()) as index:
        retriever = index_retriever(index, k=3)
        read = DocumentIndex.get

        def read_late(self: DocumentIndex, ids: list[str]) -> list[Document]:
            index.delete(["a"])
            index.upsert([Document("pump of y", id="b", metadata={"tenant": "y"})])
            return read(self, ids)

        monkeypatch.setattr(DocumentIndex, "get", read_late)
        for is_async in (False, True):
            index.upsert([*DOCUMENTS, Document("pump", id="0", metadata={"tenant": "x"})])
            settings = {"filter": {"tenant": "x"}}
            search = retriever.ainvoke("pump motor", **settings) if is_async else None
            found = retriever.invoke("pump motor", **settings) if search is None else await search
            assert [(doc.id, get_provenance(doc)["rank"]) for doc in found] == [("0", 1)]


def test_the_keyword_side_may_be_another_leg_or_have_a_fallback(tmp_path):
    """Only the kit's own keyword search gives ids alone; a retriever in its place, too, is asked, and counts."""
    with DocumentIndex.create(tmp_path / "index", embeddings=WordVectors(), legs=["trigram"]) as index:
        index.upsert(DOCUMENTS)
        words, letters, dense = (index_retriever(index, name) for name in ("bm25", "trigram", "dense"))
        found = HybridRetriever(retrievers=[letters, dense]).invoke("pump")
        assert get_provenance(found[0])["stages"][0]["stage"] == "trigram"
        index.delete(["b"])
        broken = words.bind(k="many").with_fallbacks([RunnableLambda(lambda _: [Document("pump", id="new")])])
        found = HybridRetriever(retrievers=[broken, dense]).invoke("pump")
        assert "new" in {document.id for document in found}
