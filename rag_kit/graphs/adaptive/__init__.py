"""Adaptive-RAG: each question is answered in the way it needs."""
