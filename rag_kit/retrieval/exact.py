"""Exact dense search over documents in memory: the same ranking on every run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from rag_kit.documents import Filter, copy_document
from rag_kit.documents.fields import read_fields
from rag_kit.documents.filters import FilterMasks
from rag_kit.documents.provenance import add_first_stage
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.vectors import TIE, best_with_ties, unit
from rag_kit.models.clients import check_embeddings, embed_documents
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.settings import LeafSettings
from rag_kit.retrieval.vectors import ByVectorRetriever, checked_vectors


class ExactVectorRetriever(ByVectorRetriever):
    """Cosine similarity with every document, ties in the order of the documents.

    An approximate index (HNSW) adds misses of its own and differs between runs; a benchmark of a model should
    not. One matrix product a query: fit for up to some hundred thousand documents.

    Args:
        documents: What is searched.
        embeddings: The embedding model.
        vectors: Vectors of the documents, shape ``(documents, dimensions)``; default: made here.
        **more: ``k``, ``filter``...: see ``RagKitRetriever``.

    Raises:
        InvalidInputError: Vectors do not fit the documents, or a query's vector does not fit theirs.
        ModelOutputError: The embedding model gives anything but vectors.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> documents = [Document("sun"), Document("moon")]
        >>> retriever = ExactVectorRetriever.from_documents(documents, DeterministicFakeEmbedding(size=8), k=1)
        >>> retriever.invoke("moon")[0].page_content
        'moon'
    """

    documents: list[Document]
    embeddings: Embeddings
    vectors: Any = Field(default=None, exclude=True, repr=False)
    _masks: Any = PrivateAttr()
    _rows: dict[str, int] = PrivateAttr(default_factory=dict)

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        embeddings: Embeddings,
        *,
        vectors: np.ndarray | None = None,
        **settings: Unpack[LeafSettings],
    ) -> ExactVectorRetriever:
        """Make a retriever; ``settings`` are further arguments of the class, such as ``k``."""
        check_embeddings(embeddings)
        return cls(documents=list(documents), embeddings=embeddings, vectors=vectors, **settings)

    def model_post_init(self, context: Any, /) -> None:
        """Embed the documents, unless their vectors were given."""
        super().model_post_init(context)
        count, vectors = len(self.documents), self.vectors
        if vectors is None:
            answer = embed_documents(self.embeddings, [document.page_content for document in self.documents])
            vectors = checked_vectors(answer, count, self.embeddings) if count else np.zeros((0, 0))
        vectors = np.array(vectors, dtype=np.float32, order="C")
        if vectors.ndim != 2 or len(vectors) != count:
            raise InvalidInputError(
                f"vectors of shape {vectors.shape} for {count} documents; give one row a document"
            )
        self.vectors = unit(vectors)
        self._masks = FilterMasks([document.metadata for document in self.documents])

    def vectors_of(self, documents: Sequence[Document]) -> np.ndarray:
        """Return the unit vectors of those documents that this retriever holds, in their order."""
        if not self._rows:
            self._rows = {_key(document): row for row, document in enumerate(self.documents)}
        rows = [self._rows.get(_key(document)) for document in documents]
        vectors: np.ndarray = self.vectors[[row for row in rows if row is not None]]
        return vectors

    def searched(self) -> Sequence[Any]:
        """The documents."""
        return [self.documents]

    def known_fields(self, needed: set[str]) -> set[str] | None:
        """Read the metadata fields of the documents until all needed ones were seen."""
        return read_fields((document.metadata for document in self.documents), needed)

    def _model(self) -> Any:
        return self.embeddings

    def nearest(
        self, query: str, vector: Sequence[float], k: int, filter: Filter | None, *, ids_only: bool = False
    ) -> list[Document]:
        """Return the documents nearest to a vector, with their cosines in the provenance of a feedback search.

        ``query`` is for the provenance alone; ``ids_only`` has no effect, for the texts are in memory.
        """
        return self._find(query, vector, k, filter, "feedback")

    def _nearest(self, query: str, vector: Sequence[float], call: Call) -> list[Document]:
        size = self.vectors.shape[1] if len(self.vectors) else None
        [checked] = checked_vectors([vector], 1, self.embeddings, dimension=size)
        return self._find(query, checked, call.k, call.filter, self.name or "dense")

    def _find(self, query: str, vector: Any, k: int, filter: Filter | None, name: str) -> list[Document]:
        mask = self._masks.mask(filter) if filter else None
        hits = nearest_rows(self.vectors, vector, k, mask)
        scored = [(copy_document(self.documents[row]), score) for row, score in hits]
        return add_first_stage(scored, "dense", name, query)


def _key(document: Document) -> str:
    return document.id or document.page_content


def nearest_rows(
    matrix: NDArray[np.float32], query: Any, k: int, mask: NDArray[np.bool_] | None = None
) -> list[tuple[int, float]]:
    """Return ``(row, cosine)`` of the ``k`` unit vectors nearest to a query's vector, nearest first.

    ``mask`` is true for the rows to search; ``None`` for all. Cosines are rounded to multiples of `TIE`, so that nearly
    equal ones become equal; these come in the order of the rows.
    """
    if not len(matrix):
        return []
    rows = np.arange(len(matrix)) if mask is None else np.flatnonzero(mask)
    cosines = (matrix @ unit(np.asarray(query, np.float32)))[rows]
    best_rows, best_cosines = best_with_ties(rows, cosines, k)
    steps = np.rint(best_cosines.astype(np.float64) / TIE)
    order = np.lexsort((best_rows, -steps))[:k]  # by falling cosine, then by row
    return [(int(best_rows[n]), round(float(steps[n]) * TIE, 6)) for n in order]
