"""Embed queries and texts, check what the model answered, and the base of retrievers that search by a vector."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence, Sized
from functools import partial
from typing import Any, ClassVar

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from pydantic import Field

from rag_kit.concurrency.steps import both_forms, call_step
from rag_kit.errors import InvalidInputError, ModelOutputError, RagKitError
from rag_kit.indexing.document_index.vectors import unit
from rag_kit.models.clients import (
    QueryVectors,
    embed_logic,
    keeps_query_vectors,
    prepare_vectors,
    prepared_vector,
)
from rag_kit.models.failures import map_model_error
from rag_kit.retrieval.base import RagKitRetriever, blocking_step
from rag_kit.retrieval.call import Call, Job, value_or_raise
from rag_kit.text.language import detect_language


class ByVectorRetriever(RagKitRetriever):
    """Base of retrievers that embed the query, several queries in one request, and search by vector on a thread.

    A query that is asked again is not embedded again.
    """

    searches_together: ClassVar[bool] = True

    query_vectors: QueryVectors = Field(default_factory=QueryVectors, exclude=True, repr=False)

    def _model(self) -> Any:
        """The embedding model of the queries: by default that of the field ``index``."""
        index: Any = getattr(self, "index", None)
        return index.embeddings

    @abstractmethod
    def _nearest(self, query: str, vector: Sequence[float], call: Call) -> Sequence[Document]:
        """Return the documents nearest to the vector of a query."""

    def reads(self, query: str) -> bool:
        """Tell whether the embedding model reads the language of a query; if it names no language, it reads all."""
        return not getattr(self._model(), "english_only", False) or detect_language(query) == "en"

    async def prepare(self, queries: Sequence[str]) -> None:
        """Embed the queries in one request, where the model can."""
        unknown = [query for query in queries if self._remembered_vector(query) is None]
        if readable := [query for query in unknown if self.reads(query)]:
            await prepare_vectors(self._model(), readable)

    async def _search(self, query: str, call: Call) -> list[Document]:
        """Search by the query's vector: a remembered one, else one embedded with other queries, else a new one."""
        model, vector = self._model(), self._remembered_vector(query)
        if vector is None:
            vector = prepared_vector(model, query)
        if vector is None:
            vector = await embed_logic(model, "query", query)
        documents: list[Document] = await blocking_step("search", self._nearest, query, vector, call)
        self.query_vectors.keep(model, query, vector)
        return documents

    def kept_vector(self, query: str) -> Sequence[float] | None:
        """Return the vector of one of the last queries, if the present model made it."""
        return self.query_vectors.get(self._model(), query)

    def _remembered_vector(self, query: str) -> Sequence[float] | None:
        """Return the kept vector of a query; None where time is measured, so that it is embedded again."""
        return None if keeps_query_vectors() else self.kept_vector(query)


async def encode_query(index: Any, query: str) -> dict[str, float]:
    """Return a query's sparse vector by the encoder of an index; raises the kit's errors."""
    try:
        # a step holds the blocking call and the asynchronous one; whoever runs it chooses
        forms = partial(index.encode_query, query), partial(index.aencode_query, query)
        vector: dict[str, float] = await call_step("encode", *forms)
        return vector
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a user's encoder raises
        raise map_model_error(error) from None


async def embed(
    embeddings: Embeddings, query: str, texts: Sequence[str], call: Call, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Embed a query and texts at the same time; return unit vectors, float64 of shapes (size,) and (texts, size)."""
    jobs = [
        Job(f"{name}, query embedding", *both_forms(embed_logic, embeddings, "query", query)),
        Job(f"{name}, embeddings", *both_forms(embed_logic, embeddings, "documents", list(texts))),
    ]
    query_answer, text_answers = map(value_or_raise, await call.side_by_side(jobs))
    vector = checked_vectors([query_answer], 1, embeddings)[0]
    vectors = checked_vectors(text_answers, len(texts), embeddings)
    if len(texts) and vectors.shape[1] != vector.size:
        raise ModelOutputError(
            f"The embedding model gave vectors of {vectors.shape[1]} numbers for texts and of {vector.size} for the "
            "query; it must give vectors of one size."
        )
    return unit(vector), unit(vectors)


def checked_vectors(
    answer: Any, count: int, model: Any, *, dimension: int | None = None
) -> NDArray[np.float64]:
    """Return an embedding model's answer for ``count`` texts as an array of shape ``(count, dimensions)``.

    Raises ``ModelOutputError`` for anything but one vector of finite numbers for each text, all of one length, and
    ``InvalidInputError`` for vectors of another length than those searched (``dimension``).
    """
    vectors: NDArray[np.float64] | None = None
    try:
        array = np.asarray(answer)
        holds_numbers = array.dtype.kind in "fiu"  # floats or integers; `astype` would read texts, too
        if array.ndim == 2 and len(array) == count and array.shape[1] and holds_numbers:
            vectors = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass  # `vectors` stays None, which is reported below
    if vectors is None and count == 0 and isinstance(answer, Sized) and not len(answer):
        vectors = np.zeros((0, 0))
    if vectors is None or not np.isfinite(vectors).all():
        raise ModelOutputError(
            f"The embedding model {type(model).__name__} gave {type(answer).__name__} for {count} "
            f"text{'' if count == 1 else 's'}; one vector of finite numbers each is needed, all of one length."
        )
    if dimension is not None and count and vectors.shape[1] != dimension:
        raise InvalidInputError(
            f"the query's vector has {vectors.shape[1]} dimensions, the documents' have {dimension}; it is of "
            f"{type(model).__name__}: use the model that made the documents' vectors"
        )
    return vectors
