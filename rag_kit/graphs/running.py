"""What every node shares: one body for ``invoke`` and ``ainvoke``, the run's settings, its budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime
from langgraph.types import Command, Overwrite, RetryPolicy

from rag_kit.concurrency import Budget, use_budget
from rag_kit.concurrency.steps import Logic, arun, run
from rag_kit.errors import (
    BudgetExceededError,
    ConfigurationError,
    InvalidInputError,
    ModelOutputError,
    ModelUnauthorizedError,
)
from rag_kit.graphs.context import RagContext
from rag_kit.graphs.state import Update, Usage

ContextT = TypeVar("ContextT", bound=RagContext)

#: A node: reads the state and the run's settings, awaits steps, returns some keys of the state or a ``Command``.
Body = Callable[[Any, Any], Logic[Update | Command[Any]]]

#: What a node gives instead when a cap of the run is reached: of state, settings and error; None raises the error.
OnCap = Callable[[Any, Any, BudgetExceededError], Update | Command[Any] | None]

#: Between the parts of a namespace, of which a nested run has several (LangGraph's own name for it is private).
NS_SEP = "|"

# What another attempt cannot mend: the caller's mistakes, a refused key, a cap, a fault of the code.
_FINAL = (
    InvalidInputError,
    ConfigurationError,
    ModelUnauthorizedError,
    ModelOutputError,
    BudgetExceededError,
    GraphBubbleUp,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    NameError,
)


#: Modules whose frames only carry a call on, from a node to what it calls; left out of tracebacks.
_CARRIERS = (
    "rag_kit.concurrency.",
    "rag_kit.graphs.running",
    "rag_kit.graphs.steps",
    "rag_kit.models.runnables",
)


def transient(error: BaseException) -> bool:
    """Whether another attempt at a node may succeed: a store or an endpoint that is away, time-outs.

    LangGraph's own default never retries ValueError, RuntimeError or TimeoutError, which is what most clients
    of stores and endpoints raise.

    Example:
        >>> transient(TimeoutError()), transient(InvalidInputError("k is 0"))
        (True, False)
    """
    return isinstance(error, Exception) and not isinstance(error, _FINAL)


#: Retries of nodes that fetch from elsewhere. Nodes that stream an answer have none: the listener would read
#: everything twice; the calls inside them retry what has not begun to stream.
RETRY = RetryPolicy(
    initial_interval=0.2,
    backoff_factor=2.0,
    max_interval=5.0,
    max_attempts=3,
    jitter=True,
    retry_on=transient,
)


def node(
    body: Body,
    schema: type[RagContext],
    *,
    first: bool = False,
    capped: bool = True,
    on_cap: OnCap | None = None,
) -> Runnable[Any, Any]:
    """One node that runs natively under ``invoke`` and under ``ainvoke``, within the run's caps.

    What the node used is added to the state's ``usage``.

    Args:
        body: The node, written once.
        schema: The graph's context.
        first: Whether it is the first node of a run, which forgets what an earlier turn of the thread used.
        capped: Whether the run's caps hold in it; off for a node that asks no model and hands over what the run
            has found before it reached a cap.
        on_cap: Gives the node's update when a cap is reached before it or in it; None, or a result of None: the
            ``BudgetExceededError`` is raised.
    """

    async def logic(state: Any) -> Any:
        context = run_context(schema)
        before = None if first else _used(state)
        used = Usage(calls=0, tokens=0, seconds=0.0)
        update: Any = None
        try:
            with metered(before, context, used, capped=capped):
                update = await body(_State(state) if isinstance(state, dict) else state, context)
        except BudgetExceededError as error:
            update = None if on_cap is None else on_cap(state, context, error)
            if update is None:
                raise
        return _counted(update, used, first)

    return _Node(logic)


class _State(dict[str, Any]):
    """The state as a node sees it: a key that is missing was not written by an earlier node of this graph."""

    def __missing__(self, key: str) -> Any:
        raise InvalidInputError(
            f"the state of this thread has no {key!r}, which an earlier node writes: it is of another version, or was "
            "edited. Ask the question again: a new turn begins with a state of its own."
        )


def _used(state: Any) -> Any:
    return state.get("usage") if isinstance(state, dict) else getattr(state, "usage", None)


class _Node(Runnable[Any, Any]):
    """Both forms of a node. LangGraph opens the node's run itself; a ``RunnableLambda`` would open a second one."""

    def __init__(self, logic: Callable[[Any], Logic[Any]]) -> None:
        self._logic = logic

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        try:
            return run(self._logic(input), config or {})
        except Exception as error:
            _shorten(error)
            raise

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        try:
            return await arun(self._logic(input), config or {})
        except Exception as error:
            _shorten(error)
            raise


def _shorten(error: BaseException) -> None:
    """Take the frames of `_CARRIERS` out of an error's traceback and its causes', so that the user's stand out."""
    each: BaseException | None = error
    while each is not None:
        frames, trace = [], each.__traceback__
        while trace is not None:
            if not trace.tb_frame.f_globals.get("__name__", "").startswith(_CARRIERS):
                frames.append(trace)
            trace = trace.tb_next
        for kept in reversed(frames):
            trace = TracebackType(trace, kept.tb_frame, kept.tb_lasti, kept.tb_lineno)
        each.__traceback__, each = trace, each.__cause__


def _counted(update: Any, used: Usage, first: bool) -> Any:
    counted: dict[str, Any] = {"usage": Overwrite(used) if first else used}
    if update is None or isinstance(update, Mapping):
        return {**(update or {}), **counted}
    if isinstance(update, Command) and update.graph is None and isinstance(update.update or {}, Mapping):
        return Command(update={**(update.update or {}), **counted}, goto=update.goto, resume=update.resume)
    return [*(update if isinstance(update, list | tuple) else [update]), counted]


def run_context(schema: type[ContextT]) -> ContextT:
    """The settings of this run: what the caller gave, else the defaults.

    LangGraph passes None in plain Python and an instance on the server. In a parent graph that gave no ``context``
    it passes the parent's, of whatever class: what has the name of a setting is taken from it, the rest is the
    parent's own.

    Raises:
        InvalidInputError: A setting is unknown or out of range.
    """
    runtime = get_runtime()
    given: Any = runtime.context
    if given is None:
        return cast("ContextT", _default(schema))
    if isinstance(given, schema):
        return given
    info = runtime.execution_info
    if info is None or NS_SEP not in info.checkpoint_ns:
        raise InvalidInputError(
            f"context is a {type(given).__name__}; give a dict. Allowed: {', '.join(schema.model_fields)}."
        )
    return schema.from_parent(given)


@cache
def _default(schema: type[RagContext]) -> RagContext:
    """The defaults of a graph's settings; nodes only read them."""
    return schema()


def report(event: str, **details: Any) -> None:
    """Tell listeners of ``stream_mode="custom"`` how far the run is."""
    get_runtime().stream_writer({"event": event, **details})


@contextmanager
def metered(
    before: Mapping[str, Any] | None, context: RagContext, used: Usage, *, capped: bool = True
) -> Iterator[None]:
    """Run a node's body under what is left of the run's caps.

    The caps are kept in the state and not in a context variable, so that they hold across nodes, threads and a
    resume from a checkpoint; time spent waiting between nodes (an interrupt, a restart) is not counted.

    Args:
        before: The state's ``usage``; None at the first node.
        context: The run's settings, with ``max_calls``, ``max_tokens`` and ``deadline`` (seconds).
        used: Where to put what was used, also after an error.
        capped: Whether the caps hold; if not, the node is measured alone.

    Raises:
        BudgetExceededError: A cap is reached.
    """
    left = caps_left(before, context) if capped else dict.fromkeys(("max_calls", "max_tokens", "deadline"))
    if left["deadline"] is not None and left["deadline"] <= 0:
        raise BudgetExceededError("deadline", context.deadline or 0)
    budget = Budget(**left)
    start = time.perf_counter()
    with use_budget(budget), naming_caps(context):
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            used |= Usage(calls=budget.calls, tokens=budget.tokens, seconds=seconds)


def caps_left(used: Mapping[str, Any] | None, context: RagContext) -> dict[str, Any]:
    """What a run may still use: ``max_calls``, ``max_tokens`` and ``deadline``; None where there is no cap."""
    before = {"calls": 0, "tokens": 0, "seconds": 0.0, **(used or {})}
    calls, tokens, deadline = context.max_calls, context.max_tokens, context.deadline
    return {
        "max_calls": None if calls is None else max(0, calls - before["calls"]),
        "max_tokens": None if tokens is None else max(0, tokens - before["tokens"]),
        "deadline": None if deadline is None else deadline - before["seconds"],
    }


@contextmanager
def naming_caps(context: RagContext) -> Iterator[None]:
    """An error names the cap that the caller set, not what was left of it for one node or an inner run."""
    try:
        yield
    except BudgetExceededError as error:
        caps = {"calls": context.max_calls, "tokens": context.max_tokens, "deadline": context.deadline}
        limit = caps.get(error.what)
        raise BudgetExceededError(error.what, error.limit if limit is None else limit) from None
