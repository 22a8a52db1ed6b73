"""Retrieval by sparse vectors of any encoder, and by character n-grams."""
