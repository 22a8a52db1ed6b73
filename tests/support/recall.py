"""Token recall of a converted document against an expected text."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

_TOKEN = re.compile(
    r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|\d+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)


def tokens(text: str) -> list[str]:
    """Words, numbers, and single characters of Chinese, Japanese and Korean; comments and link targets left out."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"\]\([^)\s]*\)", "]", text)
    return _TOKEN.findall(text.lower())


def shares(expected: str, found: str) -> tuple[float, float, float]:
    """Recall, precision, and recall of pairs of neighbours (which falls when the order is wrong)."""
    a, b = tokens(expected), tokens(found)
    both = (Counter(a) & Counter(b)).total()
    pairs = Counter(pairwise(a)), Counter(pairwise(b))
    return both / max(1, len(a)), both / max(1, len(b)), (pairs[0] & pairs[1]).total() / max(1, len(a) - 1)


def recall(expected: str, found: str) -> float:
    """Share of the expected tokens that were found."""
    return shares(expected, found)[0]
