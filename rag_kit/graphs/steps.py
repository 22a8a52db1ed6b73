"""The steps a node may take, each in both forms; a node is written once, as a coroutine that awaits them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.outcome import FanOut
from rag_kit.concurrency.steps import Logic, Step, arun, run
from rag_kit.documents import Filter
from rag_kit.errors import ModelError
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.models.ladder import RAISE
from rag_kit.prompts import PromptTemplate
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.rerank.base import both_ways

T = TypeVar("T")


def ask(
    llm: Runnable[Any, Any],
    prompt: PromptTemplate,
    values: Mapping[str, Any],
    *,
    fallback: Any = RAISE,
    timeout: float | None = None,
) -> Step[Any]:
    """Ask a model for the object that the prompt's schema describes; its tokens are not streamed.

    The tokens of a grader or a rewriter are not the answer, so ``stream_mode="messages"`` leaves them out.
    """
    options: dict[str, Any] = {"fallback": fallback, "timeout": timeout}
    return Step(
        prompt.title,
        lambda config: structured_call(llm, prompt, values, config=quiet(config), **options),
        lambda config: astructured_call(llm, prompt, values, config=quiet(config), **options),
    )


def write(
    llm: Runnable[Any, Any],
    prompt: PromptTemplate,
    values: Mapping[str, Any],
    *,
    timeout: float | None = None,
    stream: bool = True,
) -> Step[Any]:
    """Ask a model for text; its tokens are streamed, unless `stream` is off."""

    def streamed(config: RunnableConfig) -> RunnableConfig:
        return config if stream else quiet(config)

    return Step(
        prompt.title,
        lambda config: text_call(llm, prompt, values, config=streamed(config), timeout=timeout),
        lambda config: atext_call(llm, prompt, values, config=streamed(config), timeout=timeout),
    )


def fetch(
    retriever: Runnable[Any, Any], query: str, *, k: int | None = None, filter: Filter | None = None
) -> Step[Any]:
    """Call any LangChain retriever; a call that hangs is abandoned at the run's deadline.

    Raises:
        BudgetExceededError: When the step is carried out, and the deadline comes before the passages.
    """
    return bounded(
        Step(
            "retrieve",
            lambda config: call_retriever(retriever, query, config=config, k=k, filter=filter),
            lambda config: acall_retriever(retriever, query, config=config, k=k, filter=filter),
        )
    )


def bounded(step: Step[T]) -> Step[Any]:
    """A step that is abandoned at the run's deadline: for code of others, which may hang.

    Raises:
        BudgetExceededError: When the step is carried out, and the deadline comes first.
    """
    options: Any = {"names": [step.name], "on_error": "skip"}
    return Step(
        step.name,
        lambda config: _only(fan_out([lambda: step.sync(config)], **options)),
        lambda config: _awaited(afan_out([lambda: step.native(config)], **options)),
    )


async def _awaited(fan: Awaitable[FanOut[T]]) -> T:
    return _only(await fan)


def _only(fan: FanOut[T]) -> T:
    """The value of the only branch; its error is raised as it is, so that a retry policy can read it."""
    (outcome,) = fan.outcomes
    if outcome.error is not None:
        raise outcome.error
    return cast("T", outcome.value)


def compute(work: Callable[[], Any], *, name: str = "compute", thread: bool = False) -> Step[Any]:
    """Call a function that has no asynchronous form.

    Args:
        work: The function.
        name: Its name in messages.
        thread: Whether it blocks on input, a lock or long enough to need a thread under ``ainvoke``.
    """

    async def native(config: RunnableConfig) -> Any:
        return await run_in_thread(work) if thread else work()

    return Step(name, lambda config: work(), native)


def beside(
    branches: Sequence[Step[Any]],
    *,
    on_error: Literal["raise", "skip"] = "raise",
    timeout: float | None = None,
    max_concurrency: int | None = None,
) -> Step[Any]:
    """Do several steps side by side; answered by their ``FanOut``, in the order given."""
    options: dict[str, Any] = {
        "names": [branch.name for branch in branches],
        "on_error": on_error,
        "timeout": timeout,
        "max_concurrency": max_concurrency,
    }

    def sync(config: RunnableConfig) -> Any:
        return fan_out([lambda b=branch: b.sync(config) for branch in branches], **options)  # type: ignore[misc]

    async def native(config: RunnableConfig) -> Any:
        return await afan_out(
            [lambda b=branch: b.native(config) for branch in branches],  # type: ignore[misc]
            **options,
        )

    return Step("beside", sync, native)


def user_function(name: str, func: Callable[..., Any], *arguments: Any) -> Step[Any]:
    """Call a user's function; under ``ainvoke`` it is awaited, or runs on a thread.

    Raises:
        InvalidInputError: When it is carried out: it is asynchronous and there is no event loop to run it in.
    """
    sync, native = both_ways(func, *arguments)
    return Step(name, lambda config: sync(), lambda config: native())


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


def attempt(
    step: Step[Any], allowed: Callable[[Exception], bool] = lambda error: isinstance(error, ModelError)
) -> Step[Any]:
    """A step that the run can do without: an error that is allowed, by default a model's, is handed back."""

    def sync(config: RunnableConfig) -> Any:
        try:
            return step.sync(config)
        except Exception as error:
            if allowed(error):
                return error
            raise

    async def native(config: RunnableConfig) -> Any:
        try:
            return await step.native(config)
        except Exception as error:
            if allowed(error):
                return error
            raise

    return Step(step.name, sync, native)


def quiet(config: RunnableConfig) -> RunnableConfig:
    """A config whose tag keeps the tokens of a call out of LangGraph's ``messages`` stream."""
    return merge_configs(config, {"tags": ["nostream"]})
