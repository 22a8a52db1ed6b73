"""What several commands share: naming an index, opening it with the embedding model that built it."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever

    from rag_kit.indexing import DocumentIndex


def add_index_argument(parser: argparse.ArgumentParser) -> None:
    """``--index DIR``, or the environment variable RAG_KIT_INDEX."""
    default = os.environ.get("RAG_KIT_INDEX")
    parser.add_argument(
        "--index",
        type=Path,
        default=Path(default) if default else None,
        metavar="DIR",
        help="the index folder (or set RAG_KIT_INDEX)",
    )


def index_folder(arguments: argparse.Namespace) -> Path:
    """The index folder that was named.

    Raises:
        InvalidInputError: None was.
    """
    if arguments.index is None:
        raise InvalidInputError(
            "no index is named; give --index DIR or set RAG_KIT_INDEX. Make one: rag-kit ingest PATH --index DIR"
        )
    folder: Path = arguments.index
    return folder


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of everything that searches an index."""
    add_index_argument(parser)
    parser.add_argument("-k", type=int, default=5, metavar="N", help="how many passages (default 5)")
    parser.add_argument(
        "--filter", metavar="JSON", help="only passages whose metadata match, e.g. '{\"page\": 3}'"
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


def open_index(folder: Path, embedding_model: str | None) -> DocumentIndex:
    """Open an index for reading, with the embedding model it was built with.

    A model named by the caller or by RAG_KIT_EMBEDDING_MODEL must be the one that built the index.

    Raises:
        IndexMissingError: There is no index in the folder.
        IndexMismatchError: It was built with another embedding model.
    """
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models import embedding_model as make

    named = embedding_model or os.environ.get("RAG_KIT_EMBEDDING_MODEL")
    recorded = DocumentIndex.recorded_embedding(folder)
    if recorded is None and not named:
        return DocumentIndex.open(folder)
    return DocumentIndex.open(folder, embeddings=make(named or recorded))


def make_retriever(
    index: DocumentIndex, pipeline: str, k: int, where: dict[str, Any] | None
) -> BaseRetriever:
    """The retriever that a pipeline name stands for."""
    if ":" in pipeline:
        return _own_retriever(pipeline, index)
    from rag_kit.retrieval import index_retriever
    from rag_kit.retrieval.indexed import PIPELINES

    if pipeline not in PIPELINES:
        raise InvalidInputError(
            f"--pipeline {pipeline} is unknown; allowed: {', '.join(PIPELINES)}, or module:object for your own."
        )

    # the function itself checks the name, and says what is allowed
    return index_retriever(index, pipeline=cast(Any, pipeline), k=k, filter=where)


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
