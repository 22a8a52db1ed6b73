"""The nearest of many vectors, exactly: one matrix product for one query or for several."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Mask = NDArray[np.bool_]

Space = Literal["cosine", "l2", "ip"]
SPACES = ("cosine", "l2", "ip")
# Where fewer than one row in so many passes, these rows are copied together before they are multiplied.
_FEW = 8
# Sums in float32 differ by less than this part of the numbers summed; candidates within it are summed again.
_ROUNDING = 1e-5
_ROWS = 4096


class NearestVectors:
    """Vectors in memory and their nearest to a query, by the distances that Chroma uses.

    What comes out does not depend on how many rows or queries were multiplied at once: the best are found in
    float32, and their distances summed again in float64. Equal distances come in the order of the rows.

    Args:
        vectors: Shape ``(rows, dimensions)``.
        space: ``"cosine"`` (1 - cosine), ``"l2"`` (squared Euclidean) or ``"ip"`` (1 - inner product).
        owned: The array may be kept and changed, which saves a copy.
    """

    def __init__(self, vectors: Any, space: Space = "cosine", *, owned: bool = False) -> None:
        import numpy as np

        matrix: Vectors = (np.asarray if owned else np.array)(vectors, dtype=np.float32, order="C")
        if matrix.ndim != 2:
            raise InvalidInputError(f"vectors have shape {matrix.shape}; give (rows, dimensions)")
        if space not in SPACES:
            raise InvalidInputError(f"space={space!r} was given; allowed: {', '.join(SPACES)}.")
        self.space = space
        if space == "cosine":
            unit(matrix, out=matrix)
        self._matrix = matrix
        # |v|^2 of each row, for |v - q|^2 = |v|^2 - 2 v.q + |q|^2
        squares = np.einsum("ij,ij->i", matrix, matrix)
        self._squares = squares if space == "l2" else None
        self._longest = float(np.sqrt(squares.max(initial=0.0)))

    def __len__(self) -> int:
        return len(self._matrix)

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self._matrix.shape[1])

    def rows(self, rows: list[int]) -> Vectors:
        """The vectors of some rows."""
        return self._matrix[rows]

    def search(self, queries: Any, k: int, mask: Mask | None = None) -> list[list[tuple[int, float]]]:
        """Rows and distances of the k nearest rows of each query (of those in ``mask``), nearest first.

        Raises:
            InvalidInputError: If the queries have another number of dimensions.
        """
        import numpy as np

        asked = np.atleast_2d(np.asarray(queries, dtype=np.float32))
        if not len(self._matrix) or not len(asked):
            return [[] for _ in asked]
        if asked.ndim != 2 or asked.shape[1] != self.dimension:
            raise InvalidInputError(
                f"the query's vector has {asked.shape[-1]} dimensions, the documents' have {self.dimension}; "
                "use the model that made the documents' vectors"
            )
        if not np.isfinite(asked).all():
            raise InvalidInputError("the query's vector holds values that are not finite")
        if self.space == "cosine":
            asked = unit(asked)
        rows = None
        if mask is not None:
            rows = np.flatnonzero(mask)
            if not len(rows):
                return [[] for _ in asked]
        few = rows is not None and len(rows) * _FEW < len(self._matrix)
        # One product a query would read the whole matrix once each.
        products = (self._matrix[rows] if few else self._matrix) @ asked.T
        if rows is not None and not few:
            products = products[rows]
        return [self._best(products[:, place], rows, asked[place], k) for place in range(len(asked))]

    def _best(
        self, products: Any, rows: NDArray[np.intp] | None, query: Vectors, k: int
    ) -> list[tuple[int, float]]:
        import numpy as np

        distances = -products
        if self._squares is not None:
            distances = (self._squares if rows is None else self._squares[rows]) - 2 * products
        if k < len(distances):
            limit = np.partition(distances, k - 1)[k - 1]
            chosen = np.flatnonzero(~(distances > limit + _ROUNDING * self._size(query, float(limit))))
        else:
            chosen = np.arange(len(distances))
        places = chosen if rows is None else rows[chosen]
        exact = np.concatenate(
            [self._distances(places[start : start + _ROWS], query) for start in range(0, len(places), _ROWS)]
        )
        order = np.argsort(exact, kind="stable")[:k]
        return [(int(places[i]), float(exact[i])) for i in order]

    def _size(self, query: Vectors, limit: float) -> float:
        """How large the numbers are whose sums were rounded."""
        square = float(query @ query)
        if self.space != "l2":
            return max(1.0, self._longest * math.sqrt(square))
        return 2 * square + 2 * max(0.0, limit + square)

    def _distances(self, places: NDArray[np.intp], query: Vectors) -> NDArray[np.float32]:
        """Distances of some rows, summed in float64 and rounded once."""
        import numpy as np

        rows = self._matrix[places].astype(np.float64)
        asked = query.astype(np.float64)
        products = np.square(rows - asked) if self.space == "l2" else rows * asked
        distances = products.sum(axis=1)
        if self.space != "l2":
            distances = 1.0 - distances
        if self.space == "cosine":
            # Unit vectors in float32 are 1 within 6e-8; a distance below that is none.
            distances = np.where(np.abs(distances) < 2.5e-7, 0.0, distances)
        rounded: NDArray[np.float32] = distances.astype(np.float32)
        return rounded


def unit(vectors: Vectors, out: Vectors | None = None) -> Vectors:
    """Rows scaled to length 1; rows of zeros stay."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, np.where(lengths == 0, np.float32(1), lengths), out=out)
    return scaled
