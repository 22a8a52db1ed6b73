"""``rag-kit doctor``: what is installed, configured and reachable. No key is printed."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rag_kit import __version__
from rag_kit._privacy import TELEMETRY_OFF
from rag_kit.cli import exits
from rag_kit.cli.opening import index_embeddings, index_folder
from rag_kit.cli.options import add_options, given
from rag_kit.cli.output import STATUS, one_line, say_json, say_table
from rag_kit.errors import ConfigurationError, RagKitError

CORE = ("langchain", "langchain-core", "langchain-openai", "langgraph", "openai")
_SCHEMA = {"title": "capital", "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
           "additionalProperties": False}  # fmt: skip
_QUESTION = "What is the capital of France? Answer with JSON: an object whose field city holds the name."
#: Way to a structured answer -> what it is called in the report.
_METHODS = {"json_schema": "JSON schema", "function_calling": "function calling", "json_mode": "JSON mode"}

DESCRIPTION = """Tell what is installed, configured and reachable. With --model: what the endpoint of that model
can do, by about ten short requests. No secret is printed."""


class Finding(NamedTuple):
    """One line of a report: ``state`` is ``ok``, ``off`` (fine, but not in use or not there) or ``bad``."""

    name: str
    state: str
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``doctor``."""
    add_options(parser, "--index", "--model", "--base-url", "--json")
    parser.add_argument("--no-network", action="store_true", help="do not ask the configured endpoint")


def run(arguments: argparse.Namespace) -> int:
    """Examine and print; fails when something that is configured does not work."""
    STATUS.show("examining ...")
    network = not arguments.no_network
    if arguments.model is not None:
        findings = _abilities(arguments.model, **given(arguments, "base_url"))
    else:
        findings = [
            *_installed(),
            _examined("prompt files", _prompts),
            _examined("chat model", partial(_chat_model, network=network)),
            _examined("embedding model", partial(_embedding, network=network)),
            _examined("telemetry", _telemetry),
        ]
        if arguments.index is not None:
            findings.append(_examined("index", partial(_index, arguments)))
    if arguments.json:
        say_json([finding._asdict() for finding in findings])
    else:
        say_table([one.state, one.name, one.detail] for one in findings)
    return exits.FAILED if any(finding.state == "bad" for finding in findings) else exits.OK


def _examined(name: str, examine: Callable[[], tuple[str, str]], on_failure: str = "bad") -> Finding:
    """The result of one examination; its failure is a finding, not the end."""
    try:
        return Finding(name, *examine())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        from rag_kit.models.failures import map_model_error

        known = error if isinstance(error, (RagKitError, OSError)) else map_model_error(error)
        return Finding(name, on_failure, one_line(known))


def _installed() -> list[Finding]:
    """The kit, its core and each extra, whose packages the kit's own metadata name."""
    findings = [
        Finding("rag_kit", "ok", __version__),
        Finding("python", "ok", f"{platform.python_version()} on {sys.platform}"),
        Finding("core", "ok", ", ".join(f"{name} {_version(name)}" for name in CORE)),
    ]
    extras: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("rag-kit") or ():
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if extra and extra[1] not in ("docs", "test", "check"):  # for working on the kit itself
            extras.setdefault(extra[1], []).append(re.split(r"[^\w.-]", line)[0])
    for name, packages in extras.items():
        missing = [package for package in packages if _version(package) is None]
        detail = f"pip install 'rag-kit[{name}]'" if missing else f"{packages[0]} {_version(packages[0])}"
        findings.append(Finding(f"extra {name}", "off" if missing else "ok", detail))
    return findings


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _prompts() -> tuple[str, str]:
    from rag_kit.prompts.checks import check_library
    from rag_kit.prompts.library import PromptLibrary

    library = PromptLibrary()
    problems = check_library(library)
    if problems:
        return "bad", f"{len(problems)} problems; rag-kit prompts check lists them"
    folder = os.environ.get("RAG_KIT_PROMPTS")
    return "ok", f"{len(library.names())} prompts" + (f", overridden from {folder}" if folder else "")


def _chat_model(*, network: bool) -> tuple[str, str]:
    """The configured chat model; an endpoint is asked for its list of models, with the configured key."""
    from rag_kit.models import chat_model
    from rag_kit.models.chat import describe_model

    model: Any = chat_model()
    detail = describe_model(model)
    url = getattr(model, "openai_api_base", None)
    if not network or not url:
        return "ok", detail
    import openai

    try:
        model.root_client.with_options(timeout=5.0, max_retries=0).models.list()
    except openai.NotFoundError:
        return "ok", f"{detail}; {url} answers (it lists no models)"
    return "ok", f"{detail}; {url} answers"


def _embedding(*, network: bool) -> tuple[str, str]:
    """The configured embedding model; an endpoint is asked for the vector of one word."""
    from rag_kit.models import embedding_model
    from rag_kit.models.embedding import embedding_name

    name = os.environ.get("RAG_KIT_EMBEDDING_MODEL") or None
    remote = name is not None and name.startswith(("openai:", "azure_openai:"))
    model = embedding_model(name, **({"timeout": 5.0, "max_retries": 0} if remote else {}))
    if model is None:
        return "off", "none: keyword search only (rag-kit models install minilm, or RAG_KIT_EMBEDDING_MODEL)"
    detail = embedding_name(model)
    if remote and network:
        detail += f"; it answers, {len(model.embed_query('ping'))} dimensions"
    return "ok", detail


def _telemetry() -> tuple[str, str]:
    wanted = {"LANGSMITH_TRACING": "true", "LANGCHAIN_TRACING_V2": "true"}
    on = [name for name, value in wanted.items() if os.environ.get(name) == value]
    on += [name for name, value in TELEMETRY_OFF.items() if os.environ.get(name) != value]
    return ("ok", f"on, by your setting of {', '.join(on)}") if on else ("off", "nothing is sent")


def _index(arguments: argparse.Namespace) -> tuple[str, str]:
    from rag_kit.indexing import DocumentIndex

    folder = index_folder(arguments)
    with DocumentIndex.open(folder, embeddings=index_embeddings(folder)) as index:
        return "ok", ", ".join(f"{value} {name}" for name, value in index.stats().items())


def _abilities(name: str, **settings: Any) -> list[Finding]:
    """Ask a model for text, objects, a stream and log-probabilities, and the embedding model for a vector."""
    from rag_kit.models import chat_model

    try:
        model = chat_model(name, timeout=30.0, max_retries=0, **settings)
    except ConfigurationError as error:
        return [Finding("chat model", "bad", one_line(error))]
    STATUS.show("asking the model ...")
    findings = [_examined("text", partial(_text, model))]
    if findings[0].state == "ok":
        findings += [
            *(_examined(label, partial(_object, model, method), "off") for method, label in _METHODS.items()),
            _examined("structured call", partial(_structured_call, model)),
            _examined("streaming", partial(_stream, model), "off"),
            _examined("log-probabilities", partial(_log_probabilities, model), "off"),
        ]
    return [*findings, _examined("embedding model", partial(_embedding, network=True))]


def _found(there: Any, detail: str = "yes") -> tuple[str, str]:
    return ("ok", detail) if there else ("off", "not there")


def _text(model: Any) -> tuple[str, str]:
    from rag_kit.models.chat import describe_model

    reply = model.invoke("Answer with one word: ready.").text
    return "ok", f"{describe_model(model)} answers: {reply[:40]!r}"


def _object(model: Any, method: str) -> tuple[str, str]:
    answer = model.with_structured_output(_SCHEMA, method=method).invoke(_QUESTION)
    return _found(isinstance(answer, dict) and isinstance(answer.get("city"), str))


def _structured_call(model: Any) -> tuple[str, str]:
    from langchain_core.prompts import ChatPromptTemplate

    from rag_kit.models import structured_call
    from rag_kit.models.runnables import METHODS, first_method

    prompt = ChatPromptTemplate([("user", "{question}")])
    structured_call(model, prompt, {"question": _QUESTION}, _SCHEMA, max_retries=0)
    method = METHODS[first_method(model)]
    return "ok", f"works by {_METHODS.get(method, method)}"


def _stream(model: Any) -> tuple[str, str]:
    pieces = sum(1 for chunk in model.stream("Count from one to ten in words.") if chunk.text)
    return _found(pieces > 1, f"in {pieces} pieces")


def _log_probabilities(model: Any) -> tuple[str, str]:
    reply = model.bind(logprobs=True, top_logprobs=2).invoke("Answer with yes or no: is water wet?")
    return _found((reply.response_metadata.get("logprobs") or {}).get("content"))
