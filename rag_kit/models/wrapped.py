"""Chat models inside LangChain's wrappers, and what is known of the endpoint of each.

``bind``, ``with_config``, ``with_retry``, ``with_fallbacks``, ``configurable_fields`` and ``configurable_alternatives``
hide a model's class, and so its methods. They are opened by their own types and put around the changed model again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable

from rag_kit.errors import BudgetExceededError

from .redact import host_of
from .runnables import base_url, model_name

# The names under which LangChain's classes keep the most tokens of a reply: OpenAI, Anthropic and most others; Google;
# Hugging Face; Ollama.
_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict")
_MAX_REMEMBERED = 256

#: Makes the runnable that is called out of a chat model and the arguments bound around it; ``True`` for the model
#: that is asked first, ``False`` for one that stands by. None: this model cannot be called so.
Change = Callable[[Any, Mapping[str, Any], bool], Runnable[Any, Any] | None]


class OnRefusal(Runnable[Any, Any]):
    """Looks at the errors of a model inside its wrappers, where fallbacks and retries would hide them.

    ``handle`` turns an error into a runnable to ask instead, into a reply (the error itself, so that no wrapper sees a
    failure), or into None, and it is raised. ``charge`` is called before each request; a used-up budget is a reply too.
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
        except BudgetExceededError as error:
            return error
        except Exception as error:
            if (instead := self.handle(error)) is None:
                raise
        if isinstance(instead, Exception):
            return instead
        # the error of the second request is raised
        return OnRefusal(instead, lambda error: None, self.charge).invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As `invoke`, on an event loop."""
        try:
            self._charge()
            return await self.bound.ainvoke(input, config, **kwargs)
        except BudgetExceededError as error:
            return error
        except Exception as error:
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
    first: bool = True,  # no other model is asked before this one, as before a fallback
) -> Any:
    """Change each chat model inside its wrappers, as the config chooses it; None if the first has no change."""
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
    """Return the findings about a model's endpoint, to be added to; nothing is kept of a model without a name."""
    if (name := model_name(model)) is None:
        return Endpoint()
    if len(_endpoints) >= _MAX_REMEMBERED:
        _endpoints.clear()
    class_name = f"{type(model).__module__}.{type(model).__qualname__}"
    return _endpoints.setdefault((class_name, name, base_url(model) or ""), Endpoint())


def context_tokens(model: Any) -> int | None:
    """Return how many tokens a model reads: as its endpoint said, else as its profile says."""
    profile = getattr(model, "profile", None)
    stated = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    context = endpoint_of(model).context or stated
    return context if isinstance(context, int) and context > 0 else None


def with_bound(
    model: Any, arguments: Mapping[str, Any], bound: int
) -> tuple[Any, dict[str, Any], int | None]:
    """Copy a model so that it writes at most `bound` tokens a reply, or fewer if it was made or bound so.

    The bound goes into the field that the class itself has for it, and so to the provider under the right name. Return
    the copy, the bound arguments that are left, and the bound; without such a field the model, all of them and None.
    """
    fields = type(model).model_fields if isinstance(model, BaseChatModel) else {}
    name = next((name for name in _BOUNDS if name in fields), None)
    if name is None:
        return model, dict(arguments), None
    others = {key: value for key, value in arguments.items() if key not in _BOUNDS}
    extra_body = {**(getattr(model, "extra_body", None) or {}), **(others.get("extra_body") or {})}
    earlier = [getattr(model, name), extra_body.get("max_tokens"), *(arguments.get(key) for key in _BOUNDS)]
    bound = min([bound, *(value for value in earlier if type(value) is int and value > 0)])
    if fields[name].alias != "max_completion_tokens" or not _is_compatible(model):
        return model.model_copy(update={name: bound}), others, bound
    # compatible servers know "max_tokens", and many ignore the new name of OpenAI
    others.pop("extra_body", None)
    changes = {name: None, "extra_body": {**extra_body, "max_tokens": bound}}
    return model.model_copy(update=changes), others, bound


def _is_compatible(model: Any) -> bool:
    """Tell whether a model of OpenAI's class uses the chat completions of another server."""
    if hasattr(model, "azure_endpoint") or getattr(model, "use_responses_api", None):
        return False
    return host_of(base_url(model)) not in (None, "api.openai.com")
