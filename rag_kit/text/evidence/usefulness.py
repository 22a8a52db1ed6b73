"""How surely each passage helps to answer a question, by its words, names, times, kinds of things, and vectors.

The weights come from logistic regression on one half of labelled pairs of public sets (docs/benchmarks.md).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rag_kit.text.evidence.questions import Question, analyse, terms
from rag_kit.text.evidence.sentences import PassageText, collect, weight_of
from rag_kit.text.evidence.times import time_spans

SETTINGS = ("alone, words", "beside others, words", "alone, vectors", "beside others, vectors")
_TABLE = Path(__file__).with_name("weights.txt").read_text(encoding="utf-8")
#: The weight of each measure in each of the SETTINGS; 0 where it is not used.
WEIGHTS = {
    name: tuple(map(float, weights)) for name, *weights in (line.split("\t") for line in _TABLE.splitlines())
}
_NEAR_BEST = 1.5
_REPEATED = 8


class PassageUsefulness(NamedTuple):
    """How surely a passage helps, from 0 to 1, and the measures behind it, by name."""

    value: float
    measures: dict[str, float]


def usefulness(
    question: str, passages: Sequence[PassageText], cosines: Sequence[float] | None = None
) -> list[PassageUsefulness]:
    """Estimate how surely each passage helps beside the others, by words, and by cosines to the question.

    Without ``cosines`` it goes by words alone.
    """
    weights_column = (len(passages) > 1) + 2 * (cosines is not None)  # 0 to 3: a place in SETTINGS
    grades = []
    for measures in measure(question, passages, cosines):
        total = sum(weights[weights_column] * measures.get(name, 0.0) for name, weights in WEIGHTS.items())
        # judged by words alone, a passage without any word of the question cannot help, whatever its dates
        value = 1 / (1 + math.exp(-total)) if measures["passage"] > 0 or cosines is not None else 0.0
        grades.append(PassageUsefulness(value, measures))
    return grades


def measure(
    question: str, passages: Sequence[PassageText], cosines: Sequence[float] | None = None
) -> list[dict[str, float]]:
    """Measure each passage by itself and against the others.

    Of each passage, by name:

    - ``own``, ``near``, ``passage``, ``title``: weight of the question's terms in the best sentence; in it with
      its neighbours and title; in the whole passage; in its title;
    - ``score``: score of its best sentence; ``kind``: a good sentence offers what is asked for; ``open``: nothing
      of a known kind is asked for; ``terms``: how many terms the question has, as a logarithm;
    - ``timed``: a time is asked for; then ``edges`` and ``recent``: how its sentences fit that time, ``outside``:
      all its dates lie outside, ``undated``: it has none;
    - ``crowd``: how much of the question the average passage holds; ``repeated``: how much more than others it
      says what others say too, where all are on the subject; ``lead`` and ``behind``: how far it is ahead of the
      average of the others, or behind the best one; ``cosine``.
    """
    asked = analyse(question)
    rows, words = [], []
    for passage in passages:
        title, text = frozenset(terms(passage.title)), frozenset(terms(passage.text))
        rows.append({"bias": 1.0, **_measure_alone(asked, passage, title, title | text)})
        words.append(text - title - asked.keys)
    compared = ["passage", "score"]
    if cosines is not None:
        compared.append("cosine")
        best = max(map(float, cosines), default=0.0)
        for row, cosine in zip(rows, cosines, strict=True):
            row |= {"cosine": float(cosine), "behind cosine": float(cosine) - best}
    leads = {f"lead {name}": _lead_over_others([row[name] for row in rows]) for name in compared}
    leads["repeated"] = _lead_over_others(_repetition([max(row["score"], 0.0) for row in rows], words))
    crowd = sum(row["passage"] for row in rows) / max(len(rows), 1)
    for position, row in enumerate(rows):
        row |= {name: values[position] for name, values in leads.items()}
        row |= {"crowd": crowd, "repeated": crowd * row["repeated"]}
    return rows


def _measure_alone(
    question: Question, passage: PassageText, title: frozenset[str], keys: frozenset[str]
) -> dict[str, float]:
    """Measure a passage by itself, given the question's terms in its title and in all of it."""
    candidates = collect(question, [passage])
    features = [candidate.features for candidate in candidates]
    best = max((candidate.score for candidate in candidates), default=0.0)
    good = [candidate.features.kind for candidate in candidates if candidate.score > best - _NEAR_BEST]
    measures = {
        "own": max((weight_of(question, candidate.matched) for candidate in candidates), default=0.0),
        "near": max((weight_of(question, candidate.near) for candidate in candidates), default=0.0),
        "passage": weight_of(question, question.keys & keys),
        "title": weight_of(question, question.keys & title),
        "score": best / 10,
        "kind": max(good, default=0.0),
        "open": float(question.kind == "other"),
        "terms": math.log1p(len(question.terms)),
        "timed": float(bool(question.spans)),
    }
    if question.spans:
        dated = any(time_spans(candidate.text) for candidate in candidates)
        measures |= {
            "edges": max((feature.edges for feature in features), default=0.0),
            "recent": max((feature.recent for feature in features), default=0.0),
            "outside": float(dated and not any(feature.overlap for feature in features)),
            "undated": float(not dated),
        }
    return measures


def _repetition(scores: Sequence[float], words: Sequence[frozenset[str]]) -> list[float]:
    """Measure how far other good passages say what this one says: independent sources repeat answers."""
    sums: Counter[str] = Counter()
    for score, terms_of_passage in zip(scores, words, strict=True):
        sums.update(dict.fromkeys(terms_of_passage, score))
    values = []
    for score, terms_of_passage in zip(scores, words, strict=True):
        rest = sum(scores) - score
        shares = (max(0.0, sums[key] - score) / rest for key in terms_of_passage if rest > 0)
        values.append(sum(heapq.nlargest(_REPEATED, shares)) / _REPEATED)
    return values


def _lead_over_others(values: Sequence[float]) -> list[float]:
    """Return how far each value is above the average of the others."""
    total, others = sum(values), len(values) - 1
    return [value - (total - value) / others if others else 0.0 for value in values]
