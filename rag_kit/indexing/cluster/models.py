"""Models on workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.embeddings import Embeddings

from rag_kit.indexing.cluster import worker
from rag_kit.indexing.cluster.work import Cluster
from rag_kit.models import embedding_name


class ClusterEmbeddings(Embeddings):
    """Embeds documents on workers by a model that each of them has; anything else of it is that model's.

    Args:
        underlying_embeddings: The model.
        cluster: Where to embed.
    """

    def __init__(self, underlying_embeddings: Embeddings, cluster: Cluster) -> None:
        self.underlying_embeddings = underlying_embeddings
        self.recorded_as = embedding_name(underlying_embeddings)
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["underlying_embeddings"], name)

    @property
    def width(self) -> int:
        """Batches to have under way: one for each thread, and one that waits for it."""
        return 2 * self._cluster.threads

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts, as an array."""
        vectors: list[list[float]] = self._cluster.call(worker.embed, texts)
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query, by the model itself."""
        return self.underlying_embeddings.embed_query(text)


def calling(cluster: Cluster) -> Callable[..., Any]:
    """What calls the chat model on workers, with the arguments of `structured_call`."""

    def call(llm: Any, prompt: Any, values: dict[str, Any], schema: Any) -> Any:
        return cluster.call(worker.ask, prompt, values, schema)

    return call
