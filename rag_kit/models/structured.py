"""A structured call: down the ladder of methods, to text, to one repair."""

from __future__ import annotations

import copy
import inspect
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Unpack, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableParallel,
    RunnableSequence,
)
from pydantic import BaseModel

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.notes import write_note
from rag_kit.concurrency.steps import Step
from rag_kit.errors import BudgetExceededError, InvalidInputError, ModelError, ModelOutputError
from rag_kit.prompts import PromptTemplate, load_prompt
from rag_kit.prompts.library import FOLDER_VARIABLE

from .calls import ask_fitted, ask_within
from .failures import Failure, classify
from .json_text import values_before_loop
from .model_call import CallLimits, Method, ModelCall
from .parsing import read_reply
from .replies import text_of, written_text
from .runnables import NOSTREAM
from .schema import UnreadableError, ending_schema, strict_schema, target_of

logger = logging.getLogger(__name__)

RAISE: Final = object()
"""The default failure policy of a structured call: the error is raised."""

METHODS = ("json_schema", "function_calling", "json_mode", "text")
_MAX_REPLY = 20_000
_TOKENS_PER_CHAR = 2  # of Chinese, where the model's vocabulary has little of it


class Ladder:
    """The steps of one structured call; `InvalidInputError` if neither the call nor its prompt names a schema."""

    def __init__(self, call: ModelCall, schema: Any) -> None:
        # the file of a prompt of the kit may name a schema
        if schema is None and hasattr(call.prompt, "result_schema"):
            schema = call.prompt.output_schema
        if schema is None:
            raise InvalidInputError(
                "structured_call needs a schema: pass schema=, or use a prompt whose file names one under "
                "output.schema. For plain text use text_call."
            )
        self.call = call
        # an object is for the program: no reader of the run's stream is shown its text
        call.config["tags"] = [*(call.config.get("tags") or ()), NOSTREAM]
        self.target = target_of(schema, call.language, getattr(call.prompt, "description", ""))
        self.title = getattr(call.prompt, "title", self.target.name)

    def fall_back(self, fallback: Any, failure: Exception) -> Any:
        """Return the fallback, called with the failure if it can be; raise the failure if there is no fallback."""
        if fallback is RAISE:
            raise failure
        logger.warning("structured call of %s fell back: %s", self.title, failure)
        return fallback(failure) if callable(fallback) else fallback

    async def descend(self, messages: list[BaseMessage], first: int | None = None) -> Any:
        """Ask by one method after the other until one is served; read its reply, else repair it or ask for a text.

        ``first`` is the index of the method to begin with; default: the first one that the endpoint is known to serve.
        """
        call, was_refused = self.call, False
        first = call.endpoint.first_method if first is None else first
        for index, method in enumerate(METHODS[first:], first):
            is_text = method == "text"
            # providers want the word JSON in the prompt for JSON mode, and plain text needs the schema
            needs_instructions = method in ("json_mode", "text")
            sent = await self._with_instructions(messages) if needs_instructions else messages
            bind = None if is_text else partial(self._bind, method)
            reply = await ask_within(call, sent, bind)
            if reply is None:
                continue  # the model does not have this method
            if isinstance(reply, Exception) and classify(reply) is Failure.REFUSED:
                was_refused = True
                continue
            if was_refused:  # later calls begin with this method
                call.endpoint.first_method = index
            value = self._read(reply, lines=is_text)
            if not isinstance(value, UnreadableError):
                return value
            logger.info("answer by %s did not fit: %s", method, call.without_secrets(value))
            written = written_text(reply)
            # an object, also behind "```json"; a text that begins with "[" may be prose: "[1] says"
            is_object = written.lstrip("`json \n").startswith("{")
            is_broken_json = (value.kind == "truncated" and written) or (value.kind == "unfit" and is_object)
            if is_text or is_broken_json:
                return await self._repair(written, value, bind)
            return await self.descend(messages, METHODS.index("text"))
        raise AssertionError("plain text is always possible")

    def _bind(self, method: str, model: Any, arguments: Mapping[str, Any]) -> Runnable[Any, Any] | None:
        """Bind the model to a method and further arguments; None if it lacks the method.

        After a reply that did not end or fit, the schema is bounded, where that is possible, so that the next one ends.
        """
        if not isinstance(model, BaseChatModel):
            return None
        # a class with structured output of its own overrides one of the two
        overridden = ("with_structured_output", "bind_tools")
        if all(getattr(type(model), name) is getattr(BaseChatModel, name) for name in overridden):
            return None
        options: dict[str, Any] = {"method": method, "include_raw": True}
        schema: Any = self.target.native
        if method == "json_schema" and hasattr(model, "root_client"):
            # Given a class, the OpenAI client parses the reply and drops its text if that fails; given a schema it
            # returns the text, which can be repaired.
            schema = self.target.json_schema
            if self.call.is_ending:
                chars = min(self.call.max_reply, self.call.bound) // _TOKENS_PER_CHAR
                schema = ending_schema(schema, chars, self.target.model)
            strict = strict_schema(schema)
            schema = strict or copy.deepcopy(schema)
            if "strict" in inspect.signature(model.with_structured_output).parameters:
                options["strict"] = strict is not None
        try:
            bound: Any = model.with_structured_output(schema, **options)
        except (NotImplementedError, TypeError, ValueError):
            return None  # the integration does not know this method
        first_step = bound.first if isinstance(bound, RunnableSequence) else None
        if isinstance(first_step, RunnableParallel) and first_step.steps__.keys() == {"raw"}:
            # without LangChain's parser, whose time grows with the square of a broken reply's length
            bound = first_step.steps__["raw"]
        if not arguments:
            return cast("Runnable[Any, Any]", bound)
        if not isinstance(bound, RunnableBinding):
            return None  # a chain would not pass the arguments on to its model
        return bound.model_copy(update={"kwargs": {**arguments, **bound.kwargs}})

    async def _repair(self, text: str, problem: UnreadableError, bind: Method | None) -> Any:
        """Show the model its answer and what is wrong with it, once, by the same method."""
        if not text.strip():
            raise ModelOutputError(f"The model gave no usable answer: {problem}.")
        call = self.call
        explained = _describe_in_chinese(str(problem)) if call.language == "zh" else str(problem)
        values = {"reply": text[:_MAX_REPLY], "schema": self.target.text, "error": explained}
        messages = await render_kit_prompt("repair_json", call.language, values)
        call.is_ending = True
        reply = await ask_within(call, messages, bind)
        if isinstance(reply, Exception) and classify(reply) is Failure.REFUSED:
            call.is_ending = False  # the endpoint knows no bounds in a schema
            reply = await ask_within(call, messages, bind)
        value = self._read(reply, lines=bind is None)
        if isinstance(value, UnreadableError):
            raise ModelOutputError(
                f"The model's answer does not fit {self.target.name}, also after one repair: "
                f"{call.without_secrets(problem)}; then {call.without_secrets(value)}. Try a stronger model, or give "
                "a fallback."
            )
        return value

    def _read(self, reply: Any, *, lines: bool) -> Any:
        """Return the value of a reply, or the error that says why it does not fit; raise a refusal by the model."""
        problem: UnreadableError
        if isinstance(reply, Exception):  # the client could not read the answer
            is_filtered = "Filter" in type(reply).__name__  # OpenAI's ContentFilterFinishReasonError
            problem = UnreadableError(self.call.without_secrets(reply), "refused" if is_filtered else "")
        else:
            try:
                value = read_reply(reply, self.target, lines=lines)
                if self.call.repeats:
                    what = "it was asked again for a shorter reply"
                    write_note(f"{self.title}: the model repeated itself; {what}")
                return value
            except UnreadableError as error:
                problem = error
        if problem.kind == "refused":
            raise ModelOutputError(f"The model did not answer: {self.call.without_secrets(problem)}.")
        if problem.kind == "truncated":  # perhaps in a loop, before which there is a value
            with suppress(UnreadableError):
                value = self.target.accept_first(values_before_loop(written_text(reply)))
                write_note(f"{self.title}: the model repeated itself; what it wrote before is used")
                return value
        return problem

    async def _with_instructions(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        """Return the messages with the kit's instructions: to answer as JSON of the schema."""
        added = await render_kit_prompt("structured_output", self.call.language, {"schema": self.target.text})
        text = "\n\n".join(text_of(message) for message in added)
        last = messages[-1] if messages else None
        # Many chat templates refuse two user messages in a row, so the text joins the last one, if that is a text.
        if isinstance(last, HumanMessage) and isinstance(last.content, str):
            return [*messages[:-1], last.model_copy(update={"content": f"{last.content}\n\n{text}"})]
        return [*messages, HumanMessage(text)]


_kit_prompts: dict[tuple[str, str, str | None], PromptTemplate] = {}


def render_kit_prompt(name: str, language: str, values: Mapping[str, Any]) -> Step[list[BaseMessage]]:
    """Make a step that fills in one of the kit's own prompts; the file is read once, on an event loop on a thread."""
    key = name, language, os.environ.get(FOLDER_VARIABLE)

    def sync(call: ModelCall) -> list[BaseMessage]:
        if key not in _kit_prompts:
            _kit_prompts[key] = load_prompt(name, language=language)
        return _kit_prompts[key].format_messages(**values)

    async def native(call: ModelCall) -> list[BaseMessage]:
        return sync(call) if key in _kit_prompts else await run_in_thread(sync, call)

    return Step(name, sync, native)


def _describe_in_chinese(problem: str) -> str:
    """Say in Chinese which fields are wrong, each once: "ids: too long" -> "ids：不符合模式的要求" (does not fit)."""
    matches = [re.match(r"([\w.\[\]-]+): ", part) for part in problem.split("; ")]
    fields = dict.fromkeys(match[1] for match in matches if match)
    return "；".join(f"{field}：不符合模式的要求" for field in fields) or "不符合模式的要求"


def structured_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    schema: type[BaseModel] | Mapping[str, Any] | None = None,
    *,
    fallback: Any = RAISE,
    config: RunnableConfig | None = None,
    **limits: Unpack[CallLimits],
) -> Any:
    """Ask a model for an object of a given form.

    The ladder: native JSON schema, function calling, JSON mode, then plain text read tolerantly (fences, reasoning
    blocks, tags, one entry a line), with one repair. An endpoint that refuses a method (400, 404, 415, 422) is asked in
    the next one, remembered for this model and endpoint. An object that does not fit is repaired by the same method;
    any other bad answer sends only this call on to text. 429 (``Retry-After`` is honoured), 5xx, time-outs and broken
    connections are retried, at most `max_retries` times.

    Args:
        model: A chat model; any other runnable is asked in plain text.
        prompt: A prompt from ``load_prompt``, or any ``ChatPromptTemplate``.
        values: The prompt's variables.
        schema: A Pydantic class or a JSON schema; default: the prompt's own ``output_schema``.
        fallback: Returned, or called with the error, instead of raising a ``ModelError`` or ``BudgetExceededError``.
        max_calls: Most requests to the model, for this call alone; active budgets hold as well.
        max_tokens: Most tokens in and out; the call that goes over is kept, the next one is refused.
        deadline: Seconds for the whole call.
        timeout: Seconds for one request.
        max_retries: Most retries over the whole call.
        config: Passed down whole: callbacks, tags, metadata.

    Returns:
        An instance of the class, or a dict for a JSON schema; or the fallback.

    Raises:
        ModelError: Unreachable, unauthorised, rate limited, or no valid answer came; no message holds a key.
        BudgetExceededError: A cap was reached.
        InvalidInputError: There is no schema, or a limit is negative.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.prompts import load_prompt
        >>> model = FakeListChatModel(responses=["<think>hm</think><query>What is BM25?</query>"])
        >>> values = {"history": "", "question": "What is it?"}
        >>> structured_call(model, load_prompt("condense"), values).query
        'What is BM25?'
    """
    call = ModelCall(model, prompt, values, config, **limits)
    ladder = Ladder(call, schema)
    try:
        return call.run(partial(ask_fitted, ask=ladder.descend))
    except (ModelError, BudgetExceededError) as error:
        return ladder.fall_back(fallback, error)


async def astructured_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    schema: type[BaseModel] | Mapping[str, Any] | None = None,
    *,
    fallback: Any = RAISE,
    config: RunnableConfig | None = None,
    **limits: Unpack[CallLimits],
) -> Any:
    """``structured_call`` without blocking; a cancelled task stops at once and is never retried."""
    call = ModelCall(model, prompt, values, config, **limits)
    ladder = Ladder(call, schema)
    try:
        return await call.arun(partial(ask_fitted, ask=ladder.descend))
    except (ModelError, BudgetExceededError) as error:
        return ladder.fall_back(fallback, error)
