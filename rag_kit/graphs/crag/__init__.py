"""Corrective RAG: judge what was retrieved, then refine it, look outside, or both."""
