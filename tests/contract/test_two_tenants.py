"""No retriever, and no two around each other, show one tenant what is another's."""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableLambda
from support import tenants
from support.rewriters import Scripted

from rag_kit import retrieval
from rag_kit.concurrency.notes import use_notes
from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import BM25Index
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import RagKitRetriever

LEAVES = (
    "bm25",
    "vector",
    "exact",
    "sparse",
    "trigram",
    "index bm25",
    "index dense",
    "index hybrid",
    "parent",
    "representations",
    "representations, summaries and questions alone",
    "raptor",
    "raptor, parted",
    "sentence window",
    "expansion, index",
    "self query",
    "hyde, vectors",
)
WRAPPERS = tuple(tenants.wrappers())
OWN = {"tenant": "a"}
OTHER = {"tenant": "b"}


@pytest.fixture(scope="module")
def leaves(tmp_path_factory):
    """How every leaf is made."""
    made = tenants.leaves(tmp_path_factory.mktemp("tenants") / "index")
    assert tuple(made) == LEAVES
    return made


def ask(retriever: RagKitRetriever, **call: Any) -> list[Any]:
    """The same by both ways of calling, in the midst of a conversation where the retriever knows such."""
    if "history" in retriever.call_arguments:
        call["history"] = tenants.HISTORY
    found = retriever.invoke(tenants.QUESTION, **call)
    also = asyncio.run(retriever.ainvoke(tenants.QUESTION, **call))
    assert tenants.plain(found) == tenants.plain(also)
    return found


def check(make: Any) -> None:
    """Static filter, filter of the call, both, and two that exclude each other."""
    unfiltered = tenants.text_of(ask(make(k=6)))
    assert "SECRET" in unfiltered, "without a filter the other tenant's text must be there to be leaked"
    for static, call in ((OWN, None), (None, OWN), (OWN, {"year": {"$gte": 2000}}), (OWN, OWN)):
        retriever = make(k=6, filter=static)
        found = ask(retriever) if call is None else ask(retriever, filter=call)
        assert found, f"nothing found with {static} and {call}"
        assert {doc.metadata["tenant"] for doc in found} == {"a"}
        assert "SECRET" not in tenants.text_of(found)
    assert ask(make(k=6, filter=OWN), filter=OTHER) == []


@pytest.mark.parametrize("leaf", LEAVES)
def test_each_leaf_keeps_tenants_apart(leaves, leaf):
    """A retriever that searches by itself filters what it finds, and what it fetches by id."""
    check(leaves[leaf])


def check_around(leaves: Any, wrapper: str, leaf: str) -> None:
    """A filter given to the outer retriever holds for all that the inner one finds."""
    wrap = tenants.wrappers()[wrapper]
    inner = leaves[leaf](k=6)
    check(lambda **more: wrap(inner, **more))


# each wrapper and each leaf in the fast tier, all pairs of them in the slow one
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_each_wrapper_passes_the_filter_down(leaves, wrapper):
    """To a leaf over a store, and to one over documents with parts."""
    for leaf in ("vector", "parent"):
        check_around(leaves, wrapper, leaf)


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if leaf not in ("vector", "parent")])
def test_each_leaf_takes_the_filter_of_an_ensemble(leaves, leaf):
    """As that of the call."""
    check_around(leaves, "ensemble", leaf)


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_each_wrapper_passes_the_filter_to_each_leaf(leaves, wrapper):
    """All pairs."""
    for leaf in LEAVES:
        check_around(leaves, wrapper, leaf)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("leaf", ["bm25", "parent"])
def test_a_filter_of_the_inner_retriever_stays(leaves, wrapper, leaf):
    """An outer filter narrows an inner one and never replaces it."""
    retriever = tenants.wrappers()[wrapper](leaves[leaf](k=6, filter=OWN), k=6)
    assert {doc.metadata["tenant"] for doc in ask(retriever)} == {"a"}
    assert ask(retriever, filter=OTHER) == []


STRANGER: Any = RunnableLambda(lambda query: 1 / 0)
"""Of which the kit knows nothing; it fails."""


def ways_to_hold(leaf: RagKitRetriever) -> dict[str, Any]:
    """Retrievers that hold a filter somewhere inside: name -> retriever."""
    rerank = {"reranker": lambda query, documents: [1.0] * len(documents)}
    return {
        "ensemble": retrieval.EnsembleRetriever(retrievers=[leaf, leaf], k=6),
        "fallbacks": leaf.with_fallbacks([leaf]),
        "retry of fallbacks on a stranger": leaf.with_fallbacks([STRANGER]).with_retry(),
        "fallbacks on an open one": leaf.with_fallbacks([retrieval.BM25Retriever.from_texts(["Nothing."])]),
        "fallbacks of a stranger": STRANGER.with_fallbacks([leaf]),
        "ensemble of fallbacks of a bound one": retrieval.EnsembleRetriever(
            retrievers=[tenants.words(k=6).bind(filter=OWN).with_fallbacks([STRANGER])], k=6
        ),
        "bound": tenants.words(k=6).bind(filter=OWN),
        "sequence": leaf | (lambda documents: documents),
        "routing": retrieval.RoutingRetriever(sources={"one": (leaf, "Fans at night")}, k=6),
        "rerank over ensemble": retrieval.RerankRetriever(
            retriever=retrieval.EnsembleRetriever(retrievers=[leaf, leaf]), k=6, **rerank
        ),
    }


@pytest.mark.parametrize("documents", [None, tenants.documents()])
@pytest.mark.parametrize("way", list(ways_to_hold(tenants.words())))
def test_rows_are_listed_under_a_filter_deep_inside(way, documents):
    """A question that is all filter lists rows; no row, and no value, of another tenant is among them."""
    inner = ways_to_hold(tenants.words(k=6, filter=OWN))[way]
    if documents is None and way in ("sequence", "routing"):
        with pytest.raises(InvalidInputError, match="cannot be listed"):
            SelfQueryRetriever.from_rules(inner)
        return
    retriever = SelfQueryRetriever.from_rules(inner, documents=documents, k=6)
    assert {field.name: field.values for field in retriever.schema_in_use}["tenant"] == ("a",)
    for question in ("papers of 2001", "tenant b", "the latest"):
        assert retriever.invoke(question, filter=OTHER) == []
        found = retriever.invoke(question)
        assert found == asyncio.run(retriever.ainvoke(question))
        assert found or question == "tenant b"
        assert "SECRET" not in tenants.text_of(found)


@pytest.mark.parametrize("spare", [None, tenants.words(k=6)])
@pytest.mark.parametrize(
    "hidden",
    [
        {"filter": lambda document: document.metadata["tenant"] == "a"},
        {"where_document": {"$contains": "Fine"}},
    ],
)
def test_a_filter_that_nobody_can_read_lists_nothing(hidden, spare):
    """Rows behind the retriever and its fallback stay unread when it filters by a function or in its own words."""
    inner: Any = tenants.store().as_retriever(search_kwargs={"k": 6, **hidden})
    inner = inner if spare is None else inner.with_fallbacks([spare])
    with pytest.raises(InvalidInputError, match=r"cannot be read.*schema="):
        SelfQueryRetriever.from_rules(inner)
    retriever = SelfQueryRetriever.from_rules(inner, schema=[{"name": "year", "type": "int"}], k=6)
    with use_notes() as notes:
        found = retriever.invoke("papers of 2001")
    assert {get_provenance(document)["stages"][-1]["how"] for document in found} == {"search"}
    assert any("rows were not listed" in note for note in notes.texts)
    if "filter" in hidden:
        assert "SECRET" not in tenants.text_of(found)


TENANT_TOLD: Any = re.compile(r"tenant.*?\b([ab])\b")


def test_the_rows_are_those_of_the_retriever_that_the_config_chooses():
    """Each alternative has documents of its own; also for the values that a model would be told."""
    of_tenant = {
        tenant: retrieval.BM25Retriever.from_documents(
            [document for document in tenants.documents() if document.metadata["tenant"] == tenant], k=6
        )
        for tenant in "ab"
    }
    inner = of_tenant["b"].configurable_alternatives(
        ConfigurableField("who"), default_key="b", a=of_tenant["a"]
    )
    retriever = SelfQueryRetriever.from_rules(inner, k=6)
    config: Any = {"configurable": {"who": "a"}}
    model = Scripted(script='{"query": "fan", "filter": null}')
    told = SelfQueryRetriever.from_llm(model, inner)
    told.construct_query("Which fan?", config)
    told.invoke("Which fan?", config)
    told.construct_query("Which fan?")
    assert [TENANT_TOLD.search(prompt)[1] for prompt in model.prompts] == ["a", "a", "b"]
    for question in ("papers of 2001", "the latest"):
        found = retriever.invoke(question, config)
        assert found and found == asyncio.run(retriever.ainvoke(question, config))
        assert "SECRET" not in tenants.text_of(found)


def test_documents_of_several_sources_are_listed_under_the_filters_of_all():
    """Nobody knows of which source a document is; one of them may be closed to the caller."""
    sources = {
        "a": (tenants.words(k=6, filter=OWN), "Fans"),
        "b": (tenants.words(k=6, filter=OTHER), "Secrets"),
    }
    inner = retrieval.RoutingRetriever(sources=sources, how=lambda query: ["a"])
    schema = [{"name": "year", "type": "int"}]
    retriever = SelfQueryRetriever.from_rules(inner, documents=tenants.documents(), schema=schema, k=6)
    assert "SECRET" not in tenants.text_of(retriever.invoke("the latest"))


@pytest.mark.parametrize("way", ["fallbacks", "fallbacks of a stranger", "ensemble"])
def test_a_walk_keeps_to_the_filter_of_the_search_that_can_be_read(way):
    """Passages that are fetched past the search must pass it too."""
    index = BM25Index.from_documents(tenants.documents())
    leaf = retrieval.BM25Retriever(index=index, filter=OWN)
    search: Any = {
        "fallbacks": leaf.with_fallbacks([STRANGER]),
        "fallbacks of a stranger": STRANGER.with_fallbacks([leaf]),
        "ensemble": retrieval.EnsembleRetriever(retrievers=[leaf, RunnableLambda(lambda query: [])]),
    }[way]
    found = ask(retrieval.GraphRetriever(index=index, retriever=search, k=6))
    assert found and "SECRET" not in tenants.text_of(found)


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("family", ["parent", "sentence window"])
def test_what_stands_around_keeps_to_the_filter_of_a_search_of_ones_own(family, bound):
    """A document with parts of two tenants is shown whole to none, also where only the search inside filters."""

    def parts(documents):
        for document in documents:
            for tenant, line in zip("ab", document.page_content.split("\n"), strict=True):
                yield Document(line, metadata={**document.metadata, "tenant": tenant})

    mixed = Document("The fan of a is loud.\nSECRET fan of b hums.", id="mixed")
    with retrieval.ParentDocumentRetriever.from_documents([mixed], child_splitter=parts) as written:
        search = retrieval.index_retriever(written.index, "bm25")
        search = search.bind(filter=OWN) if bound else search.model_copy(update={"filter": OWN})
        made = {
            "parent": retrieval.ParentDocumentRetriever,
            "sentence window": retrieval.SentenceWindowRetriever,
        }[family](index=written.index, retriever=search)
        assert search.invoke(tenants.QUESTION)
        assert ask(made) == []


@pytest.mark.slow
@pytest.mark.parametrize("outer", WRAPPERS)
def test_wrappers_around_wrappers_pass_the_filter_down(outer):
    """The filter reaches the leaf through two retrievers around it."""
    made = tenants.wrappers()
    for inner in WRAPPERS:
        found = ask(made[outer](made[inner](tenants.words(k=6), k=6), k=6), filter=OWN)
        assert found and {doc.metadata["tenant"] for doc in found} == {"a"}, inner
        assert "SECRET" not in tenants.text_of(found)


def test_no_retriever_is_left_out(leaves):
    """Every retriever that the package offers stands in one of the tables above."""
    offered = {
        name
        for name in retrieval.__all__
        if inspect.isclass(value := getattr(retrieval, name)) and issubclass(value, RagKitRetriever)
    } - {"RagKitRetriever"}
    inner = tenants.words()
    tested = {type(make(k=1)).__name__ for make in leaves.values()}
    tested |= {type(wrap(inner)).__name__ for wrap in tenants.wrappers().values()}
    assert offered <= tested
