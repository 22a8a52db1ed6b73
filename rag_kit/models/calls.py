"""One call to a model: its parts and limits, its requests with bounded retries; and the call that gives text.

Exceptions of the model come back as values: none that holds a request with its headers is the context of one of ours.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypedDict, TypeVar, Unpack

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs

from rag_kit.concurrency.budget import (
    Budget,
    charge_call,
    charge_tokens,
    check_seconds,
    remaining_seconds,
    return_call,
    time_limit,
    use_budget,
)
from rag_kit.concurrency.notes import write_note
from rag_kit.concurrency.steps import Logic, Step, acall_in_time, arun, call_in_time, run
from rag_kit.errors import (
    BudgetExceededError,
    ContextLengthError,
    InvalidInputError,
    ModelOutputError,
    ModelUnreachableError,
)
from rag_kit.prompts import PromptTemplate
from rag_kit.prompts.format import DEFAULT_MAX_TOKENS
from rag_kit.prompts.rendering import Markup, first_passages

from .failures import RETRYABLE, Failure, classify, map_model_error, mask_error, refuses_bound, retry_after
from .redact import secrets_of, short
from .replies import (
    TextReply,
    count_tokens,
    cut_off_reply,
    finish_of,
    has_thoughts,
    refusal_of,
    split_reply,
    text_of,
    text_reply,
    used_tokens,
    was_cached,
)
from .runnables import acall_runnable, has_handlers, has_listeners, without_retries
from .wrapped import OnRefusal, bare_model, change_models, context_tokens, endpoint_of, with_bound

T = TypeVar("T")
#: Makes of a model, its bound arguments and whether it is asked first what is called; None where it cannot.
Method = Callable[[Any, dict[str, Any], bool], Runnable[Any, Any] | None]
MAX_RETRIES = 2
_FORMS = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format"}
)
_THOUGHTS = 16_384  # tokens for the reasoning of a model that thinks before it answers
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
_GRACE = 0.05


class Limits(TypedDict, total=False):
    """Bounds of a call: requests, tokens and seconds of the whole, seconds of a request, and retries."""

    max_calls: int | None
    max_tokens: int | None
    deadline: float | None
    timeout: float | None
    max_retries: int


def check_limits(timeout: float | None, max_retries: int) -> None:
    """Raise InvalidInputError where a limit is negative, too high or no number."""
    check_seconds("timeout", timeout)
    if isinstance(max_retries, bool) or not isinstance(max_retries, int) or not 0 <= max_retries <= 10:
        raise InvalidInputError(f"max_retries={max_retries!r} was given; it must be 0 to 10")


class _Watch(BaseCallbackHandler):
    """Notes whether a token went out to a listener: then a retry would say everything twice. Masks keys in errors."""

    run_inline = True  # on the event loop itself: a thread for each token would cost more than this does
    ignore_chain = ignore_chat_model = True  # only tokens and errors count

    def __init__(self, model: Any) -> None:
        self.model = model
        self.started = False

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Called before the handlers that come after this one write the error down."""
        mask_error(error, self.model)

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        """Called by a model that streams."""
        self.started = self.started or bool(token)


class ModelCall:
    """A model, a prompt and its values, with the limits of the call; the context of each of its steps.

    ``config`` says which prompt ran, ``retries_left`` are the whole call's, ``sent_bound`` is the bound on the reply in
    the request that was made last; None where the model's class takes none. ``has_failed``: the reply to that request
    may be of a model that stands by.
    """

    sent_bound: int | None = None
    has_failed: bool = False

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
        _check_parts(model, prompt, values)
        self._budget = partial(Budget, **limits)  # type: ignore[misc] # the two above are taken out
        self.model: Any = model
        self.prompt: Any = prompt
        self.values: Mapping[str, Any] = values
        self.timeout = timeout
        self.retries_left = max_retries
        self.tokens = _Watch(model)
        about: Mapping[str, Any] = getattr(prompt, "metadata", None) or {}
        self.language = "zh" if about.get("language") == "zh" else "en"
        self.config = self._config(config, about)
        self.max_reply: int = getattr(prompt, "max_tokens", DEFAULT_MAX_TOKENS)
        self.inner_model = bare_model(model, self.config)
        self.endpoint = endpoint_of(self.inner_model)

    @property
    def bound(self) -> int:
        """Most tokens of the reply: the prompt's, with room for thoughts, and at most a quarter of a known context."""
        bound = self.max_reply + (_THOUGHTS if self.endpoint.thinks else 0)
        context = context_tokens(self.inner_model)
        return bound if context is None else min(bound, max(1, context // 4))

    def runnable(self, bind: Method | None = None, bound: int | None = None) -> Any:
        """The model as it is asked, inside its wrappers: without retries of its own, with a bound on the reply.

        With ``bind`` by a method of structured output; None where the model does not have it.
        """
        self.has_failed = False

        def change(model: Any, arguments: Mapping[str, Any], first: bool) -> Runnable[Any, Any] | None:
            endpoint = self.endpoint if first else endpoint_of(model)
            changed, rest, sent = without_retries(model, self.timeout), dict(arguments), None
            if endpoint.takes_bound:
                changed, rest, sent = with_bound(changed, rest, bound or self.bound)
            self.sent_bound = sent if first else self.sent_bound
            if bind is not None:  # what a model was bound to for other calls would stand against the method
                rest = {name: value for name, value in rest.items() if name not in _FORMS}
                asked = bind(changed, rest, first)
            else:
                asked = changed.bind(**rest) if rest else changed
            if asked is None or self.inner_model is self.model:
                return asked

            def refusal(error: Exception) -> Exception | None:
                """The error where the form was refused: no reason to ask one that stands by."""
                self.has_failed = True
                is_form = classify(error) is Failure.REFUSED if bind is not None else refuses_bound(error)
                return error if is_form and (bind is not None or sent is not None) else None

            def without_bound(error: Exception) -> Runnable[Any, Any] | None:
                """One that stands by, asked again where it refused the bound."""
                if sent is None or not refuses_bound(error):
                    return None
                endpoint.takes_bound = False
                # of a model without a name nothing is kept
                return None if endpoint_of(model).takes_bound else change(model, arguments, False)

            return OnRefusal(asked, refusal if first else without_bound)

        return change_models(self.model, change, self.config, {})

    def _config(self, config: RunnableConfig | None, about: Mapping[str, Any]) -> RunnableConfig:
        """The caller's config, which prompt ran and, if anybody may listen, a watch for tokens."""
        names = [name for name in ("name", "language", "version", "hash") if name in about]
        metadata = {f"prompt_{name}": about[name] for name in names}
        whole = ensure_config(config)
        if isinstance(self.model, BaseChatModel) and not self.model.callbacks and not has_listeners(whole):
            whole["metadata"] = {**(whole.get("metadata") or {}), **metadata}
            return whole
        merged = merge_configs(whole, {"metadata": metadata, "callbacks": [self.tokens]})
        callbacks: Any = merged["callbacks"]
        lists = (
            [callbacks]
            if isinstance(callbacks, list)
            else [callbacks.handlers, callbacks.inheritable_handlers]
        )
        for handlers in lists:
            handlers.sort(
                key=lambda handler: handler is not self.tokens
            )  # the first one, for it masks errors
        return merged

    def run(self, logic: Callable[[], Logic[T]]) -> T:
        """Carry out the logic within the caps, blocking."""
        with use_budget(self._budget()):
            return run(logic(), self)

    async def arun(self, logic: Callable[[], Logic[T]]) -> T:
        """As `run`, on an event loop."""
        with use_budget(self._budget()):
            return await arun(logic(), self)

    def without_secrets(self, text: str | Exception) -> str:
        """A message on one line, without the model's keys."""
        return short(str(text) or type(text).__name__, secrets_of(self.model)).rstrip(".")


def _check_parts(model: Any, prompt: Any, values: Any) -> None:
    """Refuse parts of another kind, and values that lack a variable of the prompt."""
    for name, part, is_right, allowed in (
        ("model", model, hasattr(model, "invoke"), "a chat model, e.g. chat_model('openai:MODEL')"),
        ("prompt", prompt, hasattr(prompt, "invoke"), "load_prompt(NAME) or a ChatPromptTemplate"),
        ("values", values, isinstance(values, Mapping), "a dict of the prompt's variables"),
    ):
        if not is_right:
            raise InvalidInputError(f"{name} is a {type(part).__name__}; give {allowed}.")
    variables = getattr(prompt, "input_variables", None) or []
    if missing := [name for name in variables if name not in values]:
        raise InvalidInputError(
            f"values lack {', '.join(map(repr, missing))}; the prompt needs: {', '.join(variables)}."
        )


async def format_prompt(call: ModelCall) -> list[BaseMessage]:
    """Fill in the caller's prompt."""
    # where no handler would see it, a run of the prompt's own costs more than the formatting
    if type(call.prompt) in (PromptTemplate, ChatPromptTemplate) and not has_handlers(call.config):
        messages: list[BaseMessage] = call.prompt.format_messages(**call.values)
        return messages
    value = await Step(
        "prompt",
        lambda call: call.prompt.invoke(call.values, call.config),
        lambda call: call.prompt.ainvoke(call.values, call.config),
    )
    return list(value.to_messages())


async def in_context(call: ModelCall, logic: Callable[[list[BaseMessage]], Logic[T]]) -> T:
    """Carry out the logic with the prompt's messages, with fewer passages where the model's context is too small.

    The first try goes by an estimate, where the context is known; the second by what the endpoint said of it.
    """
    messages = await format_prompt(call)
    if _leave_out_passages(call, messages, count_tokens(messages)):
        messages = await format_prompt(call)
    bound = call.bound
    try:
        return await logic(messages)
    except ContextLengthError as error:
        failure = error
    if failure.limit is not None:
        call.endpoint.context = failure.limit
        given = failure.given or count_tokens(messages)
        if _leave_out_passages(call, messages, given) or call.bound < bound:
            return await logic(await format_prompt(call))
    raise failure


def _leave_out_passages(call: ModelCall, messages: list[BaseMessage], tokens: int) -> bool:
    """Leave out passages where messages of so many tokens are too long for the model's context; whether any were."""
    context, passages = context_tokens(call.inner_model), call.values.get("passages")
    room = 0 if context is None else context - call.bound
    if context is None or tokens <= room or not isinstance(passages, Markup):
        return False
    chars = sum(len(text_of(message)) for message in messages)
    kept, left_out = first_passages(passages, len(passages) - round(1.1 * chars * (tokens - room) / tokens))
    if not kept:
        return False
    call.values = {**call.values, "passages": kept}
    write_note(
        f"{left_out} passages were left out of the prompt, or cut: about {tokens:,} tokens, where the model's context "
        f"of {context:,} has room for {room:,}"
    )
    return True


async def ask(call: ModelCall, runnable: Runnable[Any, Any], messages: list[Any]) -> Any:
    """Ask, and ask again after a rate limit, a server error, a time-out or a broken connection.

    The reply; or the exception where this form of the request is refused, or the client could not read the answer.
    Any other failure is raised as a ``ModelError``, that of the last retry too.
    """
    pause = FIRST_PAUSE
    while True:
        charge_call()
        reply = await _ask_once(call, runnable, messages)
        if not isinstance(reply, Exception):
            if was_cached(reply):
                return_call()
            else:
                charge_tokens(used_tokens(reply, messages))
            return reply
        kind = classify(reply)
        if kind in (Failure.REFUSED, Failure.OUTPUT):
            return reply
        left = remaining_seconds()
        if left is not None and left <= _GRACE and kind is not Failure.RATE_LIMITED:
            await _wait(left)
            time_limit()  # raises the error of the budget
        await _wait(_take_retry(call, reply, kind, pause))
        pause *= 2


def _take_retry(call: ModelCall, error: Exception, kind: Failure, pause: float) -> float:
    """Use up one retry: the seconds to wait before it; raises the error where none is left or useful."""
    mapped = map_model_error(error, model=call.model)
    if kind not in RETRYABLE or call.retries_left < 1 or call.tokens.started:
        raise mapped
    seconds = retry_after(error) if kind in (Failure.RATE_LIMITED, Failure.SERVER) else None
    if seconds is None:  # jitter, so that branches that failed together don't come back together
        seconds = pause * random.uniform(0.75, 1.25)
    left = remaining_seconds()
    allowed = LONGEST_PAUSE if left is None else min(left, LONGEST_PAUSE)
    if seconds > allowed:
        if kind is not Failure.RATE_LIMITED:
            raise mapped
        raise ModelUnreachableError(
            f"{mapped} The server asks to wait {seconds:.1f} s; {allowed:.1f} s are allowed."
        )
    call.retries_left -= 1
    return seconds


def _wait(seconds: float) -> Step[None]:
    return Step("wait", lambda call: time.sleep(seconds), lambda call: asyncio.sleep(seconds))


async def _ask_once(call: ModelCall, runnable: Runnable[Any, Any], messages: list[Any]) -> Any:
    """The reply, or the error, which the caller may retry."""
    send = partial(runnable.invoke, messages, call.config)
    asend = partial(acall_runnable, runnable, messages, call.config)
    try:
        # A client's own time-out is for each read; only a call that is given up ends on time.
        return await Step(
            "model", lambda _: call_in_time(send, call.timeout), lambda _: acall_in_time(asend, call.timeout)
        )
    except BudgetExceededError:
        raise
    except Exception as error:  # noqa: BLE001 - handed on as a value, see the module's docstring
        return cut_off_reply(error) or error


async def ask_within(call: ModelCall, messages: list[Any], bind: Method | None = None) -> Any:
    """As `ask`, with the bound on the reply; one that is cut off there is asked for once more with twice the bound.

    None where the model lacks the method.
    """
    bound, runnable = call.bound, call.runnable(bind)
    if runnable is None:
        return None
    reply = await ask(call, runnable, messages)
    if isinstance(reply, Exception):
        if call.sent_bound is None or not refuses_bound(reply):
            return reply
        call.endpoint.takes_bound = False
        return await ask(call, call.runnable(bind), messages)
    message = split_reply(reply)[0]
    call.endpoint.thinks = call.endpoint.thinks or has_thoughts(message)
    if call.sent_bound != bound or call.tokens.started or finish_of(message) != "length":
        return reply
    return await ask(call, call.runnable(bind, max(2 * bound, call.bound)), messages)


async def ask_for_value(call: ModelCall, messages: list[Any]) -> Any:
    """Ask the model; every failure is raised as a ``ModelError``."""
    reply = await ask_within(call, messages)
    if isinstance(reply, Exception):
        raise map_model_error(reply, model=call.model)
    return reply


async def _ask_for_reply(call: ModelCall) -> TextReply:
    """The answer; a refusal or an empty answer is an error."""
    message = await in_context(call, lambda messages: ask_for_value(call, messages))
    if refusal := refusal_of(message):
        raise ModelOutputError(f"The model refused to answer: {call.without_secrets(refusal)}")
    return text_reply(message)


def reply_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    **limits: Unpack[Limits],
) -> TextReply:
    """As `text_call`, with the reason why the answer was cut off, if it was."""
    call = ModelCall(model, prompt, values, config, **limits)
    return call.run(partial(_ask_for_reply, call))


async def areply_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    **limits: Unpack[Limits],
) -> TextReply:
    """As `reply_call`, without blocking."""
    call = ModelCall(model, prompt, values, config, **limits)
    return await call.arun(partial(_ask_for_reply, call))


def text_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    **limits: Unpack[Limits],
) -> str:
    """Ask a model for text.

    Tokens stream to whoever listens through `config` (LangGraph's ``messages`` mode, callbacks). A stream that
    breaks off after its first token is not retried: the listener would read everything twice.

    Args:
        model: A chat model, or any runnable that takes messages.
        prompt, values, config, **limits: Those of ``structured_call``.

    Returns:
        The answer without reasoning blocks and surrounding white space; never empty.

    Raises:
        ModelError: Unreachable, unauthorised, rate limited, refused, or an empty answer.
        BudgetExceededError: A cap was reached.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> text_call(FakeListChatModel(responses=["Hello."]), ChatPromptTemplate([("user", "{q}")]), {"q": "Hi"})
        'Hello.'
    """
    return _noted(reply_call(model, prompt, values, config=config, **limits), prompt)


async def atext_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    *,
    config: RunnableConfig | None = None,
    **limits: Unpack[Limits],
) -> str:
    """``text_call`` without blocking; a cancelled task stops at once and is never retried."""
    return _noted(await areply_call(model, prompt, values, config=config, **limits), prompt)


def _noted(reply: TextReply, prompt: Any) -> str:
    """The text of a reply; a note where it was cut off."""
    if reply.cut_off:
        write_note(f"{getattr(prompt, 'title', 'a text')} is not whole: {reply.cut_off}")
    return reply.text
