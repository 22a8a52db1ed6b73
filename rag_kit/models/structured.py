"""A structured call: down the ladder of methods, to text, to one repair."""

from __future__ import annotations

import copy
import inspect
import logging
import re
from collections.abc import Mapping
from typing import Any, Final, Unpack, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableParallel, RunnableSequence
from pydantic import BaseModel

from rag_kit.errors import BudgetExceededError, InvalidInputError, ModelError, ModelOutputError
from rag_kit.models.attempts import Reply, ask, refusal_of, text_of, written
from rag_kit.models.calls import Limits, ModelCall, formatted, rendered
from rag_kit.models.failures import Failure, map_model_error
from rag_kit.models.json_schema import UnreadableError, strict_schema
from rag_kit.models.parsing import parse_text, read_bound
from rag_kit.models.redact import secrets_of, short
from rag_kit.models.runnables import METHODS, first_method, remember_method
from rag_kit.models.schema import Target, target_of

logger = logging.getLogger(__name__)


RAISE: Final = object()
"""The default failure policy of a structured call: the error is raised."""

_MAX_REPLY = 20_000


class Ladder:
    """The logic of one structured call.

    Raises:
        InvalidInputError: There is no schema, or it is wrong.
    """

    def __init__(self, call: ModelCall, schema: Any, fallback: Any) -> None:
        found = schema if schema is not None else getattr(call.prompt, "output_schema", None)
        if found is None or (schema is None and not hasattr(call.prompt, "result_schema")):
            raise InvalidInputError(
                "structured_call needs a schema: pass schema=, or use a prompt whose file names one under "
                "output.schema. For plain text use text_call."
            )
        self.call = call
        self.target = target_of(found, call.language, getattr(call.prompt, "description", ""))
        self.fallback = fallback

    async def answer(self) -> Any:
        """The whole call, with the caller's failure policy at its end."""
        failure: ModelError | BudgetExceededError
        try:
            return await self._converse()
        except (ModelError, BudgetExceededError) as error:
            if self.fallback is RAISE:
                raise
            failure = error
        logger.warning("structured call fell back: %s", failure)
        return self.fallback(failure) if callable(self.fallback) else self.fallback

    async def _converse(self) -> Any:
        messages = await formatted()
        refused = unfit = False
        for index in range(first_method(self.call.model), len(METHODS)):
            method = METHODS[index]
            as_text = method == "text"
            if unfit and not as_text:
                continue
            runnable = self.call.bare_model if as_text else _bound(self.call.bare_model, method, self.target)
            if runnable is None:
                continue
            sent = messages
            if method in ("json_mode", "text"):  # providers want the word JSON and the form in the prompt
                sent = await self._with_instructions(messages)
            reply = await self._ask(runnable, sent, last=as_text)
            if reply.kind is Failure.REFUSED:
                refused = True
                continue
            if refused and not unfit:
                remember_method(self.call.model, index)
            value, problem, text = self._read(reply, native_method=not as_text)
            if problem is None:
                return value
            logger.info("answer by %s did not fit: %s", method, short(str(problem)))
            if as_text or (problem.truncated and text):
                return await self._repair(text, problem)
            unfit = True
        raise AssertionError("plain text is always possible")

    async def _repair(self, text: str, problem: UnreadableError) -> Any:
        if not text.strip():
            raise ModelOutputError(f"The model gave no usable answer: {problem}.")
        language = self.call.language
        explained = _in_chinese(str(problem)) if language == "zh" else str(problem)
        values = {"reply": text[:_MAX_REPLY], "schema": self.target.text, "error": explained}
        messages = await rendered("repair_json", language, values)
        value, still, _ = self._read(await self._ask(self.call.bare_model, messages, last=True))
        if still is not None:
            raise ModelOutputError(
                f"The model's answer does not fit {self.target.name}, also after one repair: "
                f"{self._redacted(problem)}; then {self._redacted(still)}. Try a stronger model, or give a fallback."
            )
        return value

    async def _ask(self, runnable: Runnable[Any, Any], messages: list[BaseMessage], *, last: bool) -> Reply:
        """Ask; a failure that no other method mends is raised."""
        reply = await ask(self.call, runnable, messages)
        if reply.error is not None and (
            reply.kind is Failure.FINAL or (last and reply.kind is Failure.REFUSED)
        ):
            raise map_model_error(reply.error, model=self.call.model)
        return reply

    def _read(self, reply: Reply, native_method: bool = False) -> tuple[Any, UnreadableError | None, str]:
        """Value, problem, text of an answer; a refusal of the model itself is final."""
        try:
            if reply.error is not None:  # the client gave up on the answer
                refused = "Filter" in type(reply.error).__name__
                raise UnreadableError(self._redacted(reply.error), refused=refused)
            if native_method:
                return read_bound(reply.value, self.target), None, ""
            if refusal := refusal_of(reply.value):
                raise UnreadableError(f"the model refused: {refusal}", refused=True)
            return parse_text(text_of(reply.value), self.target), None, ""
        except UnreadableError as error:
            problem = error
        if problem.refused:
            raise ModelOutputError(f"The model did not answer: {self._redacted(problem)}.")
        return None, problem, written(reply.value)

    async def _with_instructions(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        added = await rendered("structured_output", self.call.language, {"schema": self.target.text})
        text = "\n\n".join(text_of(message) for message in added)
        last = messages[-1] if messages else None
        # Many chat templates refuse two user messages in a row, so it joins the last one.
        if isinstance(last, HumanMessage) and isinstance(last.content, str):
            return [*messages[:-1], last.model_copy(update={"content": f"{last.content}\n\n{text}"})]
        return [*messages, HumanMessage(text)]

    def _redacted(self, error: Exception) -> str:
        return short(str(error) or type(error).__name__, secrets_of(self.call.model)).rstrip(".")


def _in_chinese(problem: str) -> str:
    """Which fields are wrong, without an English sentence; what is allowed is in the schema."""
    places = (re.match(r"([\w.\[\]-]+): ", part) for part in problem.split("; "))
    named = "；".join(dict.fromkeys(f"{place[1]}：不符合模式的要求" for place in places if place))
    return named or "不符合模式的要求"


def _bound(model: Any, method: str, target: Target) -> Runnable[Any, Any] | None:
    """The model bound to one method, or None where it does not have it."""
    if not isinstance(model, BaseChatModel) or _has_no_method(type(model)):
        return None
    options: dict[str, Any] = {"method": method, "include_raw": True}
    schema: Any = target.native
    if method == "json_schema" and hasattr(model, "root_client"):
        # With a class the OpenAI client parses by itself and throws the text away when that fails; with a
        # schema it hands the text over, and a broken answer can be mended.
        strict = strict_schema(target.json_schema)
        schema = strict or copy.deepcopy(target.json_schema)
        options["strict"] = strict is not None
    try:
        if "strict" in options and "strict" not in inspect.signature(model.with_structured_output).parameters:
            del options["strict"]
        return _unread(model.with_structured_output(schema, **options))
    except (NotImplementedError, TypeError, ValueError):
        return None  # the integration does not know this method


def _unread(bound: Any) -> Runnable[Any, Any]:
    """The bound model without LangChain's parser behind it, where it is built as LangChain builds it.

    `read_bound` reads the message itself; that parser takes a time that grows with the square of a broken answer.
    """
    if isinstance(bound, RunnableSequence) and isinstance(bound.first, RunnableParallel):
        parts = bound.first.steps__
        if parts.keys() == {"raw"}:
            return parts["raw"]
    return cast("Runnable[Any, Any]", bound)


def _has_no_method(kind: type[BaseChatModel]) -> bool:
    """Whether a class leaves both ways to structured output as the base class has them: not there."""
    return (
        kind.with_structured_output is BaseChatModel.with_structured_output
        and kind.bind_tools is BaseChatModel.bind_tools
    )


def structured_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    schema: type[BaseModel] | Mapping[str, Any] | None = None,
    *,
    fallback: Any = RAISE,
    config: RunnableConfig | None = None,
    **limits: Unpack[Limits],
) -> Any:
    """Ask a model for an object of a given form.

    The ladder: native JSON schema, function calling, JSON mode, then plain text read tolerantly (fences,
    reasoning blocks, tags, one entry a line), with one repair. An endpoint that refuses a method (400, 404,
    415, 422) is asked in the next one, and that is remembered for this model and endpoint. A bad answer sends
    only this call on to text and repair. 429 (``Retry-After`` is honoured), 5xx, time-outs and broken
    connections are retried, at most `max_retries` times in all.

    Args:
        model: A chat model; any other runnable is asked in plain text.
        prompt: A prompt from ``load_prompt``, or any ``ChatPromptTemplate``.
        values: The prompt's variables.
        schema: A Pydantic class or a JSON schema; default: the prompt's own ``output_schema``.
        fallback: Returned instead of raising a ``ModelError`` or ``BudgetExceededError``; a callable is
            called with that error. Default: raise.
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
    return call.run(Ladder(call, schema, fallback).answer)


async def astructured_call(
    model: Runnable[Any, Any],
    prompt: Runnable[Any, Any],
    values: Mapping[str, Any],
    schema: type[BaseModel] | Mapping[str, Any] | None = None,
    *,
    fallback: Any = RAISE,
    config: RunnableConfig | None = None,
    **limits: Unpack[Limits],
) -> Any:
    """``structured_call`` without blocking; a cancelled task stops at once and is never retried."""
    call = ModelCall(model, prompt, values, config, **limits)
    return await call.arun(Ladder(call, schema, fallback).answer)
