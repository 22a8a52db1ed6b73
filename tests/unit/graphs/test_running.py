"""How a node runs: the deadline holds for all that it calls, and a traceback shows the user's own code."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import PrivateAttr
from support.graphs import BUILDERS, go, in_turn, thread

import rag_kit.errors
from rag_kit.errors import BudgetExceededError
from rag_kit.graphs import (
    Guards,
    build_adaptive_rag,
    build_crag,
    build_plain_rag,
)
from rag_kit.models import chat_model
from rag_kit.retrieval import (
    BM25Retriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    RerankRetriever,
    RoutingRetriever,
)

STEPS = partial(build_adaptive_rag, classifier=lambda question, earlier: "multi")
QUESTION = {"question": "At how many degrees does the fan start?"}


class Hanging(BaseRetriever):
    """Answers much later than anybody waits."""

    _end: threading.Event = PrivateAttr(default_factory=threading.Event)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self._end.wait(20)
        return []

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        await asyncio.sleep(20)
        return []


async def ends_with_the_deadline(graph: Any, native: bool, end: threading.Event) -> None:
    """A run of a graph ends when its time is up, whatever hangs until the event is set."""
    begun = time.monotonic()
    try:
        with pytest.raises(BudgetExceededError, match="deadline"):
            await go(graph, native, QUESTION, context={"deadline": 0.2})
        assert time.monotonic() - begun < 10
    finally:
        end.set()


@pytest.mark.parametrize(("build", "native"), in_turn((build,) for build in [*BUILDERS.values(), STEPS]))
async def test_a_retriever_that_hangs_ends_with_the_deadline(build: Any, native: bool) -> None:
    """In every graph, in both forms: the run ends when its time is up."""
    retriever = Hanging()
    await ends_with_the_deadline(build(retriever, chat_model("extractive")), native, retriever._end)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("kind", ["question", "passages", "answer", "classifier"])
async def test_functions_of_the_users_that_hang_end_with_the_deadline(kind: str, native: bool) -> None:
    """A guard that hangs lets nothing pass, and a classifier that hangs chooses no way."""
    end = threading.Event()

    def hang(value: Any, other: Any) -> Any:
        end.wait(20)

    options: Any = (
        {"classifier": hang} if kind == "classifier" else {"guards": Guards(**{kind: [hang]})}  # type: ignore[arg-type]
    )
    retriever = BM25Retriever.from_texts(["The fan starts at 60 degrees."])
    graph = build_adaptive_rag(retriever, chat_model("extractive"), **options)
    await ends_with_the_deadline(graph, native, end)


OURS = str(Path(rag_kit.__file__).parent)


class Broken(BaseRetriever):
    """A user's retriever with a fault."""

    def _get_relevant_documents(self, query: str, **_: Any) -> Any:
        raise LookupError("in the user's code")


@pytest.mark.parametrize("build", [build_plain_rag, build_crag])
@pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])
async def test_a_traceback_shows_few_frames_of_the_kit(build: Any, native: bool) -> None:
    """At most 12 with those of the cause, and the line of the user's retriever that raised."""
    graph = build(EnsembleRetriever(retrievers=[Broken(), Broken()]), chat_model("extractive"))
    with pytest.raises(rag_kit.errors.BranchError) as caught:
        await go(graph, native, QUESTION)
    frames: list[traceback.FrameSummary] = []
    error: BaseException | None = caught.value
    while error is not None:
        frames += traceback.extract_tb(error.__traceback__)
        error = error.__cause__
    assert sum(frame.filename.startswith(OURS) for frame in frames) <= 12
    assert (frames[-1].filename, frames[-1].name) == (__file__, "_get_relevant_documents")


def asking(query: Any) -> list[Document]:
    """A retriever that asks a person."""
    return [Document(f"The fan starts at {interrupt('which?')} degrees.")]


async def asking_later(query: Any) -> list[Document]:
    """The same as a coroutine function."""
    return asking(query)


def failing(query: str) -> list[Document]:
    """A retriever that is down."""
    raise ConnectionError("down")


def ranked(query: str, documents: Any) -> list[float]:
    """A reranker that asks a person."""
    return [float(interrupt("how good?"))] * len(documents)


def rewriting(messages: Any) -> AIMessage:
    """A model that asks a person."""
    return AIMessage(f'{{"queries": ["fan at {interrupt("which?")} degrees"]}}')


WORDS = BM25Retriever.from_texts(["The fan starts at 60 degrees.", "Tea is hot."])
PERSON = RunnableLambda(asking, asking_later, name="person")
PAUSING: dict[str, Any] = {
    "arm that may fail": EnsembleRetriever(retrievers=[WORDS, PERSON]),
    "arm that may not": EnsembleRetriever(retrievers=[WORDS, PERSON], on_error="raise"),
    "only arm, in time": EnsembleRetriever(retrievers=[PERSON], timeout=20),
    "below a reranker": RerankRetriever(
        retriever=PERSON, reranker=lambda query, documents: [1.0] * len(documents)
    ),
    "reranker": RerankRetriever(retriever=WORDS, reranker=ranked),
    "with fallback": PERSON.with_fallbacks([WORDS]),
    "as fallback": RunnableLambda(failing).with_fallbacks([PERSON, WORDS]),
    "with fallback in a chain": PERSON.with_fallbacks([WORDS]) | RunnableLambda(list),
    "with retry": PERSON.with_fallbacks([WORDS]).with_retry(),
    "model": MultiQueryRetriever.from_llm(RunnableLambda(rewriting), WORDS),
    "router": RoutingRetriever(
        sources={"60": (WORDS, "fans"), "tea": (PERSON, "tea")}, how=lambda query: [interrupt("where?")]
    ),
}


@pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])
@pytest.mark.parametrize("way", PAUSING)
async def test_a_part_of_a_retriever_pauses_the_run(way: str, native: bool) -> None:
    """LangGraph's ``interrupt`` is no failure that is skipped, retried or replaced."""
    graph = build_plain_rag(PAUSING[way], chat_model("extractive"), checkpointer=InMemorySaver())
    paused = await go(graph, native, QUESTION, thread())
    assert len(paused["__interrupt__"]) == 1
    assert not any("failed" in note for note in paused.get("notes", ()) if "down" not in note)
    resumed = await go(graph, native, Command(resume="60"), thread())
    assert resumed["status"] == "grounded" and "60" in resumed["answer"]
    assert not any("failed" in note for note in resumed["notes"] if "down" not in note)
