"""One call to a model: its parts and limits, and the model as it is asked, in its wrappers, with a bound on replies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from typing import Any, TypedDict, TypeVar, Unpack

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence
from langchain_core.runnables.config import ensure_config, merge_configs

from rag_kit.concurrency.branches import note_fallback
from rag_kit.concurrency.budget import Budget, charge_call, check_seconds, use_budget
from rag_kit.concurrency.steps import Logic, arun, run
from rag_kit.errors import InvalidInputError, ModelError
from rag_kit.prompts.format import DEFAULT_MAX_TOKENS

from . import runnables
from .failures import map_model_error, mask_error
from .redact import host_of, secrets_of, short
from .runnables import Route, bare_model, base_url, endpoint_of, has_listeners, model_name, routes_to, shield

T = TypeVar("T")
#: Makes what is called out of a model and the arguments bound to it; None where it cannot.
Method = Callable[[Any, dict[str, Any]], Runnable[Any, Any] | None]
MAX_RETRIES = 2
_FORMS = {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format"}
_PENALTY = "frequency_penalty"
_THOUGHTS = 16_384  # tokens for the reasoning of a model that thinks before it answers
# The names under which LangChain's classes keep the most tokens of a reply: OpenAI, Anthropic and most others; Google;
# Hugging Face; Ollama.
_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict")
_stand_ins: ContextVar[list[str] | None] = ContextVar("rag_kit_stand_ins", default=None)


def is_extractive(model: Any) -> bool:
    """Tell whether a model is the embedded ``extractive`` one, also in a chain or inside wrappers such as fallbacks."""
    inner = model if isinstance(model, BaseChatModel) else bare_model(model)
    if isinstance(inner, RunnableSequence):
        return any(map(is_extractive, inner.steps))
    return getattr(inner, "_llm_type", None) == "rag-kit-extractive"


@contextmanager
def watch_stand_ins() -> Iterator[list[str]]:
    """Collect the names of the models in whose place, in the block, the embedded one was asked as their fallback."""
    names: list[str] = []
    token = _stand_ins.set(names)
    try:
        yield names
    finally:
        _stand_ins.reset(token)


class CallLimits(TypedDict, total=False):
    """Bounds of a call: requests, tokens and seconds of the whole, seconds of a request, and retries."""

    max_calls: int | None
    max_tokens: int | None
    deadline: float | None
    timeout: float | None
    max_retries: int


def check_limits(timeout: float | None, max_retries: int) -> None:
    """Raise InvalidInputError where a limit is negative, too high or no number."""
    check_seconds("timeout", timeout)
    if type(max_retries) is not int or not 0 <= max_retries <= 10:
        raise InvalidInputError(f"max_retries={max_retries!r} was given; it must be 0 to 10")


class _StreamWatch(BaseCallbackHandler):
    """Notes whether a token was streamed, after which a retry would repeat the text; masks keys in errors."""

    run_inline = True  # on the event loop itself: a thread for each token would cost more than this does
    ignore_chain = ignore_chat_model = True  # only tokens and errors count

    def __init__(self, model: Any) -> None:
        self.model = model
        self.started = False

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Called before the handlers that come after this one write the error down."""
        mask_error(error, self.model, kwargs.get("response"))

    def on_llm_new_token(self, token: Any, *, tags: list[str] | None = None, **kwargs: Any) -> None:
        """Called by a model that streams; LangGraph shows nobody the tokens of a run that is tagged ``nostream``."""
        self.started = self.started or (bool(token) and "nostream" not in (tags or ()))


class ModelCall:
    """A model, a prompt and its values, with the limits of the call; the context of each of its steps.

    ``config`` says which prompt ran. The rest is about the model that is asked now, of several that stand by for each
    other: ``retries_left``; ``sent_bound``, the bound on the reply in the last request, None where the model's class
    takes none; ``failure``, the error of the last request; ``repeats``: a reply repeated itself, so that the next
    requests penalize repetition; ``is_ending``: the next ones are asked in a form that ends (`ending_schema`).
    """

    sent_bound: int | None
    failure: Exception | None
    repeats: bool
    is_ending: bool

    def __init__(
        self,
        model: Runnable[Any, Any],
        prompt: Runnable[Any, Any],
        values: Mapping[str, Any],
        config: RunnableConfig | None = None,
        **limits: Unpack[CallLimits],
    ) -> None:
        timeout, max_retries = limits.pop("timeout", None), limits.pop("max_retries", MAX_RETRIES)
        check_limits(timeout, max_retries)
        _check_parts(model, prompt, values)
        self._budget = partial(Budget, **limits)  # type: ignore[misc] # the two above are taken out
        self.model: Any = model
        self.prompt: Any = prompt
        self._given = values
        self.timeout, self._max_retries = timeout, max_retries
        self.watch = _StreamWatch(model)
        metadata: Mapping[str, Any] = getattr(prompt, "metadata", None) or {}
        self.language = "zh" if metadata.get("language") == "zh" else "en"
        self.config = self._config_with_prompt(config, metadata)
        self.max_reply: int = getattr(prompt, "max_tokens", DEFAULT_MAX_TOKENS)
        self._routes = routes_to(model, self.config)
        self._take(self._routes[0])

    def _take(self, route: Route) -> None:
        """Ask the model of a route from now on."""
        self.values: Mapping[str, Any] = self._given
        self.inner_model, self.endpoint, self._route = route.model, endpoint_of(route.model), route
        # a model with a fallback is asked again only if ``with_retry`` says so
        self.retries_left = route.retries + (0 if route.next_after else self._max_retries)
        self.sent_bound = self.failure = None
        self.repeats = self.is_ending = False

    @property
    def has_penalty(self) -> bool:
        """Whether the class of the model has a penalty on repetition, as those of OpenAI-compatible endpoints do."""
        return hasattr(self.inner_model, _PENALTY)

    @property
    def context(self) -> int | None:
        """How many tokens the model reads: as its endpoint said, else as its profile says."""
        profile = getattr(self.inner_model, "profile", None)
        stated = profile.get("max_input_tokens") if isinstance(profile, dict) else None
        context = self.endpoint.context or stated
        return context if isinstance(context, int) and context > 0 else None

    @property
    def bound(self) -> int:
        """The most tokens of a reply: the prompt's bound with room for thoughts, at most a quarter of the context."""
        context = self.context
        bound = self.max_reply + (_THOUGHTS if self.endpoint.thinks else 0)
        return bound if context is None else min(bound, max(1, context // 4))

    def runnable(self, bind: Method | None = None, bound: int | None = None) -> Any:
        """Return the model to ask, inside its wrappers, with a bound on the reply and without its own retries.

        ``bind`` binds it to a method of structured output; the result is None if the model does not have that.
        """
        model = shield(without_retries(self.inner_model, self.timeout), _charge_stand_in)
        arguments = dict(self._route.arguments)
        if self.repeats and self.has_penalty:
            arguments[_PENALTY] = 1.0
        self.sent_bound = None
        if self.endpoint.takes_bound:
            model, arguments, self.sent_bound = with_bound(model, arguments, bound or self.bound)
        if bind is not None:
            # tools or a form that the model was bound to would contradict the method
            others = {name: value for name, value in arguments.items() if name not in _FORMS}
            model = bind(model, others)
        elif arguments:
            model = model.bind(**arguments)
        return None if model is None else self._route.wrap(model)

    async def _answer(self, logic: Callable[[ModelCall], Logic[T]]) -> T:
        """Carry out the logic within the caps, with one model after another until one does not fail; note failures."""
        with use_budget(self._budget()):
            for route, following in pairwise(self._routes):
                self._take(route)
                try:
                    return await logic(self)
                except ModelError as error:
                    # after the first streamed word, a reader of the stream would read the answer twice
                    if self.watch.started or not isinstance(self.failure, route.next_after):
                        raise
                    _note_stand_in(route.model, following.model, error)
            self._take(self._routes[-1])
            return await logic(self)

    def failed(self, error: Exception) -> ModelError:
        """Return the kit's error for that of a request, after which a model that stands by may be asked."""
        self.failure = error
        return map_model_error(error, model=self.model)

    def _config_with_prompt(
        self, config: RunnableConfig | None, prompt_metadata: Mapping[str, Any]
    ) -> RunnableConfig:
        """Return the caller's config with the prompt's name and, if anybody may listen, a watch for tokens."""
        names = [name for name in ("name", "language", "version", "hash") if name in prompt_metadata]
        metadata = {f"prompt_{name}": prompt_metadata[name] for name in names}
        whole = ensure_config(config)
        if isinstance(self.model, BaseChatModel) and not self.model.callbacks and not has_listeners(whole):
            whole["metadata"] = {**(whole.get("metadata") or {}), **metadata}
            return whole
        merged = merge_configs(whole, {"metadata": metadata, "callbacks": [self.watch]})
        callbacks: Any = merged["callbacks"]
        is_list = isinstance(callbacks, list)
        for handlers in [callbacks] if is_list else [callbacks.handlers, callbacks.inheritable_handlers]:
            runnables.drop_watches(handlers)
            # False sorts first: the watch must mask errors before others see them
            handlers.sort(key=lambda handler: handler is not self.watch)
        return merged

    def run(self, logic: Callable[[ModelCall], Logic[T]]) -> T:
        """Carry out the logic of this call within the caps, blocking."""
        return run(self._answer(logic), self)

    def arun(self, logic: Callable[[ModelCall], Logic[T]]) -> Awaitable[T]:
        """Carry out the logic of this call within the caps, on an event loop."""
        return arun(self._answer(logic), self)

    def without_secrets(self, text: str | Exception) -> str:
        """A message on one line, without the model's keys."""
        return short(str(text) or type(text).__name__, secrets_of(self.model)).rstrip(".")


def _note_stand_in(failed: Any, stand_in: Any, error: Exception) -> None:
    """Note that a model failed, and which one is asked in its place."""
    name, stand_in_name = (model_name(model) or type(model).__name__ for model in (failed, stand_in))
    # the extractive model compares words: where it declines, no language model has read the passages
    note_fallback(name, error, f"{stand_in_name} was asked", unsearched=is_extractive(stand_in))
    if is_extractive(stand_in) and (stand_ins := _stand_ins.get()) is not None:
        stand_ins.append(name)


def _charge_stand_in(failed: Any, stand_in: Any, error: Exception) -> None:
    """Note that a model inside a chain failed and which one is asked in its place, and count the request."""
    _note_stand_in(bare_model(failed), bare_model(stand_in), map_model_error(error, model=failed))
    charge_call()


def _check_parts(model: Any, prompt: Any, values: Any) -> None:
    """Refuse a prompt or model of another kind, and values that lack a variable of the prompt."""
    for name, part, is_right, allowed in (
        ("model", model, hasattr(model, "invoke"), "a chat model, e.g. chat_model('openai:MODEL')"),
        ("prompt", prompt, hasattr(prompt, "invoke"), "load_prompt(NAME) or a ChatPromptTemplate"),
        ("values", values, isinstance(values, Mapping), "a dict of the prompt's variables"),
    ):
        if not is_right:
            raise InvalidInputError(f"{name} is a {type(part).__name__}; give {allowed}.")
    variables = getattr(prompt, "input_variables", None) or []
    if missing := ", ".join(repr(name) for name in variables if name not in values):
        raise InvalidInputError(f"values lack {missing}; the prompt needs: {', '.join(variables)}.")


def without_retries(model: Any, timeout: float | None) -> Any:
    """Copy an OpenAI model so that it neither retries by itself nor waits longer than the time-out.

    Structured calls retry within their caps; a client's own retries would outlast the deadline. Other models stay.
    """
    options: dict[str, Any] = {"max_retries": 0, **({} if timeout is None else {"timeout": timeout})}
    changes: dict[str, Any] = {}
    for root_name, name in (("root_client", "client"), ("root_async_client", "async_client")):
        root: Any = getattr(model, root_name, None)
        if hasattr(root, "with_options") and hasattr(root, "chat"):
            changes[root_name] = root.with_options(**options)
            changes[name] = changes[root_name].chat.completions
    return model.model_copy(update=changes) if changes and hasattr(model, "model_copy") else model


def with_bound(
    model: Any, arguments: Mapping[str, Any], bound: int
) -> tuple[Any, dict[str, Any], int | None]:
    """Copy a model so that it writes at most `bound` tokens a reply; a smaller bound of its own stays.

    The bound goes into the class's own field for it, and so to the provider under the right name. Returns the copy, the
    arguments still to bind, and the bound; if the class has no such field, the model, all arguments and None.
    """
    fields = type(model).model_fields if isinstance(model, BaseChatModel) else {}
    name = next((name for name in _BOUNDS if name in fields), None)
    if name is None:
        return model, dict(arguments), None
    others = {key: value for key, value in arguments.items() if key not in _BOUNDS}
    extra_body = {**(getattr(model, "extra_body", None) or {}), **(others.get("extra_body") or {})}
    own_bounds = [
        getattr(model, name), extra_body.get("max_tokens"), *(arguments.get(key) for key in _BOUNDS),
    ]  # fmt: skip
    bound = min([bound, *(value for value in own_bounds if type(value) is int and value > 0)])
    is_of_azure_or_responses = hasattr(model, "azure_endpoint") or getattr(model, "use_responses_api", None)
    is_of_openai = is_of_azure_or_responses or host_of(base_url(model)) in (None, "api.openai.com")
    if fields[name].alias != "max_completion_tokens" or is_of_openai:
        return model.model_copy(update={name: bound}), others, bound
    # compatible servers know "max_tokens", and many ignore the new name of OpenAI
    others.pop("extra_body", None)
    changes = {name: None, "extra_body": {**extra_body, "max_tokens": bound}}
    return model.model_copy(update=changes), others, bound
