"""What every assembly here shares: a retriever over an index folder, and the chat model.

The index is the one that RAG_KIT_INDEX names (default ``.demo/index``, which ``make demo`` and ``make studio``
build); the chat model is the one that RAG_KIT_CHAT_MODEL names.
"""

import os
from functools import cache
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever

from rag_kit.indexing import DocumentIndex
from rag_kit.models import chat_model, embedding_model
from rag_kit.retrieval import index_retriever


@cache
def retriever() -> BaseRetriever:
    """Hybrid search over the index, opened once for all graphs."""
    default = Path(__file__).resolve().parent.parent / ".demo" / "index"
    folder = Path(os.environ.get("RAG_KIT_INDEX", default))
    recorded = DocumentIndex.recorded_embedding(folder)
    return index_retriever(
        DocumentIndex.open(folder, embeddings=embedding_model(recorded) if recorded else None)
    )


@cache
def llm() -> BaseChatModel:
    """The chat model."""
    return chat_model()
