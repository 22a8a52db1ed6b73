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


class Fingerprint:
    """What of a text is compared.

    Args:
        text: The text.

    Example:
        >>> a, b = Fingerprint("The fan is very loud."), Fingerprint("the fan is very loud")
        >>> a.likeness(b)
        1.0
    """

    def __init__(self, text: str) -> None:
        folded = fold(text)
        tokens = _TOKEN.findall(folded)
        last = max(1, len(tokens) - _SHINGLE + 1)
        self.shingles = frozenset(tuple(tokens[start : start + _SHINGLE]) for start in range(last))
        self.decisive = Counter(_NUMBER.findall(folded)) + Counter(_NEGATION.findall(folded))

    def likeness(self, other: Fingerprint) -> float:
        """The Jaccard index of the shingles, 0 to 1; 0 where a number or a negation differs.

        "It rose in 2023" and "it rose in 2024" share nearly all words, and say different things.
        """
        if self.decisive != other.decisive:
            return 0.0
        shared = len(self.shingles & other.shingles)
        return shared / ((len(self.shingles) + len(other.shingles) - shared) or 1)

    def adds_nothing_to(self, other: Fingerprint) -> bool:
        """Whether all of its shingles, numbers and negations are in the other text, as where chunks overlap."""
        return self.shingles <= other.shingles and self.decisive <= other.decisive


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
    prints = [Fingerprint(text) for text in texts]
    firsts: list[int] = []
    for place, mine in enumerate(prints):
        repeats = (
            first
            for first in dict.fromkeys(firsts)
            if mine.likeness(prints[first]) >= threshold or mine.adds_nothing_to(prints[first])
        )
        firsts.append(next(repeats, place))
    return firsts
