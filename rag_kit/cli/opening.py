"""Opening the index that a command names, with the embedding model that built it, and its retriever."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_kit.cli.options import DEFAULT_K, GRAPHS, chat_settings, parse_filter
from rag_kit.errors import IndexMismatchError, InvalidInputError
from rag_kit.indexing.postgres.location import Location, location_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
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
    if isinstance(folder, Path) and folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"--index {folder} is a file; name the folder of an index, or a new one.")
    return folder


def index_embeddings(folder: Path | Location, embedding_model: str | None) -> Embeddings | None:
    """The embedding model of an index, ``None`` where it has no vectors and no model was named.

    Raises:
        IndexMissingError: There is no index in the folder.
        IndexMismatchError: It was built with another embedding model.
    """
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models import embedding_model as make
    from rag_kit.models.embedding import embedding_name, recorded_embedding_model

    recorded = DocumentIndex.recorded_embedding(folder)
    named = embedding_model or os.environ.get("RAG_KIT_EMBEDDING_MODEL")
    if recorded is None:
        return make(named) if named else None
    model = make(named) if named and named != recorded else recorded_embedding_model(recorded)
    given = embedding_name(model)
    if given != recorded and given.rpartition("@")[0] == recorded.rpartition("@")[0]:
        raise IndexMismatchError(
            f"The index in {folder} was built with {recorded!r}, but the configured endpoint makes that {given!r}. "
            f"Set RAG_KIT_EMBEDDING_BASE_URL to the address at {recorded.rpartition('@')[2]}."
        )
    return model


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
        from rag_kit.models import chat_model
        from rag_kit.models.chat import describe_model

        llm = chat_model(arguments.model, **chat_settings(arguments))
        graph = getattr(graphs, GRAPHS[arguments.graph])(retriever, llm, **settings)
        yield Opened(index, retriever, graph, describe_model(llm))


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

    where = parse_filter(arguments.filter)
    folder, model = index_folder(arguments), arguments.embedding_model
    embeddings = index_embeddings(folder, model) if model or arguments.pipeline != "bm25" else None
    with DocumentIndex.open(folder, embeddings=embeddings) as index:
        if ":" in arguments.pipeline:
            yield index, _own_retriever(arguments.pipeline, index)
            return
        from rag_kit.retrieval import index_retriever
        from rag_kit.retrieval.indexed import PIPELINES

        if arguments.pipeline not in PIPELINES:
            raise InvalidInputError(
                f"--pipeline {arguments.pipeline} is unknown; allowed: {', '.join(PIPELINES)}, or module:object for "
                "your own."
            )
        k = DEFAULT_K if arguments.k is None else arguments.k
        on_error: Any = "skip" if arguments.allow_degraded else "raise"
        yield index, index_retriever(index, pipeline=arguments.pipeline, k=k, filter=where, on_error=on_error)


def call_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """``k`` and ``filter`` of the call: a retriever of the user's own was not made with them."""
    if ":" not in arguments.pipeline:
        return {}
    return {"k": arguments.k, "filter": parse_filter(arguments.filter)}


def run_context(arguments: argparse.Namespace) -> dict[str, Any]:
    """The context of each run of a graph."""
    given = {name: getattr(arguments, name) for name in ("max_calls", "max_tokens", "deadline")}
    caps = {name: value for name, value in given.items() if value is not None}
    return {"language": arguments.language, **call_arguments(arguments), **caps}


def _own_retriever(name: str, index: DocumentIndex) -> BaseRetriever:
    """Import ``module:object``: a retriever, or a function that makes one from the index."""
    from langchain_core.retrievers import BaseRetriever

    from rag_kit.evaluation.ranking.pipelines import load_object

    value = load_object(name)
    if not isinstance(value, BaseRetriever) and callable(value):
        try:
            value = value(index)
        except TypeError as error:
            raise InvalidInputError(f"--pipeline {name}: {error}") from error
    if not isinstance(value, BaseRetriever):
        raise InvalidInputError(
            f"--pipeline {name} is a {type(value).__name__}; it must be a LangChain retriever, or a function "
            "that takes the index and returns one."
        )
    return value
