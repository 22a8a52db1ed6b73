"""Every retriever without a live connection can be pickled, deep-copied and used in another process."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from support.outages import ask

import rag_kit.retrieval as kit
from rag_kit.errors import RagKitError
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.raptor.build import build_raptor
from rag_kit.models import chat_model
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval.rerank.scorers import MMRReranker

DOCS = [
    Document(f"The fan of {2000 + n} is loud. 风扇{n}很吵。", id=str(n), metadata={"year": 2000 + n})
    for n in range(6)
]
EMBEDDINGS = DeterministicFakeEmbedding(size=8)
QUESTION = "Why is the fan of 2003 loud? 风扇"


def words() -> kit.BM25Retriever:
    """A keyword retriever."""
    return kit.BM25Retriever.from_documents(DOCS)


def vectors() -> kit.VectorRetriever:
    """A retriever over a store in memory."""
    store = InMemoryVectorStore(EMBEDDINGS)
    store.add_documents(DOCS)
    return kit.VectorRetriever(vectorstore=store)


def model(answer: str = '{"queries": ["fan noise"]}') -> FakeListChatModel:
    """A model that always gives one answer."""
    return FakeListChatModel(responses=[answer])


def sources() -> dict[str, Any]:
    """Two sources to choose from."""
    return {
        "a": (words(), "fans"),
        "b": (vectors(), "noise"),
    }


MADE: dict[str, Callable[[], BaseRetriever]] = {
    "BM25Retriever": words,
    "VectorRetriever": vectors,
    "EnsembleRetriever": lambda: kit.EnsembleRetriever(retrievers=[words(), vectors()]),
    "HybridRetriever": lambda: kit.HybridRetriever(
        retrievers=[words(), kit.ExactVectorRetriever.from_documents(DOCS, EMBEDDINGS)]
    ),
    "MultiQueryRetriever": lambda: kit.MultiQueryRetriever.from_llm(model(), words()),
    "StepBackRetriever": lambda: kit.StepBackRetriever.from_llm(model('{"query": "noise"}'), words()),
    "HyDERetriever": lambda: kit.HyDERetriever.from_llm(model('{"passages": ["noise"]}'), vectors()),
    "Query2DocRetriever": lambda: kit.Query2DocRetriever.from_llm(model('{"passages": ["noise"]}'), words()),
    "DecompositionRetriever": lambda: kit.DecompositionRetriever.from_llm(model(), words()),
    "ConversationalRetriever": lambda: kit.ConversationalRetriever.from_llm(
        model('{"query": "fan"}'), words()
    ),
    "GraphRetriever": lambda: kit.GraphRetriever(index=kit.BM25Retriever.from_documents(DOCS).index),
    "RerankRetriever": lambda: kit.RerankRetriever(retriever=words(), reranker=[MMRReranker(EMBEDDINGS)]),
    "CompressionRetriever": lambda: kit.CompressionRetriever(retriever=words()),
    "RoutingRetriever": lambda: kit.RoutingRetriever(sources=sources(), embeddings=EMBEDDINGS),
    "ExpansionRetriever": lambda: kit.ExpansionRetriever.from_thesaurus({"a": ["b"]}, words()),
    "SparseRetriever": lambda: kit.SparseRetriever.from_documents(DOCS),
    "TrigramRetriever": lambda: kit.TrigramRetriever.from_documents(DOCS),
    "ExactVectorRetriever": lambda: kit.ExactVectorRetriever.from_documents(DOCS, EMBEDDINGS),
    "SelfQueryRetriever": lambda: SelfQueryRetriever.from_rules(DOCS),
}
LIVE = {
    "MultiRepresentationRetriever",
    "ParentDocumentRetriever",
    "RaptorRetriever",
    "SentenceWindowRetriever",
}


def test_no_retriever_is_left_out() -> None:
    """Each public retriever is either in the list below or holds a connection."""
    public = {name for name in kit.__all__ if name.endswith("Retriever")} | {"SelfQueryRetriever"}
    assert public - {"RagKitRetriever"} == MADE.keys() | LIVE


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_copy_finds_the_same_and_is_its_own(name: str) -> None:
    """Pickled and deep-copied ones answer as the original does, before and after the original was used."""
    original = MADE[name]()
    early = pickle.loads(pickle.dumps(original))
    expected = [(doc.id, doc.metadata) for doc in original.invoke(QUESTION)]
    assert expected
    for made in (early, pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):
        assert [(doc.id, doc.metadata) for doc in made.invoke(QUESTION)] == expected


@pytest.mark.parametrize("name", ["BM25Retriever", "SelfQueryRetriever"])
def test_a_write_to_the_copy_does_not_reach_the_original(name: str) -> None:
    """The index behind a copy is another one."""
    original: Any = MADE[name]()
    for made in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        index = made.index if name == "BM25Retriever" else made.retriever.index
        index.add([Document("A zebra.", id="z")])
        assert [doc.id for doc in made.invoke("zebra")] == ["z"] and original.invoke("zebra") == []


def ids_of(retriever: BaseRetriever) -> list[str | None]:
    """Search in the other process and return what is found."""
    return [doc.id for doc in retriever.invoke(QUESTION)]


@pytest.mark.slow
def test_a_spawned_process_takes_a_retriever() -> None:
    """The copy works where nothing of this process is there."""
    original = MADE["EnsembleRetriever"]()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(ids_of, (original,)).get(timeout=120) == ids_of(original)


@pytest.mark.slow
def test_copies_over_an_index_open_it_again(tmp_path: Path) -> None:
    """A copied or pickled retriever over an index works when the original is closed, and sees later writes."""
    with DocumentIndex.create(tmp_path / "index", embeddings=EMBEDDINGS) as index:
        index.upsert(DOCS)
        build_raptor(index, chat_model("extractive"))
        originals = [
            kit.index_retriever(index),
            kit.EnsembleRetriever(retrievers=[words(), kit.index_retriever(index)]),
            kit.ParentDocumentRetriever(index=index),
            kit.SentenceWindowRetriever(index=index),
            kit.MultiRepresentationRetriever(index=index),
            kit.RaptorRetriever(index=index),
        ]
        expected = [ids_of(original) for original in originals]
        copies = [
            copied
            for original in originals
            for copied in (copy.deepcopy(original), pickle.loads(pickle.dumps(original)))
        ]
    assert [ids_of(copied) for copied in copies] == [ids for ids in expected for _ in range(2)]


def test_the_package_loads_no_pickle() -> None:
    """Copies travel by the user's own hand: nothing here reads a pickle, from a file or from anywhere."""
    root = Path(kit.__file__).parents[1]
    loading = re.compile(
        r"pickle\.load|pickle\.Unpickler|joblib|dill\.load|allow_pickle=True|import c?[pP]ickle"
    )
    assert [
        path.name for path in root.rglob("*.py") if loading.search(path.read_text(encoding="utf-8"))
    ] == []


LOCKED = [
    Document("The fan is loud.", id="fine", metadata={"year": 2003}),
    Document("A fan is loud. 风扇", id="locked", metadata={"year": 2003, "handle": threading.Lock()}),
    Document("The old fan is loud.", metadata={"year": 2003, "details": {"handles": [threading.Lock()]}}),
]


def gives(documents: list[Document]) -> RunnableLambda[str, list[Document]]:
    """A retriever of a user's own."""
    return RunnableLambda(lambda query: documents)


OVER: dict[str, Callable[[list[Document]], Any]] = {
    "BM25Retriever": kit.BM25Retriever.from_documents,
    "ExactVectorRetriever": lambda documents: kit.ExactVectorRetriever.from_documents(documents, EMBEDDINGS),
    "EnsembleRetriever": lambda documents: kit.EnsembleRetriever(
        retrievers=[gives(documents)], on_error="raise"
    ),
    "MultiQueryRetriever": lambda documents: kit.MultiQueryRetriever.from_llm(model(), gives(documents)),
    "RerankRetriever": lambda documents: kit.RerankRetriever(
        retriever=gives(documents), reranker=lambda query, found: [1.0] * len(found)
    ),
    "CompressionRetriever": lambda documents: kit.CompressionRetriever(retriever=gives(documents)),
    "RoutingRetriever": lambda documents: kit.RoutingRetriever(
        sources={"a": (gives(documents), "fans")}, how="model", llm=model(), on_none="all"
    ),
}


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize(
    ("locked", "says"), [(LOCKED[:2], "'locked'.*'handle'"), (LOCKED[::2], "The old fan.*'details'")]
)
@pytest.mark.parametrize("name", OVER)
def test_metadata_that_cannot_be_copied_are_an_error(
    name: str, locked: list[Document], says: str, way: str
) -> None:
    """The error names the document, by its id or how it begins, and the key of its metadata."""
    with pytest.raises(RagKitError, match=says):
        ask(OVER[name](locked), "fan", way)
