"""What several commands share: naming an index, opening it with the embedding model that built it."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import IndexMismatchError, InvalidInputError
from rag_kit.indexing.postgres.location import Location, location_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever

    from rag_kit.indexing import DocumentIndex


DEFAULT_K = 5


def add_index_argument(parser: argparse.ArgumentParser) -> None:
    """``--index DIR``, or the environment variable RAG_KIT_INDEX."""
    parser.add_argument(
        "--index",
        default=os.environ.get("RAG_KIT_INDEX") or None,
        metavar="DIR",
        help="the index: a folder, or postgresql://USER@HOST/DATABASE?index=NAME (or set RAG_KIT_INDEX)",
    )


def add_wait_argument(parser: argparse.ArgumentParser) -> None:
    """``--wait SECONDS``: how long to wait for another writer."""
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="wait for another writer (default 0)"
    )


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


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of everything that searches an index."""
    add_index_argument(parser)
    parser.add_argument("-k", type=int, metavar="N", help=f"how many passages (default {DEFAULT_K})")
    parser.add_argument(
        "--filter",
        metavar="JSON",
        help="only passages whose metadata match, e.g. '{\"page\": 3}', or those of a folder: "
        '\'{"file": {"$startswith": "contracts/"}}\'',
    )
    parser.add_argument(
        "--pipeline",
        default="hybrid",
        metavar="NAME",
        help="bm25, dense, hybrid (default), or module:object, a retriever of your own (its code is run)",
    )
    parser.add_argument(
        "--embedding-model",
        metavar="NAME",
        help="the model that the index was built with (default: the one recorded in the index)",
    )
    parser.add_argument(
        "--allow-degraded",
        action="store_true",
        help="search by keyword alone when the embedding endpoint fails, and say so (default: stop with exit code "
        "5 or 6)",
    )
    parser.add_argument("--explain", action="store_true", help="show why each passage is there")
    parser.add_argument("--json", action="store_true", help="print JSON")


def parse_filter(text: str | None) -> dict[str, Any] | None:
    """The filter given on the command line.

    Raises:
        InvalidInputError: Not a JSON object.
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"--filter is not JSON ({error}); write for example '{{\"page\": 3}}'."
        ) from None
    if not isinstance(value, dict):
        raise InvalidInputError("--filter is not a JSON object; write for example '{\"page\": 3}'.")
    return value


def open_index(folder: Path | Location, embedding_model: str | None, *, dense: bool = True) -> DocumentIndex:
    """Open an index for reading, with the embedding model it was built with.

    A model named by the caller or by RAG_KIT_EMBEDDING_MODEL must be the one that built the index.

    Args:
        folder: The index folder.
        embedding_model: The model that the caller named, if any.
        dense: Whether vectors will be searched; without, no embedding model is made, and none has to work.

    Raises:
        IndexMissingError: There is no index in the folder.
        IndexMismatchError: It was built with another embedding model.
    """
    from rag_kit.indexing import DocumentIndex

    if not dense and not embedding_model:
        return DocumentIndex.open(folder)
    return DocumentIndex.open(folder, embeddings=index_embeddings(folder, embedding_model))


def index_embeddings(folder: Path | Location, embedding_model: str | None) -> Embeddings | None:
    """The embedding model of an index, ``None`` where it has no vectors and no model was named.

    Raises:
        IndexMissingError: There is no index in the folder.
        IndexMismatchError: It was built with another embedding model.
    """
    from rag_kit.indexing import DocumentIndex

    recorded = DocumentIndex.recorded_embedding(folder)
    named = embedding_model or os.environ.get("RAG_KIT_EMBEDDING_MODEL")
    return _embeddings(folder, named, recorded) if recorded is not None or named else None


def _embeddings(folder: Path | Location, named: str | None, recorded: str | None) -> Embeddings | None:
    from rag_kit.models import embedding_model
    from rag_kit.models.embedding import embedding_name, recorded_embedding_model

    if recorded is None or (named and named != recorded):
        model = embedding_model(named)
    else:
        model = recorded_embedding_model(recorded)
    given = embedding_name(model)
    if recorded is not None and given != recorded and given.rpartition("@")[0] == recorded.rpartition("@")[0]:
        raise IndexMismatchError(
            f"The index in {folder} was built with {recorded!r}, but the configured endpoint makes that {given!r}. "
            f"Set RAG_KIT_EMBEDDING_BASE_URL to the address at {recorded.rpartition('@')[2]}."
        )
    return model


def make_retriever(
    index: DocumentIndex, arguments: argparse.Namespace, where: dict[str, Any] | None
) -> BaseRetriever:
    """The retriever that ``--pipeline`` stands for.

    A half of a hybrid that fails stops the command, unless ``--allow-degraded`` was given: whoever named an
    embedding endpoint wants to hear that it refuses the key, and not to read a worse answer.
    """
    pipeline = arguments.pipeline
    if is_own(pipeline):
        return _own_retriever(pipeline, index)
    from rag_kit.retrieval import index_retriever
    from rag_kit.retrieval.indexed import PIPELINES

    if pipeline not in PIPELINES:
        raise InvalidInputError(
            f"--pipeline {pipeline} is unknown; allowed: {', '.join(PIPELINES)}, or module:object for your own."
        )
    return index_retriever(
        index,
        pipeline=pipeline,
        k=DEFAULT_K if arguments.k is None else arguments.k,
        filter=where,
        on_error="skip" if arguments.allow_degraded else "raise",
    )


def searches_vectors(pipeline: str) -> bool:
    """Whether a pipeline may search vectors, and so needs the embedding model."""
    return pipeline != "bm25"


def is_own(pipeline: str) -> bool:
    """Whether a pipeline is code of the user's own."""
    return ":" in pipeline


def call_arguments(arguments: argparse.Namespace, where: dict[str, Any] | None) -> dict[str, Any]:
    """``k`` and ``filter`` of the call: a retriever of the user's own was not made with them."""
    if not is_own(arguments.pipeline):
        return {}
    return {"k": arguments.k, "filter": where}


def _own_retriever(name: str, index: DocumentIndex) -> BaseRetriever:
    """Import ``module:object``: a retriever, or a function that makes one from the index."""
    import sys
    from importlib import import_module

    from langchain_core.retrievers import BaseRetriever

    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: Any = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(
            f"--pipeline {name}: {error}. Give module:object, where the module can be imported from this folder."
        ) from None
    if not isinstance(value, BaseRetriever) and callable(value):
        try:
            value = value(index)
        except TypeError as error:
            raise InvalidInputError(
                f"--pipeline {name}: {error}. The function must take the index and return a retriever."
            ) from error
    if not isinstance(value, BaseRetriever):
        raise InvalidInputError(
            f"--pipeline {name} is a {type(value).__name__}; it must be a LangChain retriever, or a function "
            "that takes the index and returns one."
        )
    return value
