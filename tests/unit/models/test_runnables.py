"""Runs are set up only for listeners, and every kind of listener counts."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.documents import Document
from langchain_core.globals import set_debug
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import ensure_config
from langchain_core.tracers.context import collect_runs
from langsmith.run_helpers import tracing_context

from rag_kit.models.runnables import has_blocking_side, has_listeners, routes_to
from rag_kit.retrieval import BM25Retriever, HyDERetriever

PASSAGE = '{"passages": ["Bees make honey from nectar."]}'


class Watch(BaseCallbackHandler):
    """Notes the runs it is told of."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, Any]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.seen.append((kwargs.get("run_type") or "chain", kwargs["run_id"], kwargs["parent_run_id"]))

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.seen.append(("retriever", kwargs["run_id"], kwargs["parent_run_id"]))

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.seen.append(("model", kwargs["metadata"], kwargs["parent_run_id"]))


def hyde(**model: Any) -> HyDERetriever:
    words = BM25Retriever.from_documents([Document("Bees make honey.", id="bees")])
    return HyDERetriever.from_llm(FakeListChatModel(responses=[PASSAGE], **model), words)


async def test_every_run_is_told_to_a_listener() -> None:
    """With a callback all runs are told: the retriever's, the prompt's, the model's, both searches."""
    for native in (False, True):
        watch = Watch()
        config: Any = {"callbacks": [watch]}
        retriever = hyde()
        await retriever.ainvoke("honey?", config) if native else retriever.invoke("honey?", config)
        kinds = [kind for kind, _, _ in watch.seen]
        assert kinds == ["retriever", "prompt", "model", "retriever", "retriever"]
        top = watch.seen[0][1]
        assert {parent for _, _, parent in watch.seen[1:]} == {top} and watch.seen[0][2] is None


async def test_a_models_own_callbacks_are_told_which_prompt_ran() -> None:
    """A model with callbacks of its own tells them of its run, below the retriever's, with the prompt's hash."""
    watch = Watch()
    retriever = hyde(callbacks=[watch])
    retriever.invoke("honey?", {"metadata": {"who": "me"}})
    await retriever.ainvoke("honey?", {"metadata": {"who": "me"}})
    assert [kind for kind, _, _ in watch.seen] == ["model", "model"]
    for _, metadata, parent in watch.seen:
        assert metadata["prompt_name"] == "hyde" and metadata["prompt_hash"] and metadata["who"] == "me"
        assert parent is not None


@pytest.mark.parametrize(
    "kind", ["nothing", "empty manager", "callbacks", "manager", "debug", "tracing", "collector"]
)
def test_each_kind_of_listener_counts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callbacks, their managers, debug output, LangSmith tracing and run collectors are listeners."""
    monkeypatch.delenv("LANGSMITH_TRACING", raising=False)
    managers = {"manager": CallbackManager(handlers=[Watch()]), "empty manager": CallbackManager(handlers=[])}
    callbacks: Any = {"callbacks": [Watch()], **managers}.get(kind)
    around: Any = nullcontext()
    if kind == "tracing":
        around = tracing_context(enabled=True)
    if kind == "collector":
        around = collect_runs()
    set_debug(kind == "debug")
    try:
        with around:
            assert has_listeners(ensure_config({"callbacks": callbacks})) is (
                kind not in ("nothing", "empty manager")
            )
    finally:
        set_debug(False)


async def test_a_counter_of_requests_is_no_listener_and_counts_all_the_same() -> None:
    """An evaluation's counter listens to models alone: no run is set up for it, and each request is counted."""
    from rag_kit.evaluation.runs.metering import recording

    model = FakeListChatModel(responses=[PASSAGE])
    words = BM25Retriever.from_documents([Document("Bees make honey.", id="bees")])
    with recording() as recorder:
        assert not has_listeners(ensure_config(None))
        HyDERetriever.from_llm(model, words).invoke("honey?")
        await HyDERetriever.from_llm(model, words).ainvoke("honey?")
    assert recorder.calls == 2


def test_wrappers_are_opened_and_asynchronous_parts_found() -> None:
    """The models in the order of asking; a part that is only a coroutine function has no blocking side."""
    first, other = FakeListChatModel(responses=["a"]), FakeListChatModel(responses=["b"])
    routes = routes_to(first.bind(stop=["."]).with_retry(stop_after_attempt=3).with_fallbacks([other]))
    assert [(route.model is first, route.arguments, route.retries) for route in routes] == [
        (True, {"stop": ["."]}, 2),
        (False, {}, 0),
    ]

    async def shout(text: str) -> str:
        return text.upper()

    chain = RunnableLambda(str.upper)
    assert has_blocking_side(chain) and not has_blocking_side(chain | RunnableLambda(shout))
