"""Call a sparse encoder, synchronous or not, and check what it gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from rag_kit.concurrency.bridge import call_function
from rag_kit.errors import InvalidInputError

Vector = dict[str, float]
Weights = Mapping[str, float] | Mapping[int, float] | Mapping[str | int, float]
SparseEncoder = Callable[[list[str]], Sequence[Weights] | Awaitable[Sequence[Weights]]]
_HIGHEST = 1e18  # products and sums of such weights stay finite in float32


def check_encoder(name: str, encoder: Any) -> SparseEncoder:
    """An encoder.

    Raises:
        InvalidInputError: It cannot be called.
    """
    if not callable(encoder):
        raise InvalidInputError(
            f"{name} is {type(encoder).__name__}; give a function, async or not, from a list of texts to one dict "
            "of term -> weight for each."
        )
    function: SparseEncoder = encoder
    return function


def encode(encoder: SparseEncoder, texts: Sequence[str], batch_size: int) -> list[Vector]:
    """Encode texts; an async encoder runs in an event loop of its own.

    Raises:
        InvalidInputError: The encoder gave something else than a vector of weights of 0 or more for each text.
    """
    vectors: list[Vector] = []
    for start in range(0, len(texts), batch_size):
        batch = list(texts[start : start + batch_size])
        vectors += checked(call_function(encoder, batch), batch, start)
    return vectors


def checked(given: Any, texts: Sequence[str], first: int = 0) -> list[Vector]:
    """The vectors that an encoder gave, without weights of 0; a term may be a number or a string.

    Raises:
        InvalidInputError: They are not what they must be.

    Example:
        >>> checked([{"cat": 0.5, 7: 2, "dog": 0}], ["a cat"])
        [{'cat': 0.5, '7': 2.0}]
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or len(given) != len(texts):
        size = f" of {len(given)}" if isinstance(given, Sequence) else ""
        raise InvalidInputError(
            f"The encoder returned {type(given).__name__}{size}; it must return a list with one dict of term -> weight "
            f"for each of {len(texts)} texts."
        )
    return [checked_vector(vector, first + number) for number, vector in enumerate(given)]


def checked_vector(vector: Any, number: int | None = None) -> Vector:
    """One vector.

    Raises:
        InvalidInputError: As for :func:`checked`.
    """
    where = "" if number is None else f" of text {number}"
    if not isinstance(vector, Mapping):
        raise InvalidInputError(
            f"The vector{where} is {type(vector).__name__}; it must be a dict of term -> weight."
        )
    found: Vector = {}
    for term, weight in vector.items():
        try:
            value = float(weight)
        except (TypeError, ValueError):
            value = float("nan")
        if not 0 <= value <= _HIGHEST or isinstance(weight, (str, bytes, bool)):
            raise InvalidInputError(
                f"The vector{where} has the weight {weight!r} for {term!r}; weights must be finite numbers of 0 or "
                f"more (up to {_HIGHEST:g})."
            )
        if isinstance(term, bool) or not isinstance(term, (str, Integral)):
            raise InvalidInputError(
                f"The vector{where} has the term {term!r}; terms must be strings or whole numbers."
            )
        # What float32 cannot hold above 0 counts as 0: it could only make hits of score 0.
        if np.float32(value) > 0:
            if (key := str(term)) in found:
                raise InvalidInputError(
                    f"The vector{where} has the term {key!r} both as a number and as a string."
                )
            found[key] = value
    return found
