"""Self-RAG over an index folder, for LangGraph Studio and ``langgraph dev``: the paper's, and the loop."""

from graphs.parts import llm, retriever
from rag_kit.graphs import build_self_rag

# no checkpointer: the server brings its own
graph = build_self_rag(retriever(), llm())
reflect = build_self_rag(retriever(), llm(), mode="reflect")
