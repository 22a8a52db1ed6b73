"""Near-duplicates: texts that share nearly all runs of three words, and no number or negation tells them apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rag_kit.text import fold

_TOKEN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*|[一二三四五六七八九十百千万亿两零]+")
_NEGATION = re.compile(r"\b(?:not?|never|none|nor|without|cannot|\w+n['’]t)\b|[不没未无非否]")
_SHINGLE = 3


class _Fingerprint:
    """What of a text is compared: its runs of three words, and its numbers and negations."""

    def __init__(self, text: str) -> None:
        folded = fold(text)
        tokens = _TOKEN.findall(folded)
        last = max(1, len(tokens) - _SHINGLE + 1)
        self.shingles = frozenset(tuple(tokens[start : start + _SHINGLE]) for start in range(last))
        self.decisive = Counter(_NUMBER.findall(folded)) + Counter(_NEGATION.findall(folded))

    def repeats(self, other: _Fingerprint, threshold: float) -> bool:
        """Whether it says what the other says, or is a part of it, as where chunks overlap."""
        if self.shingles <= other.shingles and self.decisive <= other.decisive:
            return True
        if self.decisive != other.decisive:  # "it rose in 2023" and "it rose in 2024"
            return False
        shared = len(self.shingles & other.shingles)
        return shared >= threshold * (len(self.shingles) + len(other.shingles) - shared)


def near_duplicates(texts: Sequence[str], threshold: float) -> list[int]:
    """For each text the position of the first one that it repeats or is a part of, or its own.

    Every pair of those that stay is compared, which is exact; for the few dozen passages of a result that is faster
    than hashing would be.

    Args:
        texts: The texts, the most wanted first.
        threshold: Jaccard index from which texts count as repeats, above 0 to 1.

    Example:
        >>> near_duplicates(["A fan is loud today.", "Tea.", "a fan is loud today"], 0.9)
        [0, 1, 0]
    """
    prints = [_Fingerprint(text) for text in texts]
    firsts: list[int] = []
    for place, mine in enumerate(prints):
        repeated = (first for first in dict.fromkeys(firsts) if mine.repeats(prints[first], threshold))
        firsts.append(next(repeated, place))
    return firsts
