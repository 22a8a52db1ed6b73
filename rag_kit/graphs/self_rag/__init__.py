"""Self-RAG: retrieval on demand, critique, and a beam of segments; or the loop that grades and tries again."""
