"""Inspection of Runnables: the models inside wrappers, their names, connections and endpoints; who listens to a run.

``bind``, ``with_config``, ``with_retry``, ``with_fallbacks``, ``configurable_fields`` and ``configurable_alternatives``
hide a model's class, and so its methods. They are opened by their own types: the kit asks the models one after another,
and retries, by itself; what was bound, and the config, are put around each model again.

Inside a chain, fallbacks and retries handle every ``Exception`` and tell nobody: see `shield` and `note_handled`.

Listeners are callbacks, tracing, debug output and collectors; one with a true ``only_models`` is called by models
alone. Setting up callbacks is most of what LangChain adds to a short call: where nothing listens, the kit does not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, partialmethod
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeGuard, TypeVar
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForRetrieverRun,
    BaseCallbackHandler,
    CallbackManager,
    CallbackManagerForRetrieverRun,
)
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.globals import get_debug
from langchain_core.runnables import Runnable, RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import ensure_config, merge_configs, var_child_runnable_config
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.retry import RunnableRetry
from langchain_core.tracers.context import _configure_hooks, _tracing_v2_is_enabled
from langchain_core.utils.env import env_var_is_set
from langchain_core.utils.uuid import uuid7
from pydantic import BaseModel

from rag_kit.concurrency.branches import note_fallback
from rag_kit.concurrency.bridge import call_client
from rag_kit.concurrency.steps import ends_run

#: Where Runnables keep what they call.
_OF_CHAINS = ("first", "middle", "last", "steps__", "mapper", "branches", "runnables", "nodes")
INSIDE = ("bound", "runnable", "fallbacks", "default", *_OF_CHAINS)
# Where retrievers keep their models, and where models keep their asynchronous clients.
_OF_STORES = ("vectorstore", "embeddings", "embedding", "embedding_function", "_embedding_function")
_SEARCHED = (*INSIDE, *_OF_STORES, "underlying_embeddings")
_ASYNC_CLIENTS = ("root_async_client", "async_client", "_async_client")
#: LangGraph's tag of models whose words its ``messages`` stream leaves out; nothing below the graphs imports it.
NOSTREAM = "nostream"
# LangChain's tag of a second attempt, and LangGraph's of a node
_TAGS = _RETRY, _NODE = "retry:attempt:", "graph:step:"
_MAX_REMEMBERED = 256
_MAX_DEPTH = 8


@dataclass(frozen=True)
class Route:
    """A model inside wrappers.

    Attributes:
        model: The model, or another runnable.
        arguments: Those that are bound around it.
        wrap: Puts the wrappers' configs around what was made of the model.
        retries: How often ``with_retry`` would ask again.
        next_after: Errors after which the next route is taken: of ``with_fallbacks``; none for the last one.
    """

    model: Any
    arguments: Mapping[str, Any] = field(default_factory=dict)
    wrap: Callable[[Any], Any] = lambda made: made
    retries: int = 0
    next_after: tuple[type[BaseException], ...] = ()


def routes_to(runnable: Any, config: RunnableConfig | None = None) -> list[Route]:
    """Return the models inside LangChain's wrappers, as the config chooses them, in the order of asking."""
    return list(_open(Route(runnable), config))


def _open(route: Route, config: RunnableConfig | None) -> Iterator[Route]:
    """Yield the routes to the models inside a wrapper; a route to anything else is yielded as it is."""
    runnable = route.model
    if isinstance(runnable, DynamicRunnable):
        chosen, chosen_config = runnable.prepare(config)
        yield from _open(replace(route, model=chosen), chosen_config)
    elif type(runnable).__name__ == "_ConfigurableModel":  # it makes its model at each call
        yield from _open(replace(route, model=runnable._model(config)), config)
    elif isinstance(runnable, RunnableBindingBase):
        yield from _open(_unbound(route, runnable), merge_configs(runnable.config, config or {}))
    elif isinstance(runnable, RunnableWithFallbacks):
        *others, last = runnable.runnables
        handled = tuple(runnable.exceptions_to_handle)
        for other in others:
            yield from _open(replace(route, model=other, next_after=handled), config)
        yield from _open(replace(route, model=last), config)
    else:
        yield route


def _unbound(route: Route, binding: RunnableBindingBase[Any, Any]) -> Route:
    """Return the route to what is bound; the binding's config stays around it, its retries are the kit's."""
    changes: dict[str, Any] = {"kwargs": {}}
    retries = route.retries
    if isinstance(binding, RunnableRetry):
        retries += binding.max_attempt_number - 1
        changes["max_attempt_number"] = 1

    def wrap(made: Any) -> Any:
        return route.wrap(binding.model_copy(update={"bound": made, **changes}))

    arguments = {**binding.kwargs, **route.arguments}
    return replace(route, model=binding.bound, arguments=arguments, wrap=wrap, retries=retries)


def bare_model(model: Any, config: RunnableConfig | None = None) -> Any:
    """Return the model inside LangChain's wrappers, as the config chooses it; of fallbacks the first."""
    return routes_to(model, config)[0].model


class _EndedRun(BaseException):
    """An error that ends the run, on its way past fallbacks and retries."""


@contextmanager
def ended_runs(config: Any = None) -> Iterator[Any]:
    """Yield the config; turn the ``_EndedRun`` that comes out of a `shield` back into the error that it holds."""
    try:
        yield config
    except _EndedRun as ended:
        [error] = ended.args
        raise error from error.__cause__


class _Shielded(Runnable[Any, Any]):
    """A part of a chain that a fallback or retry tries; ``note`` gets the errors that it answers with the next try.

    An error that ends the run is raised as ``_EndedRun``, which no fallback or retry handles.
    """

    def __init__(self, runnable: Any, handled: Any = (), note: Any = None) -> None:
        self.runnable, self.handled, self.note, self.name = runnable, handled, note, runnable.get_name()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        with self._shield():
            return self.runnable.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        with self._shield():
            return await self.runnable.ainvoke(input, config, **kwargs)

    @contextmanager
    def _shield(self) -> Iterator[None]:
        """Note an error that the fallback handles; raise one that ends the run as ``_EndedRun``."""
        try:
            try:
                yield
            except Exception as error:
                if isinstance(error, self.handled) and not ends_run(error):
                    self.note(error)
                raise
        except Exception as error:  # the one above, or one that ``note`` raised
            if ends_run(error):
                raise _EndedRun(error) from None
            raise


class _Run(NamedTuple):
    """A run that has begun: its name, the run around it, and its tag of a retry or of a graph's node, "" for none."""

    name: str = "a part"
    parent_id: UUID | None = None
    tag: str = ""


class _FailureWatch(BaseCallbackHandler):
    """Collects the runs that failed while the run around them went on: it asked a fallback, or did without.

    A ``ValueError`` or ``ToolException`` of a tool or chain is no failure: it asks its caller for other input.
    """

    run_inline = True  # on the event loop itself, in the order of the events

    def __init__(self) -> None:
        self._runs: dict[UUID, _Run] = {}  # those that have not ended
        self.failed: dict[UUID | None, list[tuple[Exception, _Run]]] = {}  # by the id of the run around

    def _begin(self, *args: Any, run_id: UUID, tags: Sequence[str] | None = None, **event: Any) -> None:
        name = event.get("name") or (args[0] or {}).get("name") or "a part"
        tag = next((tag for tag in tags or () if tag.startswith(_TAGS)), "")
        self._runs[run_id] = _Run(name, event.get("parent_run_id"), tag)

    def _end(self, *args: Any, run_id: UUID, **event: Any) -> None:
        run = self._runs.pop(run_id, _Run())
        if run.tag.startswith(_RETRY):  # this attempt makes up for those before it
            failures = self.failed.pop(run.parent_id, [])
            self.failed[run.parent_id] = [failure for failure in failures if failure[1].tag == run.tag]

    def _fail(self, error: BaseException, *, run_id: UUID, is_search: bool = False, **event: Any) -> None:
        self.failed.pop(run_id, None)  # the failures inside did not go unseen: they made this run fail
        run = self._runs.pop(run_id, _Run())
        if not isinstance(error, Exception) or ends_run(error) or run.tag.startswith(_NODE):
            return  # a graph whose node fails for good fails itself
        asks_for_other_input = isinstance(error, ValueError) or type(error).__name__ == "ToolException"
        siblings = [other.name for other in [*self._runs.values()] if other.parent_id == run.parent_id]
        # the members of a RunnableWithFallbacks are runs beside it: there the next one was asked
        has_fallback = any(name.startswith("RunnableWithFallbacks") for name in siblings)
        if is_search or has_fallback or not asks_for_other_input:
            self.failed.setdefault(run.parent_id, []).append((error, run))

    on_chain_start = on_retriever_start = on_tool_start = on_llm_start = on_chat_model_start = _begin
    on_chain_end = on_retriever_end = on_tool_end = on_llm_end = _end
    on_chain_error = on_tool_error = on_llm_error = _fail
    on_retriever_error = partialmethod(_fail, is_search=True)


@contextmanager
def note_handled(config: RunnableConfig | None) -> Iterator[RunnableConfig]:
    """Yield a config to call a foreign runnable with; after a call that succeeds, note the failures that it handled.

    They are noted because the part that failed might have found more than its fallback. Errors are those of
    `ended_runs`.
    """
    if config is None or "callbacks" not in config:
        config = ensure_config(config)  # adds the callbacks of the run around
    watch, callbacks = _FailureWatch(), config["callbacks"]
    if isinstance(callbacks, BaseCallbackManager):  # `merge_configs` would take ten times as long
        callbacks = callbacks.copy()
        callbacks.add_handler(watch)
    else:
        callbacks = [*(callbacks or ()), watch]
    inner_config: RunnableConfig = {**config, "callbacks": callbacks}
    # a class of a user may call others without a config, or with callbacks alone: LangChain then takes this one
    token = var_child_runnable_config.set(inner_config)
    try:
        with ended_runs():
            yield inner_config
    finally:
        var_child_runnable_config.reset(token)
    for error, run in chain.from_iterable(watch.failed.values()):
        note_fallback(run.name, error)


def drop_watches(handlers: list[BaseCallbackHandler]) -> None:
    """Remove the handlers of `note_handled` from a list, for a part of the kit, which notes its failures itself."""
    handlers[:] = [handler for handler in handlers if not isinstance(handler, _FailureWatch)]


def shield(chain: Any, note: Callable[[Any, Any, Exception], None] = lambda *_: None) -> Any:
    """Copy a chain so that its fallbacks and retries do not handle an error that ends the run.

    ``note`` gets the part that failed, the one that is asked in its place, and the error. LangChain's own parts are
    searched for fallbacks: sequences, ``RunnableParallel``, branches, routers, bindings, alternatives; no function or
    class of a user.
    """
    if isinstance(chain, Mapping):
        return {name: shield(part, note) for name, part in chain.items()}
    if isinstance(chain, (list, tuple)):
        return type(chain)(shield(part, note) for part in chain)
    names = (*INSIDE, "alternatives")
    parts = parts_of(chain, names)
    has_fallback = any(isinstance(part, RunnableWithFallbacks | RunnableRetry) for part in parts)
    if not has_fallback or not type(chain).__module__.startswith("langchain_core.runnables."):
        return chain
    changes = {name: shield(vars(chain)[name], note) for name in names if name in vars(chain)}
    if isinstance(chain, RunnableRetry):
        changes["bound"] = _Shielded(changes["bound"])
    elif isinstance(chain, RunnableWithFallbacks):
        members: list[Any] = [changes["runnable"], *changes["fallbacks"]]
        for index, (failed, next_asked) in enumerate(pairwise(chain.runnables)):
            note_failure = partial(note, failed, next_asked)
            members[index] = _Shielded(members[index], chain.exceptions_to_handle, note_failure)
        changes["runnable"], *changes["fallbacks"] = *members[:-1], _Shielded(members[-1])
    return chain.model_copy(update=changes)


def parts_of(value: object, names: tuple[str, ...] = INSIDE, depth: int = 0) -> Iterator[Any]:
    """Yield a Runnable and the parts that it calls, found under these attributes."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from parts_of(item, names, depth + 1)
    elif hasattr(value, "__dict__"):
        yield value
        for name in names:
            if (inner := vars(value).get(name)) is not None:
                yield from parts_of(inner, names, depth + 1)


def connections_of(value: object) -> list[object]:
    """Return the asynchronous HTTP clients inside a Runnable or model, each once."""
    connections: dict[int, object] = {}
    for part in parts_of(value, _SEARCHED):
        clients = (getattr(part, name, None) for name in _attributes(part.__class__, _ASYNC_CLIENTS))
        client = next((client for client in clients if client is not None), None)
        if client is None:
            continue
        while (inner := getattr(client, "_client", None)) is not None:
            client = inner  # the HTTP client, which the SDK's client wraps
        connections[id(client)] = client
    return list(connections.values())


@lru_cache(maxsize=_MAX_REMEMBERED)
def _attributes(cls: type, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that instances of a class may have as attributes: Pydantic takes 3 us to miss another one."""
    if not issubclass(cls, BaseModel) or cls.model_config.get("extra") == "allow":
        return names
    fields = {*cls.model_fields, *cls.__private_attributes__}
    return tuple(name for name in names if name in fields or hasattr(cls, name))


def has_blocking_side(runnable: object) -> bool:
    """Tell whether ``invoke`` works: no part of a Runnable or graph is only a coroutine function."""
    for part in parts_of(runnable):
        fields = vars(part)
        if fields.get("afunc") is not None and fields.get("func") is None:
            return False
        # LangGraph's asynchronous savers and stores wait, in blocking code, for the loop that they were made on
        if any(type(fields.get(name)).__name__.startswith("Async") for name in ("checkpointer", "store")):
            return False
    return True


async def acall_runnable(
    runnable: Runnable[Any, Any], value: Any, config: RunnableConfig | None = None, **kwargs: Any
) -> Any:
    """Await ``runnable.ainvoke``, or call ``invoke`` on a thread where only that works."""
    return await call_client(
        lambda: runnable.ainvoke(value, config, **kwargs),
        partial(runnable.invoke, value, config, **kwargs) if has_blocking_side(runnable) else None,
        connections_of(runnable),
    )


def is_kit_retriever(value: Any) -> TypeGuard[Any]:
    """Tell whether a retriever is one of the kit's: a ``RagKitRetriever``."""
    return hasattr(type(value), "inner_retrievers")


def model_name(model: Any) -> str | None:
    """Return the provider's name of the model, if the object has one."""
    return _first_text(model, "model_name", "model", "model_id", "deployment_name")


def base_url(model: Any) -> str | None:
    """Return the address of the endpoint, if any; never print it whole, it may hold a password."""
    url = _first_text(model, "openai_api_base", "base_url", "endpoint", "azure_endpoint", "anthropic_api_url")
    if url is None and hasattr(model, "openai_api_base"):
        return os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
    return url


def _first_text(model: Any, *names: str) -> str | None:
    """Return the first attribute of these names that is a text and not empty."""
    for name in _attributes(model.__class__, names):
        if isinstance(value := getattr(model, name, None), str) and value:
            return value
    return None


@dataclass
class Endpoint:
    """Findings about a model at its endpoint: what it refuses, how it writes, how much it reads.

    Attributes:
        first_method: Index of the first method of structured output that it serves.
        takes_bound: Whether it accepts a bound on its replies.
        thinks: Whether it reasons before it answers; the tokens for that count as part of the reply.
        context: Tokens that prompt and reply may have together; None while no request was too long.
    """

    first_method: int = 0
    takes_bound: bool = True
    thinks: bool = False
    context: int | None = None


_endpoints: dict[tuple[str, str, str], Endpoint] = {}


def endpoint_of(model: Any) -> Endpoint:
    """Return the findings about a model's endpoint, for the caller to update; a nameless model's are not kept."""
    if (name := model_name(model)) is None:
        return Endpoint()
    if len(_endpoints) >= _MAX_REMEMBERED:
        _endpoints.clear()
    class_name = f"{type(model).__module__}.{type(model).__qualname__}"
    return _endpoints.setdefault((class_name, name, base_url(model) or ""), Endpoint())


AnyManager = CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun
_Manager = TypeVar("_Manager", CallbackManagerForRetrieverRun, AsyncCallbackManagerForRetrieverRun)


def has_handlers(config: RunnableConfig) -> bool:
    """Tell whether the config itself names a handler."""
    callbacks: Any = config.get("callbacks")
    if not callbacks or isinstance(callbacks, list):
        return bool(callbacks)
    return bool(callbacks.handlers or callbacks.inheritable_handlers)


def has_listeners(config: RunnableConfig) -> bool:
    """Tell whether a run under this config would be reported to any handler."""
    if has_handlers(config) or get_debug() or _tracing_v2_is_enabled():
        return True
    # collectors that LangChain's context managers set
    for variable, _, handler, environment in _configure_hooks:
        collector = variable.get()
        if collector is not None and not getattr(collector, "only_models", False):
            return True
        if handler is not None and environment is not None and env_var_is_set(environment):
            return True
    return False


def silent_manager(manager_class: type[_Manager], config: RunnableConfig) -> _Manager:
    """Return the callback manager of a run without listeners; it hands tags, metadata and parent run down."""
    parent = config.get("callbacks")
    inherited = {}
    if isinstance(parent, BaseCallbackManager):
        names = ("parent_run_id", "inheritable_tags", "inheritable_metadata")
        inherited = {name: getattr(parent, name) for name in names}
    return manager_class(run_id=uuid7(), handlers=[], inheritable_handlers=[], **inherited)


def callbacks_below(manager: AnyManager, tag: str | None) -> BaseCallbackManager:
    """Return the callbacks for a part of a run whose words LangGraph does not stream; quicker than ``get_child``."""
    inherited = manager.inheritable_handlers or manager.inheritable_tags or manager.inheritable_metadata
    if manager.handlers or inherited:  # without them a new manager does
        child = manager.get_child(tag)
        child.add_tags([NOSTREAM])
        drop_watches(child.handlers)
        drop_watches(child.inheritable_handlers)
        return child
    is_async = isinstance(manager, AsyncCallbackManagerForRetrieverRun)
    manager_class = AsyncCallbackManager if is_async else CallbackManager
    return manager_class(handlers=[], parent_run_id=manager.run_id, tags=[] if tag is None else [tag])
