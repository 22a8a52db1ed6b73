"""Rerankers out of wheels as LangChain cross-encoders: a score for each pair of query and passage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from numpy.typing import NDArray

from rag_kit.errors import ConfigurationError
from rag_kit.models.wheels.engine import WheelEngine
from rag_kit.models.wheels.table import RERANKERS, wheel_model


class WheelCrossEncoder(WheelEngine, BaseCrossEncoder):
    """A model that reads query and passage together, 512 tokens of both (Nogueira and Cho, arXiv 1901.04085)."""

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One score a pair of query and passage, a logit; higher is better."""
        scores = np.empty(len(text_pairs), np.float32)
        for rows, output, _ in self.run([(query, passage) for query, passage in text_pairs]):
            scores[rows] = output[:, 0]
        return list(map(float, scores))


class WheelLateInteraction(WheelCrossEncoder):
    """A model that compares each word of the query with each of the passage (MaxSim; ColBERT, arXiv 2004.12832).

    The graph in the wheel ends before ColBERT's projection to 96 numbers, so that vectors of 384 are compared.
    """

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Score each pair by the mean over the query's tokens of the best cosine with a token of the passage."""
        # texts get an output of shape (texts, tokens, 384) each batch, and a mask of shape (texts, tokens)
        texts = list(dict.fromkeys(text for pair in text_pairs for text in pair))
        words: dict[str, NDArray[np.float32]] = {}
        for rows, output, mask in self.run(texts):
            units = output / np.maximum(np.linalg.norm(output, axis=2, keepdims=True), 1e-12)
            words |= {texts[row]: units[n][mask[n] == 1] for n, row in enumerate(rows)}
        return [float((words[query] @ words[passage].T).max(axis=1).mean()) for query, passage in text_pairs]


def wheel_reranker(name: str, *, threads: int = 0) -> WheelCrossEncoder:
    """Make the reranker of this name; `ConfigurationError` if there is none or it is not installed."""
    if name not in RERANKERS:
        raise ConfigurationError(f"{name!r} is no reranker; there are: {', '.join(RERANKERS)}.")
    late = wheel_model(name).task == "late interaction"
    return (WheelLateInteraction if late else WheelCrossEncoder)(name, threads=threads)
