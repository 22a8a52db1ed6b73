"""How a node runs: its body for ``invoke`` and ``ainvoke``, the run's settings and caps, the steps that it may take."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from traceback import walk_tb
from types import TracebackType
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs, var_child_runnable_config
from langgraph.config import get_config
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime
from langgraph.types import Command, Overwrite, RetryPolicy

from rag_kit import errors
from rag_kit.concurrency import Budget, afan_out, fan_out, use_budget
from rag_kit.concurrency.branches import FanOut, describe_failure
from rag_kit.concurrency.bridge import acall_function, call_function, run_in_thread
from rag_kit.concurrency.notes import Notes, use_notes
from rag_kit.concurrency.steps import Logic, Step, acall_in_time, arun, call_in_time, run
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, ModelError, ModelOutputError
from rag_kit.graphs.context import RUNTIME, RagContext, keep_settings, read_state, run_context
from rag_kit.graphs.state import RagState, Update, Usage, check_types, clean_texts
from rag_kit.graphs.streaming import Habits, cut_thoughts, limit_decline
from rag_kit.models.calls import ask_for_reply
from rag_kit.models.model_call import ModelCall
from rag_kit.models.replies import TextReply
from rag_kit.models.structured import RAISE, astructured_call, structured_call
from rag_kit.prompts import PromptTemplate
from rag_kit.prompts.template import PicturePrompt
from rag_kit.text.citations.decline import is_declined

#: A node: reads the state and the run's settings, awaits steps, returns some keys of the state or a ``Command``.
Body = Callable[[Any, Any], Logic[Update | Command[Any]]]

#: What a node gives instead when a cap of the run is reached: of state, settings and error; None raises the error.
OnCap = Callable[[Any, Any, BudgetExceededError], Update | Command[Any] | None]

# What another attempt cannot mend: the caller's mistakes, a refused key, a cap, a fault of the code; and an endpoint
# that was asked again before it counted as unreachable.
_FINAL_ERRORS = (
    InvalidInputError, errors.ConfigurationError, errors.ModelUnauthorizedError, errors.ModelUnreachableError,
    ModelOutputError, BudgetExceededError, GraphBubbleUp, TypeError, LookupError, AttributeError, AssertionError,
    NameError,
)  # fmt: skip


def _is_transient(error: BaseException) -> bool:
    """Tell whether another attempt may help after an error; a BranchError is judged by its cause."""
    while isinstance(error, BranchError) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, Exception) and not isinstance(error, _FINAL_ERRORS)


#: Retries of nodes that fetch from elsewhere. Nodes that stream an answer have none: the listener would read
#: everything twice; the calls inside them retry what has not begun to stream. LangGraph's own default never retries
#: ValueError, RuntimeError or TimeoutError, which is what most clients of stores and endpoints raise.
RETRY = RetryPolicy(initial_interval=0.2, max_interval=5.0, retry_on=_is_transient)

# Modules whose frames only carry a call on, from a node to what it calls; left out of tracebacks.
_INTERNAL_MODULES = ("rag_kit.concurrency.", "rag_kit.graphs.running", "rag_kit.models.runnables")


class Node(Runnable[Any, Any]):
    """A node that runs its body within the run's caps, and adds its usage and notes to the update.

    Args:
        streams: Whether the tokens of its models are streamed, since their text is the answer.
        capped: Whether the caps hold for it; not for a node that hands over what there is once a cap was reached.
        on_cap: Makes the update of a node that reached a cap; without it the cap ends the run.
        guards: See what somebody edited before the node runs.
        sees_passages: Whether it reads passages, so that guards have to see edited ones.
        check: Given for a user's node: raises if its update lacks a key that later nodes read.
    """

    def __init__(
        self,
        body: Body,
        schema: type[RagContext],
        state: type[Any] = RagState,
        *,
        streams: bool = False,
        capped: bool = True,
        on_cap: OnCap | None = None,
        guards: Any = None,
        sees_passages: bool = True,
        check: Callable[[Any], None] | None = None,
    ) -> None:
        self.body, self.schema, self.state, self.streams, self.capped = body, schema, state, streams, capped
        self.on_cap, self.check, self.guards, self.sees_passages = on_cap, check, guards, sees_passages
        self._habits: Habits = {}

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the body, blocking; ``kwargs`` are ignored."""
        try:
            with self._node_config(config) as (own_config, context, notes):
                return run(self._run_body(input, context, notes), own_config)
        except Exception as error:
            _drop_internal_frames(error)
            raise

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the body on the event loop; ``kwargs`` are ignored."""
        try:
            with self._node_config(config) as (own_config, context, notes):
                return await arun(self._run_body(input, context, notes), own_config)
        except Exception as error:
            _drop_internal_frames(error)
            raise

    @contextmanager
    def _node_config(
        self, config: RunnableConfig | None
    ) -> Iterator[tuple[RunnableConfig, RagContext, Notes]]:
        """Yield the config for what the node calls, by which models stream the answer or nothing; settings; notes."""
        config = config or get_config()
        context, notes = run_context(self.schema, config), Notes()
        runtime = config["configurable"][RUNTIME]
        if read_state("turn_settings", config) and isinstance(runtime.context, self.schema | None):
            # a user's node, and a graph in it, reads them from LangGraph's runtime
            runtime = runtime.override(context=context)
            config = {**config, "configurable": {**config["configurable"], RUNTIME: runtime}}
        if self.streams:
            node_config = cut_thoughts(config, self._habits, partial(_finish_answer, config, notes))
        else:
            node_config = {**config, "tags": [*(config.get("tags") or ()), TAG_NOSTREAM]}
        token = var_child_runnable_config.set(node_config)  # for a user's functions that take no config
        try:
            yield node_config, context, notes
        finally:
            var_child_runnable_config.reset(token)

    async def _run_body(self, state: Any, context: RagContext, notes: Notes) -> Any:
        """Run the body within the caps; return its update with usage, settings, notes and marks of guards added."""
        budget, start = Budget(), time.perf_counter()
        guarded, original = dict[str, Any](), state  # guarded: edited keys as the guards left them
        with use_notes(notes):
            try:
                if self.capped:
                    budget = Budget(**remaining_caps(read_state("usage"), context))
                with use_budget(budget), name_caps(context):
                    if isinstance(state, dict):
                        if self.guards is not None:
                            guarded = await self.guards.check_edits(state, passages=self.sees_passages)
                        state = _State(state | guarded)
                    update: Any = await self.body(state, context)
            except (TypeError, AttributeError, LookupError, ValueError):
                check_types(self.state, state)  # an edit may be the cause
                raise
            except BudgetExceededError as error:
                update = None if self.on_cap is None else self.on_cap(state, context, error)
                if update is None:
                    raise
        if self.check is not None:
            self.check(update)
        used = Usage(calls=budget.calls, tokens=budget.tokens, seconds=time.perf_counter() - start)
        written = update.update if isinstance(update, Command) else update
        written = written if isinstance(written, Mapping) else {}
        added: Update = {"usage": used, **keep_settings(context, written.get("question"))}
        if self.guards is not None:
            # passages of a user's node, which has a check, may come from anywhere: guards see them next
            added |= self.guards.seen({**guarded, **written}, passages=self.check is None)
        if self.sees_passages:  # else the node that runs beside this one writes the same
            for key, value in guarded.items():
                if key not in written and value != original[key]:
                    added[key] = value
        return _complete_update(update, added, notes)


def _finish_answer(config: RunnableConfig, notes: Notes, answer: str) -> str:
    """Return a streamed answer as the run will give it: a decline says whether not everything was searched."""
    if is_declined(answer) and (notes.unsearched or read_state("unsearched", config)):
        return limit_decline(answer.strip(), read_state("language", config))
    return answer


class _State(dict[str, Any]):
    """The state as a node reads it; a missing key has an error that says who should have written it."""

    def __missing__(self, key: str) -> Any:
        raise InvalidInputError(
            f"the state of this thread has no {key!r}, which an earlier node writes: it is of another version, was "
            "edited, or a node in the place of that one forgot it. Ask the question again: a new turn begins with a "
            "state of its own."
        )


def _drop_internal_frames(error: BaseException) -> None:
    """Remove the frames of `_INTERNAL_MODULES` from the tracebacks of an error and its causes."""
    cause: BaseException | None = error
    while cause is not None:
        trace = None  # made anew from its end, since each entry holds the next one
        for frame, line in reversed(list(walk_tb(cause.__traceback__))):
            if not frame.f_globals.get("__name__", "").startswith(_INTERNAL_MODULES):
                trace = TracebackType(trace, frame, frame.f_lasti, line)
        cause.__traceback__ = trace
        cause = cause.__cause__


def _complete_update(update: Any, added: Update, notes: Notes) -> Any:
    """Put the keys ``added`` and notes into a node's update, or into that of its command; clean all texts."""
    if update is None or isinstance(update, Mapping):
        return clean_texts(_add_notes({**(update or {}), **added}, notes))
    if isinstance(update, Command) and update.graph is None and isinstance(update.update or {}, Mapping):
        return replace(update, update=_complete_update(update.update, added, notes))
    # several updates, or a command for another graph: ours is one more
    updates = update if isinstance(update, list | tuple) else [update]
    return [clean_texts(part) for part in (*updates, _add_notes({**added}, notes))]


def _add_notes(update: Update, notes: Notes) -> Update:
    """Put notes into an update, before the node's own, and return it; a node that overwrites the notes has its way."""
    if isinstance(update.get("notes"), Overwrite):
        return update
    if notes.texts:
        update["notes"] = [*notes.texts, *update.get("notes", [])]
    if notes.unsearched:
        update["unsearched"] = [*notes.unsearched, *update.get("unsearched", [])]
    return update


def report(event: str, **details: Any) -> None:
    """Tell listeners of ``stream_mode="custom"`` how far the run is."""
    get_runtime().stream_writer({"event": event, **details})


def remaining_caps(used: Mapping[str, Any] | None, context: RagContext) -> dict[str, Any]:
    """Return what a run may still use: ``max_calls``, ``max_tokens`` and ``deadline``; None without a cap.

    What was used is kept in the state and not in a context variable, so that the caps hold across nodes, threads and
    a resume from a checkpoint; time spent waiting between nodes (an interrupt, a restart) is not counted.
    """
    usage = {"calls": 0, "tokens": 0, "seconds": 0.0, **(used or {})}
    calls, tokens, deadline = context.max_calls, context.max_tokens, context.deadline
    if deadline is not None and deadline <= usage["seconds"]:
        raise BudgetExceededError("deadline", deadline)
    return {
        "max_calls": None if calls is None else max(0, calls - usage["calls"]),
        "max_tokens": None if tokens is None else max(0, tokens - usage["tokens"]),
        "deadline": None if deadline is None else deadline - usage["seconds"],
    }


@contextmanager
def name_caps(context: RagContext) -> Iterator[None]:
    """Make an error name the caller's cap, not what was left of it for one node or an inner run."""
    try:
        yield
    except BudgetExceededError as error:
        caps = {"calls": context.max_calls, "tokens": context.max_tokens, "deadline": context.deadline}
        limit = caps.get(error.what)
        raise BudgetExceededError(error.what, error.limit if limit is None else limit) from None


def ask(
    llm: Runnable[Any, Any], prompt: PromptTemplate, values: Mapping[str, Any], *, fallback: Any = RAISE
) -> Step[Any]:
    """Make the step that asks a model for the object that the prompt's schema describes.

    Awaited in a node, it gives the object; ``fallback`` is that of ``structured_call``, for a call that fails.
    """
    return Step(
        prompt.title,
        sync=lambda config: structured_call(llm, prompt, values, fallback=fallback, config=config),
        native=lambda config: astructured_call(llm, prompt, values, fallback=fallback, config=config),
    )


def note_no_reply(task: str, error: Exception, instead: str) -> str:
    """Write the note on a model that gave nothing usable, or was out of reach, and what was done instead."""
    if isinstance(error, ModelOutputError):
        return f"{task}: the model gave nothing usable; {instead}"
    return f"degraded: {describe_failure(task, error)}; {instead}"


def write(
    llm: Runnable[Any, Any], prompt: PromptTemplate | PicturePrompt, values: Mapping[str, Any]
) -> Step[TextReply]:
    """Make the step that asks a model for text; its tokens are streamed if the node streams."""
    return Step(
        prompt.title,
        sync=lambda config: ModelCall(llm, prompt, values, config=config).run(ask_for_reply),
        native=lambda config: ModelCall(llm, prompt, values, config=config).arun(ask_for_reply),
    )


def call_within_deadline(
    name: str, sync: Callable[..., Any], native: Callable[..., Any], *, timeout: float | None = None
) -> Step[Any]:
    """Make the step that calls foreign code, with ``config=``, until its time-out or the run's deadline."""
    return Step(
        name,
        sync=lambda config: call_in_time(partial(sync, config=config), timeout),
        native=lambda config: acall_in_time(partial(native, config=config), timeout),
    )


def call_user_function(
    name: str, func: Callable[..., Any], *arguments: Any, with_config: bool = False
) -> Step[Any]:
    """Make the step that calls a user's function, blocking or async, until the run's deadline."""
    return call_within_deadline(
        name,
        sync=lambda config: call_function(func, *arguments, *([config] if with_config else [])),
        native=lambda config: acall_function(func, *arguments, *([config] if with_config else [])),
    )


def compute(work: Callable[[], Any]) -> Step[Any]:
    """Make the step that calls a slow function without an async form; under ``ainvoke`` it runs on a thread."""
    return Step("compute", sync=lambda config: work(), native=lambda config: run_in_thread(work))


def can_wait() -> bool:
    """Tell whether the run can wait for a person: whether LangGraph's configuration has a checkpointer."""
    return get_config()["configurable"].get("__pregel_checkpointer") is not None


class GraphNode(RunnableLambda[Any, Any]):
    """A node of a coroutine function that is given the state and a compiled graph, and awaits `run_graph`.

    LangGraph finds the graph in the closures of the two functions, to draw it (``xray``) and to read its state.
    """

    def __init__(self, graph: Any, logic: Callable[[Any, Any], Logic[Any]]) -> None:
        def sync(state: Any, config: RunnableConfig) -> Any:
            return run(logic(state, graph), config)

        async def native(state: Any, config: RunnableConfig) -> Any:
            return await arun(logic(state, graph), config)

        super().__init__(sync, native)


def run_graph(graph: Any, input: Any, context: RagContext, *callbacks: Any) -> Step[Any]:
    """Make the step that runs a graph inside a node, with settings and, besides the node's, callbacks of its own."""
    own: RunnableConfig = {"callbacks": list(callbacks)}
    return Step(
        "graph",
        sync=lambda config: graph.invoke(input, merge_configs(config, own), context=context),
        native=lambda config: graph.ainvoke(input, merge_configs(config, own), context=context),
    )


def branch(name: str, make: Callable[[], Logic[Any]]) -> Step[Any]:
    """Make one step of a coroutine that awaits several steps, so that it can run side by side with others."""
    return Step(name, sync=lambda config: run(make(), config), native=lambda config: arun(make(), config))


def run_side_by_side(branches: Sequence[Step[Any]]) -> Step[FanOut[Any]]:
    """Make the step that carries out several steps side by side; its ``FanOut`` has values or errors in order."""
    options: Any = {"names": [branch.name for branch in branches], "on_error": "skip"}
    return Step(
        "beside",
        sync=lambda config: fan_out([partial(branch.sync, config) for branch in branches], **options),
        native=lambda config: afan_out([partial(branch.native, config) for branch in branches], **options),
    )


async def values_side_by_side(branches: Sequence[Step[Any]]) -> list[Any]:
    """Carry out several steps side by side; return their values, or raise the error of the first that failed."""
    fan = await run_side_by_side(branches)
    for outcome in fan.outcomes:
        if outcome.error is not None:
            raise outcome.error
    return fan.values


async def attempt(step: Awaitable[Any], *allowed: type[Exception]) -> Any:
    """Await a step that the run can do without; return an error of the ``allowed`` classes (`ModelError`) as value."""
    try:
        return await step
    except Exception as error:
        if isinstance(error, allowed or (ModelError,)):
            return error
        raise
