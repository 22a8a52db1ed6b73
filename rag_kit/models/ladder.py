"""The logic of one structured call: down the ladder of methods, to text, to one repair."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable

from rag_kit.concurrency.budget import charge_tokens
from rag_kit.errors import BudgetExceededError, InvalidInputError, ModelError, ModelOutputError
from rag_kit.models import native

from .attempts import Reply, Tally, ask
from .endpoint import METHODS, first_method, quick, remember_method
from .failures import Failure, map_model_error
from .parsing import UnreadableError, parse_text
from .problems import problem_in
from .redact import secrets_of, short
from .schema import target_of
from .settings import check_limits, check_parts, prompt_language
from .steps import formatted, rendered
from .tokens import estimate_tokens, text_of

logger = logging.getLogger(__name__)


class _Raise:
    def __repr__(self) -> str:
        return "RAISE"


RAISE: Final = _Raise()
"""The default failure policy of a structured call: the error is raised."""

_MAX_REPLY = 20_000


@dataclass(frozen=True)
class StructuredResult:
    """What a structured call gave, and what it took.

    Attributes:
        value: An instance of the schema's class (a dict for a JSON schema), or the fallback.
        method: ``"json_schema"``, ``"function_calling"``, ``"json_mode"`` or ``"text"``; ``"fallback"``.
        calls: Requests to the model, refused and repeated ones included.
        input_tokens: Tokens sent, over all calls.
        output_tokens: Tokens received.
        repaired: The first answer did not fit and was mended.
        fallback_used: The value is the caller's fallback.
        error: Why the fallback was used; None otherwise.
        tokens_estimated: The provider reported no usage for at least one call.
    """

    value: Any
    method: str
    calls: int
    input_tokens: int
    output_tokens: int
    repaired: bool
    fallback_used: bool
    error: str | None
    tokens_estimated: bool = False


class Ladder:
    """The logic of one structured call."""

    def __init__(
        self,
        model: Any,
        prompt: Runnable[Any, Any],
        values: Mapping[str, Any],
        schema: Any,
        timeout: float | None,
        max_retries: int,
        fallback: Any,
        *,
        places: bool = False,
    ) -> None:
        check_limits(timeout, max_retries)
        check_parts(model, prompt, values)
        found = schema if schema is not None else getattr(prompt, "output_schema", None)
        if found is None or (schema is None and not hasattr(prompt, "result_schema")):
            raise InvalidInputError(
                "structured_call needs a schema: pass schema=, or use a prompt whose file names one under "
                "output.schema. For plain text use text_call."
            )
        self.language = prompt_language(prompt)
        self.target = target_of(found, self.language, getattr(prompt, "description", ""))
        self.original = model
        self.model = quick(model, timeout)
        self.prompt = prompt
        self.values = values
        self.timeout = timeout
        self.fallback = fallback
        self.tally = Tally(retries=max_retries, places=places)

    async def run(self) -> StructuredResult:
        """The whole call, with the caller's failure policy at their end."""
        failure: ModelError | BudgetExceededError
        try:
            return await self._converse()
        except (ModelError, BudgetExceededError) as error:
            if self.fallback is RAISE:
                raise
            failure = error
        value = self.fallback(failure) if callable(self.fallback) else self.fallback
        logger.warning("structured call fell back: %s", failure)
        return self._result(value, "fallback", error=str(failure))

    async def _converse(self) -> StructuredResult:
        messages = await formatted(self.prompt, self.values)
        refused = False
        for index in range(first_method(self.original), len(METHODS) - 1):
            method = METHODS[index]
            runnable = native.bind(self.model, method, self.target)
            if runnable is None:
                continue
            sent = messages
            if method == "json_mode":  # providers want the word JSON and the form in the prompt
                sent = await self._with_instructions(messages)
            reply = await self._ask(runnable, sent)
            if reply.kind is Failure.REFUSED:
                refused = True
                continue
            if refused:
                remember_method(self.original, index)
            value, problem, text = self._read(reply, native_method=True)
            if problem is None:
                return self._result(value, method)
            logger.info("answer by %s did not fit: %s", method, short(str(problem)))
            if problem.truncated and text:
                return await self._repair(text, problem)
            return await self._text(messages)
        return await self._text(messages, remember=refused)

    async def _text(self, messages: list[BaseMessage], remember: bool = False) -> StructuredResult:
        sent = await self._with_instructions(messages)
        reply = await self._ask(self.model, sent)
        if reply.kind is Failure.REFUSED:
            raise map_model_error(cast(Exception, reply.error), model=self.original)
        if remember:
            remember_method(self.original, len(METHODS) - 1)
        value, problem, text = self._read(reply)
        if problem is None:
            return self._result(value, "text")
        return await self._repair(text, problem)

    async def _repair(self, text: str, problem: UnreadableError) -> StructuredResult:
        if not text.strip():
            raise ModelOutputError(f"The model gave no usable answer: {problem}.")
        explained = problem_in(self.language)(str(problem))
        values = {"reply": text[:_MAX_REPLY], "schema": self._schema_text(), "error": explained}
        messages = await rendered("repair_json", self.language, values)
        reply = await self._ask(self.model, messages)
        if reply.kind is Failure.REFUSED:
            raise map_model_error(cast(Exception, reply.error), model=self.original)
        value, still, _ = self._read(reply)
        if still is not None:
            raise ModelOutputError(
                f"The model's answer does not fit {self.target.name}, also after one repair: "
                f"{self._said(problem)}; then {self._said(still)}. Try a stronger model, or give a fallback."
            )
        return self._result(value, "text", repaired=True)

    async def _ask(self, runnable: Runnable[Any, Any], messages: list[BaseMessage]) -> Reply:
        reply = await ask(runnable, messages, self.tally, model=self.original, timeout=self.timeout)
        if reply.kind is Failure.FINAL:
            raise map_model_error(cast(Exception, reply.error), model=self.original)
        return reply

    def _read(self, reply: Reply, native_method: bool = False) -> tuple[Any, UnreadableError | None, str]:
        """Value, problem, text of an answer; a refusal of the model itself is final."""
        try:
            if reply.error is not None:
                # The client gave up on the answer; its tokens were paid for all the same.
                text = native.salvage(reply.error)
                tokens = estimate_tokens(text)
                self.tally.output_tokens += tokens
                charge_tokens(tokens)
                if text:
                    return parse_text(text, self.target, lines=False), None, text
                raise UnreadableError(self._said(reply.error), refused="Filter" in type(reply.error).__name__)
            if native_method:
                return native.read(reply.value, self.target), None, ""
            if refusal := native.refusal_of(reply.value):
                raise UnreadableError(f"the model refused: {refusal}", refused=True)
            return parse_text(text_of(reply.value), self.target), None, ""
        except UnreadableError as error:
            problem = error
        text = native.salvage(reply.error) if reply.error is not None else native.written(reply.value)
        if problem.refused:
            raise ModelOutputError(f"The model did not answer: {self._said(problem)}.")
        return None, problem, text

    async def _with_instructions(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        added = await rendered("structured_output", self.language, {"schema": self._schema_text()})
        text = "\n\n".join(text_of(message) for message in added)
        last = messages[-1] if messages else None
        # Many chat templates refuse two user messages in a row, so it joins the last one.
        if isinstance(last, HumanMessage) and isinstance(last.content, str):
            return [*messages[:-1], last.model_copy(update={"content": f"{last.content}\n\n{text}"})]
        return [*messages, HumanMessage(text)]

    def _schema_text(self) -> str:
        return self.target.text

    def _said(self, error: Exception) -> str:
        return short(str(error) or type(error).__name__, secrets_of(self.original)).rstrip(".")

    def _result(
        self, value: Any, method: str, *, repaired: bool = False, error: str | None = None
    ) -> StructuredResult:
        return StructuredResult(
            value=value,
            method=method,
            calls=self.tally.calls,
            input_tokens=self.tally.input_tokens,
            output_tokens=self.tally.output_tokens,
            repaired=repaired,
            fallback_used=method == "fallback",
            error=error,
            tokens_estimated=self.tally.estimated,
        )
