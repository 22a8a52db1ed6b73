"""One call to a model: its parts, its limits, the two ways to carry it out, and the messages that it sends."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypedDict, TypeVar, Unpack

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.budget import Budget, check_seconds, use_budget
from rag_kit.concurrency.steps import Logic, Step, arun, run
from rag_kit.errors import InvalidInputError
from rag_kit.prompts import PromptTemplate, load_prompt
from rag_kit.prompts.library import FOLDER_VARIABLE

from .runnables import has_handlers, has_listeners, without_retries

T = TypeVar("T")
MAX_RETRIES = 2
# The prompts named in the code (two names in two languages), by name, language and override folder.
_loaded: dict[tuple[str, str, str | None], PromptTemplate] = {}


def check_limits(timeout: float | None, max_retries: int) -> None:
    """See that the limits make sense.

    Raises:
        InvalidInputError: A limit is negative, or not a number.
    """
    check_seconds("timeout", timeout)
    if isinstance(max_retries, bool) or not isinstance(max_retries, int) or not 0 <= max_retries <= 10:
        raise InvalidInputError(f"max_retries={max_retries!r} was given; it must be 0 to 10")


class TokenWatch(BaseCallbackHandler):
    """Notes whether a token went out to a listener: then a retry would say everything twice."""

    run_inline = True  # on the event loop itself: a thread for each token would cost more than this does

    def __init__(self) -> None:
        self.started = False

    @property
    def ignore_chain(self) -> bool:
        """Only tokens matter here."""
        return True

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do."""

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        """Called by a model that streams."""
        self.started = self.started or bool(token)


class Limits(TypedDict, total=False):
    """What bounds a call: requests, tokens and seconds of the whole, seconds of a request, and retries."""

    max_calls: int | None
    max_tokens: int | None
    deadline: float | None
    timeout: float | None
    max_retries: int


class ModelCall:
    """A model, a prompt and its values, with the limits of the call; the context of each of its steps.

    Attributes:
        bare_model: The model without retries of its own.
        config: The caller's config, whole, plus which prompt ran.
        retries_left: Over all requests of the call.
        tokens: Whether a listener got a token.

    Raises:
        InvalidInputError: A part is missing or of another kind, or a limit is not allowed.
    """

    def __init__(
        self,
        model: Runnable[Any, Any],
        prompt: Runnable[Any, Any],
        values: Mapping[str, Any],
        config: RunnableConfig | None = None,
        **limits: Unpack[Limits],
    ) -> None:
        timeout, max_retries = limits.pop("timeout", None), limits.pop("max_retries", MAX_RETRIES)
        check_limits(timeout, max_retries)
        self._budget = partial(Budget, **limits)  # type: ignore[misc] # the two above are taken out
        _check_parts(model, prompt, values)
        self.model: Any = model
        self.bare_model = without_retries(model, timeout)
        self.prompt = prompt
        self.values = values
        self.timeout = timeout
        self.retries_left = max_retries
        self.tokens = TokenWatch()
        self.config = _config(config, model, prompt, self.tokens)

    @property
    def language(self) -> str:
        """``"zh"`` for a Chinese prompt file, else ``"en"``."""
        return "zh" if _metadata(self.prompt).get("language") == "zh" else "en"

    def run(self, logic: Callable[[], Logic[T]]) -> T:
        """Carry out the logic within the caps, blocking."""
        with use_budget(self._budget()):
            return run(logic(), self)

    async def arun(self, logic: Callable[[], Logic[T]]) -> T:
        """As `run`, on an event loop."""
        with use_budget(self._budget()):
            return await arun(logic(), self)


def _check_parts(model: Any, prompt: Any, values: Any) -> None:
    if not hasattr(model, "invoke"):
        raise InvalidInputError(
            f"model is a {type(model).__name__}; give a chat model, e.g. chat_model('extractive') or "
            "chat_model('openai:MODEL')."
        )
    if not hasattr(prompt, "invoke"):
        raise InvalidInputError(
            f"prompt is a {type(prompt).__name__}; give load_prompt(NAME) or a ChatPromptTemplate."
        )
    if not isinstance(values, Mapping):
        raise InvalidInputError(
            f"values is a {type(values).__name__}; give a dict of the prompt's variables."
        )
    wanted = getattr(prompt, "input_variables", None) or []
    if missing := [name for name in wanted if name not in values]:
        raise InvalidInputError(
            f"values lack {', '.join(map(repr, missing))}; the prompt needs: {', '.join(wanted)}."
        )


def _config(
    config: RunnableConfig | None, model: Any, prompt: Any, watch: BaseCallbackHandler
) -> RunnableConfig:
    """The caller's config, which prompt ran and, if anybody may listen, a watch for tokens."""
    known = _metadata(prompt)
    metadata = {
        f"prompt_{key}": known[key] for key in ("name", "language", "version", "hash") if key in known
    }
    whole = ensure_config(config)
    if isinstance(model, BaseChatModel) and not model.callbacks and not has_listeners(whole):
        whole["metadata"] = {**(whole.get("metadata") or {}), **metadata}
        return whole
    return merge_configs(whole, {"metadata": metadata, "callbacks": [watch]})


def _metadata(prompt: Any) -> dict[str, Any]:
    return getattr(prompt, "metadata", None) or {}


def formatted() -> Step[list[BaseMessage]]:
    """Fill in the caller's prompt."""

    def sync(call: ModelCall) -> list[BaseMessage]:
        if (direct := _formatted(call)) is not None:
            return direct
        messages: list[BaseMessage] = call.prompt.invoke(call.values, call.config).to_messages()
        return messages

    async def native(call: ModelCall) -> list[BaseMessage]:
        if (direct := _formatted(call)) is not None:
            return direct
        messages: list[BaseMessage] = (await call.prompt.ainvoke(call.values, call.config)).to_messages()
        return messages

    return Step("prompt", sync, native)


def rendered(name: str, language: str, values: Mapping[str, Any]) -> Step[list[BaseMessage]]:
    """Fill in one of the kit's own prompts; its file is read once."""
    place = (name, language, os.environ.get(FOLDER_VARIABLE))

    def fill() -> list[BaseMessage]:
        if place not in _loaded:
            _loaded[place] = load_prompt(name, language=language)
        return _loaded[place].format_messages(**values)

    async def native(call: ModelCall) -> list[BaseMessage]:
        # reading the file would block the loop
        return fill() if place in _loaded else await run_in_thread(fill)

    return Step(name, lambda call: fill(), native)


def _formatted(call: ModelCall) -> list[BaseMessage] | None:
    """The messages, where no handler would see the prompt's own run; else None."""
    # Where anybody listens, the config holds a handler of the kit's own.
    if type(call.prompt) not in (PromptTemplate, ChatPromptTemplate) or has_handlers(call.config):
        return None
    messages: list[BaseMessage] = call.prompt.format_messages(**call.values)  # type: ignore[attr-defined]
    return messages
