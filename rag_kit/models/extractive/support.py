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
from rag_kit.models.extractive.select import score
from rag_kit.models.extractive.terms import terms

MEASURES = (
    "passage",  # weight of the question's terms in the passage that holds most of them
    "near",  # in the best sentence with its neighbours and title
    "own",  # in the best sentence
    "names",  # share of the names in the question found in any passage
    "time",  # fit in time of the chosen sentences
    "terms",  # how many terms the question has, as a logarithm
    "picked",  # in the chosen sentences with neighbours and titles
    "lead",  # how far the best passage is ahead of the average one
    "score",  # score of the best sentence
    "open",  # asks for nothing of a known kind: not for a person, time, place, number or cause
    "own squared",  # what a sentence gains by more terms grows less and less
    "together",  # the chosen sentences stand in one passage
    "passage squared",
)
_WEIGHTS = (1.4, 7.4, 5.1, 1.6, 1.5, 1.6, 1.3, 2.2, 5.1, 1.3, -3.8, 0.6, -5.6)
_BIAS = {"en": -16.4, "zh": -16.0}
_USUAL_LEAD = 0.35
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
    # Where a time is asked for, its fit counts instead of its words: "since 2010" holds in 2012.
    salience = {term.key: 0.0 if question.spans and term.date else term.salience for term in question.terms}
    total = sum(salience.values()) or 1.0

    def share(keys: Iterable[str]) -> float:
        return sum(salience[key] for key in keys) / total

    fit = 1.5  # what a question without a time gets, as if its time fitted well
    if question.spans:
        fit = max((one.features[_OVERLAP] + one.features[_RECENT] for one in picked), default=0.0)
    by_passage = _keys_in(question, passages)
    covers = [share(keys) for keys in by_passage] or [0.0]
    best = max(covers)
    # Few passages say nothing about how usual it is to hold so many terms: they get a middling lead.
    lead = best - sum(covers) / len(covers) if len(covers) > 2 else _USUAL_LEAD
    own = max((share(one.matched) for one in found), default=0.0)
    return (
        best,
        max((share(one.near) for one in found), default=0.0),
        own,
        found_names(question, passages),
        fit,
        math.log1p(len(question.terms)),
        share(frozenset().union(*(one.near for one in picked))),
        lead,
        max((score(one) for one in picked), default=0.0) / 10,
        float(question.kind == "other"),
        own**2,
        float(len({one.place for one in picked}) == 1),
        best**2,
    )


def found_names(question: Question, passages: Sequence[PassageText]) -> float:
    """Share of the question's names that some passage holds; 1 where it has none.

    Example:
        >>> from rag_kit.models.extractive.question import analyse
        >>> plan = analyse("What is the file size of the ENTERPRISE plan?")
        >>> found_names(plan, [PassageText(1, "The maximum file size of a plan is 10 MB.")])
        0.0
    """
    names = [t.key for t in question.terms if t.nominal and not any(c.isdigit() for c in t.key)]
    if not names:
        return 1.0
    words = frozenset().union(*(terms(f"{one.title}\n{one.text}") for one in passages))
    return sum(name in words or any(_akin(name, key) for key in words) for name in names) / len(names)


def _akin(name: str, key: str) -> bool:
    """Whether two stems are forms of one name: German and Germany, California and Californian."""
    short, long = sorted((name, key), key=len)
    return len(short) >= max(4, len(long) - 3) and long.startswith(short)


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
    if measures[MEASURES.index("names")] == 0.0:
        return 0.0
    total = _BIAS[question.language] + sum(w * m for w, m in zip(_WEIGHTS, measures, strict=True))
    return 1.0 / (1.0 + math.exp(-total))


def _keys_in(question: Question, passages: Sequence[PassageText]) -> list[frozenset[str]]:
    return [question.keys & frozenset(terms(f"{one.title}\n{one.text}")) for one in passages]
