"""BLEU and ROUGE of two lists of tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence


def ngrams(tokens: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram of that size occurs."""
    return Counter(zip(*(tokens[start:] for start in range(size)), strict=False))


def bleu(reference: Sequence[str], answer: Sequence[str], weights: Sequence[float], *, smooth: bool) -> float:
    """BLEU of one text (Papineni et al., 2002): weighted geometric mean of n-gram precisions, times brevity.

    N-grams longer than the answer count for nothing, and the other weights are scaled up (sacreBLEU's effective
    order), so that a text of two words can be 1.

    Args:
        reference: Tokens of the right answer.
        answer: Tokens of the answer.
        weights: One for each size of n-gram, from 1 on.
        smooth: Whether a size without a match counts as half a match, the next one as a quarter, and so on
            (sacreBLEU's ``exp``); else it makes the score 0.

    Returns:
        0 to 1.

    Example:
        >>> bleu("a b c d e f".split(), "a b c x e f".split(), [0.5, 0.5], smooth=False) == (5 / 6 * 3 / 5) ** 0.5
        True
    """
    log_sum = total = 0.0
    part = 1.0
    for size, weight in enumerate(weights, start=1):
        if size > len(answer):
            break
        matched = (ngrams(answer, size) & ngrams(reference, size)).total()
        possible = len(answer) - size + 1
        if weight == 0:
            continue
        if not matched:
            if not smooth or size == 1:
                return 0.0
            part /= 2
        log_sum += weight * math.log((matched or part) / possible)
        total += weight
    if not total:
        return 0.0
    brevity = min(1.0, math.exp(1 - len(reference) / len(answer)))
    return brevity * math.exp(log_sum / total)


def rouge_n(reference: Sequence[str], answer: Sequence[str], size: int) -> tuple[float, float]:
    """Precision and recall of n-grams (Lin, 2004)."""
    wanted, given = ngrams(reference, size), ngrams(answer, size)
    matched = (wanted & given).total()
    return matched / max(1, given.total()), matched / max(1, wanted.total())


def rouge_l(reference: Sequence[str], answer: Sequence[str]) -> tuple[float, float]:
    """Precision and recall of the longest common subsequence (Lin, 2004)."""
    common = common_subsequence(reference, answer)
    return common / max(1, len(answer)), common / max(1, len(reference))


def common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, by bits (Hyyrö, 2004): one addition a token.

    Example:
        >>> common_subsequence("abcbdab", "bdcaba")
        4
    """
    where: dict[str, int] = {}
    for position, token in enumerate(first):
        where[token] = where.get(token, 0) | 1 << position
    full = (1 << len(first)) - 1
    row = full
    for token in second:
        if places := where.get(token):
            kept = row & places
            row = ((row + kept) | (row - kept)) & full
    return len(first) - row.bit_count()


def f_measure(precision: float, recall: float) -> float:
    """Harmonic mean.

    Example:
        >>> f_measure(0.5, 1.0), f_measure(0.0, 0.0)
        (0.6666666666666666, 0.0)
    """
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
