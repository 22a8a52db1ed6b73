"""Ranking metrics, and the benchmark of retrievers that is made of them."""
