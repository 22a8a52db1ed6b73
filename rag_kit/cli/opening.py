"""Opening the index that a command names, with the embedding model that built it, and its retriever."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.cli.options import DEFAULT_K, GRAPHS, given, parse_filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.postgres.location import Location, location_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.retrievers import BaseRetriever

    from rag_kit.indexing import DocumentIndex


def index_folder(arguments: argparse.Namespace) -> Path | Location:
    """The index folder that was named, or the place in a database.

    Raises:
        InvalidInputError: None was, or it is a file.
    """
    if arguments.index is None:
        raise InvalidInputError(
            "no index is named; give --index DIR or set RAG_KIT_INDEX. Make one: rag-kit ingest PATH --index DIR"
        )
    folder = location_of(arguments.index)
    if isinstance(folder, Path) and folder.is_file():
        raise InvalidInputError(f"--index {folder} is a file; name the folder of an index, or a new one.")
    return folder


def index_embeddings(folder: Path | Location, named: str | None = None) -> Embeddings | None:
    """The embedding model of an index, or the one that is named; ``None`` where there is neither."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models import embedding_model
    from rag_kit.models.embedding import recorded_embedding_model

    recorded = DocumentIndex.recorded_embedding(folder)
    named = named or os.environ.get("RAG_KIT_EMBEDDING_MODEL")
    if recorded is not None and named in (None, "", recorded):
        return recorded_embedding_model(recorded)
    return embedding_model(named) if named else None


def named_model(arguments: argparse.Namespace) -> tuple[BaseChatModel, str]:
    """The chat model of ``--model`` and ``--base-url``, and what it is in words."""
    from rag_kit.models import chat_model
    from rag_kit.models.chat import describe_model

    llm = chat_model(arguments.model, **given(arguments, "base_url"))
    return llm, describe_model(llm)


class Opened(NamedTuple):
    """An index that is open for reading, and a graph that answers from it."""

    documents: DocumentIndex
    retriever: BaseRetriever
    graph: Any
    described: str


@contextmanager
def open_graph(arguments: argparse.Namespace, **settings: Any) -> Iterator[Opened]:
    """Open the index, and build the graph that ``--graph`` names over the retriever that ``--pipeline`` names.

    Args:
        arguments: Of the command line.
        **settings: Of the graph's builder.
    """
    with open_retriever(arguments) as (index, retriever):
        from rag_kit import graphs

        llm, described = named_model(arguments)
        graph = getattr(graphs, GRAPHS[arguments.graph])(retriever, llm, **settings)
        yield Opened(index, retriever, graph, described)


@contextmanager
def open_retriever(arguments: argparse.Namespace) -> Iterator[tuple[DocumentIndex, BaseRetriever]]:
    """Open the index for reading, and make the retriever that ``--pipeline`` stands for.

    No embedding model is made where no vector is searched. A half of a hybrid that fails stops the command, unless
    ``--allow-degraded`` was given: whoever named an embedding endpoint wants to hear that it refuses the key.

    Raises:
        IndexMissingError: There is no index in the folder.
        IndexMismatchError: It was built with another embedding model.
        InvalidInputError: The filter is none, or there is no such pipeline.
    """
    from rag_kit.indexing import DocumentIndex

    pipeline, model = arguments.pipeline, arguments.embedding_model
    where, folder = parse_filter(arguments.filter), index_folder(arguments)
    embeddings = index_embeddings(folder, model) if model or pipeline != "bm25" else None
    with DocumentIndex.open(folder, embeddings=embeddings) as index:
        if ":" in pipeline:
            yield index, _own_retriever(pipeline, index)
            return
        from rag_kit.retrieval import index_retriever

        k = DEFAULT_K if arguments.k is None else arguments.k
        on_error: Any = "skip" if arguments.allow_degraded else "raise"
        yield index, index_retriever(index, pipeline=pipeline, k=k, filter=where, on_error=on_error)


def call_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """``k`` and ``filter`` of the call: a retriever of the user's own was not made with them."""
    if ":" not in arguments.pipeline:
        return {}
    return {"k": arguments.k, "filter": parse_filter(arguments.filter)}


def run_context(arguments: argparse.Namespace) -> dict[str, Any]:
    """The context of each run of a graph."""
    caps = given(arguments, "max_calls", "max_tokens", "deadline")
    return {"language": arguments.language, **call_arguments(arguments), **caps}


def _own_retriever(name: str, index: DocumentIndex) -> BaseRetriever:
    """Import ``module:object``: a retriever, or a function that makes one from the index."""
    from langchain_core.retrievers import BaseRetriever

    from rag_kit.evaluation.ranking.pipelines import load_object

    must = (
        f"--pipeline {name} must be a LangChain retriever, or a function that takes the index and returns one"
    )
    value: Any = load_object(name)
    try:
        made = value if isinstance(value, BaseRetriever) else value(index)
    except TypeError as error:
        raise InvalidInputError(f"{must}: {error}") from error
    if not isinstance(made, BaseRetriever):
        raise InvalidInputError(f"{must}, not a {type(made).__name__}.")
    return made
