"""How surely each passage helps to answer a question, by its words, names, times, kinds of things, and vectors.

The weights come from benchmarks/fit_evaluator.py: logistic regression on one half of labelled pairs of public sets.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rag_kit.text.evidence.passages import PassageText, Question, analyse
from rag_kit.text.evidence.sentences import collect
from rag_kit.text.evidence.terms import terms
from rag_kit.text.evidence.times import time_spans

SETTINGS = ("alone, words", "beside others, words", "alone, vectors", "beside others, vectors")
#: The weight of each measure in each of the SETTINGS; 0 where it is not used.
WEIGHTS = {
    "bias": (-4.85, -2.79, -5.56, -4.16),
    "own": (2.18, 2.24, 1.23, 0.75),
    "title": (2.05, 1.76, 1.36, 1.37),
    "score": (1.9, 0.39, 1.77, 0.65),
    "terms": (1.01, 0.42, 0.76, 0.49),
    "timed": (-0.9, -0.4, -2.1, -1.5),
    "recent": (0.87, 0.69, 1.93, 1.88),
    "outside": (-0.55, -0.59, -0.25, -0.29),
    "crowd": (0.0, -1.07, 0.0, -0.01),
    "lead score": (0.0, 2.9, 0.0, 1.58),
    "repeated": (0.0, 8.37, 0.0, 9.78),
    "cosine": (0.0, 0.0, 3.72, 1.87),
    "lead cosine": (0.0, 0.0, 0.0, 4.83),
}
_REPEATED = 8


@dataclass(frozen=True)
class Usefulness:
    """How surely a passage helps.

    Attributes:
        value: From 0 to 1.
        measures: What that rests on, by name (`measure`).
    """

    value: float
    measures: dict[str, float]


def usefulness(
    question: str, passages: Sequence[PassageText], cosines: Sequence[float] | None = None
) -> list[Usefulness]:
    """How surely each passage helps, from 0 to 1, by its words, and by vectors where cosines are given.

    Args:
        question: The question.
        passages: The passages that were found for it; each is seen against the others.
        cosines: The cosine of the question's vector and each passage's.

    Example:
        >>> texts = ["Jane Austen wrote Emma in 1815.", "Emma is a town in Missouri."]
        >>> high, low = usefulness("Who wrote Emma?", [PassageText(n, t) for n, t in enumerate(texts, 1)])
        >>> high.value > 0.5 > low.value
        True
    """
    setting = (len(passages) > 1) + 2 * (cosines is not None)
    found = []
    for measures in measure(question, passages, cosines):
        total = sum(weights[setting] * measures.get(name, 0.0) for name, weights in WEIGHTS.items())
        # without any word of the question there is nothing that times could speak for
        value = 1 / (1 + math.exp(-total)) if measures["passage"] > 0 or cosines is not None else 0.0
        found.append(Usefulness(value, measures))
    return found


def measure(
    question: str, passages: Sequence[PassageText], cosines: Sequence[float] | None = None
) -> list[dict[str, float]]:
    """Measure each passage by itself and against the others.

    Returns:
        For each passage, by name:

        - ``own``, ``title``: weight of the question's terms in the best sentence, and in the title;
        - ``score``: score of its best sentence; ``terms``: how many terms the question has, as a logarithm;
        - ``timed``: a time is asked for; then ``recent``: how its sentences fit that time, ``outside``: all its dates
          lie outside, ``undated``: it has none;
        - ``crowd``: how much of the question the average passage holds; ``repeated``: how much more than others it
          says what others say too, where all are on the subject; ``cosine``; ``lead``: how far it is ahead of the
          average of the others, in its score and its cosine.
    """
    asked = analyse(question)
    rows = [_measure_alone(asked, passage) for passage in passages]
    words = [
        frozenset(terms(passage.text)) - frozenset(terms(passage.title)) - asked.keys for passage in passages
    ]
    crowd = sum(row["passage"] for row in rows) / max(len(rows), 1)
    repeated = _leads(_repeated([max(row["score"], 0.0) for row in rows], words))
    compared = ["score"]
    if cosines is not None:
        compared.append("cosine")
        for row, cosine in zip(rows, cosines, strict=True):
            row["cosine"] = float(cosine)
    for name in compared:
        for row, lead in zip(rows, _leads([row[name] for row in rows]), strict=True):
            row[f"lead {name}"] = lead
    for row, lead in zip(rows, repeated, strict=True):
        row |= {"crowd": crowd, "repeated": crowd * lead}
    return rows


def _measure_alone(question: Question, passage: PassageText) -> dict[str, float]:
    """The measures that a passage has by itself."""
    candidates = collect(question, [passage])
    best = max((candidate.score for candidate in candidates), default=0.0)
    features = [candidate.features for candidate in candidates]
    dated = any(time_spans(candidate.text) for candidate in candidates)
    title = question.keys & frozenset(terms(passage.title))
    return {
        "bias": 1.0,
        "own": max((question.share(candidate.matched) for candidate in candidates), default=0.0),
        "passage": question.share(title | (question.keys & frozenset(terms(passage.text)))),
        "title": question.share(title),
        "score": best / 10,
        "terms": math.log1p(len(question.terms)),
        "timed": float(bool(question.spans)),
        "recent": max((feature.recent for feature in features), default=0.0),
        "outside": float(bool(question.spans) and dated and not any(feature.overlap for feature in features)),
        "undated": float(bool(question.spans) and not dated),
    }


def _repeated(scores: Sequence[float], words: Sequence[frozenset[str]]) -> list[float]:
    """How far what a passage says is said by other good ones: what independent sources repeat is often the answer."""
    sums: defaultdict[str, float] = defaultdict(float)
    for score, own in zip(scores, words, strict=True):
        for key in own:
            sums[key] += score
    values = []
    for score, own in zip(scores, words, strict=True):
        rest = sum(scores) - score
        shares = sorted((max(0.0, sums[key] - score) / rest for key in own if rest > 0), reverse=True)
        values.append(sum(shares[:_REPEATED]) / _REPEATED)
    return values


def _leads(values: Sequence[float]) -> list[float]:
    """How far each value is ahead of the average of the others."""
    total, others = sum(values), len(values) - 1
    return [value - (total - value) / others if others else 0.0 for value in values]
