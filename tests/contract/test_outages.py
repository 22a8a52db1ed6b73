"""An outage is in the notes of the run and of each document, and nothing is unsearched where all parts work."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RouterRunnable, RunnableBranch, RunnableLambda, RunnableParallel
from langchain_core.tools import ToolException, tool
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy
from support import tenants
from support.outages import ANSWERED, OUTAGES, UNANSWERED, Down, ask, one_of_several, words
from support.rewriters import Scripted

from rag_kit.concurrency.notes import Notes, use_notes
from rag_kit.documents import get_provenance
from rag_kit.retrieval import (
    DecompositionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    RerankRetriever,
    RoutingRetriever,
    VectorRetriever,
)

WAYS = ("sync", "async")


def check_notes(notes: Notes, part: str, found: list[Document]) -> None:
    """The part is named, as one that was not searched; each document has a copy."""
    assert any(re.search(part, text) for text in notes.unsearched), (notes.texts, notes.unsearched)
    assert set(notes.unsearched) <= set(notes.texts)
    for document in found:
        assert set(notes.unsearched) <= set(get_provenance(document)["notes"])


@pytest.mark.parametrize("name", OUTAGES)
def test_an_outage_is_in_the_notes_of_the_run(name: str, tmp_path: Path) -> None:
    """In both languages, sync and async, whether documents are found or not."""
    retriever = OUTAGES[name].make(tmp_path)
    for way, question in product(WAYS, (*ANSWERED, *UNANSWERED)):
        found, notes = ask(retriever, question, way)
        assert bool(found) == (question in ANSWERED)
        check_notes(notes, OUTAGES[name].part, found)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrapper", tenants.wrappers())
def test_an_outage_inside_is_in_the_notes(wrapper: str, way: str) -> None:
    """Every retriever around another hands the note on, also where nothing is left to carry it."""
    inner = EnsembleRetriever(retrievers=[tenants.words(k=6), Down()])
    retriever = tenants.wrappers()[wrapper](inner, k=6)
    for where in (None, {"year": 1900}):
        found, notes = ask(retriever, tenants.QUESTION, way, filter=where)
        assert bool(found) == (where is None)
        check_notes(notes, "Down", found)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", [MultiQueryRetriever, DecompositionRetriever])
def test_an_arm_that_fails_for_one_of_several_queries(cls: Any, way: str) -> None:
    """It is told although the other queries find something."""
    for question in (*ANSWERED, *UNANSWERED):
        found, notes = ask(one_of_several(cls), question, way)
        check_notes(notes, "Down", found)


@pytest.mark.parametrize("way", WAYS)
def test_a_source_of_a_router_that_is_down(way: str) -> None:
    """One of two sources that a question is sent to."""
    reply = '{"choices": [{"name": "fans", "reason": ""}, {"name": "leases", "reason": ""}]}'
    sources = {"fans": (words(), "Fans"), "leases": (Down(), "Leases")}
    router = RoutingRetriever(sources=sources, how="model", llm=Scripted(script=reply), most=2)
    for question in (ANSWERED[0], UNANSWERED[0]):
        found, notes = ask(router, question, way)
        assert bool(found) == (question in ANSWERED)
        check_notes(notes, "leases", found)


def test_langchains_other_calls_have_the_notes() -> None:
    """Batches, streams, chains, and runs that somebody listens to."""
    retriever = EnsembleRetriever(retrievers=[words(), Down()])
    question, listened = UNANSWERED[0], {"callbacks": [BaseCallbackHandler()]}
    calls: list[Callable[[], Any]] = [
        lambda: retriever.batch([question, ANSWERED[0]]),
        lambda: asyncio.run(retriever.abatch([question, ANSWERED[0]])),
        lambda: list(retriever.stream(question)),
        lambda: (retriever | RunnableLambda(len)).invoke(question),
        lambda: retriever.with_retry().invoke(question),
        lambda: retriever.invoke(question, listened),
        lambda: asyncio.run(retriever.ainvoke(question, listened)),
        lambda: EnsembleRetriever(retrievers=[words(), RunnableLambda(retriever.invoke)]).invoke(question),
    ]
    for call in calls:
        with use_notes() as notes:
            call()
        check_notes(notes, "Down", [])


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_unsearched_where_all_parts_work(way: str) -> None:
    """Nothing found is not an outage, nor is one of a call before."""
    store = VectorRetriever(vectorstore=tenants.store())
    model = Scripted(script='{"queries": ["lease length", "lease"]}')
    retrievers = (
        EnsembleRetriever(retrievers=[words(), words()]),
        EnsembleRetriever(retrievers=[words(), store]),
        MultiQueryRetriever.from_llm(model, words()),
    )
    for retriever in retrievers:
        ask(EnsembleRetriever(retrievers=[words(), Down()]), UNANSWERED[0], way)
        _, notes = ask(retriever, UNANSWERED[0], way)
        assert notes.unsearched == []


SAME: Any = RunnableLambda(lambda value: value)
CHAINS: dict[str, Callable[[Any], Any]] = {
    "alone": lambda arm: arm,
    "head": lambda arm: arm | SAME,
    "parallel": lambda arm: RunnableParallel(found=arm).pick("found"),
    "router": lambda arm: RunnableLambda(lambda q: {"key": "a", "input": q}) | RouterRunnable({"a": arm}),
    "branch": lambda arm: RunnableBranch((bool, arm), words()),
    "given back": lambda arm: RunnableLambda(lambda query: arm),
    "called": lambda arm: RunnableLambda(lambda query: arm.invoke(query)),
    "bound": lambda arm: (arm | SAME).with_config(tags=["mine"]).with_retry(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("chain", CHAINS)
def test_what_failed_was_not_searched_whatever_stood_by(chain: str, way: str) -> None:
    """A fallback searches by its own means: what these do not find, the retriever that is down might have."""
    for down, handled, count in ((Down(), OSError, 1), (Down(), KeyError, 0), (words(), OSError, 0)):
        arm = CHAINS[chain](down.with_fallbacks([words()], exceptions_to_handle=(handled,)))
        _, notes = ask(EnsembleRetriever(retrievers=[words(), arm]), UNANSWERED[0], way)
        assert len([note for note in notes.unsearched if "went on without it" in note]) == count


class Careful(BaseRetriever):
    """A retriever of a user's, which finds nothing where the one inside fails."""

    inner: Any
    gives_config: bool = True

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        config = {"callbacks": run_manager.get_child()} if self.gives_config else None
        with suppress(ConnectionError):
            return self.inner.invoke(query, config)  # type: ignore[no-any-return]
        return []


class Flaky(BaseRetriever):
    """A store that fails every other time."""

    asked: list[str] = []

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.asked.append(query)
        if len(self.asked) % 2:
            raise ConnectionError("no route to host")
        return []


def refuse(error: Exception) -> Any:
    """A function that raises an error for whatever it is given."""

    def look_up(query: str) -> list[Document]:
        raise error

    return look_up


def graph_that_tries_again() -> Any:
    """A function that asks a graph, whose node has a policy of retries."""
    flaky, builder = Flaky(asked=[]), StateGraph(dict)  # type: ignore[type-var]
    policy = RetryPolicy(initial_interval=0.01, retry_on=ConnectionError)
    builder.add_node("node", lambda state: {"found": flaky.invoke("fan")}, retry_policy=policy)
    builder.add_edge(START, "node")
    graph = builder.compile()
    return lambda query: graph.invoke({}) and []


@pytest.mark.parametrize("way", WAYS)
def test_what_is_raised_and_caught_in_the_course_of_things_is_no_outage(way: str) -> None:
    """A tool or chain refuses an input, a graph tries its node again; a fallback and a broken tool are noted."""
    chain = RunnableLambda(refuse(ValueError("no date")))
    parts: list[tuple[Any, int]] = [
        (tool(description="dates")(refuse(ValueError("no date"))), 0),
        (tool(description="dates")(refuse(ToolException("no date"))), 0),
        (tool(description="the web")(refuse(ConnectionError("no route"))), 1),
        (chain, 0),
        (chain.with_fallbacks([words()]), 1),
        (RunnableLambda(graph_that_tries_again()), 0),
    ]
    for part, count in parts:

        def catches(query: str, part: Any = part) -> list[Document]:
            with suppress(ValueError, ToolException, ConnectionError):
                part.invoke(query)
            return []

        _, notes = ask(EnsembleRetriever(retrievers=[words(), RunnableLambda(catches)]), UNANSWERED[0], way)
        assert len(notes.unsearched) == count, (part, notes.unsearched)
        assert not count or "look_up failed" in notes.unsearched[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inside", [False, True])
def test_a_failure_that_a_users_code_catches_is_noted(inside: bool, way: str) -> None:
    """A part of the kit notes its own failures, once; a retry that works leaves nothing to note."""
    down = EnsembleRetriever(retrievers=[words(), Down()]) if inside else Down()

    def catches(query: str) -> list[Document]:
        return Careful(inner=down).invoke(query)

    retry = Flaky().with_retry(wait_exponential_jitter=False)
    careless = Careful(inner=down, gives_config=False)
    for part, count in (
        (Careful(inner=down), 1),
        (careless, 1),
        (RunnableLambda(catches), 1),
        (retry | SAME, 0),
    ):
        _, notes = ask(EnsembleRetriever(retrievers=[words(), part]), UNANSWERED[0], way)
        assert len(notes.unsearched) == count, notes.unsearched


@pytest.mark.parametrize("way", WAYS)
def test_a_reranker_that_is_down_is_no_search(way: str) -> None:
    """The notes name it, but everything was searched."""

    def fails(query: str, documents: list[Document]) -> list[float]:
        raise ConnectionError("the reranker is down")

    retriever = RerankRetriever(retriever=words(), reranker=fails)
    found, notes = ask(retriever, ANSWERED[0], way)
    assert found and any("the reranker is down" in text for text in notes.texts)
    assert notes.unsearched == []


def warnings(caplog: pytest.LogCaptureFixture, part: str) -> int:
    """How many warnings name the part."""
    return sum(record.levelno >= logging.WARNING and part in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["store", "model"])
def test_each_outage_is_logged_when_it_begins(
    kind: str, way: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once while it lasts, again when it begins anew, at most once a minute."""
    clock, is_down = [0.0], [True]
    monkeypatch.setattr("rag_kit.concurrency.notes.time", SimpleNamespace(monotonic=lambda: clock[0]))

    def answer(_: Any) -> Any:
        error = ConnectionError("it is down")
        if kind == "store" and is_down[0]:
            raise error
        return [] if kind == "store" else error if is_down[0] else '{"queries": ["fan degrees"]}'

    if kind == "store":
        store = RunnableLambda(answer, name="second")
        retriever, part = EnsembleRetriever(retrievers=[words(), store]), "second"
    else:
        retriever, part = MultiQueryRetriever.from_llm(Scripted(script=answer), words()), "multi_query failed"
    logged = []
    for at, down in ((0, True), (1, True), (61, True), (62, False), (63, True), (64, False), (65, True)):
        clock[0], is_down[0] = float(at), down
        ask(retriever, ANSWERED[0], way)
        logged.append(warnings(caplog, part))
    assert logged == [1, 1, 1, 1, 2, 2, 2]


def test_two_parts_that_are_down_are_logged_each(caplog: pytest.LogCaptureFixture) -> None:
    """One does not silence the other."""
    both = [Down(name="first"), Down(name="second")]
    ask(EnsembleRetriever(retrievers=[words(), *both]), ANSWERED[0], "sync")
    assert warnings(caplog, "first failed") == warnings(caplog, "second failed") == 1
