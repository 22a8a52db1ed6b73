"""The logic of one structured call: down the ladder of methods, to text, to one repair."""

from __future__ import annotations

import logging
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable

from rag_kit.concurrency.budget import charge_tokens
from rag_kit.errors import BudgetExceededError, InvalidInputError, ModelError, ModelOutputError
from rag_kit.models import native

from .attempts import Reply, ask
from .calls import ModelCall, formatted, rendered
from .endpoint import METHODS, first_method, remember_method
from .failures import Failure, map_model_error
from .parsing import UnreadableError, parse_text
from .problems import problem_in
from .redact import secrets_of, short
from .schema import target_of
from .tokens import estimate_tokens, text_of

logger = logging.getLogger(__name__)


class _Raise:
    def __repr__(self) -> str:
        return "RAISE"


RAISE: Final = _Raise()
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
        refused = False
        for index in range(first_method(self.call.model), len(METHODS)):
            method = METHODS[index]
            as_text = method == "text"
            runnable = (
                self.call.bare_model if as_text else native.bind(self.call.bare_model, method, self.target)
            )
            if runnable is None:
                continue
            sent = messages
            if method in ("json_mode", "text"):  # providers want the word JSON and the form in the prompt
                sent = await self._with_instructions(messages)
            reply = await self._ask(runnable, sent, last=as_text)
            if reply.kind is Failure.REFUSED:
                refused = True
                continue
            if refused:
                remember_method(self.call.model, index)
            value, problem, text = self._read(reply, native_method=not as_text)
            if problem is None:
                return value
            logger.info("answer by %s did not fit: %s", method, short(str(problem)))
            if as_text or (problem.truncated and text):
                return await self._repair(text, problem)
            return await self._text(messages)
        raise AssertionError("plain text is always possible")

    async def _text(self, messages: list[BaseMessage]) -> Any:
        reply = await self._ask(self.call.bare_model, await self._with_instructions(messages), last=True)
        value, problem, text = self._read(reply)
        return value if problem is None else await self._repair(text, problem)

    async def _repair(self, text: str, problem: UnreadableError) -> Any:
        if not text.strip():
            raise ModelOutputError(f"The model gave no usable answer: {problem}.")
        language = self.call.language
        explained = problem_in(language)(str(problem))
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
        text = ""
        try:
            if reply.error is not None:
                # The client gave up on the answer; its tokens were paid for all the same.
                text = native.salvage(reply.error)
                charge_tokens(estimate_tokens(text))
                if text:
                    return parse_text(text, self.target, lines=False), None, text
                refused = "Filter" in type(reply.error).__name__
                raise UnreadableError(self._redacted(reply.error), refused=refused)
            if native_method:
                return native.read(reply.value, self.target), None, ""
            if refusal := native.refusal_of(reply.value):
                raise UnreadableError(f"the model refused: {refusal}", refused=True)
            return parse_text(text_of(reply.value), self.target), None, ""
        except UnreadableError as error:
            problem = error
        if problem.refused:
            raise ModelOutputError(f"The model did not answer: {self._redacted(problem)}.")
        return None, problem, text if reply.error is not None else native.written(reply.value)

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
