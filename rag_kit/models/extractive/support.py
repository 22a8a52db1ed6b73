"""Whether the passages support an answer at all: measures of the evidence, one threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_kit.text.evidence.passages import PassageText, Question, found_names
from rag_kit.text.evidence.sentences import Candidate, choose, collect
from rag_kit.text.evidence.terms import terms

# fitted by logistic regression on one half of public question sets (docs/decisions/0034)
_WEIGHTS = {
    "passage": 1.4, "near": 7.4, "own": 5.1, "names": 1.6, "time": 1.5, "terms": 1.6, "picked": 1.3, "lead": 2.2,
    "score": 5.1, "open": 1.3, "own squared": -3.8, "together": 0.6, "passage squared": -5.6,
}  # fmt: skip
_BIAS = {"en": -16.4, "zh": -16.0}
_USUAL_LEAD = 0.35


def strength_of(question: Question, passages: Sequence[PassageText]) -> float:
    """How well passages support an answer of two sentences."""
    found = collect(question, passages)
    return strength(question, passages, found, choose(question, found))


def strength(
    question: Question,
    passages: Sequence[PassageText],
    found: Sequence[Candidate],
    picked: Sequence[Candidate],
) -> float:
    """How well the passages support an answer: from 0.5 on it is given, below it is declined.

    Returns:
        A value in [0, 1]; exactly 0 where nothing matches, or where the question names things and no
        passage knows any of them.
    """
    if not picked or not any(one.near for one in picked):
        return 0.0
    measures = measure(question, passages, found, picked)
    if measures["names"] == 0.0:
        return 0.0
    total = _BIAS[question.language] + sum(_WEIGHTS[name] * value for name, value in measures.items())
    return 1.0 / (1.0 + math.exp(-total))


def measure(
    question: Question,
    passages: Sequence[PassageText],
    found: Sequence[Candidate],
    picked: Sequence[Candidate],
) -> dict[str, float]:
    """Measure the evidence for an answer that is made of the picked sentences."""
    covers = [question.share(question.keys & set(terms(f"{one.title}\n{one.text}"))) for one in passages] or [
        0.0
    ]
    best = max(covers)
    own = max((question.share(one.matched) for one in found), default=0.0)
    times = [one.features.overlap + one.features.recent for one in picked]
    return {
        "passage": best,
        "near": max((question.share(one.near) for one in found), default=0.0),
        "own": own,
        "names": found_names(question, passages),
        # a question without a time counts as if its time fitted well
        "time": max(times, default=0.0) if question.spans else 1.5,
        "terms": math.log1p(len(question.terms)),
        "picked": question.share(frozenset(key for one in picked for key in one.near)),
        # few passages say nothing about how usual it is to hold so many terms
        "lead": best - sum(covers) / len(covers) if len(covers) > 2 else _USUAL_LEAD,
        "score": max((one.score for one in picked), default=0.0) / 10,
        "open": float(question.kind == "other"),
        "own squared": own**2,
        "together": float(len({one.place for one in picked}) == 1),
        "passage squared": best**2,
    }
