"""The steps a node may take, each in both forms; a node is written once, as a coroutine that awaits them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.branches import FanOut
from rag_kit.concurrency.bridge import acall_function, call_function, run_in_thread
from rag_kit.concurrency.steps import Logic, Step, acall_in_time, arun, call_in_time, run
from rag_kit.documents import Filter
from rag_kit.errors import ModelError
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.models.structured import RAISE
from rag_kit.prompts import PromptTemplate
from rag_kit.retrieval.compose import acall_retriever, call_retriever

T = TypeVar("T")


def ask(
    llm: Runnable[Any, Any], prompt: PromptTemplate, values: Mapping[str, Any], *, fallback: Any = RAISE
) -> Step[Any]:
    """Ask a model for the object that the prompt's schema describes; its tokens are not streamed.

    The tokens of a grader or a rewriter are not the answer, so ``stream_mode="messages"`` leaves them out.
    """
    return Step(
        prompt.title,
        lambda config: structured_call(llm, prompt, values, config=quiet(config), fallback=fallback),
        lambda config: astructured_call(llm, prompt, values, config=quiet(config), fallback=fallback),
    )


def write(
    llm: Runnable[Any, Any], prompt: PromptTemplate, values: Mapping[str, Any], *, stream: bool = True
) -> Step[Any]:
    """Ask a model for text; its tokens are streamed, unless `stream` is off."""

    def streamed(config: RunnableConfig) -> RunnableConfig:
        return config if stream else quiet(config)

    return Step(
        prompt.title,
        lambda config: text_call(llm, prompt, values, config=streamed(config)),
        lambda config: atext_call(llm, prompt, values, config=streamed(config)),
    )


def fetch(
    retriever: Runnable[Any, Any], query: str, *, k: int | None = None, filter: Filter | None = None
) -> Step[Any]:
    """Call any LangChain retriever; a call that hangs is abandoned at the run's deadline."""
    return bounded(
        "retrieve",
        partial(call_retriever, retriever, query, k=k, filter=filter),
        partial(acall_retriever, retriever, query, k=k, filter=filter),
    )


def bounded(
    name: str, sync: Callable[..., Any], native: Callable[..., Any], *, timeout: float | None = None
) -> Step[Any]:
    """A step that is abandoned at its time-out or the run's deadline: for code of others, which may hang.

    Args:
        name: Its name in messages.
        sync: Called with ``config=``.
        native: The same, awaitable.
        timeout: Seconds it may take; None: until the deadline.

    Raises:
        BudgetExceededError: When the step is carried out, and the deadline comes first.
        BranchTimeoutError: The time-out does.
    """
    return Step(
        name,
        lambda config: call_in_time(partial(sync, config=config), timeout),
        lambda config: acall_in_time(partial(native, config=config), timeout),
    )


def compute(work: Callable[[], Any], *, name: str = "compute", thread: bool = False) -> Step[Any]:
    """Call a function that has no asynchronous form; `thread`: it takes so long that ``ainvoke`` needs a thread."""

    async def native(config: RunnableConfig) -> Any:
        return await run_in_thread(work) if thread else work()

    return Step(name, lambda config: work(), native)


def beside(branches: Sequence[Step[Any]]) -> Step[FanOut[Any]]:
    """Do several steps side by side; answered by their ``FanOut`` in the order given, failed ones with their errors."""
    options: Any = {"names": [branch.name for branch in branches], "on_error": "skip"}
    return Step(
        "beside",
        lambda config: fan_out([partial(branch.sync, config) for branch in branches], **options),
        lambda config: afan_out([partial(branch.native, config) for branch in branches], **options),
    )


async def together(branches: Sequence[Step[Any]]) -> list[Any]:
    """The values of steps done side by side; the first that failed raises its own error."""
    if len(branches) == 1:
        return [await branches[0]]
    fan = await beside(branches)
    for outcome in fan.outcomes:
        if outcome.error is not None:
            raise outcome.error
    return fan.values


def user_function(name: str, func: Callable[..., Any], *arguments: Any) -> Step[Any]:
    """Call a user's function, which may be asynchronous, until the run's deadline; under ``ainvoke`` on a thread."""
    return bounded(
        name, lambda config: call_function(func, *arguments), lambda config: acall_function(func, *arguments)
    )


def from_config(name: str, read: Callable[[RunnableConfig], T]) -> Step[T]:
    """Read something from the run's configuration."""

    async def native(config: RunnableConfig) -> T:
        return read(config)

    return Step(name, read, native)


def can_wait() -> Step[bool]:
    """Whether the run can wait for a person: LangGraph puts a saver, also a parent's, into the configuration."""
    return from_config(
        "checkpointer",
        lambda config: config.get("configurable", {}).get("__pregel_checkpointer") is not None,
    )


def inner(name: str, make: Callable[[], Logic[Any]]) -> Step[Any]:
    """Steps as one step: a branch of `beside` that has several steps of its own."""
    return Step(name, lambda config: run(make(), config), lambda config: arun(make(), config))


async def attempt(step: Step[Any], *allowed: type[Exception]) -> Any:
    """Do a step that the run can do without: an error of these classes, by default a model's, is handed back."""
    try:
        return await step
    except Exception as error:
        if isinstance(error, allowed or (ModelError,)):
            return error
        raise


def quiet(config: RunnableConfig) -> RunnableConfig:
    """A config whose tag keeps the tokens of a call out of LangGraph's ``messages`` stream."""
    return merge_configs(config, {"tags": ["nostream"]})
