"""A deterministic embedding model for tests: hashed words, so that equal words mean near vectors."""

from __future__ import annotations

import hashlib
import re

from langchain_core.embeddings import Embeddings


class WordEmbeddings(Embeddings):
    """Counts hashed words; counts also how often it was asked, and raises on demand.

    Args:
        size: Length of the vectors.
        fail_after: Raise on the n-th following batch.
    """

    def __init__(self, size: int = 64, fail_after: int | None = None) -> None:
        self.size = size
        self.fail_after = fail_after
        self.batches = 0
        self.texts: list[str] = []

    def vector(self, text: str) -> list[float]:
        values = [0.01] * self.size
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.sha256(word.encode()).digest()
            values[int.from_bytes(digest[:4], "big") % self.size] += 1.0
        return values

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.batches += 1
        if self.fail_after is not None and self.batches > self.fail_after:
            raise ConnectionError("the embedding endpoint went away")
        self.texts += texts
        return [self.vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.vector(text)
