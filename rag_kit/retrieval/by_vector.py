"""The base of retrievers that embed the query and search by its vector."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.documents import Document

from rag_kit.models.query_vectors import embed_query_step, embed_together
from rag_kit.retrieval.base import RagKitRetriever, blocking_step
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.inner import Found


class ByVectorRetriever(RagKitRetriever):
    """Base of retrievers that embed the query, several queries in one request, and search by vector on a thread.

    Where the queries cannot be embedded together, each is embedded and searched by itself.
    """

    searches_together: ClassVar[bool] = True

    @abstractmethod
    def _model(self) -> Any:
        """The embedding model of the queries."""

    @abstractmethod
    def _nearest(self, query: str, vector: Sequence[float], call: Call) -> list[Document]:
        """The documents nearest to the vector of a query."""

    async def _search(self, query: str, call: Call) -> list[Document]:
        vector = await embed_query_step(self._model(), query)
        documents: list[Document] = await blocking_step("search", self._nearest, query, vector, call)
        return documents

    async def _search_many(self, calls: Sequence[Call]) -> list[Found]:
        vectors = await embed_together(self._model(), [call.query for call in calls])
        if vectors is None:
            return await super()._search_many(calls)
        found: list[Found] = await blocking_step("search", self._nearest_of_each, calls, vectors)
        return found

    def _nearest_of_each(self, calls: Sequence[Call], vectors: Sequence[Sequence[float]]) -> list[Found]:
        return [self._nearest(call.query, vector, call) for call, vector in zip(calls, vectors, strict=True)]
