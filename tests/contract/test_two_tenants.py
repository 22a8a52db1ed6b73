"""No retriever, and no two around each other, show one tenant what is another's."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from support import tenants

from rag_kit import retrieval
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
    "parent, merged",
    "sentence window",
    "expansion, feedback",
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


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("leaf", LEAVES)
def test_each_wrapper_passes_the_filter_to_each_leaf(leaves, wrapper, leaf):
    """A filter given to the outer retriever holds for all that the inner one finds."""
    wrap = tenants.wrappers()[wrapper]
    inner = leaves[leaf](k=6)
    check(lambda **more: wrap(inner, **more))


# "rerank" adds what a caller's own function fetches, which only the filters it is given can judge.
@pytest.mark.parametrize("wrapper", [name for name in WRAPPERS if name != "rerank"])
@pytest.mark.parametrize("leaf", ["bm25", "parent"])
def test_a_filter_of_the_inner_retriever_stays(leaves, wrapper, leaf):
    """An outer filter narrows an inner one and never replaces it."""
    retriever = tenants.wrappers()[wrapper](leaves[leaf](k=6, filter=OWN), k=6)
    assert {doc.metadata["tenant"] for doc in ask(retriever)} == {"a"}
    assert ask(retriever, filter=OTHER) == []


@pytest.mark.parametrize("outer", WRAPPERS)
@pytest.mark.parametrize("inner", WRAPPERS)
def test_wrappers_around_wrappers_pass_the_filter_down(outer, inner):
    """The filter reaches the leaf through two retrievers around it."""
    made = tenants.wrappers()
    retriever = made[outer](made[inner](tenants.words(k=6), k=6), k=6)
    found = ask(retriever, filter=OWN)
    assert found and {doc.metadata["tenant"] for doc in found} == {"a"}
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
