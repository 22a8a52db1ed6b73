"""How surely each passage helps to answer a question: measures of its words, names, times and kinds of things.

The weights were fitted by logistic regression on one half of labelled pairs of public sets and checked on the other
(docs/decisions/0190-what-the-lexical-evaluator-measures.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_kit.models.extractive.evidence import FEATURES, Candidate, PassageText, collect
from rag_kit.models.extractive.question import Question, analyse
from rag_kit.models.extractive.select import score
from rag_kit.models.extractive.support import found_names
from rag_kit.models.extractive.terms import terms
from rag_kit.models.extractive.timespan import time_spans
from rag_kit.models.extractive.usefulness_weights import WEIGHTS

MAX_QUESTION = 4_000
"""Characters of a question that are read."""

_EDGES, _OVERLAP, _RECENT, _KIND = (FEATURES.index(name) for name in ("edges", "overlap", "recent", "kind"))
_NEAR_BEST = 1.5
_REPEATED = 8
_FEW = 64
"""How many passages may hold a term for their scores to be added up one by one."""


@dataclass(frozen=True)
class Usefulness:
    """How surely a passage helps.

    Attributes:
        value: From 0 to 1.
        measures: What that rests on, by name (`measure`).
    """

    value: float
    measures: dict[str, float]


@dataclass(frozen=True)
class _Passage:
    """What is read of one passage by itself."""

    measures: dict[str, float]
    others: frozenset[str]  # its terms that neither the question nor its title holds


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
    measured = measure(question, passages, cosines)
    weights = WEIGHTS[("alone" if len(passages) < 2 else "beside", "words" if cosines is None else "vectors")]
    found = []
    for measures in measured:
        total = weights["bias"] + sum(
            weight * measures[name] for name, weight in weights.items() if name != "bias"
        )
        # without any word of the question there is nothing that vectors or times could speak for
        value = 1 / (1 + math.exp(-total)) if measures["passage"] > 0 or cosines is not None else 0.0
        found.append(Usefulness(value, measures))
    return found


def measure(
    question: str, passages: Sequence[PassageText], cosines: Sequence[float] | None = None
) -> list[dict[str, float]]:
    """Measure each passage by itself and against the others.

    Returns:
        For each passage, by name:

        - ``own``, ``near``, ``passage``, ``title``: weight of the question's terms in the best sentence; in it with
          its neighbours and title; in the whole passage; in its title. Where a time is asked for, its fit counts
          instead of its words;
        - ``names``: share of the names in the question that it holds; ``score``: score of its best sentence;
        - ``kind``: a good sentence offers what is asked for (a person, place, number, time, cause);
          ``open``: nothing of a known kind is asked for; ``terms``: how many terms the question has, as a logarithm;
        - ``timed``: a time is asked for; then ``edges``, ``overlap``, ``recent``, ``fit``: how well its sentences fit
          that time, ``outside``: all its dates lie outside, ``undated``: it has none;
        - ``crowd``: how much of the question the average passage holds;
        - ``lead own``, ``lead passage``, ``lead score``: how far it is ahead of the average of the others;
          ``behind own``, ``behind score``: how far behind the best of them; ``repeated``: how much more than others it
          says what others say too, where all are on the subject;
        - ``cosine``, ``lead cosine``, ``behind cosine`` with cosines.
    """
    asked = analyse(question[:MAX_QUESTION])
    read = [_read(asked, passage) for passage in passages]
    found = [dict(one.measures) for one in read]
    if cosines is not None:
        for measures, cosine in zip(found, cosines, strict=True):
            measures["cosine"] = cosine
    crowd = sum(one["passage"] for one in found) / max(len(found), 1)
    repeated = _repeated(read)
    leads = _leads(repeated)
    for place, measures in enumerate(found):
        measures["crowd"] = crowd
        measures["repeated"] = crowd * leads[place]
    for name in ("own", "passage", "score", *(["cosine"] if cosines is not None else [])):
        values = [one[name] for one in found]
        leads = _leads(values)
        first, second = (*sorted(values, reverse=True)[:2], 0.0, 0.0)[:2]
        for place, measures in enumerate(found):
            measures[f"lead {name}"] = leads[place]
            # the best of the others is the second where this one is the best
            behind = values[place] - (second if values[place] == first else first)
            measures[f"behind {name}"] = min(0.0, behind) if len(found) > 1 else 0.0
    return found


def _read(question: Question, passage: PassageText) -> _Passage:
    """The measures that a passage has by itself."""
    # the time that is asked for counts by its fit: "since 2010" holds in 2012
    salience = {term.key: 0.0 if question.spans and term.date else term.salience for term in question.terms}
    total = sum(salience.values()) or 1.0

    def share(keys: Iterable[str]) -> float:
        return sum(salience[key] for key in keys) / total

    found = collect(question, [passage])
    title = frozenset(terms(passage.title))
    keys = title.union(terms(passage.text))
    best = max((score(one) for one in found), default=0.0)
    good = [one for one in found if score(one) > best - _NEAR_BEST]
    measures = {
        "own": max((share(one.matched) for one in found), default=0.0),
        "near": max((share(one.near) for one in found), default=0.0),
        "passage": share(question.keys & keys),
        "title": share(question.keys & title),
        "names": found_names(question, [passage]),
        "score": best / 10,
        "kind": _highest(good, _KIND) if question.kind != "other" else 0.0,
        "open": float(question.kind == "other"),
        "terms": math.log1p(len(question.terms)),
        **_times(question, found, good),
    }
    return _Passage(measures, keys - title - question.keys)


def _times(question: Question, found: Sequence[Candidate], good: Sequence[Candidate]) -> dict[str, float]:
    """How a passage fits the time that is asked for; all 0 where none is."""
    if not question.spans:
        return dict.fromkeys(("timed", "edges", "overlap", "recent", "fit", "outside", "undated"), 0.0)
    overlap = _highest(found, _OVERLAP)
    dated = any(time_spans(one.text) for one in found)
    return {
        "timed": 1.0,
        "edges": _highest(found, _EDGES),
        "overlap": overlap,
        "recent": _highest(found, _RECENT),
        "fit": max((one.features[_OVERLAP] + one.features[_RECENT] for one in good), default=0.0),
        "outside": float(dated and overlap == 0.0),
        "undated": float(not dated),
    }


def _highest(found: Sequence[Candidate], feature: int) -> float:
    return max((one.features[feature] for one in found), default=0.0)


def _repeated(read: Sequence[_Passage]) -> list[float]:
    """How far what a passage says is said by other good ones: what independent sources repeat is often the answer."""
    scores = [max(one.measures["score"], 0.0) for one in read]
    total = sum(scores)
    holders: dict[str, list[int]] = {}
    for place, one in enumerate(read):
        for key in one.others:
            holders.setdefault(key, []).append(place)
    # beside hundreds of passages each is not added up anew for each, which would take the square of their number
    sums = {key: sum(scores[at] for at in places) for key, places in holders.items() if len(places) > _FEW}

    def said(key: str, place: int) -> float:
        """What the passages score that hold a term, but for one of them."""
        if key in sums:
            return max(0.0, sums[key] - scores[place])
        return sum(scores[other] for other in holders[key] if other != place)

    values = []
    for place, one in enumerate(read):
        rest = total - scores[place]
        shares = sorted(
            (said(key, place) / rest for key in one.others if len(holders[key]) > 1 and rest > 0),
            reverse=True,
        )
        values.append(sum(shares[:_REPEATED]) / _REPEATED)
    return values


def _leads(values: Sequence[float]) -> list[float]:
    """How far each value is ahead of the average of the others."""
    total, others = sum(values), len(values) - 1
    return [value - (total - value) / others if others else 0.0 for value in values]
