"""Routing by the similarity of embeddings."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.models.clients import aembed_documents, aembed_query, embed_documents, embed_query
from rag_kit.retrieval.rewrite_steps import Call
from rag_kit.retrieval.routing.options import Option
from rag_kit.retrieval.routing.route import Choice
from rag_kit.retrieval.routing.routers import Router, RouterCall, Ruling, check_selection

if TYPE_CHECKING:
    import numpy as np

Pooling = Literal["max", "mean"]


class SimilarityRouter(Router):
    """Choose the options whose descriptions and examples are near the question.

    The texts of the options are embedded once, at the first question and beside it, and kept.

    Args:
        embeddings: Any LangChain embedding model.
        pooling: An option's score is the mean cosine of its texts (``"mean"``), or the highest one (``"max"``).
        threshold: Least score that fits, -1 to 1; it depends on the embedding model.
        margin: How far a further option may be behind the best one; ``None`` for any distance.

    Raises:
        InvalidInputError: If a part is not allowed.
    """

    name = "similarity"

    def __init__(
        self,
        embeddings: Any,
        *,
        pooling: str = "mean",
        threshold: float | None = None,
        margin: float | None = None,
    ) -> None:
        if not isinstance(embeddings, Embeddings):
            raise InvalidInputError(
                f"embeddings is {type(embeddings).__name__}; it must be a LangChain Embeddings, such as "
                "rag_kit.models.embedding_model('minilm')."
            )
        if pooling not in ("max", "mean"):
            raise InvalidInputError(f"pooling={pooling!r} was given; allowed: 'max', 'mean'.")
        self.embeddings = embeddings
        self.pooling = pooling
        self._selection = check_selection(threshold, margin, DEFAULT_THRESHOLD)
        self._texts: _Vectors = _Vectors(embeddings, [])
        self._rows: dict[str, range] = {}

    def prepare(self, options: Sequence[Option]) -> None:
        """Note the texts of all options; nothing is embedded yet."""
        texts: list[str] = []
        for option in options:
            self._rows[option.name] = range(len(texts), len(texts) + len(option.texts))
            texts += option.texts
        self._texts = _Vectors(self.embeddings, texts)

    async def decide(self, call: RouterCall) -> Ruling:
        """Embed and compare; see ``Router.decide``."""
        import numpy as np

        asked, matrix = await call.do(
            Call(
                "route, query embedding",
                partial(embed_query, self.embeddings, call.question),
                partial(aembed_query, self.embeddings, call.question),
            ),
            Call("route, embeddings", self._texts.get, self._texts.aget),
        )
        vector = np.asarray(asked, dtype=np.float64)
        if vector.ndim != 1 or vector.size != matrix.shape[1]:
            raise ModelOutputError(
                f"The embedding model gave a vector of shape {vector.shape} for the question and of size "
                f"{matrix.shape[1]} for the descriptions; they must be of one size."
            )
        cosines = matrix @ _unit(vector[np.newaxis])[0]
        pool = np.max if self.pooling == "max" else np.mean
        scores, nearest = {}, {}
        for option in call.options:
            rows = self._rows[option.name]
            of_option = cosines[rows.start : rows.stop]
            # Rounded, so that equal texts give equal scores whatever the order of the sums.
            scores[option.name] = round(float(pool(of_option)), 6)
            nearest[option.name] = option.texts[int(np.argmax(of_option))]
        chosen = self._selection.names(scores, call.most)
        return Ruling(
            [Choice(name, scores[name], f"similar to: {_short(nearest[name])}") for name in chosen], scores
        )


# Measured with MiniLM on four collections: docs/decisions/0171.
DEFAULT_THRESHOLD = 0.1


class _Vectors:
    """The unit vectors of texts: made once, whoever asks first; a failure is not kept."""

    def __init__(self, embeddings: Embeddings, texts: list[str]) -> None:
        self._embeddings = embeddings
        self._wanted = texts
        self._lock = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None
        self._matrix: np.ndarray | None = None
        self._native = type(embeddings).aembed_documents is not Embeddings.aembed_documents

    def __reduce__(self) -> Any:
        return _Vectors, (self._embeddings, self._wanted)

    def get(self) -> np.ndarray:
        if self._matrix is None:
            with self._lock:
                if self._matrix is None:
                    self._matrix = self._checked(embed_documents(self._embeddings, list(self._wanted)))
        return self._matrix

    async def aget(self) -> np.ndarray:
        if self._matrix is None:
            await (self._make() if self._native else run_in_thread(self.get))
        return self.get()

    async def _make(self) -> None:
        loop = asyncio.get_running_loop()
        # Others on this loop wait for the first; it may be cancelled or fail, then the next one tries.
        while self._running is not None and self._running[0] is loop:
            await asyncio.shield(self._running[1])
        if self._matrix is not None:
            return
        done: asyncio.Future[None] = loop.create_future()
        self._running = (loop, done)
        try:
            self._matrix = self._checked(await aembed_documents(self._embeddings, list(self._wanted)))
        finally:
            if self._running is not None and self._running[1] is done:
                self._running = None
            done.set_result(None)

    def _checked(self, given: Any) -> np.ndarray:
        import numpy as np

        matrix = np.asarray(given, dtype=np.float64)
        if matrix.ndim != 2 or len(matrix) != len(self._wanted):
            raise ModelOutputError(
                f"The embedding model gave vectors of shape {matrix.shape} for {len(self._wanted)} descriptions; "
                "it must give one vector a text, all of one size."
            )
        return _unit(matrix)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; a zero row, or one that is not finite, becomes zero and is near nothing."""
    import numpy as np

    finite = np.where(np.isfinite(vectors).all(axis=-1, keepdims=True), vectors, 0.0)
    norms = np.linalg.norm(finite, axis=-1, keepdims=True)
    unit: np.ndarray = finite / np.where(norms > 0, norms, 1.0)
    return unit


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:79] + "…"
