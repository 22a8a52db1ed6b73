"""Rows derived from passages are found only by a search that asks for them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit import retrieval
from rag_kit.cli.main import main
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
from rag_kit.indexing.document_index.folder import STORE
from rag_kit.indexing.document_index.rows import Child, Family
from rag_kit.query_construction import SelfQueryRetriever

TEXTS = {
    "en": ("loud fan", ["A loud fan hums at night.", "Night air cools the fan.", "Tea is drunk hot."]),
    "zh": ("风扇噪音", ["风扇的噪音很大。", "夜里的空气让风扇凉下来。", "茶要趁热喝。"]),
}
MADE = {"representation": "raptor"}


@pytest.fixture(params=TEXTS)
def given(request, tmp_path):
    """An index of passages, with twenty nodes that match the question better, and a family with a summary."""
    question, texts = TEXTS[request.param]
    with DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings()) as index:
        index.upsert(
            [Document(text, id=f"p{n}", metadata={"year": 2000 + n}) for n, text in enumerate(texts)]
        )
        nodes = [Document(f"{question} {n}", id=f"node{n}", metadata=dict(MADE)) for n in range(20)]
        index.upsert(nodes)
        whole = Document(texts[0] + texts[2], id="whole")
        summary = Child(question, metadata={"representation": "summary"})
        index.upsert([Family(whole, [Child(whole.page_content, 0, len(whole.page_content)), summary])])
        yield index, question


def hits(found: Any) -> list[Document]:
    """Documents of results, with their scores or without."""
    return [each[0] if isinstance(each, tuple) else each for each in found]


DOORS = {
    "keyword": lambda index, question: index.search_keyword(question, 9),
    "dense": lambda index, question: index.search_dense(question, 9),
    "weighted": lambda index, question: index.keyword_view().search_weighted(
        dict.fromkeys(index.keyword_view().analyzer(question), 1.0), 9
    ),
    "spread": lambda index, question: index.keyword_view().spread({"p0": 1.0, "node0": 1.0}, 9, None),
    "bm25": lambda index, question: retrieval.index_retriever(index, "bm25", 9).invoke(question),
    "vectors": lambda index, question: retrieval.index_retriever(index, "dense", 9).invoke(question),
    "hybrid": lambda index, question: retrieval.index_retriever(index, k=9).invoke(question),
    "hybrid, async": lambda index, question: asyncio.run(
        retrieval.index_retriever(index, k=9).ainvoke(question)
    ),
    "graph": lambda index, question: retrieval.GraphRetriever(index=index, k=9).invoke(question),
    "expansion": lambda index, question: retrieval.ExpansionRetriever.from_thesaurus(
        {"question": [question]}, retrieval.index_retriever(index, "bm25", 9), k=9
    ).invoke("question"),
    "parents": lambda index, question: retrieval.ParentDocumentRetriever(index=index, k=9).invoke(question),
    "self-query": lambda index, question: SelfQueryRetriever.from_rules(index, k=9).invoke(question),
}


@pytest.mark.parametrize("door", DOORS)
def test_searches_give_passages(given, door):
    """However many summaries and nodes match better, every search gives the passages behind them, as many as asked."""
    index, question = given
    found = hits(DOORS[door](index, question))
    assert len(found) >= 2 and not any("representation" in doc.metadata for doc in found)


@pytest.mark.parametrize(
    "where",
    [
        MADE,
        {"$and": [MADE]},
        {"$or": [MADE, {"year": 1}]},
        {"$not": {"representation": {"$ne": "raptor"}}},
        {"representation": {"$exists": True, "$in": ["raptor", "poem"]}},
    ],
)
def test_who_names_the_field_gets_them(given, where):
    """A filter that names the field, however deep, decides itself; for one call or in the retriever."""
    index, question = given
    for found in (
        index.search_keyword(question, 30, where),
        index.search_dense(question, 30, where),
        retrieval.index_retriever(index, k=30, filter=where).invoke(question),
        retrieval.index_retriever(index, k=30).invoke(question, filter=where),
        asyncio.run(retrieval.index_retriever(index, k=30).ainvoke(question, filter=where)),
    ):
        assert {doc.id for doc in hits(found)} == {f"node{n}" for n in range(20)}
    [one] = hits(index.search_keyword(question, 30, {"representation": "summary"}))
    assert one.page_content == question


def test_another_filter_is_kept_with_it(given):
    """A filter on another field neither opens what was made of passages nor gets lost."""
    index, question = given
    for search in (index.search_keyword, index.search_dense):
        assert [doc.id for doc in hits(search(question, 9, {"year": {"$lte": 2000}}))] == ["p0"]


def test_a_reader_sees_what_a_writer_adds(tmp_path):
    """An index that had no such row pays nothing; a reader that is open leaves out the first one that is written."""
    with DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings()) as writer:
        writer.upsert(
            [Document("A loud fan", id="p", metadata={"score": float("nan"), "own": {"representation": 1}})]
        )
        with DocumentIndex.open(tmp_path / "index", embeddings=WordEmbeddings()) as reader:
            assert len(reader.search_keyword("fan")) == len(reader.search_dense("fan")) == 1
            writer.upsert([Document("fan fan", id="node", metadata=dict(MADE))])
            for search in (reader.search_keyword, reader.search_dense):
                assert [doc.id for doc in hits(search("fan"))] == ["p"]
            assert reader.passage_ids() == ["p"] and len(reader.ids()) == 2
    # a folder that an earlier version made does not say whether it holds any
    with closing(sqlite3.connect(tmp_path / "index" / STORE)) as store, store:
        store.execute("DELETE FROM meta WHERE key = 'derived'")
    with DocumentIndex.open(tmp_path / "index", embeddings=WordEmbeddings()) as reader:
        assert [doc.id for doc in hits(reader.search_keyword("fan"))] == ["p"]


def test_the_command_line_gives_passages(given, capsys):
    """`rag-kit retrieve` and `ask` answer from passages."""
    index, question = given
    index.flush()
    for command in ("retrieve", "ask"):
        assert main([command, question, "--index", str(index.folder), "--pipeline", "bm25", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        found = {doc["id"] for doc in answer["documents"]}
        assert "p0" in found and not any(key.startswith("node") for key in found)


def test_a_field_of_that_name_hides_nothing_silently(tmp_path, caplog):
    """A reader that gives it fails for its file, with what to do; documents given by hand are counted in the log."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.own").write_text("Fans hum.")
    readers = {"*.own": lambda path: Document(path.read_text(), metadata={"representation": "oil on canvas"})}
    report = ingest(tmp_path / "docs", tmp_path / "index", options=IngestOptions(readers=readers))
    (failed,) = report.failed
    assert "a.own" in failed[0] and "another name" in failed[1]
    with DocumentIndex.create(tmp_path / "by-hand") as index:
        index.upsert([Document("Fans hum.", metadata={"representation": "oil on canvas"})])
    assert "1 documents have the metadata field 'representation'" in caplog.text
