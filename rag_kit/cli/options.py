"""Options that several commands share, and opening what they name: an index, its retriever, a graph."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.cli.output import hint
from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError, RagKitError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.retrievers import BaseRetriever

    from rag_kit.indexing import DocumentIndex

DEFAULT_K = 5

#: Graphs that ``--graph`` can name -> builder in rag_kit.graphs.
GRAPHS = {
    "plain": "build_plain_rag",
    "crag": "build_crag",
    "self-rag": "build_self_rag",
    "adaptive": "build_adaptive_rag",
}

#: Rerankers that ``--rerank`` can name; without a name it is the first.
RERANKERS = ("cross-encoder", "colbert-small")
#: Options of what searches an index.
PIPELINE = ("--index", "--pipeline", "-k", "--filter", "--embedding-model", "--allow-degraded", "--rerank")
#: Options of what asks a chat model, and of its caps.
MODEL = ("--model", "--base-url", "--max-calls", "--max-tokens", "--deadline")
#: Caps of a run, as functions of the library take them.
CAPS = ("max_calls", "max_tokens", "deadline")
#: Options of what answers.
ANSWER = (*MODEL, "--graph", "--prompts", "--language")


def _json_object(text: str) -> dict[str, Any]:
    """Read the value of ``--filter``; raise ArgumentTypeError unless it is a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"it is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("it is not a JSON object; write for example '{\"page\": 3}'")
    return value


_SHARED_OPTIONS: dict[str, dict[str, Any]] = {
    "--index": {"metavar": "DIR", "help": "folder or postgresql://USER@HOST/DB?index=NAME (RAG_KIT_INDEX)"},
    "--wait": {"type": float, "default": 0.0, "metavar": "SECONDS", "help": "wait for another writer"},
    "--pipeline": {
        "default": "hybrid",
        "metavar": "NAME",
        "help": "hybrid, bm25, dense, trigram, or module:object",
    },
    "-k": {"type": int, "metavar": "N", "help": f"how many passages (default {DEFAULT_K})"},
    "--filter": {"type": _json_object, "metavar": "JSON", "help": "metadata to match, e.g. '{\"page\": 3}'"},
    "--embedding-model": {"metavar": "NAME", "help": "what the index was built with (default: as recorded)"},
    "--allow-degraded": {"action": "store_true", "help": "search by keyword alone when vectors fail"},
    "--rerank": {
        "nargs": "?",
        "const": RERANKERS[0],
        "choices": RERANKERS,
        "help": "reorder by a model (default cross-encoder; rag-kit models install NAME)",
    },
    "--graph": {"choices": sorted(GRAPHS), "default": "plain", "help": "which graph answers (default plain)"},
    "--language": {"choices": ["auto", "en", "zh"], "default": "auto", "help": "language of the prompts"},
    "--model": {"metavar": "NAME", "help": "chat model, e.g. openai:gpt-4o-mini (or RAG_KIT_CHAT_MODEL)"},
    "--base-url": {"metavar": "URL", "help": "an OpenAI-compatible endpoint (or RAG_KIT_BASE_URL)"},
    "--prompts": {"type": Path, "metavar": "DIR", "help": "folder with your own prompt files"},
    "--max-calls": {"type": int, "metavar": "N", "help": "model calls allowed"},
    "--max-tokens": {"type": int, "metavar": "N", "help": "tokens, in and out; the call over it is the last"},
    "--deadline": {"type": float, "metavar": "SECONDS", "help": "time allowed (ask and mcp: 300)"},
    "--max-concurrency": {"type": int, "default": 8, "metavar": "N", "help": "questions at a time (8)"},
    "--explain": {"action": "store_true", "help": "show why each passage is there"},
    "--quiet": {"action": "store_true", "help": "no progress line"},
    "--json": {"action": "store_true", "help": "print JSON"},
}


def add_options(parser: Any, *flags: str) -> None:
    """Add shared options to a parser by their flags."""
    for flag in flags:
        parser.add_argument(flag, **_SHARED_OPTIONS[flag])
    if "--index" in flags:
        parser.set_defaults(index=os.environ.get("RAG_KIT_INDEX") or None)


def pick(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the options of these names that were given, as arguments for a function."""
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def index_name(arguments: argparse.Namespace) -> str:
    """Return the folder or URL of the index."""
    if arguments.index is None:
        raise InvalidInputError(
            "no index is named; give --index DIR or set RAG_KIT_INDEX. Make one: rag-kit ingest PATH --index DIR"
        )
    return str(arguments.index)


def index_embeddings(index: str, name: str | None = None) -> Embeddings | None:
    """Make the embedding model that ``name`` or RAG_KIT_EMBEDDING_MODEL names, else that of the index, if any."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models import embedding_model
    from rag_kit.models.embedding import recorded_embedding_model

    recorded = DocumentIndex.recorded_embedding(index)
    name = name or os.environ.get("RAG_KIT_EMBEDDING_MODEL")
    if recorded is not None and (not name or name == recorded):  # with the settings that the index records
        return recorded_embedding_model(recorded)
    return embedding_model(name) if name else None


def make_chat_model(arguments: argparse.Namespace, **settings: Any) -> tuple[BaseChatModel, str]:
    """Make the chat model of ``--model`` and ``--base-url``; also return its description in words."""
    from rag_kit.models import chat_model
    from rag_kit.models.chat import describe_model

    llm = chat_model(arguments.model, **pick(arguments, "base_url"), **settings)
    return llm, describe_model(llm)


@contextmanager
def open_retriever(arguments: argparse.Namespace) -> Iterator[tuple[DocumentIndex, BaseRetriever]]:
    """Open the index for reading, and make the retriever named by ``--pipeline``.

    No embedding model is made for a search by words alone. If it cannot be made for a search by vectors, that is an
    error, or for a hybrid search with ``--allow-degraded`` a hint.
    """
    from rag_kit.indexing import DocumentIndex

    pipeline, model, name = arguments.pipeline, arguments.embedding_model, index_name(arguments)
    embeddings: Embeddings | None = None
    failure: RagKitError | None = None
    if model or pipeline not in ("bm25", "trigram"):
        try:
            embeddings = index_embeddings(name, model)
        except (ConfigurationError, MissingExtraError) as error:
            failure = error  # judged once the index is open, and says whether it has vectors
    with DocumentIndex.open(name, embeddings=embeddings) as index:
        needs_embeddings = index.embedding is not None and pipeline in ("hybrid", "dense")
        if failure is not None and not needs_embeddings:
            raise failure
        if needs_embeddings and embeddings is None:
            reason = "'none' was given in its place" if failure is None else str(failure).rstrip(".")
            problem = f"The embedding model of this index is {index.embedding!r}: {reason}."
            if not arguments.allow_degraded or pipeline == "dense":
                advice = "Or search by keyword alone: --pipeline bm25, or hybrid with --allow-degraded."
                raise ConfigurationError(f"{problem} {advice}")
            hint(problem)
        if next(index.metadata_rows(), None) is None:
            fill = f"rag-kit ingest PATH --index {index.folder}"
            hint(f"The index is empty, so nothing will be found. Fill it: {fill}")
        yield index, _make_retriever(index, arguments)


def _make_retriever(index: DocumentIndex, arguments: argparse.Namespace) -> BaseRetriever:
    """Make the retriever of ``--pipeline``: a built-in one with the search's options, or the user's own."""
    if ":" in arguments.pipeline:
        if arguments.rerank:
            raise InvalidInputError("--rerank is for the built-in pipelines; let your own rerank by itself.")
        return _load_retriever(arguments.pipeline, index)
    from rag_kit.retrieval import index_retriever

    k = DEFAULT_K if arguments.k is None else arguments.k
    on_error: Any = "skip" if arguments.allow_degraded else "raise"
    settings: Any = {"on_error": on_error, "reranker": arguments.rerank}
    return index_retriever(index, arguments.pipeline, k, arguments.filter, **settings)


def _load_retriever(name: str, index: DocumentIndex) -> BaseRetriever:
    """Import ``module:object``: a retriever, or a function that makes one from the index."""
    from langchain_core.retrievers import BaseRetriever

    from rag_kit.evaluation.runs.evaluating import load_object

    value: Any = load_object(name)
    try:
        retriever = value if isinstance(value, BaseRetriever) else value(index)
    except TypeError as error:
        raise InvalidInputError(f"--pipeline {name} cannot make a retriever of an index: {error}") from error
    if not isinstance(retriever, BaseRetriever):
        kind = type(retriever).__name__
        raise InvalidInputError(f"--pipeline {name} gives a {kind}, no LangChain retriever.")
    return retriever


class OpenGraph(NamedTuple):
    """A graph, the index and retriever that it answers from, and its chat model in words."""

    documents: DocumentIndex
    retriever: BaseRetriever
    graph: Any
    model: str


@contextmanager
def open_graph(arguments: argparse.Namespace, **settings: Any) -> Iterator[OpenGraph]:
    """Open the index, and build the graph that ``--graph`` names with these settings."""
    with open_retriever(arguments) as (index, retriever):
        from rag_kit import graphs

        llm, described = make_chat_model(arguments)
        graph = getattr(graphs, GRAPHS[arguments.graph])(retriever, llm, **settings)
        yield OpenGraph(index, retriever, graph, described)


def call_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return ``k`` and ``filter`` for a call of a user's own retriever; the built-in ones are made with them."""
    return pick(arguments, "k", "filter") if ":" in arguments.pipeline else {}


def run_context(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the context of each run of a graph."""
    return {"language": arguments.language, **call_arguments(arguments), **pick(arguments, *CAPS)}
