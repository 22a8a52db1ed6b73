"""What a provider's exception means, without importing any provider.

Status codes and class names are the same over the SDKs; LangChain's own ``ModelError`` tree and plain
``OSError`` / ``TimeoutError`` are covered too.
"""

from __future__ import annotations

import email.utils
import re
import time
import traceback
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from rag_kit.concurrency.bridge import of_another_loop
from rag_kit.errors import (
    BudgetExceededError,
    ModelError,
    ModelOutputError,
    ModelRateLimitedError,
    ModelUnauthorizedError,
    ModelUnreachableError,
)

from .endpoint import base_url
from .redact import SHORTEST, origin_of, secrets_of, short


class Failure(Enum):
    """Kinds of failure that are treated differently."""

    REFUSED = "refused"  # this request, in this form, is not served: 400, 404, 415, 422
    FINAL = "final"  # refused in any form: no such model, context too long, no credit
    UNAUTHORIZED = "unauthorized"
    RATE_LIMITED = "rate limited"
    SERVER = "server error"
    TIMEOUT = "time-out"
    CONNECTION = "connection"
    OUTPUT = "output"
    LOOP = "event loop"  # the client's connections are of another one
    OTHER = "other"


_KEY_HEADER = re.compile(r"(?i)auth|key|token|secret")
RETRYABLE = frozenset({Failure.RATE_LIMITED, Failure.SERVER, Failure.TIMEOUT, Failure.CONNECTION})

_REFUSED = frozenset({400, 404, 405, 415, 422, 501})
_FINAL_CODES = frozenset(
    {
        "model_not_found",
        "context_length_exceeded",
        "insufficient_quota",
        "billing_hard_limit_reached",
        "content_filter",
        "redirect",
    }
)
_NAMES: tuple[tuple[Failure, frozenset[str]], ...] = (
    (Failure.FINAL, frozenset({"ContextOverflowError"})),
    (Failure.UNAUTHORIZED, frozenset({"ModelAuthenticationError", "ModelPermissionDeniedError"})),
    (Failure.RATE_LIMITED, frozenset({"ModelRateLimitError", "RateLimitError", "ResourceExhausted"})),
    (
        Failure.TIMEOUT,
        frozenset(
            {"TimeoutError", "APITimeoutError", "TimeoutException", "ModelTimeoutError", "BranchTimeoutError"}
        ),
    ),
    (
        Failure.OUTPUT,
        frozenset(
            {
                "LengthFinishReasonError",
                "ContentFilterFinishReasonError",
                "OpenAIRefusalError",
                "OutputParserException",
                "ValidationError",
                "JSONDecodeError",
                "APIResponseValidationError",
                "RecursionError",  # a client's own JSON parser, on an answer that is nested deeply
            }
        ),
    ),
    (
        Failure.CONNECTION,
        frozenset(
            {
                "APIConnectionError",
                "ModelConnectionError",
                "TransportError",
                "ConnectionError",
                "IncompleteRead",
            }
        ),
    ),
    (Failure.SERVER, frozenset({"ModelAPIError", "InternalServerError"})),
    (Failure.REFUSED, frozenset({"NotImplementedError", "ModelInvalidRequestError", "ModelNotFoundError"})),
)


def classify(error: BaseException) -> Failure:
    """Say what kind of failure an exception is.

    Example:
        >>> classify(ConnectionResetError()).value, classify(NotImplementedError()).value
        ('connection', 'refused')
    """
    if of_another_loop(error):
        return Failure.LOOP
    for each in _chain(error):
        if isinstance(each, ModelError):
            return _OWN.get(type(each), Failure.OTHER)
        names = {cls.__name__ for cls in type(each).__mro__}
        if "ContextOverflowError" in names or error_code(each) in _FINAL_CODES:
            return Failure.FINAL
        status = status_of(each)
        if status in (401, 403):
            return Failure.UNAUTHORIZED
        if status == 429:
            return Failure.RATE_LIMITED
        if status in _REFUSED:
            return Failure.REFUSED
        if status is not None and 300 <= status < 400:  # a redirect that is not followed, see http.py
            return Failure.FINAL
        if status in (408, 409) or (status is not None and status >= 500):
            return Failure.SERVER
        for kind, known in _NAMES:
            if names & known:
                return kind
        if status is not None and 400 <= status < 500:
            return Failure.REFUSED
    return Failure.OTHER


_OWN: dict[type[ModelError], Failure] = {
    ModelUnreachableError: Failure.CONNECTION,
    ModelUnauthorizedError: Failure.UNAUTHORIZED,
    ModelRateLimitedError: Failure.RATE_LIMITED,
    ModelOutputError: Failure.OUTPUT,
}


def status_of(error: BaseException) -> int | None:
    """The HTTP status an exception carries, if any."""
    response = getattr(error, "response", None)
    for holder in (error, response):
        for name in ("status_code", "status", "http_status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 300 <= value < 600:
                return value
    return None


def error_code(error: BaseException) -> str | None:
    """The machine-readable code in an error body, such as ``context_length_exceeded``."""
    for value in (getattr(error, "code", None), _body(error).get("code"), _body(error).get("type")):
        if isinstance(value, str) and value in _FINAL_CODES:
            return value
    return None


def retry_after(error: BaseException) -> float | None:
    """Seconds that the server asks to wait (``Retry-After``: seconds or a date), if it does."""
    for each in _chain(error):
        headers = getattr(getattr(each, "response", None), "headers", None)
        if headers is None or not hasattr(headers, "get"):
            continue
        try:
            if (millis := headers.get("retry-after-ms")) is not None:
                return max(0.0, float(millis) / 1000)
            value = headers.get("retry-after")
            if value is None:
                continue
            try:
                return max(0.0, float(value))
            except ValueError:
                return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, TypeError):
            return None
    return None


def map_model_error(error: BaseException, *, model: Any = None) -> ModelError:
    """Turn a provider's exception into one of this kit's, with no key in its text.

    Raise the result outside of the ``except`` block (or ``from None``): the original holds the request
    with its headers, and would be its context.

    Args:
        error: What a chat or embedding model raised.
        model: The model, so that its own key is looked for in the server's message.

    Returns:
        A ``ModelError`` of the fitting class; an error that is one already comes back as it is.

    Example:
        >>> type(map_model_error(ConnectionRefusedError("refused"))).__name__
        'ModelUnreachableError'
    """
    if isinstance(error, ModelError):
        return error
    kind = classify(error)
    said = short(_message(error), [*secrets_of(model), *_secrets_sent(error)])
    where = _where(error, model)
    status = next((s for each in _chain(error) if (s := status_of(each)) is not None), None)
    code = f" (HTTP {status})" if status else ""
    if kind is Failure.UNAUTHORIZED:
        return ModelUnauthorizedError(
            f"The model endpoint{where} refused the key{code}: {said}. Check the key in the provider's environment "
            "variable, and that it may use this model."
        )
    if kind is Failure.RATE_LIMITED:
        return ModelRateLimitedError(
            f"The model endpoint{where} has too many requests{code}: {said}. Wait, or allow fewer at a time "
            "(max_concurrency)."
        )
    if kind is Failure.TIMEOUT:
        return ModelUnreachableError(
            f"The model endpoint{where} did not answer in time: {said}. Raise timeout, or check the server."
        )
    if kind is Failure.CONNECTION:
        return ModelUnreachableError(
            f"The model endpoint{where} could not be reached, or broke off: {said}. Check that it runs, and "
            "RAG_KIT_BASE_URL."
        )
    if kind is Failure.SERVER:
        return ModelUnreachableError(f"The model endpoint{where} failed{code}: {said}. Try again later.")
    if kind is Failure.LOOP:
        return ModelError(
            f"The model's asynchronous client{where} holds connections of another event loop, which may be closed: "
            f"{type(error).__name__}: {said}. Make a model for each loop, or give one that has a blocking side too."
        )
    if kind is Failure.OUTPUT:
        return ModelOutputError(f"The model's answer could not be used: {said}.")
    if kind is Failure.FINAL and (error_code(error) == "redirect"):
        return ModelError(f"The model endpoint {said}.")
    if kind in (Failure.REFUSED, Failure.FINAL):
        return ModelError(
            f"The model endpoint{where} refused the request{code}: {said}. Check the model name, RAG_KIT_BASE_URL and "
            "the length of the input."
        )
    if isinstance(error, BudgetExceededError):
        return ModelError(str(error))
    mapped = ModelError(f"The model{where} failed with {type(error).__name__}: {said}")
    # The original is not chained (it may hold headers); where it came from still helps.
    for frame, line in list(traceback.walk_tb(error.__traceback__))[-3:]:
        mapped.add_note(f"  in {Path(frame.f_code.co_filename).name}:{line} {frame.f_code.co_name}")
    return mapped


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, at most five."""
    current: BaseException | None = error
    for _ in range(5):
        if current is None:
            return
        yield current
        current = current.__cause__


def _body(error: BaseException) -> dict[str, Any]:
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error")
        return inner if isinstance(inner, dict) else body
    return {}


def _message(error: BaseException) -> str:
    for each in _chain(error):
        message = _body(each).get("message")
        if isinstance(message, str) and message.strip():
            return message.strip().rstrip(".")
    return str(error).strip().rstrip(".") or type(error).__name__


def _requests(error: BaseException) -> Iterator[Any]:
    """The requests that failed, as far as the exceptions have them."""
    for each in _chain(error):
        # Reading .request of an httpx error that has none raises RuntimeError.
        yield vars(each).get("request") or vars(each).get("_request")


def _secrets_sent(error: BaseException) -> list[str]:
    """Keys as they were sent: a function may have given them, so that the model does not have them."""
    headers = [getattr(request, "headers", None) or {} for request in _requests(error)]
    values = [value for each in headers for name, value in each.items() if _KEY_HEADER.search(name)]
    keys = [value.rpartition(" ")[2] for value in values]  # "Bearer KEY"
    return [key for key in (*values, *keys) if len(key) >= SHORTEST]


def _where(error: BaseException, model: Any) -> str:
    """Scheme, host and port of the endpoint, as the request went there, else as the model has it."""
    for request in _requests(error):
        if origin := origin_of(str(getattr(request, "url", ""))):
            return f" at {short(origin)}"
    origin = origin_of(base_url(model)) if model is not None else None
    return f" at {short(origin)}" if origin else ""
