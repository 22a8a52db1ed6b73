"""A tenant's filter holds however LangChain lets one give it, whatever filter is put around it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from langchain_chroma import Chroma
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import EmbeddingsFilter
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from support.chroma import memory_client

from rag_kit.graphs import build_plain_rag
from rag_kit.models import chat_model
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import (
    EnsembleRetriever,
    MultiQueryRetriever,
    RerankRetriever,
    VectorRetriever,
)

ANN, BOB, OF_2025 = {"user": "ann"}, {"user": "bob"}, {"year": 2025}
YEAR = {"name": "year", "type": "int"}
DOCUMENTS = [
    Document(f"Leave of {user} in {year}, sheet {sheet}.", metadata={"user": user, "year": year})
    for user, sheets in (("bob", 4), ("ann", 1))
    for sheet in range(sheets)
    for year in (2023, 2024, 2025)
]
WAYS = ("sync", "async")
EMBED = DeterministicFakeEmbedding(size=8)


class Given(NamedTuple):
    """A store of both tenants, and a tenant's filter in its own language."""

    store: VectorStore
    ann: Any


def chroma() -> Given:
    """Chroma, which takes mappings."""
    store = Chroma(f"c{uuid.uuid4().hex}", embedding_function=EMBED, client=memory_client())
    return Given(store, ANN)


def in_memory() -> Given:
    """LangChain's store in memory, which takes functions."""
    return Given(InMemoryVectorStore(EMBED), lambda document: document.metadata["user"] == "ann")


@pytest.fixture(scope="module", params=[chroma, in_memory], ids=["chroma", "in memory"])
def given(request: pytest.FixtureRequest) -> Given:
    """A filled store."""
    made: Given = request.param()
    made.store.add_documents(DOCUMENTS)
    return made


def all_of(given: Given) -> Any:
    """LangChain's retriever over both tenants."""
    return given.store.as_retriever(search_kwargs={"k": 4})


def own(given: Given) -> Any:
    """LangChain's retriever over one tenant."""
    return given.store.as_retriever(search_kwargs={"k": 4, "filter": given.ann})


def kit(given: Given, **settings: Any) -> VectorRetriever:
    """The kit's retriever."""
    return VectorRetriever(vectorstore=given.store, k=4, **settings)


def configurable(given: Given) -> Any:
    """LangChain's retriever, whose filter comes with the config."""
    return all_of(given).configurable_fields(search_kwargs=ConfigurableField("which"))


def chosen(given: Given) -> dict[str, Any]:
    """The tenant's part of the config."""
    return {"which": {"k": 4, "filter": given.ann}}


#: Ways to give a tenant's filter: name -> the retriever, and what the config of the call chooses.
INNER: dict[str, tuple[Callable[[Given], Any], Callable[[Given], dict[str, Any]]]] = {
    "kit filter": (lambda given: kit(given, filter=ANN), lambda given: {}),
    "kit bind": (lambda given: kit(given).bind(filter=ANN), lambda given: {}),
    "kit configurable": (
        lambda given: kit(given).configurable_fields(filter=ConfigurableField("which")),
        lambda given: {"which": ANN},
    ),
    "search_kwargs": (own, lambda given: {}),
    "bind": (lambda given: all_of(given).bind(filter=given.ann), lambda given: {}),
    "configurable fields": (configurable, chosen),
    "configurable fields, with_retry": (lambda given: configurable(given).with_retry(), chosen),
    "configurable fields, with_config": (
        lambda given: configurable(given).with_config(configurable=chosen(given)),
        lambda given: {},
    ),
    "configurable alternatives": (
        lambda given: all_of(given).configurable_alternatives(ConfigurableField("which"), ann=own(given)),
        lambda given: {"which": "ann"},
    ),
    "lambda": (lambda given: RunnableLambda(lambda query: own(given)), lambda given: {}),
    "a wrapper that hands down callbacks alone": (
        lambda given: ContextualCompressionRetriever(
            base_compressor=EmbeddingsFilter(embeddings=EMBED, k=9), base_retriever=configurable(given)
        ),
        chosen,
    ),
    "with_retry": (lambda given: own(given).with_retry(), lambda given: {}),
    "with_fallbacks": (lambda given: own(given).with_fallbacks([own(given)]), lambda given: {}),
}


def by_ensemble(inner: Any, config: Any, way: str) -> list[Document]:
    """The year is the filter of an ensemble."""
    return call(EnsembleRetriever(retrievers=[inner], k=4), "leave", config, way, filter=OF_2025)


def by_self_query(inner: Any, config: Any, way: str) -> list[Document]:
    """The year is found in the question."""
    return call(SelfQueryRetriever.from_rules(inner, schema=[YEAR], k=4), "leave in 2025", config, way)


def by_graph(inner: Any, config: Any, way: str) -> list[Document]:
    """The year is in the context of a graph's run."""
    graph = build_plain_rag(inner, chat_model("extractive"))
    result = call(graph, {"question": "What is the leave?"}, config, way, context={"filter": OF_2025})
    documents: list[Document] = result["documents"]
    return documents


def call(runnable: Any, given: Any, config: Any, way: str, **options: Any) -> Any:
    """One call, sync or async."""
    if way == "sync":
        return runnable.invoke(given, config, **options)
    return asyncio.run(runnable.ainvoke(given, config, **options))


def whose(found: list[Document]) -> set[tuple[str, int]]:
    """Tenants and years."""
    return {(document.metadata["user"], document.metadata["year"]) for document in found}


# the ensemble around every retriever and the others around some in the fast tier, all around all in the slow one
OUTER = (by_ensemble, by_self_query, by_graph)
FEW = ("kit filter", "search_kwargs", "configurable fields", "with_fallbacks")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        pytest.param(outer, inner, marks=[] if outer is by_ensemble or inner in FEW else pytest.mark.slow)
        for outer in OUTER
        for inner in INNER
    ],
)
def test_the_tenants_filter_and_the_outer_one_hold(
    given: Given, inner: str, outer: Callable[..., list[Document]], way: str
) -> None:
    """Only the tenant's documents of that year, and these."""
    make, configured = INNER[inner]
    found = outer(make(given), {"configurable": configured(given)}, way)
    assert whose(found) == {("ann", 2025)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inner", INNER)
def test_without_an_outer_filter_the_tenants_holds(given: Given, inner: str, way: str) -> None:
    """Beside another retriever in an ensemble that is asked for more."""
    make, configured = INNER[inner]
    ensemble = EnsembleRetriever(retrievers=[make(given), kit(given, filter=ANN)], k=9)
    found = call(ensemble, "leave", {"configurable": configured(given)}, way)
    assert {user for user, _ in whose(found)} == {"ann"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inner", INNER)
def test_two_tenants_at_once_find_nothing(given: Given, inner: str, way: str) -> None:
    """The outer filter never takes the place of the inner one."""
    make, configured = INNER[inner]
    ensemble = EnsembleRetriever(retrievers=[make(given)], filter=BOB)
    assert call(ensemble, "leave", {"configurable": configured(given)}, way) == []


BOUND: dict[str, Callable[[Given], Any]] = {
    "kit": lambda given: kit(given).bind(k=1),
    "kit, with_retry": lambda given: kit(given).bind(k=1).with_retry(),
    "langchain": lambda given: all_of(given).bind(k=1),
}
AROUND: dict[str, Callable[[Any], Any]] = {
    "ensemble": lambda inner: EnsembleRetriever(retrievers=[inner], k=4),
    "ensemble, fetch_k": lambda inner: EnsembleRetriever(retrievers=[inner], k=4, fetch_k=9),
    "self-query": lambda inner: SelfQueryRetriever.from_rules(inner, schema=[YEAR], k=4),
    "multi-query": lambda inner: MultiQueryRetriever.from_llm(
        FakeListChatModel(responses=["no object"]), inner, k=4
    ),
    "rerank": lambda inner: RerankRetriever(
        retriever=inner, reranker=lambda query, documents: [1.0] * len(documents), k=4, fetch_k=9
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("bound", BOUND)
def test_bound_arguments_win(given: Given, bound: str, around: str, way: str) -> None:
    """``bind(k=1)`` gives one passage, whatever a wrapper would ask for."""
    inner = BOUND[bound](given)
    found = call(AROUND[around](inner), "leave", {}, way)
    assert [doc.page_content for doc in found] == [doc.page_content for doc in inner.invoke("leave")]
    assert len(found) == 1
