"""``rag-kit doctor --model``: what the endpoint of a chat model can do, found out by asking it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rag_kit.cli.output import STATUS, one_line

_SECONDS = 30.0
_SCHEMA = {
    "title": "capital",
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_QUESTION = "What is the capital of France? Answer with JSON: an object whose field city holds the name."
#: Way to a structured answer -> what it is called in the report.
_METHODS = {
    "json_schema": "JSON schema",
    "function_calling": "function calling",
    "json_mode": "JSON mode",
}


class Finding(NamedTuple):
    """One line of a report: ``state`` is ``ok``, ``off`` (fine, but not in use or not there) or ``bad``."""

    name: str
    state: str
    detail: str


def examined(name: str, examine: Callable[[], tuple[str, str]]) -> Finding:
    """The result of one examination; its failure is a finding, not the end."""
    try:
        return Finding(name, *examine())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return Finding(name, "bad", one_line(error))


def examine_model(name: str | None, **settings: Any) -> list[Finding]:
    """Ask a model for text, objects, a stream and log-probabilities, and the embedding model for a vector.

    Args:
        name: As for `chat_model`.
        **settings: As for `chat_model`.

    Returns:
        The model and its answer; after a failed first call nothing else is asked.
    """
    from rag_kit.models import chat_model

    try:
        model = chat_model(name, **{"timeout": _SECONDS, "max_retries": 0, **settings})
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return [Finding("chat model", "bad", one_line(error))]
    STATUS.show("asking the model ...")
    findings = [examined("text", lambda: _text(model))]
    if findings[0].state == "ok":
        findings += [_native(label, partial(_object, model, method)) for method, label in _METHODS.items()]
        findings += [
            examined("structured call", lambda: _structured_call(model)),
            _native("streaming", lambda: _stream(model)),
            _native("log-probabilities", lambda: _log_probabilities(model)),
        ]
    return [*findings, embedding_finding(network=True)]


def _text(model: Any) -> tuple[str, str]:
    from langchain_core.prompts import ChatPromptTemplate

    from rag_kit.models import text_call
    from rag_kit.models.chat import describe_model

    prompt = ChatPromptTemplate([("user", "{question}")])
    reply = text_call(model, prompt, {"question": "Answer with one word: ready."}, max_retries=0)
    return "ok", f"{describe_model(model)} answers: {reply[:40]!r}"


def _native(label: str, examine: Callable[[], str | None]) -> Finding:
    """An ability that a model may lack: ``None`` or an error means that it does."""
    from rag_kit.models.failures import map_model_error

    try:
        detail = examine()
    except NotImplementedError:
        detail = None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return Finding(label, "off", one_line(map_model_error(error)))
    return Finding(label, "ok" if detail else "off", detail or "not there")


def _object(model: Any, method: str) -> str | None:
    answer = model.with_structured_output(_SCHEMA, method=method).invoke(_QUESTION)
    return "yes" if isinstance(answer, dict) and isinstance(answer.get("city"), str) else None


def _structured_call(model: Any) -> tuple[str, str]:
    from langchain_core.prompts import ChatPromptTemplate

    from rag_kit.models import structured_call
    from rag_kit.models.runnables import METHODS, first_method

    prompt = ChatPromptTemplate([("user", "{question}")])
    structured_call(model, prompt, {"question": _QUESTION}, _SCHEMA, max_retries=0)
    method = METHODS[first_method(model)]
    return "ok", f"works by {_METHODS.get(method, method)}"


def _stream(model: Any) -> str | None:
    pieces = sum(1 for chunk in model.stream("Count from one to ten in words.") if chunk.text)
    return f"in {pieces} pieces" if pieces > 1 else None


def _log_probabilities(model: Any) -> str | None:
    reply = model.bind(logprobs=True, top_logprobs=2).invoke("Answer with yes or no: is water wet?")
    return "yes" if (reply.response_metadata.get("logprobs") or {}).get("content") else None


def embedding_finding(*, network: bool) -> Finding:
    """The configured embedding model; an endpoint is asked for the vector of one word."""
    return examined("embedding model", lambda: _embedding(network=network))


def _embedding(*, network: bool) -> tuple[str, str]:
    import os

    from rag_kit.models import embedding_model
    from rag_kit.models.embedding import embedding_name
    from rag_kit.models.failures import map_model_error

    name = os.environ.get("RAG_KIT_EMBEDDING_MODEL") or None
    remote = name is not None and name.startswith(("openai:", "azure_openai:"))
    model = embedding_model(name, **({"timeout": 5.0, "max_retries": 0} if remote else {}))
    if model is None:
        return "off", "none: keyword search only (rag-kit models install minilm, or RAG_KIT_EMBEDDING_MODEL)"
    detail = embedding_name(model)
    if not remote or not network:
        return "ok", detail
    try:
        dimensions = len(model.embed_query("ping"))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return "bad", f"{detail}; {one_line(map_model_error(error, model=model))}"
    return "ok", f"{detail}; it answers, {dimensions} dimensions"
