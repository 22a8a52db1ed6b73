"""``rag-kit doctor``: what is installed, configured and reachable. No key is printed."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from typing import Any

from rag_kit import __version__
from rag_kit._privacy import TELEMETRY_OFF
from rag_kit.cli import exits
from rag_kit.cli.doctor_model import Finding, embedding_finding, examine_model, examined
from rag_kit.cli.options import add_options, chat_settings
from rag_kit.cli.output import STATUS, one_line, say_json, say_table

_STYLES = {"ok": "green", "off": "dim", "bad": "red"}
#: Extra -> packages whose presence shows that it is installed.
EXTRAS = {
    "eval": ("ragas",),
    "studio": ("langgraph-cli", "langgraph-api"),
    "postgres": ("langchain-postgres", "psycopg"),
    "chroma": ("langchain-chroma", "chromadb"),
    "sql": ("sqlalchemy", "sqlglot"),
    "graph": ("ladybug",),
    "raptor": ("scikit-learn",),
    "minilm": ("onnxruntime", "tokenizers", "onnx"),
    "fastembed": ("fastembed",),
    "ocr": ("tesserocr",),
    "jupyter": ("ipykernel", "nbclient"),
    "qdrant": ("langchain-qdrant", "qdrant-client"),
    "mlflow": ("mlflow-skinny",),
    "phoenix": ("arize-phoenix-client",),
}
CORE = (
    "langchain",
    "langchain-core",
    "langchain-openai",
    "langgraph",
    "openai",
)


def add_parser(commands: Any) -> None:
    """Add ``doctor``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="what is installed, configured and reachable",
        description="Tell what is installed, configured and reachable. With --model: what the endpoint of that model\n"
        "can do, by about ten short requests. No secret is printed.",
    )
    add_options(parser, "--index", "--model", "--base-url", "--json")
    parser.add_argument("--no-network", action="store_true", help="do not ask the configured endpoint")


def run(arguments: argparse.Namespace) -> int:
    """Examine and print; fails when something that is configured does not work."""
    STATUS.show("examining ...")
    if arguments.model is not None:
        findings = examine_model(arguments.model, **chat_settings(arguments))
    else:
        findings = _everything(arguments.index, network=not arguments.no_network)
    STATUS.clear()
    if arguments.json:
        say_json([finding._asdict() for finding in findings])
    else:
        say_table([(one.state, _STYLES[one.state]), one.name, one.detail] for one in findings)
    return exits.FAILED if any(finding.state == "bad" for finding in findings) else exits.OK


def _everything(index: str | None, *, network: bool) -> list[Finding]:
    findings = [*_installed()]
    findings.append(examined("prompt files", _prompts))
    findings.append(examined("chat model", lambda: _chat_model(network=network)))
    findings.append(embedding_finding(network=network))
    findings.append(examined("telemetry", _telemetry))
    if index is not None:
        findings.append(examined("index", lambda: _index(index)))
    return findings


def _installed() -> list[Finding]:
    findings = [
        Finding("rag_kit", "ok", __version__),
        Finding("python", "ok", f"{platform.python_version()} on {sys.platform}"),
        Finding("core", "ok", ", ".join(f"{name} {_version(name)}" for name in CORE)),
    ]
    for extra, packages in EXTRAS.items():
        missing = [name for name in packages if _version(name) is None]
        detail = f"pip install 'rag-kit[{extra}]'" if missing else f"{packages[0]} {_version(packages[0])}"
        findings.append(Finding(f"extra {extra}", "off" if missing else "ok", detail))
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
    from rag_kit.models import chat_model
    from rag_kit.models.chat import describe_model

    model = chat_model()
    detail = describe_model(model)
    url = getattr(model, "openai_api_base", None)
    if not network or not url:
        return "ok", detail
    return _reachable(str(url), model, detail)


def _reachable(url: str, model: Any, detail: str) -> tuple[str, str]:
    """Ask the endpoint for its list of models, with the configured key."""
    import openai

    from rag_kit.models.failures import map_model_error

    client: openai.OpenAI = model.root_client.with_options(timeout=5.0, max_retries=0)
    try:
        client.models.list()
    except openai.NotFoundError:
        return "ok", f"{detail}; {url} answers (it lists no models)"
    except openai.OpenAIError as error:
        return "bad", f"{detail}; {one_line(map_model_error(error, model=model))}"
    return "ok", f"{detail}; {url} answers"


def _telemetry() -> tuple[str, str]:
    tracing = [
        name for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2") if os.environ.get(name) == "true"
    ]
    on = tracing + [name for name, value in TELEMETRY_OFF.items() if os.environ.get(name) != value]
    return ("ok", f"on, by your setting of {', '.join(on)}") if on else ("off", "nothing is sent")


def _index(folder: str) -> tuple[str, str]:
    from rag_kit.cli.opening import index_embeddings
    from rag_kit.indexing import DocumentIndex
    from rag_kit.indexing.postgres.location import location_of

    place = location_of(folder)
    with DocumentIndex.open(place, embeddings=index_embeddings(place, None)) as index:
        stats = index.stats()
    return "ok", ", ".join(f"{value} {name}" for name, value in stats.items())
