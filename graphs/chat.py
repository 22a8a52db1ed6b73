"""A chat over messages, for Studio's chat, agent-chat-ui and A2A: talk is answered, questions are looked up.

The graph behind it is the adaptive one: follow-ups are made to stand alone, and a question back is a message.
"""

from graphs.parts import llm, named_index, retriever, web_search
from rag_kit.graphs import as_chat, build_adaptive_rag

# no checkpointer: the server brings its own
graph = as_chat(build_adaptive_rag(retriever(), llm(), indexes=named_index, web_search=web_search()))
