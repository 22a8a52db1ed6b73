"""Self-RAG over an index folder, for LangGraph Studio and ``langgraph dev``.

``graph`` is the paper's, ``reflect`` the loop that grades and tries again.
"""

from graphs.parts import llm, named_index, retriever
from rag_kit.graphs import build_self_rag

# no checkpointers: the server brings its own
graph = build_self_rag(retriever(), llm(), indexes=named_index, mode="paper", output="full")
reflect = build_self_rag(retriever(), llm(), indexes=named_index, mode="reflect", output="full")
