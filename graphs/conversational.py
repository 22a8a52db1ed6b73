"""Conversational RAG over an index folder, for LangGraph Studio and ``langgraph dev``.

Facts about a user are kept in the server's store for runs and assistants whose context gives a ``user_id``.
"""

from graphs.parts import llm, named_index, retriever
from rag_kit.graphs import build_conversational_rag

# no checkpointer and no store: the server brings its own
graph = build_conversational_rag(retriever(), llm(), indexes=named_index, remember=True, output="full")
