"""The scores of Self-RAG: pure functions of label probabilities.

Paper: Asai et al., Self-RAG: Learning to Retrieve, Generate, and Critique through Self-Reflection, arXiv 2310.11511,
section 3.3 and appendix A.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

#: What each label of a critique is worth.
RELEVANCE = {"relevant": 1.0, "irrelevant": 0.0}
SUPPORT = {"full": 1.0, "partial": 0.5, "none": 0.0}
USEFULNESS = {"1": -1.0, "2": -0.5, "3": 0.0, "4": 0.5, "5": 1.0}
RETRIEVE = {"yes": 1.0, "no": 0.0}


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


def critique_score(probabilities: Mapping[str, float], worth: Mapping[str, float]) -> float:
    """The expected worth of a critique's labels, their probabilities normalised; 0 where none has any.

    Example:
        >>> critique_score({"full": 0.5, "partial": 0.25, "none": 0.25}, SUPPORT)
        0.625
        >>> critique_score({"yes": 0.125, "no": 0.375}, RETRIEVE)  # P(yes) / (P(yes) + P(no))
        0.25
    """
    total = sum(probabilities.get(label, 0.0) for label in worth)
    if total <= 0:
        return 0.0
    return sum(value * (probabilities.get(label, 0.0) / total) for label, value in worth.items())


def sequence_probability(logprobs: Sequence[float]) -> float:
    """The length-normalised probability of a text: the exponential of its tokens' mean log-probability.

    Example:
        >>> import math
        >>> round(sequence_probability([math.log(0.5), math.log(0.5)]), 6), sequence_probability([])
        (0.5, 1.0)
    """
    return math.exp(min(0.0, sum(logprobs) / len(logprobs))) if logprobs else 1.0


def segment_score(parts: Parts, weights: Weights = PAPER_WEIGHTS) -> float:
    """``f = p(y) + w_rel s_rel + w_sup s_sup + w_use s_use``.

    Example:
        >>> segment_score(Parts(p=0.5, relevance=0.75, support=0.625, usefulness=0.5))
        2.125
    """
    return parts.p + sum(weight * part for weight, part in zip(weights, parts[1:], strict=True))


def beam_score(scores: Sequence[float]) -> float:
    """The score of a sequence of segments: the mean of their ``f``.

    Among beams of one length this orders as their sum does; a mean also compares an answer that has ended with one
    that goes on, which a sum would decide by length alone.

    Example:
        >>> beam_score([2.0, 1.0])
        1.5
    """
    return sum(scores) / len(scores) if scores else 0.0
