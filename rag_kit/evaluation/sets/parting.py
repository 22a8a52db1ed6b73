"""Deterministic draws by id: no random generator whose stream could change between versions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example


def rank(key: str, seed: int) -> bytes:
    """A place in the draw that depends on the id and the seed alone."""
    return hashlib.sha256(f"{seed}:{key}".encode("utf-8", "surrogatepass")).digest()


def part(
    examples: Sequence[Example], share: float, seed: int, by: str | Callable[[Example], object] | None
) -> set[str]:
    """Ids of the first part.

    Raises:
        InvalidInputError: If the share is out of range or a part would be empty.

    Example:
        >>> few = [Example(f"q{n}", "?") for n in range(10)]
        >>> len(part(few, 0.3, 0, None))
        3
    """
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
        raise InvalidInputError(f"share is {share!r}; give a number between 0 and 1, such as 0.7")
    groups: dict[str, list[str]] = {}
    for example in examples:
        if by is None:
            value: object = example.id
        else:
            value = example.tags.get(by, "") if isinstance(by, str) else by(example)
        groups.setdefault(str(value), []).append(example.id)
    wanted = round(share * len(examples))
    first: set[str] = set()
    for name in sorted(groups, key=lambda key: rank(key, seed)):
        members = groups[name]
        if abs(len(first) + len(members) - wanted) < abs(len(first) - wanted):
            first.update(members)
    if not first or len(first) == len(examples):
        raise InvalidInputError(
            f"a share of {share} of {len(examples)} examples in {len(groups)} groups leaves one part empty; "
            "give more examples or another share"
        )
    return first
