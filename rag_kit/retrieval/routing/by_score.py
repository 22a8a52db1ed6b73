"""Routing by a score: the words that a question shares with each source, or the similarity of embeddings."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.errors import ModelOutputError
from rag_kit.models.clients import aembed_query, embed_documents, embed_query
from rag_kit.retrieval.query_call import Call, QueryCall
from rag_kit.retrieval.routing.route import Choice
from rag_kit.retrieval.routing.source import Source
from rag_kit.retrieval.vectors import check_embeddings, unit
from rag_kit.text.likeness import WordLikeness

if TYPE_CHECKING:
    import numpy as np

# Measured with MiniLM on four collections: docs/benchmarks.md, "Routing by similarity".
SIMILARITY_THRESHOLD = 0.1
_ANY_WORD = 1e-6
_REASON_WORDS, _REASON_CHARS = 6, 80
Decision = tuple[list[Choice], Mapping[str, float]]


class KeywordWay:
    """Choose the sources whose names, descriptions and examples share the question's words.

    Words that few sources have count more; see ``rag_kit.text.likeness.WordLikeness`` for the score, 0 to 1.
    """

    name = "keywords"

    def __init__(self, sources: Sequence[Source], threshold: float | None, margin: float | None) -> None:
        self._limits = _ANY_WORD if threshold is None else threshold, margin
        self._likeness = WordLikeness([source.texts for source in sources])
        self._places = {source.name: place for place, source in enumerate(sources)}

    async def decide(self, call: QueryCall, sources: Sequence[Source], most: int) -> Decision:
        """Compare the words."""
        names = [source.name for source in sources]
        found = self._likeness.scores(call.query, [self._places[name] for name in names])
        scores = {name: round(score, 6) for name, score in zip(names, found, strict=True)}
        # No word in common is no sign of anything, whatever the threshold.
        fitting = {name: score for name, score in scores.items() if score > 0}
        best = best_names(fitting, *self._limits, most)
        return [Choice(name, scores[name], self._reason(call.query, name)) for name in best], scores

    def _reason(self, question: str, name: str) -> str:
        words = self._likeness.shared(question, self._places[name])
        return f"shared words: {', '.join(words[:_REASON_WORDS])}"


class SimilarityWay:
    """Choose the sources whose descriptions and examples are near the question.

    The texts of the sources are embedded once, beside the first question, and kept; a failure is not kept.
    """

    name = "similarity"

    def __init__(
        self,
        sources: Sequence[Source],
        embeddings: Any,
        pooling: str,
        threshold: float | None,
        margin: float | None,
    ) -> None:
        self._embeddings = check_embeddings(embeddings)
        self._mean = pooling == "mean"
        self._limits = SIMILARITY_THRESHOLD if threshold is None else threshold, margin
        self._texts = [text for source in sources for text in source.texts]
        self._rows: dict[str, range] = {}
        for source in sources:
            first = sum(map(len, self._rows.values()))
            self._rows[source.name] = range(first, first + len(source.texts))
        self._matrix: np.ndarray | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lock": None, "_matrix": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    async def decide(self, call: QueryCall, sources: Sequence[Source], most: int) -> Decision:
        """Embed and compare."""
        import numpy as np

        question = self._embeddings, call.query
        done = await call.do_first(
            [
                Call("query embedding", partial(embed_query, *question), partial(aembed_query, *question)),
                Call("embeddings", self._vectors, partial(run_in_thread, self._vectors)),
            ],
            call.owner.timeout,
        )
        asked, matrix = map(call.value, done.outcomes)
        vector = np.asarray(asked, dtype=np.float64)
        if vector.ndim != 1 or vector.size != matrix.shape[1]:
            raise ModelOutputError(
                f"The embedding model gave a vector of shape {vector.shape} for the question and of size "
                f"{matrix.shape[1]} for the descriptions; they must be of one size."
            )
        cosines = matrix @ unit(vector[np.newaxis])[0]
        scores, nearest = {}, {}
        for source in sources:
            rows = self._rows[source.name]
            own = cosines[rows.start : rows.stop]
            # Rounded, so that equal texts give equal scores whatever the order of the sums.
            scores[source.name] = round(float(own.mean() if self._mean else own.max()), 6)
            nearest[source.name] = " ".join(source.texts[int(np.argmax(own))].split())[:_REASON_CHARS]
        best = best_names(scores, *self._limits, most)
        return [Choice(name, scores[name], f"similar to: {nearest[name]}") for name in best], scores

    def _vectors(self) -> np.ndarray:
        """The unit vectors of all texts; whoever asks first has them made."""
        import numpy as np

        with self._lock:
            if self._matrix is None:
                matrix = np.asarray(embed_documents(self._embeddings, self._texts), dtype=np.float64)
                if matrix.ndim != 2 or len(matrix) != len(self._texts):
                    raise ModelOutputError(
                        f"The embedding model gave vectors of shape {matrix.shape} for {len(self._texts)} "
                        "descriptions; it must give one vector a text, all of one size."
                    )
                self._matrix = unit(matrix)
            return self._matrix


def best_names(scores: Mapping[str, float], threshold: float, margin: float | None, most: int) -> list[str]:
    """The names whose scores reach a threshold and come near to the best one, best first.

    Example:
        >>> best_names({"a": 0.5, "b": 0.45, "c": 0.3, "d": 0.1}, threshold=0.2, margin=0.1, most=3)
        ['a', 'b']
    """
    fitting = [name for name, score in scores.items() if score >= threshold and math.isfinite(score)]
    fitting.sort(key=lambda name: -scores[name])
    if margin is not None and fitting:
        least = scores[fitting[0]] - margin - 1e-9
        fitting = [name for name in fitting if scores[name] >= least]
    return fitting[:most]
