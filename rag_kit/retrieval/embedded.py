"""What an embedding model answered, checked before anything is computed with it."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError, ModelOutputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def embedded(answer: Any, count: int, model: Any, *, dimension: int | None = None) -> NDArray[np.float64]:
    """What an embedding model answered, as an array of shape ``(count, dimensions)``.

    Args:
        answer: What came back for ``count`` texts.
        count: How many texts were embedded.
        model: The embedding model; its class stands in the message.
        dimension: How many numbers the vectors searched have; ``None`` if any will do.

    Raises:
        ModelOutputError: It is not one vector of numbers for each text, all of one length.
        InvalidInputError: The vectors have another length than those searched.

    Example:
        >>> embedded([[1, 0], [0, 1]], 2, object()).shape
        (2, 2)
        >>> embedded([[1, 0], None], 2, object())
        Traceback (most recent call last):
        rag_kit.errors.ModelOutputError: The embedding model object gave None among the vectors...
    """
    import numpy as np

    vectors: NDArray[np.float64] | None = None
    try:
        found = np.asarray(answer)
        # an array of strings would be read as numbers without a word
        if found.ndim == 2 and len(found) == count and found.shape[1] and found.dtype.kind in "fiu":
            vectors = found.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass  # reported below
    if vectors is None and isinstance(answer, Sized) and not len(answer) and not count:
        vectors = np.zeros((0, 0))
    if vectors is None or not np.isfinite(vectors).all():
        raise ModelOutputError(
            f"The embedding model {type(model).__name__} gave {_what(answer, count)} for {count} "
            f"text{'' if count == 1 else 's'}; one vector of finite numbers each is needed, all of one length."
        )
    if dimension is not None and count and vectors.shape[1] != dimension:
        raise InvalidInputError(
            f"the query's vector has {vectors.shape[1]} dimensions, the documents' have {dimension}; it is of "
            f"{type(model).__name__}: use the model that made the documents' vectors"
        )
    return vectors


def _what(answer: Any, count: int) -> str:
    """What came back, in a few words: texts that it holds are not shown."""
    if answer is None or isinstance(answer, (str, bytes)) or not isinstance(answer, Sized):
        return _kind(answer)
    rows: list[Any] = list(answer) if isinstance(answer, Iterable) else []
    if len(rows) != count:
        return f"{len(rows)} vectors"
    for row in rows:
        if isinstance(row, (str, bytes)) or not isinstance(row, Sized) or not isinstance(row, Iterable):
            return f"{_kind(row)} among the vectors"
        for value in row:
            if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__float__"):
                return f"{_kind(value)} within a vector"
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1 or lengths == [0]:
        return f"vectors of length {', '.join(map(str, lengths[:5]))}"
    return "vectors with values that are not finite"


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
