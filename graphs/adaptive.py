"""Adaptive-RAG over an index folder, for LangGraph Studio and ``langgraph dev``.

Without RAG_KIT_WEB_SEARCH nothing leaves this machine; with it, CRAG, which answers in one step, may search the web.
"""

from graphs.parts import llm, named_index, retriever, web_search
from rag_kit.graphs import build_adaptive_rag

# no checkpointer: the server brings its own
graph = build_adaptive_rag(retriever(), llm(), indexes=named_index, web_search=web_search(), output="full")
