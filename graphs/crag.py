"""Corrective RAG over an index folder, for LangGraph Studio and ``langgraph dev``.

No web search is given, so nothing leaves this machine: a run says that it could not look outside. To allow one, give
``web_search=`` any LangChain search tool or retriever, and set ``approve_web`` in the assistant's context to be asked
before a query leaves.
"""

from graphs.parts import llm, retriever
from rag_kit.graphs import build_crag

# no checkpointer: the server brings its own
graph = build_crag(retriever(), llm(), output="full")
