"""The provider's own ways to structured output: building each, and reading what it gave back."""

from __future__ import annotations

import copy
import inspect
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableParallel, RunnableSequence
from pydantic import BaseModel

from .attempts import check_size, text_of
from .json_schema import SchemaMismatchError, strict_schema
from .parsing import UnreadableError, parse_text
from .schema import Target


def bind(model: Any, method: str, target: Target) -> Runnable[Any, Any] | None:
    """The model bound to one method, or None where it does not have it.

    Args:
        model: A chat model.
        method: ``"json_schema"``, ``"function_calling"`` or ``"json_mode"``.
        target: The form of the answer.
    """
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

    `read` reads the message itself; that parser takes a time that grows with the square of a broken answer.
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


def read(value: Any, target: Target) -> Any:
    """Read what a bound model gave: raw message, parsed value, or both.

    Raises:
        UnreadableError: There is no value that fits; ``str()`` of it says why.
    """
    raw, parsed = (value.get("raw"), value.get("parsed")) if _has_raw(value) else (None, value)
    if raw is None and hasattr(parsed, "content"):
        raw, parsed = parsed, (getattr(parsed, "additional_kwargs", None) or {}).get("parsed")
    if refusal := refusal_of(raw):
        raise UnreadableError(f"the model refused: {refusal}", refused=True)
    if raw is None or not (written(value).strip() or getattr(raw, "tool_calls", None)):
        # Only now the parsed value counts: LangChain's JSON parser closes a truncated answer by itself, and
        # what was cut off would be missing without a word.
        if isinstance(parsed, BaseModel | dict):
            try:
                return target.accept(parsed)
            except SchemaMismatchError as error:
                raise UnreadableError(str(error)) from None
        if isinstance(parsed, str):
            return parse_text(parsed, target, lines=False)
        raise UnreadableError("the answer is empty")
    problem: SchemaMismatchError | None = None
    for call in getattr(raw, "tool_calls", None) or []:
        try:
            return target.accept(call["args"])
        except SchemaMismatchError as error:
            problem = problem or error
    if problem is not None:
        raise UnreadableError(str(problem))
    return parse_text(written(value), target, lines=False)


def written(value: Any) -> str:
    """The text of an answer, or the arguments of a tool call that is no valid JSON."""
    message = value.get("raw") if _has_raw(value) else value
    if message is None or (isinstance(message, BaseModel) and not hasattr(message, "content")):
        return ""
    broken = [call.get("args") for call in getattr(message, "invalid_tool_calls", None) or []]
    valid = [call.get("args") for call in getattr(message, "tool_calls", None) or []]
    return (
        next((args for args in broken if args), None) or text_of(message) or (str(valid[0]) if valid else "")
    )


def refusal_of(message: Any) -> str | None:
    """Why the model refused, if the provider marks it as a refusal; asked before an answer is read.

    Raises:
        ModelOutputError: The answer is endless.
    """
    check_size(message)
    extra = getattr(message, "additional_kwargs", None) or {}
    if isinstance(extra.get("refusal"), str) and extra["refusal"]:
        return str(extra["refusal"])[:200]
    content = getattr(message, "content", None)
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and block.get("type") == "refusal":
            return str(block.get("refusal", ""))[:200] or "no reason given"
    finish = (getattr(message, "response_metadata", None) or {}).get("finish_reason")
    if finish == "content_filter" and not text_of(message).strip():
        return "stopped by the provider's content filter"
    return None


def salvage(error: Exception) -> str:
    """The text that an SDK's own parser threw away with its exception (an answer cut at the length limit)."""
    completion = getattr(error, "completion", None)
    choices = getattr(completion, "choices", None) or []
    message = getattr(choices[0], "message", None) if choices else None
    text = getattr(message, "content", None) or getattr(error, "llm_output", None)
    if not isinstance(text, str):
        return ""
    check_size(text)
    return text


def _has_raw(value: Any) -> bool:
    return isinstance(value, dict) and {"raw", "parsed"} <= value.keys()
