"""Call a sparse encoder, synchronous or not, and check what it gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from rag_kit.concurrency.bridge import call_function
from rag_kit.errors import InvalidInputError

Vector = dict[str, float]
Weights = Mapping[str, float] | Mapping[int, float] | Mapping[str | int, float]
SparseEncoder = Callable[[list[str]], Sequence[Weights] | Awaitable[Sequence[Weights]]]
_MAX_WEIGHT = 1e18  # products and sums of such weights stay finite in float32


def encode(encoder: SparseEncoder, texts: Sequence[str], batch_size: int) -> list[Vector]:
    """Encode texts; an async encoder runs in an event loop of its own.

    Raises:
        InvalidInputError: The encoder gave something else than a vector of weights of 0 or more for each text.
    """
    vectors: list[Vector] = []
    for start in range(0, len(texts), batch_size):
        batch = list(texts[start : start + batch_size])
        vectors += check_vectors(call_function(encoder, batch), len(batch))
    return vectors


def check_vectors(answer: Any, count: int) -> list[Vector]:
    """What an encoder gave for ``count`` texts: a vector for each.

    Raises:
        InvalidInputError: It is something else.
    """
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Sequence) or len(answer) != count:
        raise InvalidInputError(
            f"The encoder returned {type(answer).__name__}; it must return a list with one dict of term -> weight "
            f"for each of {count} texts."
        )
    return [check_vector(vector) for vector in answer]


def check_vector(vector: Any) -> Vector:
    """A vector without weights of 0; a term may be a number or a string.

    Raises:
        InvalidInputError: It is no dict of terms and finite weights of 0 or more.

    Example:
        >>> check_vector({"cat": 0.5, 7: 2, "dog": 0})
        {'cat': 0.5, '7': 2.0}
    """
    if not isinstance(vector, Mapping):
        raise InvalidInputError(f"A vector is {type(vector).__name__}; it must be a dict of term -> weight.")
    checked: Vector = {}
    for term, weight in vector.items():
        if not _is_of(Real, weight) or not 0 <= weight <= _MAX_WEIGHT:
            raise InvalidInputError(
                f"A vector has the weight {weight!r} for {term!r}; weights must be numbers from 0 to {_MAX_WEIGHT:g}."
            )
        if not _is_of((str, Integral), term) or str(term) in checked:
            raise InvalidInputError(
                f"A vector has the term {term!r}; terms must be strings or whole numbers, each once."
            )
        # What float32 cannot hold above 0 counts as 0: it could only make hits of score 0.
        if np.float32(weight) > 0:
            checked[str(term)] = float(weight)
    return checked


def _is_of(kind: Any, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
