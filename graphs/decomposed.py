"""RAG for questions of several parts over an index folder, for LangGraph Studio and ``langgraph dev``."""

from graphs.parts import llm, retriever
from rag_kit.graphs import build_decomposed_rag

# no checkpointer: the server brings its own
graph = build_decomposed_rag(retriever(), llm(), output="full")
