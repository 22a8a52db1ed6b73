"""The order in which passages are put before a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def lost_in_the_middle(items: Sequence[T]) -> list[T]:
    """Put the best at both ends and the weakest in the middle, where models read least.

    Paper: Liu et al., Lost in the Middle, arXiv 2307.03172.

    Args:
        items: Best first.

    Returns:
        The first, third, fifth... in order, then the others backwards, so that the second stands last.

    Example:
        >>> lost_in_the_middle([1, 2, 3, 4, 5])
        [1, 3, 5, 4, 2]
    """
    return [*items[::2], *reversed(items[1::2])]
