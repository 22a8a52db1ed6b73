"""Corrective RAG over an index folder, for LangGraph Studio and ``langgraph dev``.

Without RAG_KIT_WEB_SEARCH nothing leaves this machine: a run says that it could not look outside. With ``approve_web``
in an assistant's context a person is asked before a query leaves.
"""

from graphs.parts import llm, named_index, retriever, web_search
from rag_kit.graphs import build_crag

# no checkpointer: the server brings its own
graph = build_crag(retriever(), llm(), indexes=named_index, web_search=web_search(), output="full")
