"""Compressors, and the retriever that applies them."""
