"""Texts to stored vectors, and which model an index belongs to."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from rag_kit.concurrency.ahead import map_ahead
from rag_kit.errors import IndexMismatchError, InvalidInputError, ModelOutputError
from rag_kit.indexing.document_index.sql import in_groups
from rag_kit.indexing.document_index.vectors import Vectors, unit
from rag_kit.models.clients import embed_documents
from rag_kit.models.runnables import connections_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.embeddings import Embeddings

EMBED_BATCH = 512
_REQUESTS = 4  # to an endpoint at a time


def name_of(embeddings: Embeddings) -> str:
    """The stable name of an embedding model, as recorded in an index."""
    from rag_kit.models.embedding import embedding_name

    return getattr(embeddings, "recorded_as", None) or embedding_name(embeddings)


def check_model(folder: object, recorded: str | None, given: str | None, *, writing: bool) -> None:
    """Refuse an embedding model other than the one that the index was built with.

    Raises:
        IndexMismatchError: The names differ; or the index has vectors and would get rows without.
    """
    if recorded is not None and given is not None and recorded != given:
        raise IndexMismatchError(
            f"The index in {folder} was built with the embedding model {recorded!r}, but {given!r} was given. "
            f"Give {recorded!r} (behind an @ is the host: RAG_KIT_EMBEDDING_BASE_URL), or build another index."
        )
    if writing and recorded is not None and given is None:
        raise IndexMismatchError(
            f"The index in {folder} was built with the embedding model {recorded!r}, but none was given, so "
            f"new chunks would have no vectors. Give {recorded!r} (embeddings=, --embedding-model), or build an index "
            "without vectors in another folder."
        )


def embed_ahead(
    embeddings: Embeddings,
    wanted: Iterable[Mapping[bytes, str]],
    dimension: int | None,
    max_concurrency: int | None = None,
) -> Generator[dict[bytes, bytes]]:
    """Embed groups of texts while the caller uses the vectors of those before; an endpoint gets several requests.

    Args:
        embeddings: The model.
        wanted: Groups of texts by their hash; drawn on the caller's thread.
        dimension: Length that the vectors must have; ``None`` takes that of the first.
        max_concurrency: Most requests to an endpoint at a time; default 4. Other models are called once at a time.

    Yields:
        Of each group the stored vectors (float32, little endian) by hash.

    Raises:
        ModelError: The model failed.
        ModelOutputError: It gave vectors of the wrong number, length, or not finite.
    """

    def embedded(piece: tuple[list[tuple[bytes, str]], bool]) -> tuple[list[bytes], Vectors, bool]:
        texts, last = piece
        if not texts:
            return [], np.empty((0, dimension or 1), np.float32), last
        answer = embed_documents(embeddings, [text for _, text in texts])
        return [key for key, _ in texts], check_vectors(answer, len(texts), None), last

    width = requests_of(embeddings, max_concurrency)
    vectors: dict[bytes, bytes] = {}
    with closing(map_ahead(embedded, _pieces(wanted), max_concurrency=width)) as made:
        for keys, array, last in made:
            if keys:
                dimension = check_vectors(array, len(keys), dimension).shape[1]
            vectors.update((key, row.tobytes()) for key, row in zip(keys, array, strict=True))
            if last:
                yield vectors
                vectors = {}


def requests_of(embeddings: Embeddings, max_concurrency: int | None) -> int:
    """How many batches a model is given at a time."""
    if connections_of(embeddings):
        return max_concurrency or _REQUESTS
    return int(getattr(embeddings, "concurrent_batches", 1))


def _pieces(wanted: Iterable[Mapping[bytes, str]]) -> Iterator[tuple[list[tuple[bytes, str]], bool]]:
    """What one call embeds, and whether it is the last of its group; an empty group has one empty piece."""
    for texts in wanted:
        pieces = list(in_groups(texts.items(), EMBED_BATCH)) or [[]]
        yield from ((piece, number == len(pieces)) for number, piece in enumerate(pieces, 1))


def check_vectors(
    answer: Sequence[Sequence[float]] | Sequence[Vectors] | Vectors, count: int, dimension: int | None
) -> Vectors:
    """What a model answered, as an array of shape (count, dimension).

    Raises:
        ModelOutputError: It is not that.
    """
    try:
        array = np.asarray(answer, dtype="<f4")
    except (ValueError, TypeError) as error:
        raise ModelOutputError(f"The embedding model gave no vectors of one length ({error}).") from error
    if array.ndim != 2 or array.shape[0] != count or not array.shape[1]:
        raise ModelOutputError(
            f"The embedding model gave an array of shape {array.shape} for {count} texts; one vector each is "
            "needed."
        )
    if dimension is not None and array.shape[1] != dimension:
        raise ModelOutputError(
            f"The embedding model gave vectors of length {array.shape[1]}; those in the index have {dimension}. "
            "Has the model changed under its name? Build another index in another folder."
        )
    if not np.isfinite(array).all():
        raise ModelOutputError("The embedding model gave vectors that hold infinities or no numbers.")
    return array


def query_vector(value: Sequence[float], dimension: int | None) -> Vectors:
    """A query's vector, scaled to length 1.

    Raises:
        InvalidInputError: It has the wrong length, or is not finite.
    """
    try:
        array = np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError):
        array = np.empty(0, np.float32)
    if array.shape != (dimension or len(array),) or not len(array) or not np.isfinite(array).all():
        raise InvalidInputError(
            f"The query must be a text, or finite numbers of length {dimension}; its shape is {array.shape}."
        )
    return unit(array)
