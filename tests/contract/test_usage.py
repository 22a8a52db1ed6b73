"""The usage that graphs and retrievers report is what was sent to the model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel
from support.graphs import BUILDERS
from support.outages import ANSWERED, words

from rag_kit.documents import get_provenance
from rag_kit.models import chat_model
from rag_kit.retrieval import MultiQueryRetriever


@pytest.fixture(autouse=True)
def _langchains_cache() -> Iterator[None]:
    """An empty cache of LangChain's for each test."""
    set_llm_cache(InMemoryCache())
    yield
    set_llm_cache(None)


def call(runnable: Any, given: Any, way: str) -> Any:
    """One call, sync or async."""
    return runnable.invoke(given) if way == "sync" else asyncio.run(runnable.ainvoke(given))


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("name", BUILDERS)
def test_a_graph_whose_answers_are_cached_uses_nothing(name: str, way: str) -> None:
    """The same question a second time: the same answer, no call and no token."""
    graph = BUILDERS[name](words(), chat_model("extractive"))
    for question in ANSWERED:
        first, second = (call(graph, {"question": question}, way) for _ in range(2))
        assert first["answer"] == second["answer"]
        assert first["usage"]["calls"] > 0 and first["usage"]["tokens"] > 0
        assert (second["usage"]["calls"], second["usage"]["tokens"]) == (0, 0)


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize(
    "model", [chat_model("extractive"), FakeListChatModel(responses=['{"queries": ["fan degrees"]}'])]
)
def test_a_retriever_whose_rewrites_are_cached_notes_no_call(model: Any, way: str) -> None:
    """The note on what a model cost is there only when it was asked."""
    retriever = MultiQueryRetriever.from_llm(model, words())
    first, second = (get_provenance(call(retriever, ANSWERED[0], way)[0])["notes"] for _ in range(2))
    assert any(note.startswith("model: 1 call,") for note in first), first
    assert not any(note.startswith("model: 1 call") for note in second), second
