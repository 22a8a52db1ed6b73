"""Adaptive-RAG over an index folder, for LangGraph Studio and ``langgraph dev``.

No web search is given, so nothing leaves this machine; ``web_search=`` goes to CRAG, which answers in one step.
"""

from graphs.parts import llm, retriever
from rag_kit.graphs import build_adaptive_rag

# no checkpointer: the server brings its own
graph = build_adaptive_rag(retriever(), llm(), output="full")
