"""Rerankers, and the retriever that applies them."""
