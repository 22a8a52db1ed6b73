"""Whether words can tell a question that the passages do not answer: thresholds set on the other sets.

    python benchmarks/quality/quality_declines.py DATA

All sets of quality_graphs with the same five passages. A measure is compared with a threshold, below which the
question is declined. "Left out": the threshold is the highest one at which none of the other sets loses more than half
a point of all its questions to wrong declines. "In hindsight": the highest at which this set itself loses no more than
one point. Reported for each set: the share of all its questions that lose a right answer, and the share of those
without an answer that are declined besides those that plain RAG declines. Measures: the extractive model's own support,
the evaluator's highest confidence, its second highest, its mean, how well the chosen sentences fit a time that is asked
for, and a logistic regression on all of these, fitted on the other sets (in hindsight: on this set as well). Writes
benchmarks/results/declines.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import quality_graphs
from evaluator_pairs import plain

from rag_kit.models.extractive.answering import measure, strength
from rag_kit.text.evidence.questions import analyse
from rag_kit.text.evidence.sentences import choose, collect, drop_distraction, passage_text
from rag_kit.text.evidence.usefulness import usefulness

RESULT = Path(__file__).resolve().parent.parent / "results" / "declines.json"
NAMES = ("support", "highest confidence", "second confidence", "mean confidence", "fit in time")
ALL = "all of them, regression"
CAREFUL, ALLOWED = 0.005, 0.01


def values(case: quality_graphs.Case) -> tuple[list[float], str] | None:
    """The measures of a question, and what plain RAG makes of it: right, wrong or declined; None without passages."""
    texts = [
        passage_text(number, one.page_content, one.metadata) for number, one in enumerate(case.passages, 1)
    ]
    if not texts:
        return None
    question = analyse(case.question)
    found = collect(question, texts)
    picked = choose(question, found)
    support = strength(question, texts, found, picked)
    high = sorted((one.value for one in usefulness(case.question, texts)), reverse=True)
    fit = measure(question, texts, found, picked)["time"] if picked else 0.0
    said = plain(" ".join(one.text for one in drop_distraction(picked)))
    right = any(plain(answer) in said for answer in case.answers)
    kind = "declined" if support < 0.5 else "right" if right else "wrong"
    return [_logit(support), _logit(high[0]), _logit((*high, 0.0)[1]), sum(high) / len(high), fit], kind


def _logit(share: float) -> float:
    inside = min(max(share, 1e-6), 1 - 1e-6)
    return math.log(inside / (1 - inside))


class Asked:
    """A set: the measures of its right answers, of what nothing answers and is answered, and how many questions."""

    def __init__(self, cases: Sequence[quality_graphs.Case]) -> None:
        read = [(case, values(case)) for case in cases]
        self.size = len(cases)
        self.without = sum(not case.answers for case in cases)
        self.right = np.array([one[0] for _, one in read if one and one[1] == "right"])
        self.answered = np.array(
            [one[0] for case, one in read if one and not case.answers and one[1] != "declined"]
        ).reshape(-1, len(NAMES))


def regression(sets: Sequence[Asked]) -> np.ndarray:
    """Weights of the measures: each set counts the same, and so do both kinds of questions."""
    x = np.vstack([part for one in sets for part in (one.right, one.answered)])
    truth = np.concatenate(
        [part for one in sets for part in (np.ones(len(one.right)), np.zeros(len(one.answered)))]
    )
    weight = np.concatenate(
        [np.full(len(part), 500 / max(len(part), 1)) for one in sets for part in (one.right, one.answered)]
    )
    scale = x.std(0) + 1e-9
    x = np.hstack([x / scale, np.ones((len(x), 1))])
    slopes = np.zeros(x.shape[1])
    ridge = np.diag([3.0] * len(NAMES) + [1e-6])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(x @ slopes, -30, 30)))
        slopes -= np.linalg.solve(
            (x.T * (weight * chance * (1 - chance))) @ x + ridge,
            x.T @ (weight * (chance - truth)) + ridge @ slopes,
        )
    return np.asarray(slopes[:-1] / scale)


def threshold(sets: Sequence[Asked], weights: np.ndarray, loss: float) -> float:
    """The highest value below which no set loses more than a share of all its questions."""
    return min(float(np.sort(one.right @ weights)[int(loss * one.size)]) for one in sets)


def outcome(one: Asked, weights: np.ndarray, limit: float) -> dict[str, float | None]:
    """Count right answers and declines of a threshold on a set."""
    more = int((one.answered @ weights < limit).sum())
    return {
        "lost": float((one.right @ weights < limit).sum() / one.size),
        "declined": more / one.without if one.without else None,
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    sets = {name: Asked(quality_graphs.cases(options.data, name)) for name in quality_graphs.SETS}
    rows: list[dict[str, Any]] = []
    for place, name in enumerate((*NAMES, ALL)):
        row: dict[str, Any] = {"measure": name, "sets": {}}
        for left, one in sets.items():
            others = [other for each, other in sets.items() if each != left]
            unit = np.eye(len(NAMES))[place] if name != ALL else None
            blind = regression(others) if unit is None else unit
            sighted = regression(list(sets.values())) if unit is None else unit
            row["sets"][left] = {
                "left_out": outcome(one, blind, threshold(others, blind, CAREFUL)),
                "hindsight": outcome(one, sighted, threshold([one], sighted, ALLOWED)),
            }
        print(json.dumps(row), flush=True)
        rows.append(row)
    options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
