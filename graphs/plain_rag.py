"""Plain RAG over an index folder, for LangGraph Studio and ``langgraph dev``.

The index is the one that RAG_KIT_INDEX names (default ``.demo/index``, which ``make demo`` and ``make studio``
build); the chat model is the one that RAG_KIT_CHAT_MODEL names.
"""

import os
from pathlib import Path

from rag_kit.graphs import build_plain_rag
from rag_kit.indexing import DocumentIndex
from rag_kit.models import chat_model, embedding_model
from rag_kit.retrieval import index_retriever

_folder = Path(os.environ.get("RAG_KIT_INDEX", Path(__file__).resolve().parent.parent / ".demo" / "index"))
_embedding = DocumentIndex.recorded_embedding(_folder)
_index = DocumentIndex.open(_folder, embeddings=embedding_model(_embedding) if _embedding else None)

# no checkpointer: the server brings its own
graph = build_plain_rag(index_retriever(_index), chat_model())
