"""How surely each passage helps to answer a question, by its words, names, times and kinds of things.

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

_TABLE = Path(__file__).with_name("weights.txt").read_text(encoding="utf-8")
#: The weight of each measure: for a passage alone, and beside others; 0 where it is not used.
_ROWS = [line.split("\t") for line in _TABLE.splitlines()]
WEIGHTS = {name: tuple(map(float, weights)) for name, *weights in _ROWS}
_NEAR_BEST = 1.5  # how far behind the best sentence's score a good one may be
_REPEATED_TERMS = 8  # of a passage that other passages have, by which repetition is measured


class PassageUsefulness(NamedTuple):
    """How surely a passage helps, from 0 to 1, and the measures behind it, by name."""

    value: float
    measures: dict[str, float]


def usefulness(question: str, passages: Sequence[PassageText]) -> list[PassageUsefulness]:
    """Estimate how surely each passage helps to answer a question."""
    has_others = len(passages) > 1  # the weights are those for a passage alone (0) or beside others (1)
    grades = []
    for measures in measure(question, passages):
        total = sum(weights[has_others] * measures.get(name, 0.0) for name, weights in WEIGHTS.items())
        # a passage without any word of the question cannot help, whatever its dates
        value = 1 / (1 + math.exp(-total)) if measures["passage"] > 0 else 0.0
        grades.append(PassageUsefulness(value, measures))
    return grades


def measure(question: str, passages: Sequence[PassageText]) -> list[dict[str, float]]:
    """Measure each passage by itself and against the others.

    Of each passage, by name:

    - ``own``, ``near``, ``passage``, ``title``: weight of the question's terms in the best sentence; in it with
      its neighbours and title; in the whole passage; in its title;
    - ``score``: score of its best sentence; ``kind``: a good sentence offers what is asked for; ``open``: nothing
      of a known kind is asked for; ``terms``: how many terms the question has, as a logarithm;
    - ``timed``: a time is asked for; then ``edges`` and ``recent``: how its sentences fit that time, ``outside``:
      all its dates lie outside, ``undated``: it has none;
    - ``crowd``: how much of the question the average passage holds; ``repeated``: how much more than others it
      says what others say too, where all are on the subject; ``lead``: how far it is ahead of the average of the
      others.
    """
    asked = analyse(question)
    measures, new_terms = [], []
    for passage in passages:
        title, text = frozenset(terms(passage.title)), frozenset(terms(passage.text))
        measures.append({"bias": 1.0, **_measure_alone(asked, passage, title, title | text)})
        new_terms.append(text - title - asked.keys)
    leads = {name: _lead_over_others([each[name] for each in measures]) for name in ("passage", "score")}
    scores = [max(each["score"], 0.0) for each in measures]
    repeated = _lead_over_others(_repetition(scores, new_terms))
    crowd = sum(each["passage"] for each in measures) / max(len(measures), 1)
    for position, of_passage in enumerate(measures):
        of_passage |= {f"lead {name}": values[position] for name, values in leads.items()}
        of_passage |= {"crowd": crowd, "repeated": crowd * repeated[position]}
    return measures


def _measure_alone(
    question: Question, passage: PassageText, title: frozenset[str], keys: frozenset[str]
) -> dict[str, float]:
    """Measure a passage by itself, given the terms of its title, and those of title and text."""
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


def _repetition(scores: Sequence[float], passage_terms: Sequence[frozenset[str]]) -> list[float]:
    """Measure how much of each passage other good passages say too: independent sources repeat answers.

    A term has the share of the others' scores that passages with it have; the mean is over a passage's highest terms.
    """
    total = sum(scores)
    scores_by_term: Counter[str] = Counter()
    for score, keys in zip(scores, passage_terms, strict=True):
        scores_by_term.update(dict.fromkeys(keys, score))
    values = []
    for score, keys in zip(scores, passage_terms, strict=True):
        of_others = total - score
        shares = (max(0.0, scores_by_term[key] - score) / of_others for key in keys if of_others > 0)
        values.append(sum(heapq.nlargest(_REPEATED_TERMS, shares)) / _REPEATED_TERMS)
    return values


def _lead_over_others(values: Sequence[float]) -> list[float]:
    """Return how far each value is above the average of the others."""
    total, others = sum(values), len(values) - 1
    return [value - (total - value) / others if others else 0.0 for value in values]
