"""Two stores that number their documents alike: another text is another document, and the same text is one."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from support.chroma import memory_client
from support.graphs import fixed
from support.outages import ask

from rag_kit.documents import get_provenance
from rag_kit.retrieval import EnsembleRetriever, MultiQueryRetriever, RoutingRetriever, VectorRetriever

TEXTS = ("A fan of the first store.", "第二个库的风扇。")
ROUTE = '{"choices": [{"name": "first", "reason": ""}, {"name": "second", "reason": ""}]}'


def collection(text: str) -> Chroma:
    """A collection of one document, which has the id 1."""
    store = Chroma(f"c{uuid.uuid4().hex}", DeterministicFakeEmbedding(size=8), client=memory_client())
    store.add_documents([Document(text, id="1")])
    return store


def by_kit(text: str, name: str) -> Any:
    return VectorRetriever(vectorstore=collection(text), name=name)


def by_langchain(text: str, name: str) -> Any:
    return collection(text).as_retriever(search_kwargs={"k": 1}, name=name)


def by_function(text: str, name: str) -> Any:
    return fixed(Document(text, id="1")).model_copy(update={"name": name})


def ensemble(arms: Sequence[Any], **options: Any) -> EnsembleRetriever:
    return EnsembleRetriever(retrievers=list(arms), k=9, **options)


def multi_query(inner: Any) -> MultiQueryRetriever:
    model = FakeListChatModel(responses=['{"queries": ["loud fan"]}'])
    return MultiQueryRetriever.from_llm(model, inner, k=9)


def routing(arms: Sequence[Any]) -> RoutingRetriever:
    sources = {"first": (arms[0], "Fans"), "second": (arms[1], "风扇")}
    return RoutingRetriever(
        sources=sources, how="model", llm=FakeListChatModel(responses=[ROUTE]), most=2, k=9
    )


OUTER: dict[str, Callable[[Sequence[Any]], Any]] = {
    "ensemble, rrf": ensemble,
    "ensemble, convex": lambda arms: ensemble(arms, fusion="convex"),
    "ensemble of ensembles": lambda arms: ensemble([ensemble([arm]) for arm in arms]),
    "rewriting": lambda arms: multi_query(ensemble(arms)),
    "ensemble of rewriting": lambda arms: ensemble([multi_query(arm) for arm in arms]),
    "routing": routing,
}


# each maker and each joiner in the fast tier, all pairs of them in the slow one
@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize(
    ("make", "outer"),
    [
        pytest.param(make, outer, marks=[] if make is by_function or "rrf" in outer else pytest.mark.slow)
        for make in (by_kit, by_langchain, by_function)
        for outer in OUTER
    ],
)
class TestEqualIds:
    """Two retrievers, in whatever joins their results."""

    def search(
        self, make: Any, outer: str, way: str, texts: Sequence[str]
    ) -> tuple[list[Document], list[str]]:
        """Give what is found, and the notes of the run."""
        arms = [make(text, name) for text, name in zip(texts, ("first", "second"), strict=True)]
        found, notes = ask(OUTER[outer](arms), "fan", way)
        return found, notes.texts

    def test_another_text_is_another_document(self, make: Any, outer: str, way: str) -> None:
        """Both come, each credited to its own store, and a note says so."""
        found, notes = self.search(make, outer, way, TEXTS)
        assert sorted(doc.page_content for doc in found) == sorted(TEXTS)
        for document in found:
            searched = {stage["retriever"] for stage in get_provenance(document)["stages"]}
            assert searched & {"first", "second"} == {("first", "second")[TEXTS.index(document.page_content)]}
            said = get_provenance(document)["notes"]
            assert any(re.search(r"\bids?\b.*\btexts?\b|\btexts?\b.*\bids?\b", note) for note in said), said
            assert set(said) & set(notes)

    def test_the_same_text_is_one_document(self, make: Any, outer: str, way: str) -> None:
        """It is credited to both stores, and there is nothing to note."""
        found, notes = self.search(make, outer, way, TEXTS[:1] * 2)
        assert [doc.page_content for doc in found] == [TEXTS[0]]
        assert {stage["retriever"] for stage in get_provenance(found[0])["stages"]} >= {"first", "second"}
        assert not any("id" in note.split() or "ids" in note.split() for note in notes)
