"""What a provider's exception means: by LangChain's tree of model errors, HTTP status, and class names of SDKs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

from langchain_core import exceptions as core
from pydantic import ValidationError

from rag_kit.concurrency.bridge import of_another_loop
from rag_kit.errors import (
    BranchTimeoutError,
    BudgetExceededError,
    ModelError,
    ModelOutputError,
    ModelUnauthorizedError,
    ModelUnreachableError,
)

from .redact import SHORTEST, origin_of, secrets_of, short
from .runnables import base_url


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


RETRYABLE = frozenset({Failure.RATE_LIMITED, Failure.SERVER, Failure.TIMEOUT, Failure.CONNECTION})
_FINAL_CODES = (
    "model_not_found",
    "context_length_exceeded",
    "insufficient_quota",
    "billing_hard_limit_reached",
    "content_filter",
    "redirect",
)
_CLASSES: tuple[tuple[Failure, tuple[type[BaseException], ...]], ...] = (
    (
        Failure.UNAUTHORIZED,
        (ModelUnauthorizedError, core.ModelAuthenticationError, core.ModelPermissionDeniedError),
    ),
    (Failure.RATE_LIMITED, (core.ModelRateLimitError,)),
    (Failure.TIMEOUT, (TimeoutError, core.ModelTimeoutError, BranchTimeoutError)),
    (
        Failure.OUTPUT,  # RecursionError: a client's own JSON parser, on an answer that is nested deeply
        (ModelOutputError, core.OutputParserException, ValidationError, json.JSONDecodeError, RecursionError),
    ),
    (Failure.CONNECTION, (ModelUnreachableError, ConnectionError, core.ModelConnectionError)),
    (Failure.SERVER, (core.ModelAPIError,)),
    (Failure.REFUSED, (NotImplementedError, core.ModelInvalidRequestError, core.ModelNotFoundError)),
)
# SDKs that LangChain's tree does not cover, and those that a user's own function calls; none is imported to find out.
_NAMES = {
    "RateLimitError": Failure.RATE_LIMITED,
    "APITimeoutError": Failure.TIMEOUT,
    "TimeoutException": Failure.TIMEOUT,
    "LengthFinishReasonError": Failure.OUTPUT,
    "ContentFilterFinishReasonError": Failure.OUTPUT,
    "APIConnectionError": Failure.CONNECTION,
    "TransportError": Failure.CONNECTION,
    "InternalServerError": Failure.SERVER,
}
_HINTS = {
    Failure.TIMEOUT: "did not answer in time: {said}. Raise timeout, or check the server.",
    Failure.CONNECTION: "could not be reached, or broke off: {said}. Check that it runs, and RAG_KIT_BASE_URL.",
    Failure.SERVER: "failed{code}: {said}. Try again later.",
    Failure.UNAUTHORIZED: "refused the key{code}: {said}. Check the key in the provider's environment variable, and "
    "that it may use this model.",
    Failure.RATE_LIMITED: "has too many requests{code}: {said}. Wait, or allow fewer at a time (max_concurrency).",
    Failure.REFUSED: "refused the request{code}: {said}. Check the model name, RAG_KIT_BASE_URL and the length of the "
    "input.",
}
_ERRORS = {
    Failure.UNAUTHORIZED: ModelUnauthorizedError,
    **dict.fromkeys(
        (Failure.RATE_LIMITED, Failure.TIMEOUT, Failure.CONNECTION, Failure.SERVER), ModelUnreachableError
    ),
}
_KEY_HEADER = re.compile(r"(?i)auth|key|token|secret")


def classify(error: BaseException) -> Failure:
    """Say what kind of failure an exception is."""
    if of_another_loop(error):
        return Failure.LOOP
    for each in _chain(error):
        if (kind := _kind(each)) is not None:
            return kind
    return Failure.OTHER


def _kind(error: BaseException) -> Failure | None:
    if isinstance(error, core.ContextOverflowError) or _final_code(error):
        return Failure.FINAL
    if (status := _status_of(error)) is not None:
        if status < 400:  # a redirect that is not followed, see http.py
            return Failure.FINAL
        if status in (408, 409) or (status >= 500 and status != 501):
            return Failure.SERVER
        if status in (401, 403):
            return Failure.UNAUTHORIZED
        return Failure.RATE_LIMITED if status == 429 else Failure.REFUSED
    for kind, classes in _CLASSES:
        if isinstance(error, classes):
            return kind
    return next((_NAMES[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _NAMES), None)


def _status_of(error: BaseException) -> int | None:
    """The HTTP status an exception carries, if any."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "http_status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 300 <= value < 600:
                return value
    return None


def _final_code(error: BaseException) -> str | None:
    """The code in an error body that no other form of the request mends, such as ``context_length_exceeded``."""
    for value in (getattr(error, "code", None), _body(error).get("code"), _body(error).get("type")):
        if isinstance(value, str) and value in _FINAL_CODES:
            return value
    return None


def retry_after(error: BaseException) -> float | None:
    """Seconds that the server asks to wait (``Retry-After``), if it does."""
    for each in _chain(error):
        headers = getattr(getattr(each, "response", None), "headers", None) or {}
        if re.fullmatch(r"\d+(\.\d+)?", value := headers.get("retry-after", "")):
            return float(value)
    return None


def map_model_error(error: BaseException, *, model: Any = None) -> ModelError:
    """Turn a provider's exception into one of this kit's, with no key in its text.

    Raise the result outside of the ``except`` block (or ``from None``): the original holds the request
    with its headers, and would be its context.

    An error that is one already comes back as it is. The model's own key is looked for in the server's message.
    """
    if isinstance(error, ModelError):
        return error
    if isinstance(error, BudgetExceededError):
        return ModelError(str(error))
    kind = classify(error)
    said = short(_message(error), [*secrets_of(model), *_secrets_sent(error)])
    where = _where(error, model)
    if kind is Failure.OUTPUT:
        return ModelOutputError(f"The model's answer could not be used: {said}.")
    if kind is Failure.LOOP:
        return ModelError(
            f"The model's asynchronous client{where} holds connections of another event loop, which may be closed: "
            f"{type(error).__name__}: {said}. Make a model for each loop, or give one that has a blocking side too."
        )
    if kind is Failure.FINAL and _final_code(error) == "redirect":
        return ModelError(f"The model endpoint {said}.")
    if kind is not Failure.OTHER:
        status = next((found for each in _chain(error) if (found := _status_of(each)) is not None), None)
        hint = _HINTS[Failure.REFUSED if kind is Failure.FINAL else kind]
        hinted = hint.format(said=said, code=f" (HTTP {status})" if status else "")
        return _ERRORS.get(kind, ModelError)(f"The model endpoint{where} {hinted}")
    return ModelError(f"The model{where} failed with {type(error).__name__}: {said}")


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
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _message(error: BaseException) -> str:
    messages = (_body(each).get("message") for each in _chain(error))
    found = next((each for each in messages if isinstance(each, str) and each.strip()), str(error))
    return found.strip().rstrip(".") or type(error).__name__


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
    addresses = [str(getattr(request, "url", "")) for request in _requests(error)]
    origin = next((found for each in (*addresses, base_url(model)) if (found := origin_of(each))), None)
    return f" at {short(origin)}" if origin else ""
