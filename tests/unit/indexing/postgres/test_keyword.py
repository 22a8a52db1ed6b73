"""Keyword search in PostgreSQL: the results of a folder, whatever was added, changed and deleted, tenant by tenant."""

from __future__ import annotations

import itertools
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from rag_kit.concurrency.notes import use_notes
from rag_kit.indexing import DocumentIndex

psycopg = pytest.importorskip("psycopg")
keyword_search = pytest.importorskip("rag_kit.indexing.postgres.keyword_search")

WORDS = ["Pumps", "pump", "of", "starts", "at", "40.5", "v2.1-b", "Zorvan"]
WORDS += ["水泵", "启动", "在四十度", "。", "\n", "%s"]
QUERIES = ["the pump starts", "水泵在四十度启动", "Zorvan " * 70 + "v2.1-b", "of", "", "nothing 没有"]
FILTERS = [None, {"year": 1}, {"year": {"$ne": 1}}, {"year": {"$gt": 5}}]
_tenants = itertools.count()


@pytest.fixture(scope="module")
def server(plain_url: str) -> str:
    """The URL of an index, for a role that policies hold for."""
    return f"{plain_url}&index=keyword"


texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
written = st.builds(
    lambda key, text, year, title: Document(text, id=key, metadata={"year": year, **title}),
    st.sampled_from("abcdefghij"),
    texts,
    st.integers(0, 3),
    st.sampled_from([{}, {"title": "Orion 手册"}]),
)
write = st.lists(written, max_size=6, unique_by=lambda doc: doc.id) | st.sets(st.sampled_from("abcdefghij"))


@settings(max_examples=10, deadline=None)
@given(st.lists(write, min_size=1, max_size=6))
def test_results_are_those_of_a_folder(server: str, writes: list[list[Document] | set[str]]) -> None:
    """Ids, their order and scores are equal after each write, with filters and weights; verify finds nothing."""
    with (
        tempfile.TemporaryDirectory() as folder,
        DocumentIndex.create(f"{folder}/index") as near,
        DocumentIndex.create(f"{server}&tenant={next(_tenants)}") as far,
    ):
        for change in writes:
            for index in (near, far):
                if isinstance(change, set):
                    index.delete(sorted(change))
                elif change:
                    index.upsert(change)
            ours, theirs = far.keyword_view(), near.keyword_view()
            assert ("a" in ours) == ("a" in theirs)
            for query, where in itertools.product(QUERIES, FILTERS):
                for k in (2, 20):
                    found, wanted = ours.search(query, k, where), theirs.search(query, k, where)
                    assert [(doc, pytest.approx(score, abs=1e-6)) for doc, score in wanted] == found
                    assert found.maximum == pytest.approx(wanted.maximum, abs=1e-9)
            weights = {"pump": 0.5, "启动": 2.0, "zzz": 9.0}
            found, wanted = (view.search_weighted(weights, 5) for view in (ours, theirs))
            assert found == wanted and found.maximum == pytest.approx(wanted.maximum, abs=1e-9)
            walks = [view.spread({"a": 1.0, "b": 2.0}, 20, {"year": {"$ne": 2}}) for view in (ours, theirs)]
            assert masses(walks[0]) == pytest.approx(masses(walks[1]), rel=1e-5)
        assert far.verify().ok, str(far.verify())


def masses(walk: list[tuple[Document, float, list[str]]]) -> dict[str | None, float]:
    return {doc.id: mass for doc, mass, _ in walk}


def test_postings_of_several_blocks(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Postings of a term over many rows are one list, also after documents were removed and added."""
    monkeypatch.setattr(keyword_search, "BLOCK", 4)
    docs = [Document(f"pump number {n}", id=f"{n:02}") for n in range(30)]
    with DocumentIndex.create(tmp_path / "a") as near, DocumentIndex.create(f"{server}&tenant=blocks") as far:
        for index in (near, far):
            index.upsert(docs)
            index.delete([doc.id or "" for doc in docs[3:17]])
            index.upsert([Document("a pump again", id=f"new{n}") for n in range(9)])
        assert far.search_keyword("pump again 20", 50) == near.search_keyword("pump again 20", 50)
        assert far.verify().ok


def test_verify_and_repair(server: str) -> None:
    """Postings that are not those of the chunks are found, and made again."""
    with DocumentIndex.create(f"{server}&tenant=verify") as index:
        index.upsert([Document("the pump starts", id="1"), Document("a fan hums", id="2")])
        for damage in (
            "DELETE FROM keyword_postings WHERE term = 'pump'",
            "DELETE FROM keyword_documents WHERE length = 2",
            "UPDATE keyword_documents SET terms = 'fan 9'",
            "UPDATE keyword_counts SET tokens = 7",
        ):
            with index._store.writing() as connection:
                connection.execute(damage)
            report = index.verify()
            assert report.problems and all("keyword" in problem for problem in report.problems)
            assert index.repair().ok and index.verify().ok
            assert [doc.id for doc, _ in index.search_keyword("pump")] == ["1"]


def test_a_misspelt_word_is_searched_as_in_a_folder(server: str) -> None:
    """The nearest word of the tenant's own documents is searched, with a note; a filter hides words of others."""
    with (
        DocumentIndex.create(f"{server}&tenant=spelling") as index,
        DocumentIndex.create(f"{server}&tenant=other") as other,
    ):
        index.upsert([Document("The warranty lasts.", id="a", metadata={"year": 1})])
        other.upsert([Document("The merger waits.", id="b", metadata={"year": 1})])
        with use_notes() as notes:
            assert [hit.id for hit, _ in index.search_keyword("warrenty")] == ["a"]
            assert (
                index.search_keyword("mergre") == index.search_keyword("warrenty", filter={"year": 2}) == []
            )
        assert notes.texts == ["searched 'warranty' for 'warrenty'"]
