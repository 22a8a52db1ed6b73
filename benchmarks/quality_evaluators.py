"""Retrieval evaluators as classifiers of labelled pairs (question, passage).

    python benchmarks/quality_evaluators.py DATA [--evaluators lexical minilm extractive] [--sets ...]

For each evaluator and set: thresholds by `fit_thresholds` on one half of the questions; on the other half the ROC-AUC
and the accuracy at the cut, with 95% bootstrap intervals that draw questions. The actions: thresholds fitted on the
highest confidence of each question of all first halves, with and without the passages that answer; what they do on the
second halves. The weights of the lexical evaluator come
from the same first halves (fit_evaluator.py), so nothing that is reported was fitted on. `majority` is the accuracy of
always saying the more frequent label. The thresholds of the actions are
the evaluators' defaults. Those take in four sets of plain
reading questions too. Writes benchmarks/results/evaluators.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import evaluator_pairs
from evaluator_intervals import intervals
from evaluator_pairs import Asked
from evaluator_vectors import Known

from rag_kit.concurrency.steps import run
from rag_kit.graphs.evaluators.base import Evaluator, Thresholds
from rag_kit.graphs.evaluators.fitting import fit_thresholds, roc_auc
from rag_kit.graphs.evaluators.lexical import LexicalEvaluator
from rag_kit.graphs.evaluators.models import LLMEvaluator
from rag_kit.models import chat_model

RESULT = Path(__file__).resolve().parent / "results" / "evaluators.json"
LIMITS = {"scifact claims": 300, "rgb zh_int": 60, **dict.fromkeys(evaluator_pairs.OTHERS, 120)}
KEPT = 0.95
"""Share of the questions with an answer among their passages that must not be 'incorrect'."""


def judged(evaluator: Evaluator, questions: Sequence[Asked]) -> list[list[float]]:
    """The confidences of each question's passages."""
    found = []
    for asked in questions:
        gradings = run(evaluator.grade(asked.question, asked.passages, "en"), {})
        assert not any(one.reason.startswith("not graded") for one in gradings)
        found.append([one.score for one in gradings])
    return found


def pooled(
    questions: Sequence[Asked], scores: Sequence[Sequence[float]], half: int
) -> tuple[list[float], list[bool], list[int]]:
    """Confidences, labels and question of the pairs of one half."""
    values: list[float] = []
    labels: list[bool] = []
    groups: list[int] = []
    for number, (asked, row) in enumerate(zip(questions, scores, strict=True)):
        if asked.half == half:
            values += row
            labels += asked.labels
            groups += [number] * len(row)
    return values, labels, groups


def measured(name: str, questions: Sequence[Asked], scores: Sequence[Sequence[float]]) -> dict[str, Any]:
    """A row of the table."""
    values, labels, groups = pooled(questions, scores, 0)
    fitted = fit_thresholds(values, labels)
    values, labels, groups = pooled(questions, scores, 1)
    found, truth = np.array(values), np.array(labels)
    auc, accuracy = intervals(found, truth, fitted.cut, groups)
    share = float(truth.mean())
    high, low = fitted.thresholds.upper, fitted.thresholds.lower
    return {
        "set": name,
        "questions": len(set(groups)),
        "pairs": len(values),
        "relevant": share,
        "auc": {"value": roc_auc(found, truth), "low": auc[0], "high": auc[1]},
        "accuracy": {
            "value": float(((found > fitted.cut) == truth).mean()), "low": accuracy[0], "high": accuracy[1],
        },
        "majority": max(share, 1 - share),
        "cut": fitted.cut,
        "thresholds": asdict(fitted.thresholds),
        "precision": float(truth[found > high].mean()) if (found > high).any() else None,
        "above": float((found > high).mean()),
        "negative_precision": float((~truth[found < low]).mean()) if (found < low).any() else None,
        "below": float((found < low).mean()),
    }  # fmt: skip


def best_of(evaluator: Evaluator, questions: Sequence[Asked], half: int) -> tuple[list[float], list[bool]]:
    """The highest confidence of each question's passages, and of those passages without the ones that answer.

    CRAG's action hangs on the highest confidence: this is what its thresholds are fitted on.
    """
    scores: list[float] = []
    labels: list[bool] = []
    for asked in questions:
        if asked.half != half:
            continue
        rest = [one for one, label in zip(asked.passages, asked.labels, strict=True) if not label]
        for passages, label in ((asked.passages, any(asked.labels)), (rest, False)):
            if passages and (label or passages is rest):
                gradings = run(evaluator.grade(asked.question, passages, "en"), {})
                scores.append(max(one.score for one in gradings))
                labels.append(label)
    return scores, labels


def decided(
    name: str, thresholds: Thresholds, scores: Sequence[float], labels: Sequence[bool]
) -> dict[str, Any]:
    """What the actions are, where an answer is among the passages and where none is."""
    found, truth = np.array(scores), np.array(labels)
    return {
        "set": name,
        "with": int(truth.sum()),
        "without": int((~truth).sum()),
        "auc": roc_auc(found, truth) if 0 < truth.sum() < truth.size else None,
        "correct_with": float((found > thresholds.upper)[truth].mean()),
        "incorrect_with": float((found < thresholds.lower)[truth].mean()),
        "correct_without": float((found > thresholds.upper)[~truth].mean()),
        "incorrect_without": float((found < thresholds.lower)[~truth].mean()),
    }


def actions(
    kind: str, firsts: tuple[list[float], list[bool]], seconds: dict[str, tuple[list[float], list[bool]]]
) -> dict[str, Any]:
    """Thresholds of the actions, fitted on the first halves, and what they do on the second ones."""
    fitted = fit_thresholds(firsts[0], firsts[1], recall=KEPT)
    print(kind, "actions, all first halves:", fitted, flush=True)
    found = [decided(name, fitted.thresholds, *seconds[name]) for name in seconds]
    for action in found:
        print(kind, json.dumps(action), flush=True)
    return {"thresholds": asdict(fitted.thresholds), "actions": found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--evaluators", nargs="*", default=["lexical", "minilm", "extractive"])
    parser.add_argument("--sets", nargs="*", default=list(evaluator_pairs.SETS))
    parser.add_argument("--no-actions", action="store_true", help="only the pairs")
    parser.add_argument("--claims", type=int, default=LIMITS["scifact claims"], help="how many of scifact's")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    limits = {**LIMITS, "scifact claims": options.claims}
    questions = {
        name: [one for one in evaluator_pairs.load(options.data, name, limits.get(name)) if one.passages]
        for name in (*options.sets, *(evaluator_pairs.OTHERS if not options.no_actions else ()))
    }
    result: dict[str, Any] = {}
    for kind in options.evaluators:
        rows: list[dict[str, Any]] = []
        firsts: tuple[list[float], list[bool]] = ([], [])
        seconds: dict[str, tuple[list[float], list[bool]]] = {}
        for name in questions:
            if kind == "minilm" and any(part in name for part in ("zh", "cmrc")):
                continue  # it reads English only; the evaluator judges Chinese by words
            evaluator: Evaluator = (
                LLMEvaluator(chat_model("extractive"), batch_size=1)
                if kind == "extractive"
                else LexicalEvaluator(embeddings=Known(questions[name]) if kind == "minilm" else None)
            )
            if name in options.sets:
                rows.append(measured(name, questions[name], judged(evaluator, questions[name])))
                print(kind, json.dumps(rows[-1]), flush=True)
            if options.no_actions:
                continue
            for column, part in zip(firsts, best_of(evaluator, questions[name], 0), strict=True):
                column.extend(part)  # type: ignore[arg-type]
            seconds[name] = best_of(evaluator, questions[name], 1)
        result[kind] = {"rows": rows, "actions": []}
        if not options.no_actions:
            result[kind].update(actions(kind, firsts, seconds))
        written = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else {}
        options.out.write_text(json.dumps({**written, kind: result[kind]}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
