"""One call to a model: its parts, its limits, and the two ways to carry it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs

from rag_kit.concurrency.budget import budget_scope, check_seconds
from rag_kit.concurrency.steps import Logic, arun, run
from rag_kit.errors import InvalidInputError

from .endpoint import without_retries
from .listening import has_listeners
from .slots import Slot

T = TypeVar("T")
MAX_RETRIES = 2


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


class ModelCall:
    """A model, a prompt and its values, with the limits of the call; the context of each of its steps.

    Attributes:
        bare_model: The model without retries of its own.
        config: The caller's config, whole, plus which prompt ran.
        retries_left: Over all requests of the call.
        slot: What requests wait for on an event loop; ``None``: they do not wait.
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
        max_calls: int | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
        timeout: float | None = None,
        max_retries: int = MAX_RETRIES,
        slot: Slot | None = None,
    ) -> None:
        check_limits(timeout, max_retries)
        _check_parts(model, prompt, values)
        self.model: Any = model
        self.bare_model = without_retries(model, timeout)
        self.prompt = prompt
        self.values = values
        self.timeout = timeout
        self.retries_left = max_retries
        self.slot = slot
        self.tokens = TokenWatch()
        self.config = _config(config, model, prompt, self.tokens)
        self._caps: dict[str, Any] = {"max_calls": max_calls, "max_tokens": max_tokens, "deadline": deadline}

    @property
    def language(self) -> str:
        """``"zh"`` for a Chinese prompt file, else ``"en"``."""
        return "zh" if _metadata(self.prompt).get("language") == "zh" else "en"

    def run(self, logic: Callable[[], Logic[T]]) -> T:
        """Carry out the logic within the caps, blocking."""
        with budget_scope(**self._caps):
            return run(logic(), self)

    async def arun(self, logic: Callable[[], Logic[T]]) -> T:
        """As `run`, on an event loop; the slot is given back, however it ends."""
        with budget_scope(**self._caps):
            try:
                return await arun(logic(), self)
            finally:
                if self.slot is not None:
                    self.slot.drop()


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
