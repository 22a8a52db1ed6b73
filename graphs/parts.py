"""What every assembly here shares: a retriever over an index, and the chat model.

The index is the one that RAG_KIT_INDEX names, a folder or the URL of one in PostgreSQL (default ``.demo/index``, which
``make demo`` and ``make studio`` build; without one the server starts, and a run says how to make one). The chat model
is the one that RAG_KIT_CHAT_MODEL names.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever

from rag_kit.errors import ConfigurationError, RagKitError
from rag_kit.indexing import DocumentIndex
from rag_kit.models import chat_model
from rag_kit.models.embedding import recorded_embedding_model
from rag_kit.retrieval import index_retriever


class NoIndex(BaseRetriever):
    """Stands where there is no index yet, so that the server starts; each search says what to do."""

    error: RagKitError

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        raise ConfigurationError(f"{self.error} Then start the server again.")

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager)


@cache
def retriever() -> BaseRetriever:
    """Hybrid search over the index, opened once for all graphs."""
    default = Path(__file__).resolve().parent.parent / ".demo" / "index"
    index = os.environ.get("RAG_KIT_INDEX", str(default))
    try:
        recorded = DocumentIndex.recorded_embedding(index)
        embeddings = recorded_embedding_model(recorded) if recorded else None
        return index_retriever(DocumentIndex.open(index, embeddings=embeddings))
    except RagKitError as error:
        return NoIndex(error=error)


@cache
def llm() -> BaseChatModel:
    """The chat model."""
    return chat_model()
