"""Fit the weights of the lexical evaluator, and print them as rag_kit/text/evidence/usefulness.py holds them.

    python benchmarks/fit_evaluator.py DATA [--kind words|vectors|both]

Logistic regression on the first half of each set's questions (`evaluator_pairs.half`; nothing of the other half is
looked at). Every set has the same total weight, and so have relevant and other pairs. Each question is there a second
time without the passages that answer, so that the weights know questions that nothing answers. A weight whose sign
contradicts what its measure means (more words of the question must not make a passage worse) is left out and the rest
fitted again. Prints the ROC-AUC on both halves, and the one on the second half with the set left out of the fit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import evaluator_pairs
from evaluator_pairs import Asked
from evaluator_vectors import Cosines

from rag_kit.graphs.evaluators.fitting import roc_auc
from rag_kit.text.evidence.usefulness import SETTINGS, measure

LIMITS = {"scifact claims": 300, "rgb zh_int": 60, **dict.fromkeys(evaluator_pairs.OTHERS, 250)}
ALONE = ("own", "near", "passage", "title", "score", "kind", "open", "terms")
TIMES = ("timed", "edges", "recent", "outside", "undated")
BESIDE = ("crowd", "lead passage", "lead score", "repeated")
FALLING = {"outside", "undated"}
FREE = {"timed", "open", "terms", "crowd"}
RIDGE = 3.0
Rows = list[
    tuple[str, int, dict[str, float], bool, bool]
]  # set, half, measures, relevant, without its answers


def rows(name: str, questions: Sequence[Asked], cosines: Cosines | None, *, alone: bool) -> Rows:
    """The measures of every pair of a set."""
    found: Rows = []
    for asked in questions:
        kept = [place for place, label in enumerate(asked.labels) if not label]
        lots = [(list(range(len(asked.labels))), False)]
        if any(asked.labels) and kept:
            lots.append((kept, True))
        for places, without in lots:
            for group in [[place] for place in places] if alone else [places]:
                if alone and without:
                    continue
                texts = [asked.text(place) for place in group]
                vectors = cosines(asked.question, [text.text for text in texts]) if cosines else None
                for place, measures in zip(group, measure(asked.question, texts, vectors), strict=True):
                    found.append((name, asked.half, measures, asked.labels[place], without))
    return found


def fit(data: Rows, names: Sequence[str]) -> dict[str, float]:
    """The weights, without those of the wrong sign."""
    left = list(names)
    x_all = {name: np.array([row[2].get(name, 0.0) for row in data]) for name in names}
    truth = np.array([row[3] for row in data])
    sets = np.array([f"{row[0]} {row[4]}" if row[4] else row[0] for row in data])
    weight = np.zeros(truth.size)
    for name in set(sets):
        for label in (True, False):
            chosen = (sets == name) & (truth == label)
            # the copies without answers count half as much as the others that do not answer
            weight[chosen] = (500 if not name.endswith("True") else 250) / max(chosen.sum(), 1)
    while True:
        x = np.stack([x_all[name] for name in left], axis=1)
        mean, deviation = x.mean(0), x.std(0) + 1e-9
        slopes = _regress((x - mean) / deviation, truth.astype(float), weight)
        wrong = [
            (abs(slope), name)
            for slope, name in zip(slopes, left, strict=False)
            if name not in FREE and (slope > 0) == (name in FALLING) and slope != 0
        ]
        if not wrong:
            found = {name: float(value) for name, value in zip(left, slopes[:-1] / deviation, strict=True)}
            return {"bias": float(slopes[-1] - (slopes[:-1] / deviation * mean).sum()), **found}
        left.remove(max(wrong)[1])


def _regress(x: np.ndarray, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Ridge logistic regression by Newton's method; the last value is the intercept."""
    x = np.hstack([x, np.ones((len(x), 1))])
    ridge = np.eye(x.shape[1]) * RIDGE
    ridge[-1, -1] = 1e-6
    slopes = np.zeros(x.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(x @ slopes, -30, 30)))
        step = np.linalg.solve(
            (x.T * (weight * chance * (1 - chance))) @ x + ridge,
            x.T @ (weight * (chance - truth)) + ridge @ slopes,
        )
        slopes -= step
        if np.abs(step).max() < 1e-8:
            break
    return slopes


def auc(data: Rows, weights: dict[str, float]) -> float:
    """ROC-AUC of the pairs."""
    values = [
        weights["bias"]
        + sum(value * row[2].get(name, 0.0) for name, value in weights.items() if name != "bias")
        for row in data
    ]
    return roc_auc(np.array(values), np.array([row[3] for row in data]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--kind", choices=("words", "vectors", "both"), default="both", help="which to fit")
    options = parser.parse_args()
    names = (*evaluator_pairs.SETS, *evaluator_pairs.OTHERS)
    questions = {name: evaluator_pairs.load(options.data, name, LIMITS.get(name)) for name in names}
    found: dict[str, dict[str, float]] = {}
    for vectors in {"words": (False,), "vectors": (True,)}.get(options.kind, (False, True)):
        # the packaged vectors read English only
        used = [name for name in names if not vectors or not any(part in name for part in ("zh", "cmrc"))]
        cosines = Cosines([asked for name in used for asked in questions[name]]) if vectors else None
        for alone in (True, False):
            data = [row for name in used for row in rows(name, questions[name], cosines, alone=alone)]
            wanted = [*ALONE, *TIMES, *(() if alone else BESIDE)]
            if vectors:
                wanted += ["cosine", *(() if alone else ("lead cosine", "behind cosine"))]
            first = [row for row in data if row[1] == 0]
            weights = fit(first, wanted)
            key = SETTINGS[(not alone) + 2 * vectors]
            found[key] = {name: round(value, 2) for name, value in weights.items() if abs(value) >= 0.005}
            print(key, found[key])
            for name in used:
                own = [row for row in data if row[0] == name and not row[4]]
                rest = [row for row in first if row[0].split()[0] != name.split()[0]]
                cells = (
                    auc([row for row in own if row[1] == 0], weights),
                    auc([row for row in own if row[1] == 1], weights),
                    auc([row for row in own if row[1] == 1], fit(rest, wanted)),
                )
                print(
                    f"  {name:16} fitted half {cells[0]:.3f}  other half {cells[1]:.3f}  left out {cells[2]:.3f}"
                )
            sys.stdout.flush()
    for name in dict.fromkeys(name for weights in found.values() for name in weights):
        print(f'    "{name}": {tuple(found.get(key, {}).get(name, 0.0) for key in SETTINGS)},')


if __name__ == "__main__":
    main()
