"""Whether the passages support an answer at all: a few measures of the evidence, one threshold.

The weights were fitted by logistic regression on one half of public question sets and checked on the other
(docs/decisions/0051-when-the-extractive-model-declines.md); the right answers stand against the same
questions asked of other collections and of collections without the passages that answer them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rag_kit.models.extractive.evidence import FEATURES, Candidate, PassageText
from rag_kit.models.extractive.question import Question
from rag_kit.models.extractive.terms import terms

MEASURES = (
    "passage",  # weight of the question's terms in the passage that holds most of them
    "near",  # in the best sentence with its neighbours and title
    "own",  # in the best sentence
    "marked",  # share of the names and numbers of the question found in any passage
    "time",  # fit in time of the chosen sentences
    "terms",  # how many terms the question has, as a logarithm
    "picked",  # in the chosen sentences with neighbours and titles
)
_WEIGHTS = (2.5, 3.7, 3.5, 0.7, 1.9, 2.0, 2.2)
_BIAS = {"en": -14.0, "zh": -13.5}
_THRESHOLD = -1.25
_OVERLAP, _RECENT = FEATURES.index("overlap"), FEATURES.index("recent")


def measure(
    question: Question,
    passages: Sequence[PassageText],
    found: Sequence[Candidate],
    picked: Sequence[Candidate],
) -> tuple[float, ...]:
    """Measure the evidence; values in the order of MEASURES.

    Args:
        question: The analysed question.
        passages: The passages of the prompt.
        found: All candidates, from :func:`rag_kit.models.extractive.evidence.collect`.
        picked: Those chosen for the answer.
    """
    salience = {term.key: term.salience for term in question.terms}
    total = sum(salience.values()) or 1.0

    def share(keys: Iterable[str]) -> float:
        return sum(salience[key] for key in keys) / total

    fit = 1.5  # what a question without a time gets, as if its time fitted well
    if question.spans:
        fit = max((one.features[_OVERLAP] + one.features[_RECENT] for one in picked), default=0.0)
    return (
        max((share(held) for held in _held(question, passages)), default=0.0),
        max((share(one.near) for one in found), default=0.0),
        max((share(one.matched) for one in found), default=0.0),
        found_names(question, passages),
        fit,
        math.log1p(len(question.terms)),
        share(frozenset().union(*(one.near for one in picked))),
    )


def found_names(question: Question, passages: Sequence[PassageText]) -> float:
    """Share of the question's names and numbers that some passage holds; 1 where it has none.

    Example:
        >>> from rag_kit.models.extractive.question import analyse
        >>> plan = analyse("What is the file size of the ENTERPRISE plan?")
        >>> found_names(plan, [PassageText(1, "The maximum file size of a plan is 10 MB.")])
        0.0
    """
    names = [term.key for term in question.terms if term.nominal]
    if not names:
        return 1.0
    held = frozenset().union(*_held(question, passages))
    return sum(name in held for name in names) / len(names)


def strength(
    question: Question,
    passages: Sequence[PassageText],
    found: Sequence[Candidate],
    picked: Sequence[Candidate],
) -> float:
    """How well the passages support an answer: above 0.5 it is given, below it is declined.

    Returns:
        A value in [0, 1]; exactly 0 where nothing matches, or where the question names things and no
        passage knows any of them.
    """
    if not picked or not any(one.near for one in picked):
        return 0.0
    measures = measure(question, passages, found, picked)
    if measures[MEASURES.index("marked")] == 0.0:
        return 0.0
    score = _BIAS[question.language] + sum(w * m for w, m in zip(_WEIGHTS, measures, strict=True))
    return 1.0 / (1.0 + math.exp(_THRESHOLD - score))


def _held(question: Question, passages: Sequence[PassageText]) -> list[frozenset[str]]:
    return [question.keys & frozenset(terms(f"{one.title}\n{one.text}")) for one in passages]
