"""Plain RAG over an index folder, for LangGraph Studio and ``langgraph dev``."""

from graphs.parts import llm, named_index, retriever
from rag_kit.graphs import build_plain_rag

# no checkpointer: the server brings its own
graph = build_plain_rag(retriever(), llm(), indexes=named_index, output="full")
