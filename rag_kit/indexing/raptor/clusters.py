"""Soft clusters of vectors: dimensions reduced, a Gaussian mixture, its number of components by BIC."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_kit.errors import MissingExtraError
from rag_kit.indexing.document_index.vectors import Vectors

_DIMENSIONS = 10  # that vectors are reduced to
_COMPONENT_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 50)  # components that are tried
_MIN_PROBABILITY = 0.1  # with which a vector belongs to a cluster beside its likeliest one
_MAX_OVERLAP = 1.5  # clusters of a vector, on average
_MAX_UNCUT = 3  # vectors of a cluster that is not cut any more


def soft_clusters(vectors: Vectors, sizes: Sequence[int], max_size: int, seed: int) -> list[list[int]]:
    """Group vectors that are near each other, two or more a group; a vector may be in several.

    A group whose ``sizes`` (in tokens) sum to more than ``max_size`` is clustered again by itself; two or three members
    may exceed it. ``vectors`` has shape (n, dimension), n >= 2. The same ``seed`` gives the same groups.
    """
    size = np.asarray(sizes)

    def cluster(positions: NDArray[np.intp], min_parts: int) -> list[list[int]]:
        """Return clusters of the vectors at some positions, each small enough; at least ``min_parts`` if possible."""
        clusters: list[list[int]] = []
        for part in _cut_by_mixture(vectors[positions], min_parts, seed):
            members = positions[part]
            if size[members].sum() <= max_size or len(members) <= _MAX_UNCUT:
                clusters.append(sorted(members.tolist()))
            elif len(members) < len(positions) or min_parts == 1:
                clusters += cluster(members, 2)
            else:  # all came back in one part, although two were asked for: cut in the middle
                half = len(members) // 2
                clusters += cluster(members[:half], 1) + cluster(members[half:], 1)
        return clusters

    distinct = {tuple(members) for members in cluster(np.arange(len(vectors)), 1)}
    return [list(members) for members in sorted(distinct)]


def _cut_by_mixture(vectors: Vectors, min_parts: int, seed: int) -> list[NDArray[np.intp]]:
    """Cut vectors into parts by the components of a mixture; return the positions of the vectors in each part.

    A vector is in its likeliest component (if it is alone there, in the nearest other one) and in those that it belongs
    to with a probability above `_MIN_PROBABILITY`, unless the parts would overlap too much.
    """
    count = len(vectors)
    if count <= _MAX_UNCUT:
        return [np.arange(count)]
    points, probabilities = _fit_mixture(vectors, min_parts, seed)
    labels = probabilities.argmax(axis=1)
    large = np.flatnonzero(np.bincount(labels) > 1)  # components of two or more
    if len(large) < 2:
        return [np.arange(count)]
    centres = np.stack([points[labels == label].mean(axis=0) for label in large])
    nearest = large[np.linalg.norm(points[:, None] - centres[None], axis=2).argmin(axis=1)]
    likeliest = np.where(np.isin(labels, large), labels, nearest)
    # masks of shape (vectors, large components)
    is_likeliest = likeliest[:, None] == large
    is_likely = is_likeliest | (probabilities[:, large] > _MIN_PROBABILITY)
    is_member = is_likely if is_likely.sum() <= _MAX_OVERLAP * count else is_likeliest
    return [np.flatnonzero(column) for column in is_member.T]


def _fit_mixture(vectors: Vectors, min_parts: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Reduce vectors by PCA, and fit the Gaussian mixture with the lowest BIC; return points and probabilities."""
    try:
        from sklearn.decomposition import PCA
        from sklearn.mixture import GaussianMixture
        from threadpoolctl import threadpool_limits  # scikit-learn requires it
    except ImportError as error:
        raise MissingExtraError("raptor", "A tree of summaries") from error
    width = min(_DIMENSIONS, len(vectors) - 1, vectors.shape[1])
    tried: list[tuple[float, int, Any]] = []  # BIC, components, model: the smallest is the best
    # small fits are several times faster on one thread
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # equal vectors, and fits that did not converge
        points = PCA(width, random_state=seed).fit_transform(vectors.astype(np.float64))
        points /= points.std() or 1.0  # reg_covar is on this scale
        for count in (number for number in _COMPONENT_COUNTS if min_parts <= number <= len(vectors) // 2):
            model = GaussianMixture(count, covariance_type="diag", reg_covar=1e-3, random_state=seed)
            tried.append((model.fit(points).bic(points), count, model))
            if min(tried) < min(tried[-2:]):
                break  # the last two were worse than the best
        _, _, model = min(tried)
        return points, model.predict_proba(points)  # of shape (vectors, dimensions) and (vectors, components)
