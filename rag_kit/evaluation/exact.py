"""Exact dense search in memory: the same ranking on every run, for measuring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from pydantic import PrivateAttr

from rag_kit.documents import compile_filter, with_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import RagKitRetriever, Request

if TYPE_CHECKING:
    import numpy as np


class ExactVectorRetriever(RagKitRetriever):
    """Cosine similarity with every document, ties in the order of the documents.

    An approximate index (HNSW) adds misses of its own and differs between runs; a benchmark of a model should
    not. One matrix product a query: fit for up to some hundred thousand documents.

    Args:
        documents: What is searched.
        embeddings: The embedding model.
        k: How many documents come back.
        filter: Only documents whose metadata match.

    Raises:
        InvalidInputError: If vectors do not fit the documents, or a query's vector does not fit theirs.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> retriever = ExactVectorRetriever.from_documents(
        ...     [Document("sun"), Document("moon")], DeterministicFakeEmbedding(size=8), k=1
        ... )
        >>> retriever.invoke("moon")[0].page_content
        'moon'
    """

    documents: list[Document]
    embeddings: Embeddings
    _matrix: Any = PrivateAttr()

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        embeddings: Embeddings,
        *,
        vectors: np.ndarray | None = None,
        **settings: Any,
    ) -> ExactVectorRetriever:
        """Make a retriever.

        Args:
            documents: What is searched.
            embeddings: The embedding model.
            vectors: Vectors of the documents, shape ``(documents, dimensions)``; default: made here.
            **settings: Further fields, such as ``k``.
        """
        import numpy as np

        if vectors is None:
            vectors = np.asarray(embeddings.embed_documents([d.page_content for d in documents]))
        if vectors.ndim != 2 or len(vectors) != len(documents):
            raise InvalidInputError(
                f"vectors of shape {vectors.shape} for {len(documents)} documents; give one row a document"
            )
        made = cls(documents=list(documents), embeddings=embeddings, **settings)
        made._matrix = _unit(np.asarray(vectors, dtype=np.float32))
        return made

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        return self._nearest(query, self.embeddings.embed_query(query), request)

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        return self._nearest(query, await self.embeddings.aembed_query(query), request)

    def _nearest(self, query: str, vector: Sequence[float], request: Request) -> list[Document]:
        import numpy as np

        row = _unit(np.asarray([vector], dtype=np.float32))
        if row.shape[1] != self._matrix.shape[1]:
            raise InvalidInputError(
                f"the query's vector has {row.shape[1]} dimensions, the documents' have "
                f"{self._matrix.shape[1]}; use the model that made the documents' vectors"
            )
        scores = self._matrix @ row[0]
        passes = compile_filter(request.filter)
        found: list[Document] = []
        for position in np.argsort(-scores, kind="stable"):
            if len(found) >= request.k:
                break
            document = self.documents[position]
            if passes(document.metadata):
                score = float(scores[position])
                found.append(
                    with_provenance(
                        document,
                        score=score,
                        rank=len(found) + 1,
                        stage="dense",
                        retriever=self.name or "dense",
                        query=query,
                    )
                )
        return found


def _unit(matrix: np.ndarray) -> np.ndarray:
    import numpy as np

    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: np.ndarray = matrix / np.where(lengths == 0, 1.0, lengths)
    return unit
