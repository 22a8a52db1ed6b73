"""Parts of every assembly here: a retriever over an index, the chat model, and a web search if there is one.

The index is the one that RAG_KIT_INDEX names, a folder or the URL of one in PostgreSQL; one that is not there is an
error. Without the variable it is ``.demo/index``, which ``make demo`` and ``make studio`` build; where that is missing
the server starts, and a run says how to make one. The chat model is the one that RAG_KIT_CHAT_MODEL names, the web
search the LangChain tool that RAG_KIT_WEB_SEARCH names as ``module:name``. ``.env`` may hold them (``.env.example``).

The context of a run or an assistant may name another chat model (``model``), and another index (``index``): one of the
folders below the one that RAG_KIT_INDEX_ROOT names, and none without it.
"""

import importlib
import os
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever

from rag_kit.errors import ConfigurationError, IndexMissingError, InvalidInputError, RagKitError
from rag_kit.indexing import DocumentIndex
from rag_kit.models import chat_model
from rag_kit.models.embedding import recorded_embedding_model
from rag_kit.retrieval import index_retriever


class NoIndex(BaseRetriever):
    """Stands where there is no index yet, so that the server starts; each search says what to do."""

    error: RagKitError

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        raise ConfigurationError(f"{self.error} Then start the server again.")


@cache
def retriever() -> BaseRetriever:
    """Return hybrid search over the index, opened once for all graphs."""
    default = Path(__file__).resolve().parent.parent / ".demo" / "index"
    named = os.environ.get("RAG_KIT_INDEX", "").strip()
    index = named or str(default)
    try:
        return _opened(index)
    except RagKitError as error:
        if named:
            raise ConfigurationError(f"RAG_KIT_INDEX={named!r}: {error}") from error
        return NoIndex(error=error)


def check_index(name: str) -> Path:
    """Return the folder of an index that a context names, below the one that RAG_KIT_INDEX_ROOT names."""
    root = os.environ.get("RAG_KIT_INDEX_ROOT", "").strip()
    if not root:
        raise InvalidInputError(
            f"context names the index {name!r:.80}, and this server has one alone; leave it out, or set "
            "RAG_KIT_INDEX_ROOT to a folder of indexes that runs may name."
        )
    try:
        folder, root_folder = (Path(root) / name).resolve(), Path(root).resolve()
        is_allowed = folder != root_folder and folder.is_relative_to(root_folder) and folder.is_dir()
    except (OSError, ValueError, RuntimeError):  # no name of a folder; RuntimeError: links in a circle
        is_allowed = False
    if not is_allowed:
        raise _not_held(name)
    return folder


def _not_held(name: str) -> InvalidInputError:
    """Make the error for a name that may not be opened, or is that of no index; it does not say where the root is."""
    return InvalidInputError(f"context names the index {name!r:.80}, which RAG_KIT_INDEX_ROOT does not hold.")


def named_index(name: str) -> BaseRetriever:
    """Return hybrid search over an index that a context names: that of all graphs, or one below RAG_KIT_INDEX_ROOT."""
    if name == os.environ.get("RAG_KIT_INDEX", "").strip():
        return retriever()
    folder = str(check_index(name))
    try:
        return _opened(folder)
    except IndexMissingError:
        raise _not_held(name) from None
    except RagKitError as error:
        if folder not in str(error):
            raise
        # whoever asks must not see where the folder is
        why = str(error).replace(folder, name)
        raise InvalidInputError(
            f"context names the index {name!r:.80}, which cannot be opened: {why}"
        ) from None


@lru_cache(maxsize=16)
def _opened(index: str) -> BaseRetriever:
    """Return hybrid search over an index; its embedding model is the one that it was made with."""
    recorded = DocumentIndex.recorded_embedding(index)
    embeddings = recorded_embedding_model(recorded) if recorded else None
    return index_retriever(DocumentIndex.open(index, embeddings=embeddings))


@cache
def llm() -> BaseChatModel:
    """Return the chat model."""
    return chat_model()


@cache
def web_search() -> Any:
    """Return the tool that RAG_KIT_WEB_SEARCH names, or one made of a class so named; None without the variable."""
    named = os.environ.get("RAG_KIT_WEB_SEARCH", "").strip()
    if not named:
        return None
    module, _, name = named.partition(":")
    try:
        tool = getattr(importlib.import_module(module), name)
        return tool() if isinstance(tool, type) else tool
    except Exception as error:
        raise ConfigurationError(
            f"RAG_KIT_WEB_SEARCH={named!r}: {type(error).__name__}: {error}. Give module:name of a LangChain tool, or "
            "of its class if it takes no arguments, e.g. langchain_community.tools:DuckDuckGoSearchResults."
        ) from error
