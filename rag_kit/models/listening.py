"""Whether anything listens to the runs of a call, and the callbacks of a run where nothing does.

Listeners are callbacks, tracing, debug output and collectors.

A collector with a true ``only_models`` is called for models alone, and they call it themselves.

Setting up callbacks that nobody has is the largest part of what LangChain adds to a short call. Where nothing
listens, the kit leaves its own part of that out; a model's own callbacks are LangChain's affair and stay.
"""

from __future__ import annotations

from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForRetrieverRun,
    CallbackManager,
    CallbackManagerForRetrieverRun,
)
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.globals import get_debug
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7

try:  # what LangChain itself asks; should it be renamed, every call is taken to have listeners
    from langchain_core.tracers.context import _configure_hooks, _tracing_v2_is_enabled
    from langchain_core.utils.env import env_var_is_set
except ImportError:  # pragma: no cover - not with the versions that are allowed now
    _tracing_v2_is_enabled = None  # type: ignore[assignment]

AnyManager = CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun
_Manager = TypeVar("_Manager", CallbackManagerForRetrieverRun, AsyncCallbackManagerForRetrieverRun)


def has_handlers(config: RunnableConfig) -> bool:
    """Whether the config itself names a handler."""
    callbacks: Any = config.get("callbacks")
    if not callbacks or isinstance(callbacks, list):
        return bool(callbacks)
    return bool(callbacks.handlers or callbacks.inheritable_handlers)


def has_listeners(config: RunnableConfig) -> bool:
    """Whether a run under this config would be reported to any handler.

    Args:
        config: A config that ``ensure_config`` has filled in.

    Example:
        >>> from langchain_core.callbacks import StdOutCallbackHandler
        >>> has_listeners({"callbacks": None}), has_listeners({"callbacks": [StdOutCallbackHandler()]})
        (False, True)
    """
    if has_handlers(config):
        return True
    if _tracing_v2_is_enabled is None or get_debug() or _tracing_v2_is_enabled():
        return True
    for variable, _, handler, environment in _configure_hooks:
        collector = variable.get()
        if collector is not None and not getattr(collector, "only_models", False):
            return True
        if handler is not None and environment is not None and env_var_is_set(environment):
            return True
    return False


def silent_manager(kind: type[_Manager], config: RunnableConfig) -> _Manager:
    """The callbacks of a run that nothing listens to; a part inside may have listeners of its own.

    Args:
        kind: The class for a blocking or an asynchronous run.
        config: The run's config.
    """
    above = config.get("callbacks") or None
    if not isinstance(above, BaseCallbackManager):
        return kind(run_id=uuid7(), handlers=[], inheritable_handlers=[])
    return kind(
        run_id=uuid7(),
        handlers=[],
        inheritable_handlers=[],
        parent_run_id=above.parent_run_id,
        inheritable_tags=above.inheritable_tags,
        inheritable_metadata=above.inheritable_metadata,
    )


def callbacks_below(manager: AnyManager, tag: str | None) -> BaseCallbackManager:
    """The callbacks for a part of a run: LangChain's ``get_child``, but quicker where there is nothing in them."""
    handed_down = manager.inheritable_handlers or manager.inheritable_tags or manager.inheritable_metadata
    if manager.handlers or handed_down:
        return manager.get_child(tag)
    native = isinstance(manager, AsyncCallbackManagerForRetrieverRun)
    kind = AsyncCallbackManager if native else CallbackManager
    return kind(handlers=[], parent_run_id=manager.run_id, tags=[] if tag is None else [tag])
