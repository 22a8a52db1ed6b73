"""Chat models inside LangChain's wrappers.

``bind``, ``with_config``, ``with_retry``, ``with_fallbacks``, ``configurable_fields`` and ``configurable_alternatives``
hide a model's class, and so its methods. They are opened by their own types: the kit asks the models one after another,
and retries, by itself; what was bound, and the config, are put around each model again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.retry import RunnableRetry


def _as_it_is(made: Any) -> Any:
    return made


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
    wrap: Callable[[Any], Any] = _as_it_is
    retries: int = 0
    next_after: tuple[type[BaseException], ...] = ()


def routes_to(runnable: Any, config: RunnableConfig | None = None) -> list[Route]:
    """Return the models inside LangChain's wrappers, as the config chooses them, in the order in which they are asked.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> first, other = FakeListChatModel(responses=["a"]), FakeListChatModel(responses=["b"])
        >>> routes = routes_to(first.bind(stop=["."]).with_retry(stop_after_attempt=3).with_fallbacks([other]))
        >>> [(route.model is first, route.arguments, route.retries) for route in routes]
        [(True, {'stop': ['.']}, 2), (False, {}, 0)]
    """
    return list(_open(Route(runnable), config))


def _open(route: Route, config: RunnableConfig | None) -> Iterator[Route]:
    """Yield the routes that a route to a wrapper leads on to; one to anything else as it is."""
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
        for other in others:
            yield from _open(
                replace(route, model=other, next_after=tuple(runnable.exceptions_to_handle)), config
            )
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
