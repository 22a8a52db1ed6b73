"""Meaning of a provider's exception: by LangChain's tree of model errors, HTTP status, and class names of SDKs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from itertools import chain
from typing import Any

from langchain_core import exceptions as core
from langchain_core.embeddings import Embeddings
from pydantic import ValidationError

from rag_kit.concurrency.bridge import linked_errors, of_another_loop
from rag_kit.errors import (
    BranchTimeoutError,
    BudgetExceededError,
    ContextLengthError,
    ModelError,
    ModelOutputError,
    ModelUnauthorizedError,
    ModelUnreachableError,
)

from .connection import WEB_PAGE, connection_problem, is_tls_failure, proxy_of
from .redact import MIN_SECRET, origin_of, redact_inside, secrets_of, short
from .runnables import base_url


class Failure(Enum):
    """Kinds of failure that are treated differently."""

    REFUSED = "refused"  # this request, in this form, is not served: 400, 404, 415, 422
    REFUSED_FOR_GOOD = "final"  # refused in any form: no such model, context too long, no credit, a redirect
    UNAUTHORIZED = "unauthorized"
    RATE_LIMITED = "rate limited"
    SERVER = "server error"
    TIMEOUT = "time-out"
    CONNECTION = "connection"
    OUTPUT = "output"
    TLS = "certificate"  # or no TLS at all: the same at each try
    WEB_PAGE = "web page"  # HTML in place of JSON: another address is meant
    LOOP = "event loop"  # the client's connections are of another one
    OTHER = "other"


class UnusableReplyError(Exception):
    """An endpoint's reply is not what was asked for."""


RETRYABLE = frozenset({Failure.RATE_LIMITED, Failure.SERVER, Failure.TIMEOUT, Failure.CONNECTION})
_FINAL_CODES = {
    "model_not_found", "not_found_error", "NotFoundError",
    "context_length_exceeded", "insufficient_quota", "billing_hard_limit_reached", "content_filter",
}  # fmt: skip
# Names are of SDKs that LangChain's tree does not cover, and that a user's own function calls: none is imported.
_CLASSES: dict[Failure, tuple[type[BaseException] | str, ...]] = {
    Failure.REFUSED_FOR_GOOD: (core.ContextOverflowError,),
    Failure.UNAUTHORIZED: (core.ModelAuthenticationError, core.ModelPermissionDeniedError, ModelUnauthorizedError),
    Failure.RATE_LIMITED: (core.ModelRateLimitError, "RateLimitError"),
    Failure.TIMEOUT: (
        core.ModelTimeoutError, BranchTimeoutError, TimeoutError, "APITimeoutError", "TimeoutException",
    ),
    Failure.CONNECTION: (
        core.ModelConnectionError, ModelUnreachableError, ConnectionError, "APIConnectionError", "TransportError",
    ),
    Failure.SERVER: (core.ModelAPIError, "InternalServerError"),
    Failure.REFUSED: (core.ModelInvalidRequestError, core.ModelNotFoundError, NotImplementedError),
    Failure.OUTPUT: (  # RecursionError: of a client's own JSON parser, on an answer that is nested deeply
        core.OutputParserException, ModelOutputError, UnusableReplyError, ValidationError, json.JSONDecodeError,
        RecursionError, "LengthFinishReasonError", "ContentFilterFinishReasonError",
    ),
}  # fmt: skip
_BY_CLASS = {cls: failure for failure, classes in _CLASSES.items() for cls in classes}
_MESSAGES = {
    Failure.OUTPUT: "The answer of the {what} endpoint{place} could not be used: {text}.{advice}",
    Failure.LOOP: "The model's asynchronous client{place} holds connections of another event loop, which may be "
    "closed: {text}. Make a model for each loop, or give one that has a blocking side too.",
    Failure.TIMEOUT: "The {what} endpoint{place} did not answer in time: {text}. Raise timeout "
    "(RAG_KIT_TIMEOUT){fewer}, or check the server.",
    Failure.CONNECTION: "The {what} endpoint{place} could not be reached, or broke off: {text}. Check that it runs, "
    "and {variable}.",
    Failure.TLS: "The {what} endpoint{place} could not be reached: {text}. Check {variable}.",
    Failure.WEB_PAGE: "The {what} endpoint{place} answers with a web page (HTML), not with JSON: the address is wrong. "
    "Check {variable}; such addresses mostly end in /v1.",
    Failure.SERVER: "The {what} endpoint{place} failed{code}: {text}. Try again later.",
    Failure.UNAUTHORIZED: "The {what} endpoint{place} refused the key{code}: {text}. Check the key in the provider's "
    "environment variable, and that it may use this model.",
    Failure.RATE_LIMITED: "The {what} endpoint{place} has too many requests{code}: {text}. Wait, or allow fewer at a "
    "time (max_concurrency).",
    Failure.REFUSED: "The {what} endpoint{place} refused the request{code}: {text}. Check {setting}the "
    "model name, {variable} and the length of the input.",
    Failure.OTHER: "The model{place} failed with {text}.{advice}",
}
_REDIRECT = (
    "The {what} endpoint{place} redirects to {target}, which is not followed: it would get questions, passages and the "
    "key. If that endpoint is meant, set its address (base_url, {variable})."
)
_ADVICE = " If it is so each time, check {variable} and the model name."  # of a reply of another shape
_CHAT_WORDS = {"what": "model", "variable": "RAG_KIT_BASE_URL", "fewer": ""}
_EMBEDDING_WORDS = {
    "what": "embedding",
    "variable": "RAG_KIT_EMBEDDING_BASE_URL (else RAG_KIT_BASE_URL)",
    "fewer": ", send fewer texts in a request (RAG_KIT_EMBEDDING_BATCH)",
}
_ERRORS = {
    Failure.OUTPUT: ModelOutputError,
    Failure.UNAUTHORIZED: ModelUnauthorizedError,
    **dict.fromkeys((*RETRYABLE, Failure.TLS, Failure.WEB_PAGE), ModelUnreachableError),
}
_BOUND = re.compile(r"max_(?:completion_|output_|new_)?tokens|num_predict")
_SETTING = re.compile(
    rf"\b(?:temperature|top_[kp]|\w+_(?:penalty|effort|format|bias)|(?:top_)?logprobs|{_BOUND.pattern})\b"
)
# as llama.cpp, OpenAI, vLLM, Anthropic, Google, xAI, Mistral, Cohere, Hugging Face and DashScope say it
_TOO_LONG = re.compile(
    r"""context[ _](?:length|size|window|limit) | (?:prompt|input)[ ]is[ ]too[ ]long | too[ ]many[ ]tokens
    | token[ ]count[ ].*(?:exceeds|only[ ]supports) | maximum[ ](?:model|prompt)[ ]length
    | must[ ]be[ ]at[ ]least[ ]1,[ ]got[ ]-\d | too[ ]large[ ]for[ ]model | range[ ]of[ ]input[ ]length
    | inputs`[ ]tokens[ ]\+[ ]`max_new_tokens | 超出.*上下文 | 输入.*过长""",
    re.IGNORECASE | re.VERBOSE,
)
_LIMIT = re.compile(
    r"""(\d+)[ ](?:tokens?[ ])?max  # "8192 tokens max"
    | (?:max|limit|context|cannot[ ]exceed|only|<=|>|\[1,)[^\d]{0,40}?(\d+)(?!\d|[ ]\+)  # "maximum context is 8192"
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LEAST_CONTEXT = 256  # a smaller number in such words counts something else
_GIVEN = re.compile(r"(\d+) (?:in the (?:messages|prompt)|input tokens|\+ \d+ >)")
_HTML = re.compile(r"<!doctype html|<html\b", re.IGNORECASE)
_KEY_HEADER = re.compile(r"(?i)auth|key|token|secret")


def classify(error: BaseException) -> Failure:
    """Return the kind of failure that an exception is, by itself or the first of its causes with a known kind."""
    if of_another_loop(error):
        return Failure.LOOP
    if _is_web_page(error):
        return Failure.WEB_PAGE
    failure = next(filter(None, map(_failure_of_one, linked_errors(error))), Failure.OTHER)
    return Failure.TLS if failure is Failure.CONNECTION and is_tls_failure(error) else failure


def _is_web_page(error: BaseException) -> bool:
    """Tell whether an endpoint answered with a web page, other than the error page of a server that failed."""
    if _first_status(error) not in (None, 404, 405):
        return False
    causes = linked_errors(error)
    texts = (text for cause in causes for text in (str(cause)[:2000], *getattr(cause, "__notes__", ())))
    return any(WEB_PAGE in text or _HTML.search(text) for text in texts)


def _failure_of_one(error: BaseException) -> Failure | None:
    """Return the kind of one exception by its code, HTTP status or class, without its causes; None if unknown."""
    if not _FINAL_CODES.isdisjoint(_codes(error)):
        return Failure.REFUSED_FOR_GOOD
    status = _status_of(error)
    if status is not None and not isinstance(error, core.ContextOverflowError):
        if status < 400:  # a redirect, which is not followed
            return Failure.REFUSED_FOR_GOOD
        if status in (408, 409) or (status >= 500 and status != 501):
            return Failure.SERVER
        if status in (400, 413, 422) and _is_too_long(error):
            return Failure.REFUSED_FOR_GOOD
        by_status = {401: Failure.UNAUTHORIZED, 403: Failure.UNAUTHORIZED, 429: Failure.RATE_LIMITED}
        return by_status.get(status, Failure.REFUSED)
    failures = (_BY_CLASS.get(cls) or _BY_CLASS.get(cls.__name__) for cls in type(error).__mro__)
    return next(filter(None, failures), None)


def _first_status(error: BaseException) -> int | None:
    """Return the HTTP status of an exception, or of the first of its causes that carries one."""
    return next(filter(None, map(_status_of, linked_errors(error))), None)


def _status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an exception carries, if any."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "http_status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 300 <= value < 600:
                return value
    return None


def _header(error: BaseException, name: str) -> str:
    """Return a header of the first failed response among an exception and its causes; "" if there is none."""
    for cause in linked_errors(error):
        headers = getattr(getattr(cause, "response", None), "headers", None) or {}
        if value := headers.get(name):
            return str(value)
    return ""


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the server says to wait (``Retry-After``: seconds, or a date); None if it does not."""
    value = _header(error, "retry-after")
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def _is_too_long(error: BaseException) -> bool:
    """Tell whether an endpoint refused a request because the prompt is longer than the model's context."""
    is_named = isinstance(error, core.ContextOverflowError) or "context_length_exceeded" in _codes(error)
    return is_named or bool(_TOO_LONG.search(_message(error)))


def refuses_bound(error: BaseException) -> bool:
    """Tell whether an endpoint refused a request because of the bound on its reply, not of the prompt's length."""
    refused = classify(error) is Failure.REFUSED
    return refused and bool(_BOUND.search(_message(error))) and not _TOO_LONG.search(_message(error))


def _context_error(error: BaseException, model: Any, text: str) -> ContextLengthError:
    """Make the error for a prompt that is too long, with the numbers in the endpoint's message."""
    message = re.sub(r"(?<=\d)[,_](?=\d{3})", "", _message(error))  # 8,192 is 8192
    # one group matches a number before the words, the other one behind them
    limits = (int(match[1] or match[2]) for match in _LIMIT.finditer(message))
    limit = next((number for number in limits if number >= _LEAST_CONTEXT), None)
    stated = _GIVEN.search(message)
    # without words for the tokens that were sent, the largest number may be theirs
    sent = int(stated[1]) if stated else max(map(int, re.findall(r"\d+", message)), default=0)
    sizes = ""
    if limit is not None:
        sizes = f" The context holds {limit:,} tokens" + (f", {sent:,} were sent." if sent > limit else ".")
    return ContextLengthError(
        f"The prompt is too long for the model{_at_host(error, model)}: {text}.{sizes} Give fewer or shorter "
        "passages (k, max_passage_chars), or a model with a longer context. With its context_tokens set "
        "(RAG_KIT_CONTEXT_TOKENS) passages are left out before a request is made.",
        sent if limit is not None and (stated or sent > limit) else None,
        limit,
    )


def map_model_error(error: BaseException, *, model: Any = None) -> ModelError:
    """Turn a provider's exception into one of this kit's, without keys; one of the kit's own comes back as it is.

    Raise the result outside of the ``except`` block (or ``from None``): the original holds the request
    with its headers, and would be its context. The model's own key is looked for in the server's message.
    """
    if isinstance(error, ModelError):
        return error
    if isinstance(error, BudgetExceededError):
        return ModelError(str(error))
    failure = classify(error)
    text = short(_explain(error, failure), [*secrets_of(model), *_secrets_sent(error)])
    if failure in (Failure.LOOP, Failure.OTHER):
        text = f"{type(error).__name__}: {text}"
    status = _first_status(error)
    is_embedding = isinstance(model, Embeddings)
    if failure is not Failure.REFUSED_FOR_GOOD:
        message = _MESSAGES[failure]
    elif status is not None and status < 400:
        message = _REDIRECT
    elif not is_embedding and _is_too_long(error):
        return _context_error(error, model, text)
    else:
        message = _MESSAGES[Failure.REFUSED]
    setting = _SETTING.search(f"{_body(error).get('param')} {_message(error)}")
    fields = {
        "setting": f"{setting[0]} (leave it out where the model is made, or change it), " if setting else "",
        "place": _at_host(error, model),
        "code": f" (HTTP {status})" if status else "",
        "text": text,
        "target": short(_header(error, "location").partition("?")[0]),
    }
    fields |= _EMBEDDING_WORDS if is_embedding else _CHAT_WORDS
    is_unreadable = isinstance(error, json.JSONDecodeError | UnusableReplyError)
    may_be_other_service = failure is Failure.OTHER or is_embedding or is_unreadable
    fields["advice"] = _ADVICE.format(**fields) if may_be_other_service and fields["place"] else ""
    return _ERRORS.get(failure, ModelError)(message.format(**fields))


def _explain(error: BaseException, failure: Failure) -> str:
    """Return the message of an exception; for a failed connection its deepest cause, and the proxy in use."""
    message = _message(error)
    if failure in (Failure.CONNECTION, Failure.TLS):
        message = connection_problem(error, _at_host(error, None)) or message
    if failure in (Failure.CONNECTION, Failure.TLS, Failure.TIMEOUT):
        proxy = next(filter(None, map(proxy_of, _requests(error))), "")
        message += f". The call went through the proxy {proxy}" if proxy else ""
    return message


def _body(error: BaseException) -> dict[str, Any]:
    """Return the error object in the body of a response, ``{"error": {...}}`` or the body; {} if there is none."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _codes(error: BaseException) -> set[Any]:
    """Return the words by which an exception, or the body of its response, says what is wrong."""
    codes = (getattr(error, "code", None), _body(error).get("code"), _body(error).get("type"))
    return {code for code in codes if isinstance(code, str)}


def _message(error: BaseException) -> str:
    """Return the server's own message, else the note of the kit's client, else the exception's text."""
    causes = linked_errors(error)
    best_first = [_body(cause).get("message") for cause in causes]
    best_first += [note for cause in causes for note in getattr(cause, "__notes__", ())]
    best_first += [f"it is no JSON ({cause})" for cause in causes if isinstance(cause, json.JSONDecodeError)]
    text = next((text for text in best_first if isinstance(text, str) and text.strip()), str(error))
    return text.strip().rstrip(".") or type(error).__name__


def _requests(error: BaseException) -> Iterator[Any]:
    """Yield the failed HTTP request of an exception and of each of its causes, or None in its place."""
    for cause in linked_errors(error):
        # Reading .request of an httpx error that has none raises RuntimeError.
        yield vars(cause).get("request") or vars(cause).get("_request")


def mask_error(error: BaseException, model: Any, response: Any = None) -> None:
    """Mask keys in an exception, its causes and LangChain's record of the response, before tracers record them."""
    causes = linked_errors(error)
    secrets = [*secrets_of(model), *(secret for cause in causes for secret in _secrets_sent(cause))]
    for cause in causes:
        for name in ("args", "message", "body", "__notes__"):
            value = getattr(cause, name, None)
            if isinstance(value, str | dict | list | tuple):
                with suppress(AttributeError, TypeError):  # a user's own class may not let it be set
                    setattr(cause, name, redact_inside(value, secrets))
    for generation in chain(*getattr(response, "generations", ())):
        if message := getattr(generation, "message", None):
            message.response_metadata = redact_inside(message.response_metadata, secrets)


def _secrets_sent(error: BaseException) -> list[str]:
    """Return the keys in the headers of failed requests; the model does not know those that a function gave."""
    secrets: list[str] = []
    for request in _requests(error):
        for name, value in (getattr(request, "headers", None) or {}).items():
            if _KEY_HEADER.search(name):
                secrets += [value, value.rpartition(" ")[2]]  # "Bearer KEY"
    return [secret for secret in secrets if len(secret) >= MIN_SECRET]


def _at_host(error: BaseException, model: Any) -> str:
    """Return " at https://host" for the endpoint of the failed request, else of the model; "" if unknown."""
    addresses = [str(getattr(request, "url", "")) for request in _requests(error)]
    origins = filter(None, map(origin_of, (*addresses, base_url(model))))
    return next((f" at {short(origin)}" for origin in origins), "")
