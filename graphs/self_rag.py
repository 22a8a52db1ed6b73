"""Self-RAG over an index folder, for LangGraph Studio and ``langgraph dev``: as in the paper.

``reflect`` is the loop that grades and tries again; for Studio add it to langgraph.json under a name of its own, as
``./graphs/self_rag.py:reflect``.
"""

from graphs.parts import llm, retriever
from rag_kit.graphs import build_self_rag

# no checkpointer: the server brings its own
graph = build_self_rag(retriever(), llm())
reflect = build_self_rag(retriever(), llm(), mode="reflect")
