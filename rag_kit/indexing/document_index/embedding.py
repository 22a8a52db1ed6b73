"""Texts to stored vectors, and which model an index belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag_kit.errors import IndexMismatchError, InvalidInputError, ModelOutputError
from rag_kit.indexing.document_index.store import in_groups
from rag_kit.indexing.document_index.vectors import Vectors, unit
from rag_kit.models.clients import embed_documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.embeddings import Embeddings

EMBED_BATCH = 512


def name_of(embeddings: Embeddings) -> str:
    """The stable name of an embedding model, as recorded in an index."""
    from rag_kit.models import embedding_name

    return embedding_name(embeddings)


def check_model(folder: Path, recorded: str | None, given: str | None, *, writing: bool) -> None:
    """Refuse an embedding model other than the one that the index was built with.

    Raises:
        IndexMismatchError: The names differ; or the index has vectors and would get rows without.
    """
    if recorded is not None and given is not None and recorded != given:
        raise IndexMismatchError(
            f"The index in {folder} was built with the embedding model {recorded!r}, but {given!r} was given. "
            f"Give {recorded!r}, or build another index in another folder."
        )
    if writing and recorded is not None and given is None:
        raise IndexMismatchError(
            f"The index in {folder} was built with the embedding model {recorded!r}, but none was given, so "
            f"new chunks would have no vectors. Give {recorded!r}, or build an index without vectors in "
            "another folder."
        )


def embed_texts(
    embeddings: Embeddings,
    texts: Mapping[bytes, str],
    dimension: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[bytes, bytes], int | None]:
    """Embed texts, batch by batch.

    Args:
        embeddings: The model.
        texts: Texts by their hash.
        dimension: Length that the vectors must have; ``None`` takes that of the first.
        progress: Told after each batch how many texts of how many are done.

    Returns:
        Stored vectors (float32, little endian) by hash, and their length.

    Raises:
        ModelOutputError: The model gave vectors of the wrong number, length, or not finite.
    """
    vectors: dict[bytes, bytes] = {}
    for group in in_groups(texts.items(), EMBED_BATCH):
        answer = embed_documents(embeddings, [text for _, text in group])
        array = check_vectors(answer, len(group), dimension)
        dimension = array.shape[1]
        vectors.update((key, row.tobytes()) for (key, _), row in zip(group, array, strict=True))
        if progress is not None:
            progress(len(vectors), len(texts))
    return vectors, dimension


def check_vectors(answer: Sequence[Sequence[float]], count: int, dimension: int | None) -> Vectors:
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
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"The query is neither a text nor a vector of numbers ({error}).") from None
    if array.ndim != 1 or (dimension is not None and array.shape[0] != dimension):
        raise InvalidInputError(
            f"The query's vector has shape {array.shape}; the index holds vectors of length {dimension}."
        )
    if not np.isfinite(array).all():
        raise InvalidInputError("The query's vector holds infinities or no numbers.")
    return unit(array)
