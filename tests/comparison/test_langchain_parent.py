"""LangChain's ParentDocumentRetriever beside ours.

Each test first shows LangChain's behaviour, and so fails when LangChain mends it; then that ours is right.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from support.embedding import WordEmbeddings
from support.families import children, numbered

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval import ParentDocumentRetriever

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip(
        "langchain_classic.retrievers.parent_document_retriever",
        reason="LangChain's parent-document retriever is in langchain-classic",
    )
    from langchain_classic.storage import InMemoryStore

SPLITTER = RecursiveCharacterTextSplitter(chunk_size=30, chunk_overlap=0, separators=[". "])
OLD, NEW = Document("Walrus one. Walrus two. Walrus three.", id="d"), Document("Ocelot only here.", id="d")


def their_retriever(vectorstore: Any = None, docstore: Any = None) -> Any:
    return theirs.ParentDocumentRetriever(
        vectorstore=vectorstore or InMemoryVectorStore(WordEmbeddings(512)),
        docstore=docstore or InMemoryStore(),
        child_splitter=SPLITTER,
    )


def our_retriever(*documents: Document, **fields: Any) -> ParentDocumentRetriever:
    return ParentDocumentRetriever.from_documents(
        list(documents), embeddings=WordEmbeddings(512), child_splitter=SPLITTER, **fields
    )


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def test_row_4_update_leaves_stale_children() -> None:
    """In LangChain the old children stay under the id and bring up the new text; ours are replaced."""
    retriever = their_retriever()
    retriever.add_documents([OLD], ids=["d"])
    before = len(retriever.vectorstore.store)
    retriever.add_documents([NEW], ids=["d"])
    assert len(retriever.vectorstore.store) > before
    stale = retriever.vectorstore.similarity_search("walrus one", k=1)
    assert "Walrus" in stale[0].page_content and texts(retriever.invoke("walrus")) == [NEW.page_content]
    ours = our_retriever(OLD)
    ours.upsert([NEW])
    assert texts(ours.index.get(ours.index.ids())) == [NEW.page_content]
    assert ours.index.search_keyword("walrus") == []


def test_row_4_the_same_documents_twice_are_there_twice() -> None:
    """In LangChain adding the same documents again doubles the children; ours stay as they are."""
    retriever = their_retriever()
    retriever.add_documents([OLD], ids=["d"])
    once = len(retriever.vectorstore.store)
    retriever.add_documents([OLD], ids=["d"])
    assert len(retriever.vectorstore.store) == 2 * once
    ours = our_retriever(OLD)
    count = len(ours.index.ids())
    assert ours.upsert([OLD]).unchanged == ["d"] and len(ours.index.ids()) == count


def test_row_5_there_is_no_delete() -> None:
    """LangChain's retriever cannot delete; ours takes parent and children."""
    assert not hasattr(their_retriever(), "delete")
    ours = our_retriever(OLD)
    assert ours.delete(["d"]) == 1 and ours.invoke("walrus") == [] and ours.index.ids() == []


def test_row_6_a_failing_parent_store_leaves_orphans(monkeypatch: pytest.MonkeyPatch) -> None:
    """In LangChain children without parents stay behind and queries silently give nothing; ours write nothing."""

    class Failing(InMemoryStore):
        def mset(self, pairs: Any) -> None:
            raise OSError("the parent store is down")

    retriever = their_retriever(docstore=Failing())
    with pytest.raises(OSError, match="down"):
        retriever.add_documents([OLD])
    assert retriever.vectorstore.store and retriever.invoke("walrus") == []

    from rag_kit.indexing.document_index import writing

    def failing(*args: Any) -> None:
        raise OSError("the parent store is down")

    ours = our_retriever(numbered("ant"))
    count = len(ours.index.ids())
    with monkeypatch.context() as patch:
        patch.setattr(writing, "_write_records", failing)
        with pytest.raises(OSError, match="down"):
            ours.upsert([OLD])
    assert len(ours.index.ids()) == count and texts(ours.invoke("walrus")) == [numbered("ant").page_content]


def test_row_24_document_ids_are_ignored() -> None:
    """LangChain gives a document with an id a random one; ours keeps it."""
    retriever = their_retriever()
    retriever.add_documents([OLD])
    assert "d" not in list(retriever.docstore.yield_keys())
    assert [document.id for document in our_retriever(OLD).index.get(["d"])] == ["d"]


@pytest.mark.slow
def test_row_24_more_rows_than_a_chroma_batch(tmp_path: Path) -> None:
    """LangChain hands 6,000 children to Chroma at once, which raises; ours go in."""
    chroma = pytest.importorskip("langchain_chroma", reason="needs langchain-chroma")
    documents = [numbered(f"n{i}", 20) for i in range(300)]
    store = chroma.Chroma("children", WordEmbeddings(8), persist_directory=str(tmp_path / "theirs"))
    with pytest.raises(Exception, match=r"[Bb]atch size"):
        their_retriever(vectorstore=store).add_documents(documents)
    ours = ParentDocumentRetriever.from_documents(
        documents, index=tmp_path / "ours", embeddings=WordEmbeddings(8), child_splitter=SPLITTER
    )
    with ours:
        assert len(ours.index.ids()) > 5461


def test_row_3_no_scores_of_children() -> None:
    """LangChain's parents say nothing of what matched; ours list every child with score and offsets."""
    retriever = their_retriever()
    retriever.add_documents([Document(OLD.page_content)])
    assert retriever.invoke("walrus two")[0].metadata == {}
    [found] = our_retriever(OLD, pipeline="dense").invoke("walrus two")
    assert len(children(found)) == 2
    assert all(child["score"] is not None and child["id"] and child["end"] for child in children(found))


def test_k_counts_children() -> None:
    """LangChain's k counts children, so one document fills all places; ours counts parents."""
    many = Document(". ".join(f"Lake lake number{i} here" for i in range(30)), id="many")
    few = [Document(f"Lake place{i} is far away", id=f"few{i}") for i in range(3)]
    retriever = their_retriever()
    retriever.add_documents([many, *few])
    retriever.search_kwargs = {"k": 4}
    assert len(retriever.invoke("lake lake number here")) == 1
    assert len(our_retriever(many, *few, k=4).invoke("lake lake number here")) == 4


def test_tenants_of_parents_are_not_checked() -> None:
    """LangChain fetches parents by id and looks at nothing; ours checks the filter again."""
    retriever = their_retriever()
    retriever.docstore.mset([("d", Document("secret of b", metadata={"tenant": "b"}))])
    retriever.vectorstore.add_documents([Document("secret", metadata={"tenant": "a", "doc_id": "d"})])
    retriever.search_kwargs = {"filter": lambda doc: doc.metadata["tenant"] == "a"}
    assert texts(retriever.invoke("secret")) == ["secret of b"]

    from rag_kit.indexing.document_index.rows import Child, Family

    ours = our_retriever()
    family = Family(
        Document("secret of b", id="d", metadata={"tenant": "b"}), [Child("secret", metadata={"tenant": "a"})]
    )
    ours.index.upsert([family])
    assert len(ours.invoke("secret")) == 1 and ours.invoke("secret", filter={"tenant": "a"}) == []


def test_uneven_ids() -> None:
    """Both refuse another number of ids than documents; ours names what was given."""
    with pytest.raises(ValueError, match="uneven"):
        their_retriever().add_documents([OLD], ids=["a", "b"])
    with pytest.raises(InvalidInputError, match="1 documents need as many ids, not 2"):
        our_retriever(OLD, ids=["a", "b"])
