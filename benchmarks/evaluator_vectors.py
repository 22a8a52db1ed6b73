"""Cosines of questions and passages by the packaged embedding model; each text is embedded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from evaluator_pairs import Asked
from langchain_core.embeddings import Embeddings

from rag_kit.models import embedding_model


class Known(Embeddings):
    """Vectors of texts that are known beforehand."""

    def __init__(self, questions: Sequence[Asked]) -> None:
        model = embedding_model("minilm")
        assert model is not None
        texts = list(
            dict.fromkeys(
                text
                for asked in questions
                for text in (asked.question, *(p.page_content for p in asked.passages))
            )
        )
        vectors = np.asarray(model.embed_documents(texts))
        self.vectors = dict(zip(texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), strict=True))

    def embed_query(self, text: str) -> list[float]:
        found: list[float] = self.vectors[text].tolist()
        return found

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class Cosines:
    """The cosine of a question and each of its passages."""

    def __init__(self, questions: Sequence[Asked]) -> None:
        self.known = Known(questions).vectors

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        return [float(self.known[question] @ self.known[text]) for text in texts]
