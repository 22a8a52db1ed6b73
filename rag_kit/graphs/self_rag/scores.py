"""The scores of Self-RAG: pure functions of label probabilities.

Paper: Asai et al., Self-RAG: Learning to Retrieve, Generate, and Critique through Self-Reflection, arXiv 2310.11511,
section 3.3 and appendix A.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

RELEVANCE = ("relevant", "irrelevant")
SUPPORT = ("full", "partial", "none")
USEFULNESS = ("1", "2", "3", "4", "5")
RETRIEVE = ("yes", "no")

#: What each rating is worth, from 1 to 5.
USEFULNESS_WEIGHTS = (-1.0, -0.5, 0.0, 0.5, 1.0)

Probabilities = Mapping[str, float]


class Weights(NamedTuple):
    """Weights of the three critiques in ``f``; the paper's defaults."""

    relevance: float = 1.0
    support: float = 1.0
    usefulness: float = 0.5


PAPER_WEIGHTS = Weights()


class Parts(NamedTuple):
    """The parts of ``f``, unweighted; a candidate without a passage has no relevance and no support.

    Attributes:
        p: Probability of the text: length-normalised from log-probabilities, 1 where there are none.
        relevance: From 0 to 1.
        support: From 0 to 1.
        usefulness: From -1 to 1.
    """

    p: float
    relevance: float
    support: float
    usefulness: float


def certain(label: str, labels: Sequence[str]) -> dict[str, float]:
    """Probability 1 on a label: what a prompted label without log-probabilities says.

    Example:
        >>> certain("partial", SUPPORT)
        {'full': 0.0, 'partial': 1.0, 'none': 0.0}
    """
    return {each: float(each == label) for each in labels}


def retrieval_probability(probabilities: Probabilities) -> float:
    """``P(yes) / (P(yes) + P(no))``; 0 where neither has any.

    Example:
        >>> retrieval_probability({"yes": 0.125, "no": 0.375})
        0.25
    """
    return _share(probabilities, "yes", RETRIEVE)


def wants_retrieval(probabilities: Probabilities, delta: float) -> bool:
    """Whether documents are looked up for a segment: strictly above the threshold.

    Example:
        >>> wants_retrieval({"yes": 0.25, "no": 0.75}, 0.25), wants_retrieval({"yes": 0.26, "no": 0.74}, 0.25)
        (False, True)
    """
    return retrieval_probability(probabilities) > delta


def relevance_score(probabilities: Probabilities) -> float:
    """``P(relevant)``, normalised over both labels.

    Example:
        >>> relevance_score({"relevant": 0.375, "irrelevant": 0.125})
        0.75
    """
    return _share(probabilities, "relevant", RELEVANCE)


def support_score(probabilities: Probabilities) -> float:
    """``P(full) + 0.5 P(partial)``, normalised over the three labels.

    Example:
        >>> support_score({"full": 0.5, "partial": 0.25, "none": 0.25})
        0.625
    """
    return _share(probabilities, "full", SUPPORT) + 0.5 * _share(probabilities, "partial", SUPPORT)


def usefulness_score(probabilities: Probabilities) -> float:
    """The expected worth of the rating, from -1 (surely 1) to 1 (surely 5), normalised over the ratings.

    Example:
        >>> usefulness_score({"4": 0.5, "5": 0.5})
        0.75
    """
    return sum(
        weight * _share(probabilities, label, USEFULNESS)
        for label, weight in zip(USEFULNESS, USEFULNESS_WEIGHTS, strict=True)
    )


def sequence_probability(logprobs: Sequence[float]) -> float:
    """The length-normalised probability of a text: the exponential of its tokens' mean log-probability.

    Returns:
        From 0 to 1; 1 for no tokens.

    Example:
        >>> import math
        >>> round(sequence_probability([math.log(0.5), math.log(0.5)]), 6)
        0.5
    """
    if not logprobs:
        return 1.0
    return math.exp(min(0.0, sum(logprobs) / len(logprobs)))


def segment_score(parts: Parts, weights: Weights = PAPER_WEIGHTS) -> float:
    """``f = p(y) + w_rel s_rel + w_sup s_sup + w_use s_use``.

    Example:
        >>> segment_score(Parts(p=0.5, relevance=0.75, support=0.625, usefulness=0.5))
        2.125
    """
    return (
        parts.p
        + weights.relevance * parts.relevance
        + weights.support * parts.support
        + weights.usefulness * parts.usefulness
    )


def beam_score(scores: Sequence[float]) -> float:
    """The score of a sequence of segments: the mean of their ``f``.

    Among beams of one length this orders as their sum does; a mean also compares an answer that has ended with one
    that goes on, which a sum would decide by length alone.

    Example:
        >>> beam_score([2.0, 1.0])
        1.5
    """
    return sum(scores) / len(scores) if scores else 0.0


def _share(probabilities: Probabilities, label: str, labels: Sequence[str]) -> float:
    total = sum(probabilities.get(each, 0.0) for each in labels)
    return probabilities.get(label, 0.0) / total if total > 0 else 0.0
