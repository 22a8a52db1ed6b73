"""Chat models inside LangChain's wrappers.

``bind``, ``with_config``, ``with_retry``, ``with_fallbacks``, ``configurable_fields`` and ``configurable_alternatives``
hide a model's class, and so its methods. They are opened by their own types and put around the changed model again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable

from rag_kit.concurrency.steps import ends_run

#: Makes the runnable that is called out of a chat model and the arguments bound around it; ``True`` for the model
#: that is asked first, ``False`` for one that stands by. None: this model cannot be called so.
Change = Callable[[Any, Mapping[str, Any], bool], Runnable[Any, Any] | None]


class OnRefusal(Runnable[Any, Any]):
    """Looks at the errors of a model inside its wrappers, where fallbacks and retries would hide them.

    ``handle`` turns an error into a runnable to ask instead, into a reply (the error itself, so that no wrapper sees a
    failure), or into None, and it is raised. ``charge`` is called before each request; what ends a run is a reply too.
    """

    def __init__(
        self,
        bound: Runnable[Any, Any],
        handle: Callable[[Exception], Runnable[Any, Any] | Exception | None],
        charge: Callable[[], None],
    ) -> None:
        self.bound, self.handle, self.charge = bound, handle, charge

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Ask the model, and once more where `handle` gives another runnable."""
        try:
            self._charge()
            return self.bound.invoke(input, config, **kwargs)
        except Exception as error:
            if ends_run(error):
                return error
            if (instead := self.handle(error)) is None:
                raise
        if isinstance(instead, Exception):
            return instead
        # a second error is not handled, but raised
        return OnRefusal(instead, lambda error: None, self.charge).invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Ask the model on an event loop, and once more where `handle` gives another runnable."""
        try:
            self._charge()
            return await self.bound.ainvoke(input, config, **kwargs)
        except Exception as error:
            if ends_run(error):
                return error
            if (instead := self.handle(error)) is None:
                raise
        if isinstance(instead, Exception):
            return instead
        return await OnRefusal(instead, lambda error: None, self.charge).ainvoke(input, config, **kwargs)

    def _charge(self) -> None:
        if not isinstance(self.bound, OnRefusal):  # which charges by itself
            self.charge()


def change_models(
    runnable: Any,
    change: Change,
    config: RunnableConfig | None,
    arguments: Mapping[str, Any],
    first: bool = True,  # False for a fallback
) -> Any:
    """Apply ``change`` to each chat model in its wrappers, as the config chooses it; None if it refuses the first."""
    if isinstance(runnable, DynamicRunnable):
        runnable, config = runnable.prepare(config)
        return change_models(runnable, change, config, arguments, first)
    if type(runnable).__name__ == "_ConfigurableModel":  # it makes its model at each call
        return change_models(runnable._model(config), change, config, arguments, first)
    if isinstance(runnable, RunnableBindingBase):
        inner_config = merge_configs(runnable.config, config or {})
        inner_arguments = {**runnable.kwargs, **arguments}
        inner = change_models(runnable.bound, change, inner_config, inner_arguments, first)
        return None if inner is None else runnable.model_copy(update={"bound": inner, "kwargs": {}})
    if isinstance(runnable, RunnableWithFallbacks):
        main = change_models(runnable.runnable, change, config, arguments, first)
        others = [change_models(other, change, config, arguments, False) for other in runnable.fallbacks]
        changes = {"runnable": main, "fallbacks": others}
        return None if main is None else runnable.model_copy(update=changes)
    return change(runnable, arguments, first)


def models_inside(model: Any, config: RunnableConfig | None = None) -> list[tuple[Any, Mapping[str, Any]]]:
    """Return the models inside LangChain's wrappers, as the config chooses them, each with its bound arguments.

    The one that is asked first comes first.
    """
    found: list[tuple[Any, Mapping[str, Any]]] = []

    def keep(inner: Any, arguments: Mapping[str, Any], first: bool) -> Any:
        found.append((inner, arguments))
        return inner

    change_models(model, keep, config, {})
    return found


def bare_model(model: Any, config: RunnableConfig | None = None) -> Any:
    """Return the model inside LangChain's wrappers, as the config chooses it; of fallbacks the first."""
    return models_inside(model, config)[0][0]
