"""LangChain's ensemble, multi-query retriever, HyDE, BM25 and parent-document retriever beside ours.

Each test first shows LangChain's behaviour, and so fails when LangChain mends it; then that ours is right.
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from support.embedding import WordEmbeddings
from support.families import numbered
from support.rewriters import Scripted, ids, sent

from rag_kit.documents import get_provenance
from rag_kit.retrieval import (
    BM25Retriever,
    EnsembleRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip(
        "langchain_classic.retrievers", reason="LangChain's retrievers are in langchain-classic"
    )
    from langchain_classic.storage import InMemoryStore
    from langchain_community.retrievers import BM25Retriever as LangChainBM25


def returns(*texts: str, **metadata: Any) -> RunnableLambda[str, list[Document]]:
    return RunnableLambda(lambda query: [Document(text, metadata=dict(metadata)) for text in texts])


def their_ensemble(*retrievers: Any, **kwargs: Any) -> Any:
    values = {"weights": [1.0] * len(retrievers), **kwargs}
    return theirs.EnsembleRetriever(retrievers=list(retrievers), **values)


class Counting:
    """A slow retriever that counts how many calls run at once, and in all."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.most, self.calls = seconds, 0, 0, 0
        self.lock = threading.Lock()

    def enter(self) -> None:
        with self.lock:
            self.calls += 1
            self.now += 1
            self.most = max(self.most, self.now)

    def leave(self) -> list[Document]:
        with self.lock:
            self.now -= 1
        return [Document("x")]

    def call(self, query: str) -> list[Document]:
        self.enter()
        time.sleep(self.seconds)
        return self.leave()

    async def acall(self, query: str) -> list[Document]:
        self.enter()
        await asyncio.sleep(self.seconds)
        return self.leave()

    def leaf(self) -> RunnableLambda[str, list[Document]]:
        return RunnableLambda(self.call, afunc=self.acall)


def test_row_3_no_scores_or_sources() -> None:
    """LangChain's results say nothing of score or source; ours name every branch with rank and weight."""
    leaves = [returns("a", "b"), returns("b")]
    found = their_ensemble(*leaves).invoke("q")
    assert [doc.metadata for doc in found] == [{}, {}]
    record = get_provenance(EnsembleRetriever(retrievers=leaves).invoke("q")[0])
    assert record["score"] == pytest.approx(1 / 62 + 1 / 61)
    assert [stage["rank"] for stage in record["stages"]] == [2, 1, 1]


def test_row_13_duplicates_in_one_list() -> None:
    """In LangChain a document repeated in one list beats the one that is first in both; not in ours."""
    leaves = [returns("right", "again", "again", "again"), returns("right")]
    assert their_ensemble(*leaves).invoke("q")[0].page_content == "again"
    assert EnsembleRetriever(retrievers=leaves).invoke("q")[0].page_content == "right"


def test_row_14_one_failure_fails_all() -> None:
    """In LangChain one failing retriever fails the call; ours goes on and says what is missing."""

    def broken(query: str) -> list[Document]:
        raise ConnectionError("down")

    leaves = [returns("a"), RunnableLambda(broken)]
    with pytest.raises(ConnectionError):
        their_ensemble(*leaves).invoke("q")
    found = EnsembleRetriever(retrievers=leaves).invoke("q")
    assert [doc.page_content for doc in found] == ["a"]
    assert "ConnectionError" in get_provenance(found[0])["notes"][0]


def test_row_15_sync_is_sequential() -> None:
    """LangChain's invoke calls one retriever after the other; ours side by side."""
    counter = Counting(0.1)
    leaves = [counter.leaf() for _ in range(5)]
    their_ensemble(*leaves).invoke("q")
    assert counter.most == 1
    EnsembleRetriever(retrievers=leaves).invoke("q")
    assert counter.most == 5


async def test_row_16_async_ignores_max_concurrency() -> None:
    """LangChain's ainvoke runs all at once whatever max_concurrency says; ours keeps to it."""
    config: Any = {"max_concurrency": 2}
    counter = Counting(0.05)
    leaves = [counter.leaf() for _ in range(10)]
    await their_ensemble(*leaves).ainvoke("q", config)
    assert counter.most == 10
    counter.most = 0
    await EnsembleRetriever(retrievers=leaves).ainvoke("q", config)
    assert counter.most == 2


def test_row_20_document_id_is_not_identity() -> None:
    """LangChain joins two documents of the same text though their ids differ; ours keeps them apart."""
    leaves = [
        RunnableLambda(lambda q: [Document("same", id="1")]),
        RunnableLambda(lambda q: [Document("same", id="2")]),
    ]
    assert len(their_ensemble(*leaves).invoke("q")) == 1
    assert [doc.id for doc in EnsembleRetriever(retrievers=leaves).invoke("q")] == ["1", "2"]


def test_row_20_zero_weight_still_runs() -> None:
    """LangChain runs a retriever of weight 0 and keeps its results; ours does neither."""
    counter = Counting(0)
    leaves = [returns("a"), counter.leaf()]
    assert len(their_ensemble(*leaves, weights=[1.0, 0.0]).invoke("q")) == 2
    assert counter.calls == 1
    assert len(EnsembleRetriever(retrievers=leaves, weights=[1, 0]).invoke("q")) == 1
    assert counter.calls == 1


def test_row_20_no_top_k() -> None:
    """LangChain returns the whole union and ignores k in the call; ours returns k."""
    leaves = [returns(*"abcdef"), returns(*"ghijkl")]
    assert len(their_ensemble(*leaves).invoke("q", None)) == 12
    assert len(EnsembleRetriever(retrievers=leaves, k=3).invoke("q")) == 3
    assert len(EnsembleRetriever(retrievers=leaves).invoke("q", None, k=5)) == 5


def test_same_scores_without_duplicates() -> None:
    """Both give the same order where LangChain is right: ranks from 1, k = 60, weights."""
    leaves = [returns("a", "b", "c", "d"), returns("d", "c", "x"), returns("y", "b")]
    weights = [0.5, 0.3, 0.2]
    expected = [doc.page_content for doc in their_ensemble(*leaves, weights=weights).invoke("q")]
    ours = EnsembleRetriever(retrievers=leaves, weights=weights, k=20).invoke("q")
    assert [doc.page_content for doc in ours] == expected


QUESTION = "What is the question?"
LINES = "one way to ask\nanother way to ask\na third way to ask"


class Leaf(BaseRetriever):
    """Keeps the queries, and gives what a function finds for them."""

    found: Any = None
    queries: Any = None

    def model_post_init(self, context: Any) -> None:
        self.queries = []

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.queries.append(query)
        return self.found(query) if self.found else [Document(query, id=query)]


def their_multi_query(leaf: Any, script: Any = LINES, **kwargs: Any) -> Any:
    return theirs.MultiQueryRetriever.from_llm(leaf, Scripted(script=script), **kwargs)


def our_multi_query(leaf: Any, script: Any = LINES, **kwargs: Any) -> MultiQueryRetriever:
    return MultiQueryRetriever.from_llm(Scripted(script=script), leaf, **kwargs)


def test_row_17_deduplication() -> None:
    """LangChain compares metadata too: copies that differ in a score all stay."""

    def scored(query: str) -> list[Document]:
        return [Document("same", id="1", metadata={"score": query})]

    assert len(their_multi_query(Leaf(found=scored)).invoke(QUESTION)) == 3
    assert len(our_multi_query(Leaf(found=scored)).invoke(QUESTION)) == 1


@pytest.mark.parametrize(
    ("script", "junk"),
    [
        ("Sure! Here are three versions:\n1. fan noise\n2. fan sound", "Sure! Here are three versions:"),
        ("- fan noise\n- fan sound", "- fan noise"),
        ("<think>\nlet me see\n</think>\nfan noise\nfan sound", "let me see"),
    ],
)
def test_row_18_junk_is_searched_for(script: str, junk: str) -> None:
    """LangChain searches for numbering, bullets, preambles and reasoning; ours for the queries."""
    leaf = Leaf()
    their_multi_query(leaf, script).invoke(QUESTION)
    assert junk in leaf.queries
    leaf.queries.clear()
    our_multi_query(leaf, script).invoke(QUESTION)
    assert sorted(leaf.queries) == sorted([QUESTION, "fan noise", "fan sound"])


@pytest.mark.parametrize("script", ["", " \n "])
def test_row_18_empty_output_finds_nothing(script: str) -> None:
    """With an empty answer LangChain returns nothing; ours searches for the question and says so."""
    assert their_multi_query(Leaf(), script).invoke(QUESTION) == []
    found = our_multi_query(Leaf(), script).invoke(QUESTION)
    assert ids(found) == [QUESTION]
    assert any("degraded" in note for note in get_provenance(found[0])["notes"])


def test_row_19_unranked_union() -> None:
    """LangChain returns the union in the order of the queries, whole; ours ranks it and takes k."""
    lists = {"one way to ask": "abc", "another way to ask": "cx", "a third way to ask": "cy", QUESTION: "c"}
    leaf = Leaf(found=lambda query: [Document(name, id=name) for name in lists[query]])
    assert ids(their_multi_query(leaf).invoke(QUESTION)) == ["a", "b", "c", "x", "y"]
    assert ids(our_multi_query(leaf, k=2).invoke(QUESTION)) == ["c", "a"]
    assert len(our_multi_query(leaf).invoke(QUESTION, None, k=5)) == 5


def their_hyde(model: Any) -> Any:
    hyde = pytest.importorskip("langchain_classic.chains.hyde.base")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hyde.HypotheticalDocumentEmbedder.from_llm(
            model, WordEmbeddings(), custom_prompt=PromptTemplate.from_template("Answer {question}")
        )


async def test_row_21_hyde_is_an_embedding_model() -> None:
    """LangChain's HyDE is an embedding model inside the store: one passage, the question unused, numpy numbers, a
    blocking call in async code, and no run of its own in the trace. Ours is a retriever and has none of these."""
    model = Scripted(script="a passage about bees")
    embedder = their_hyde(model)
    vector = embedder.embed_query(QUESTION)
    assert type(vector[0]).__name__ == "float64"
    assert vector == WordEmbeddings().vector("a passage about bees")  # nothing of the question in it
    assert len(model.prompts) == 1
    assert "aembed_query" not in vars(type(embedder))
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_texts(["a passage about bees", "the question of what is"])
    ours = HyDERetriever.from_llm(Scripted(script=['["bees one"]', '["bees two"]']), store, n=2)
    found = await ours.ainvoke(QUESTION)
    assert sorted(sent(found)) == sorted([QUESTION, "bees one", "bees two"])
    assert type(get_provenance(found[0])["score"]) is float


SPLITTER = RecursiveCharacterTextSplitter(chunk_size=30, chunk_overlap=0, separators=[". "])
OLD, NEW = Document("Walrus one. Walrus two. Walrus three.", id="d"), Document("Ocelot only here.", id="d")


def their_parents(vectorstore: Any = None, docstore: Any = None) -> Any:
    return theirs.ParentDocumentRetriever(
        vectorstore=vectorstore or InMemoryVectorStore(WordEmbeddings(512)),
        docstore=docstore or InMemoryStore(),
        child_splitter=SPLITTER,
    )


def our_parents(*documents: Document, **fields: Any) -> ParentDocumentRetriever:
    return ParentDocumentRetriever.from_documents(
        list(documents), embeddings=WordEmbeddings(512), child_splitter=SPLITTER, **fields
    )


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def test_row_4_update_leaves_stale_children() -> None:
    """In LangChain the old children stay under the id and bring up the new text; ours are replaced."""
    retriever = their_parents()
    retriever.add_documents([OLD], ids=["d"])
    before = len(retriever.vectorstore.store)
    retriever.add_documents([NEW], ids=["d"])
    assert len(retriever.vectorstore.store) > before
    stale = retriever.vectorstore.similarity_search("walrus one", k=1)
    assert "Walrus" in stale[0].page_content and texts(retriever.invoke("walrus")) == [NEW.page_content]
    ours = our_parents(OLD)
    ours.upsert([NEW])
    assert texts(ours.index.get(ours.index.ids())) == [NEW.page_content]
    assert ours.index.search_keyword("walrus") == []


def test_row_5_there_is_no_delete() -> None:
    """LangChain's retriever cannot delete; ours takes parent and children."""
    assert not hasattr(their_parents(), "delete")
    ours = our_parents(OLD)
    assert ours.delete(["d"]) == 1 and ours.invoke("walrus") == [] and ours.index.ids() == []


def test_row_6_a_failing_parent_store_leaves_orphans(monkeypatch: pytest.MonkeyPatch) -> None:
    """In LangChain children without parents stay behind and queries silently give nothing; ours write nothing."""

    class Failing(InMemoryStore):
        def mset(self, pairs: Any) -> None:
            raise OSError("the parent store is down")

    retriever = their_parents(docstore=Failing())
    with pytest.raises(OSError, match="down"):
        retriever.add_documents([OLD])
    assert retriever.vectorstore.store and retriever.invoke("walrus") == []

    from rag_kit.indexing.document_index import writing

    def failing(*args: Any) -> None:
        raise OSError("the parent store is down")

    ours = our_parents(numbered("ant"))
    count = len(ours.index.ids())
    with monkeypatch.context() as patch:
        patch.setattr(writing, "_write_records", failing)
        with pytest.raises(OSError, match="down"):
            ours.upsert([OLD])
    assert len(ours.index.ids()) == count and texts(ours.invoke("walrus")) == [numbered("ant").page_content]


def test_row_24_document_ids_are_ignored() -> None:
    """LangChain gives a document with an id a random one; ours keeps it."""
    retriever = their_parents()
    retriever.add_documents([OLD])
    assert "d" not in list(retriever.docstore.yield_keys())
    assert [document.id for document in our_parents(OLD).index.get(["d"])] == ["d"]


@pytest.mark.slow
def test_row_24_more_rows_than_a_chroma_batch(tmp_path: Path) -> None:
    """LangChain hands 6,000 children to Chroma at once, which raises; ours go in."""
    chroma = pytest.importorskip("langchain_chroma", reason="needs langchain-chroma")
    documents = [numbered(f"n{i}", 20) for i in range(300)]
    store = chroma.Chroma("children", WordEmbeddings(8), persist_directory=str(tmp_path / "theirs"))
    with pytest.raises(Exception, match=r"[Bb]atch size"):
        their_parents(vectorstore=store).add_documents(documents)
    ours = ParentDocumentRetriever.from_documents(
        documents, index=tmp_path / "ours", embeddings=WordEmbeddings(8), child_splitter=SPLITTER
    )
    with ours:
        assert len(ours.index.ids()) > 5461


def test_k_counts_children() -> None:
    """LangChain's k counts children, so one document fills all places; ours counts parents."""
    many = Document(". ".join(f"Lake lake number{i} here" for i in range(30)), id="many")
    few = [Document(f"Lake place{i} is far away", id=f"few{i}") for i in range(3)]
    retriever = their_parents()
    retriever.add_documents([many, *few])
    retriever.search_kwargs = {"k": 4}
    assert len(retriever.invoke("lake lake number here")) == 1
    assert len(our_parents(many, *few, k=4).invoke("lake lake number here")) == 4


CHINESE = ["今天天气很好", "机器学习是人工智能的分支", "他喜欢踢足球", "上海在下雨"]
ANIMALS = ["Cats.", "A dog barks.", "Fish swim.", "Birds fly."]


def test_row_7_chinese_scores_are_all_zero_there() -> None:
    """Splitting on white space leaves Chinese without a single match; here it is found."""
    theirs = LangChainBM25.from_texts(CHINESE)
    assert not theirs.vectorizer.get_scores(theirs.preprocess_func("机器学习")).any()
    assert texts(BM25Retriever.from_texts(CHINESE).invoke("机器学习")) == [CHINESE[1]]


def test_row_7_inflection_and_punctuation_hide_words_there() -> None:
    """ "cats" does not match "Cats."; here it does."""
    theirs = LangChainBM25.from_texts(ANIMALS)
    assert not theirs.vectorizer.get_scores(theirs.preprocess_func("cats")).any()
    assert texts(BM25Retriever.from_texts(ANIMALS).invoke("cats")) == ["Cats."]


def test_row_8_zero_scores_are_returned_there() -> None:
    """A query that matches nothing still returns k documents; here none."""
    assert len(LangChainBM25.from_texts(ANIMALS, k=3).invoke("zebra")) == 3
    assert BM25Retriever.from_texts(ANIMALS, k=3).invoke("zebra") == []


def test_row_9_results_are_live_objects_there() -> None:
    """An edit of a result shows in the next query; here results are copies."""
    theirs = LangChainBM25.from_texts(ANIMALS)
    theirs.invoke("fish")[0].metadata["edited"] = True
    assert any("edited" in doc.metadata for doc in theirs.invoke("fish"))
    ours = BM25Retriever.from_texts(["a fish"])
    ours.invoke("fish")[0].metadata["edited"] = True
    assert "edited" not in ours.invoke("fish")[0].metadata


def test_row_9_filter_and_k_of_the_call_are_ignored_there() -> None:
    """A metadata filter or k given to the call is dropped without a word there; here it selects."""
    metadatas = [{"n": n} for n in range(4)]
    theirs = LangChainBM25.from_texts(ANIMALS, metadatas=metadatas).invoke("fish", filter={"n": 1}, k=1)
    assert {doc.metadata["n"] for doc in theirs} == {0, 1, 2, 3}
    ours = BM25Retriever.from_texts(["a fish"] * 4, metadatas)
    assert [doc.metadata["n"] for doc in ours.invoke("fish", filter={"n": 1})] == [1]


def test_same_scores_with_the_same_words() -> None:
    """Given LangChain's own words and parameters, the okapi variant gives its scores."""
    corpus = ["the cat sat", "the dog sat down", "a bird", "the cat and the dog"]
    theirs = LangChainBM25.from_texts(corpus)
    ours = BM25Retriever.from_texts(corpus, k1=1.5, b=0.75, variant="okapi", analyzer=str.split)
    for query in ("the cat", "dog sat sat", "bird"):
        assert ours.index.scores(query) == pytest.approx(
            theirs.vectorizer.get_scores(query.split()), abs=1e-9
        )
