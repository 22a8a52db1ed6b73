"""ParentDocumentRetriever: children are searched, parents returned; k, filters, scores, auto-merging, writes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from support.blocking import blockbuster_ctx
from support.embedding import WordEmbeddings
from support.families import both, children, lines, numbered
from support.rewriters import ids

from rag_kit.documents import get_provenance
from rag_kit.errors import DocumentIndexError, InvalidInputError, LockedError
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.document_index.rows import Child, Family
from rag_kit.indexing.document_index.views import KeywordView
from rag_kit.retrieval import ParentDocumentRetriever, SentenceWindowRetriever, index_retriever

SIZES: dict[str, Any] = {"child_size": 40}


def make(*documents: Document, **fields: Any) -> ParentDocumentRetriever:
    return ParentDocumentRetriever.from_documents(list(documents), **{**SIZES, **fields})


@pytest.fixture
def bank() -> Iterator[DocumentIndex]:
    """Some documents in a temporary index with vectors."""
    with make(
        *(numbered(name) for name in ("ant", "bee", "cat")), embeddings=WordEmbeddings(512)
    ) as retriever:
        yield retriever.index


@pytest.mark.parametrize("pipeline", ["bm25", "dense", "hybrid"])
async def test_differs_from_searching_the_children(bank: DocumentIndex, pipeline: Any) -> None:
    """The whole document comes back for a sentence that the search among children finds, by every pipeline."""
    retriever = ParentDocumentRetriever(index=bank, pipeline=pipeline, k=1)
    [found] = await both(retriever, "Here bee3 is told of")
    assert (
        found.id == "bee"
        and found.page_content == numbered("bee").page_content
        and found.metadata.keys() == {"rag_kit"}
    )
    [inner] = index_retriever(bank, pipeline, k=1).invoke("Here bee3 is told of")
    assert "bee3" in inner.page_content and len(inner.page_content) < len(found.page_content)


async def test_scores_of_matched_children_are_kept(bank: DocumentIndex) -> None:
    """Every child that matched is in the provenance with id, score, rank and offsets; the parent has the best."""
    found = await both(ParentDocumentRetriever(index=bank, pipeline="bm25", k=2), "bee3 bee4 ant1")
    stage = get_provenance(found[0])["stages"][-1]
    assert stage["stage"] == "parent" and stage["matched"] == len(stage["children"])
    hits = {doc.id: (doc, score) for doc, score in bank.search_keyword("bee3 bee4 ant1", 20)}
    for document in found:
        told = children(document)
        assert told and max(child["score"] for child in told) == get_provenance(document)["score"]
        for child in told:
            hit, score = hits[child["id"]]
            assert child["score"] == score
            assert document.page_content[child["start"] : child["end"]] == hit.page_content
    assert get_provenance(found[0])["stages"][0]["stage"] == "bm25"
    assert [get_provenance(document)["rank"] for document in found] == [1, 2]


async def test_k_counts_parents() -> None:
    """Ten children of one document do not crowd out the others: it looks deeper until there are k parents."""
    many = Document(" ".join(f"Lake lake lake number{i} here." for i in range(60)), id="many")
    few = [Document(f"A lake far away, place{i}, and more of it.", id=f"few{i}") for i in range(4)]
    retriever = make(many, *few, k=3, fetch_k=3, child_size=30)
    assert len(await both(retriever, "lake")) == 3
    assert ids(await both(retriever, "lake", k=9))[0] == "many" and len(retriever.invoke("lake", k=9)) == 5


async def test_the_depth_is_bounded_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """At max_fetch_k the search ends, with fewer parents and a note that says what to raise."""
    many = Document(" ".join(f"Lake lake lake number{i} here." for i in range(60)), id="many")
    retriever = make(many, Document("A lake.", id="one"), k=2, fetch_k=2, max_fetch_k=8, child_size=30)
    asked: list[int] = []
    search = KeywordView.search

    def counted(self: KeywordView, query: str, k: int = 4, *more: Any, **options: Any) -> Any:
        asked.append(k)
        return search(self, query, k, *more, **options)

    monkeypatch.setattr(KeywordView, "search", counted)
    [found] = retriever.invoke("lake number3 number4 number5 number6 number7 number8 number9 number10")
    assert asked == [2, 8]
    assert any(
        "degraded: 1 of 2" in note and "max_fetch_k" in note for note in get_provenance(found)["notes"]
    )


async def test_chinese_and_english() -> None:
    """Chinese documents are cut and found as English ones are."""
    lake = Document("湖水很深。湖里有鱼。冬天湖面会结冰。", id="湖")
    retriever = make(lake, numbered("ant"), child_size=20)
    [found] = await both(retriever, "冬天结冰")
    assert found.page_content == lake.page_content
    [child] = children(found)
    assert "结冰" in lake.page_content[child["start"] : child["end"]]


# Spans of documents as parents


async def test_parents_may_be_spans() -> None:
    """With a parent_size the result is a verbatim span of the document, with offsets and heading."""
    text = "# Lake\n\nThe lake is deep. It is cold.\n\n# Hill\n\nThe hill is high. Goats live on it."
    retriever = make(Document(text, id="d", metadata={"format": "md"}), parent_size=60, child_size=20)
    [found] = await both(retriever, "goats")
    start, end = found.metadata["start"], found.metadata["end"]
    assert found.page_content == text[start:end] == "# Hill\n\nThe hill is high. Goats live on it."
    assert found.metadata["heading"] == "Hill" and found.metadata["parent_id"] == "d"
    assert found.id == f"d#{start}-{end}"
    assert await both(retriever, "goats", filter={"heading": "Lake"}) == []


# Filters and tenants


async def test_tenant_on_the_parent_only() -> None:
    """A splitter that drops metadata does not hide a document from its tenant, nor show it to another."""
    documents = [Document("The secret\nis told here", id=t, metadata={"tenant": t}) for t in ("a", "b")]
    retriever = make(*documents, child_splitter=lambda docs: list(lines(docs)))
    assert ids(await both(retriever, "secret told", filter={"tenant": "a"})) == ["a"]


async def test_tenant_on_the_child_only() -> None:
    """A document that holds parts of two tenants is shown whole to none of them; its parts may be."""
    parts = [Child("secret of a", metadata={"tenant": "a"}), Child("secret of b", metadata={"tenant": "b"})]
    mine = Family(Document("secret of a, secret of b", id="mixed"), parts)
    theirs = Family(
        Document("owned by b", id="b", metadata={"tenant": "b"}), [Child("secret", metadata={"tenant": "a"})]
    )
    index = make().index
    index.upsert([mine, theirs])
    retriever = ParentDocumentRetriever(index=index)
    assert set(ids(await both(retriever, "secret"))) == {"mixed", "b"}
    assert await both(retriever, "secret", filter={"tenant": "a"}) == []
    assert await both(retriever, "secret", filter={"tenant": "b"}) == []


async def test_a_retriever_that_ignores_filters() -> None:
    """Any retriever may search the children: its results are filtered, and what is gone is not returned."""
    retriever = make(*(numbered(t, tenant=t) for t in "ab"))
    everything = [
        *retriever.index.get(retriever.index.ids()),
        Document("deleted", id="no", metadata={"parent_id": "x"}),
    ]
    careless = ParentDocumentRetriever(
        index=retriever.index, retriever=RunnableLambda(lambda query: everything)
    )
    assert ids(await both(careless, "q", filter={"tenant": "a"})) == ["a"]
    assert sorted(map(str, ids(await both(careless, "q")))) == ["a", "b"]


async def test_plain_documents_stand_for_themselves() -> None:
    """Documents without children in the same index are returned as they are."""
    retriever = make(numbered("ant"))
    retriever.index.upsert([Document("A wasp alone.", id="wasp", metadata={"tenant": "w"})])
    assert ids(await both(retriever, "wasp", filter={"tenant": "w"})) == ["wasp"]
    assert (
        ids(await both(retriever, "wasp ant1")) == ["wasp", "ant"] or len(retriever.invoke("wasp ant1")) == 2
    )


async def test_config_is_passed_down(bank: DocumentIndex) -> None:
    """The search among children sees the caller's whole config, as a child run."""
    seen: list[Any] = []

    def look(query: str, config: Any) -> list[Document]:
        seen.append(config)
        return []

    retriever = ParentDocumentRetriever(index=bank, retriever=RunnableLambda(look))
    config: Any = {"tags": ["t"], "configurable": {"user": "u"}, "metadata": {"m": 1}}
    retriever.invoke("q", config)
    await retriever.ainvoke("q", config)
    assert len(seen) == 2
    assert all(
        c["configurable"]["user"] == "u" and "t" in c["tags"] and c["metadata"]["m"] == 1 for c in seen
    )


async def test_nothing_blocks_the_event_loop(bank: DocumentIndex) -> None:
    """ainvoke reads the store on threads."""
    retriever = ParentDocumentRetriever(index=bank)
    retriever.invoke("ant1")
    with blockbuster_ctx():
        assert ids(await retriever.ainvoke("ant1", k=1)) == ["ant"]


async def test_notes_of_the_search_are_kept() -> None:
    """Over an index without vectors the default pipeline says that it searched by keyword only."""
    [found] = await both(make(numbered("ant")), "ant1")
    assert any("keyword search only" in note for note in get_provenance(found)["notes"])


# Writing


def test_row_4_an_update_leaves_no_stale_child(tmp_path: Path) -> None:
    """The same id again: the new children only, the old text is found by no pipeline, now or after reopening."""
    model = WordEmbeddings()
    old, new = Document("Walrus one. Walrus two.", id="d"), Document("Ocelot one. Ocelot two.", id="d")
    with make(old, index=tmp_path / "i", embeddings=model, child_size=20) as retriever:
        count = len(retriever.index.ids())
        assert retriever.upsert([old]).unchanged == ["d"]
        report = retriever.upsert([new])
        assert report.updated == ["d"]
        assert len(retriever.index.ids()) == count
    with DocumentIndex.open(tmp_path / "i", embeddings=model) as index:
        assert index.search_keyword("walrus") == []
        for pipeline in ("bm25", "dense", "hybrid"):
            found = ParentDocumentRetriever(index=index, pipeline=pipeline).invoke("ocelot walrus")
            assert [document.page_content for document in found] == [new.page_content]
        assert index.verify().ok


async def test_row_5_a_deleted_document_is_gone() -> None:
    """delete takes parents and children; the same by aupsert and adelete."""
    retriever = make(numbered("ant"), numbered("bee"), embeddings=WordEmbeddings())
    assert retriever.delete(["ant", "unknown"]) == 1
    assert ids(await both(retriever, "ant1 bee1")) == ["bee"] and retriever.index.get(["ant"]) == []
    assert (await retriever.aupsert([numbered("cat")])).added == ["cat"]
    assert await retriever.adelete(["cat", "bee"]) == 2 and await both(retriever, "cat1 bee1") == []
    assert retriever.index.ids() == []


def test_row_6_a_failing_write_leaves_no_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the parent cannot be written its children are not there, and searches still find the rest."""
    from rag_kit.indexing.document_index import writing

    retriever = make(numbered("ant"))

    def failing(*args: Any) -> None:
        raise OSError("no parent store")

    with monkeypatch.context() as patch:
        patch.setattr(writing, "_write_records", failing)
        with pytest.raises(OSError, match="no parent store"):
            retriever.upsert([numbered("bee")])
    assert len(retriever.index.ids()) == 6 and retriever.invoke("bee1 told") != []
    assert ids(retriever.invoke("bee1 ant1")) == ["ant"]


@pytest.mark.slow
def test_row_24_ids_are_kept_and_many_children_go_in() -> None:
    """Document.id, ids= or id_key name the documents; 6,000 children, more than a Chroma batch, go in at once."""
    retriever = make(*(numbered(f"n{i}", 20) for i in range(300)), embeddings=WordEmbeddings(8))
    assert len(retriever.index.ids()) == 6000
    retriever.index.flush()
    assert ids(retriever.invoke("n299 n29919", k=1)) == ["n299"]
    by_key = make(Document("One.", metadata={"isbn": 7}), id_key="isbn")
    assert ids(by_key.invoke("one")) == ["7"]
    given = ParentDocumentRetriever.from_documents([Document("One.", id="mine")], ids=["given"])
    assert ids(given.invoke("one")) == ["given"]
    unnamed = make(Document("One.", metadata={"source": "s"}))
    assert unnamed.upsert([Document("One.", metadata={"source": "s"})]).unchanged == ids(
        unnamed.invoke("one")
    )


def test_a_folder_is_made_opened_and_closed(tmp_path: Path) -> None:
    """A folder's index is made when there is none, else opened, and closed with the retriever; one given is not."""
    for name in ("ant", "bee"):
        with make(numbered(name), index=tmp_path / "i"):
            with pytest.raises(LockedError):
                DocumentIndex.open(tmp_path / "i", mode="w")
    with DocumentIndex.open(tmp_path / "i", mode="w") as index:
        make(numbered("cat"), index=index).close()
        assert index.stats()["parents"] == 3
    with DocumentIndex.open(tmp_path / "i") as index, pytest.raises(DocumentIndexError, match="mode='w'"):
        ParentDocumentRetriever(index=index).upsert([numbered("dog")])
    with pytest.raises(InvalidInputError, match="id 'x'"):
        make(Document("a", id="x"), Document("b", id="x"), index=tmp_path / "i")
    DocumentIndex.open(tmp_path / "i", mode="w").close()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"k": 0}, "k=0"),
        ({"fetch_k": 0}, "fetch_k=0"),
        ({"max_fetch_k": None}, "max_fetch_k=None"),
        ({"child_size": 5}, "chunk_size=5"),
        ({"parent_size": 300, "child_size": 300}, "smaller"),
        ({"parent_size": "300"}, "parent_size"),
        ({"parent_size": 2000, "parent_splitter": lines}, "not both"),
        ({"pipeline": "magic"}, "pipeline"),
        ({"window": 1}, "'window' is no argument"),
        ({"index": 3}, "index must be"),
        ({"child_splitter": 3}, "splitter"),
        ({"ids": ["a", "b"]}, "1 documents need as many ids, not 2"),
    ],
)
def test_bad_arguments_are_refused(fields: dict[str, Any], told: str) -> None:
    """Wrong arguments are refused on construction, by name."""
    with pytest.raises(InvalidInputError, match=told):
        make(numbered("ant"), **fields)


def test_open_index_and_model_do_not_clash(bank: DocumentIndex) -> None:
    """An embedding model beside an open index, which has its own, is refused."""
    with pytest.raises(InvalidInputError, match="its own embedding model"):
        make(numbered("x"), index=bank, embeddings=WordEmbeddings())


def test_a_temporary_index_goes_with_its_last_user() -> None:
    """The folder of an index made for a retriever is removed when neither of the two is used any more."""
    retriever = make(numbered("ant"))
    index = retriever.index
    folder = index.folder
    del retriever
    gc.collect()
    assert folder.is_dir() and len(index.ids()) == 6
    del index
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize("wrong", [["a text"], "a text", 5, None, [None], Document("x")])
def test_documents_that_are_none_are_named(wrong: Any, tmp_path: Path) -> None:
    """Strings, or one document alone, are refused by the indexes too."""
    with (
        DocumentIndex.create(tmp_path / "index") as index,
        pytest.raises(InvalidInputError, match="documents"),
    ):
        index.upsert(wrong)
    for family in (ParentDocumentRetriever, SentenceWindowRetriever):
        with pytest.raises(InvalidInputError, match="give a list of LangChain Documents"):
            family.from_documents(wrong)


def test_the_same_document_twice_is_one() -> None:
    """One id names two documents only if they differ in more than their place in the call."""
    twice = [Document("The fan hums. Tea is hot.", id="a", metadata={"n": 1}) for _ in range(2)]
    for family in (ParentDocumentRetriever, SentenceWindowRetriever):
        with family.from_documents(twice) as retriever:
            assert len(retriever.invoke("fan")) == 1
        other = Document("The fan hums. Tea is hot.", id="a", metadata={"n": 2})
        with pytest.raises(InvalidInputError, match="two different documents"):
            family.from_documents([twice[0], other])
