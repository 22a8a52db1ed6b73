"""The tables of docs/benchmarks.md about retrieval evaluators, from results/evaluators.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULT = Path(__file__).resolve().parent / "results" / "evaluators.json"
HEAD = [
    "evaluator", "set", "questions", "pairs", "relevant", "ROC-AUC", "accuracy at the fitted cut", "majority",
]  # fmt: skip
ACTIONS_HEAD = [
    "evaluator", "set", "questions with / without an answer among their passages",
    "with: correct / ambiguous / incorrect", "without: correct / ambiguous / incorrect",
]  # fmt: skip
NAMES = {
    "lexical": "lexical",
    "minilm": "lexical + MiniLM",
    "extractive": "extractive model through LLMEvaluator",
}


def rows() -> list[list[str]]:
    """How each evaluator classifies the pairs of the halves that nothing was fitted on."""
    return [
        [
            NAMES[kind] if number == 0 else "",
            row["set"],
            f"{row['questions']:,}",
            f"{row['pairs']:,}",
            f"{row['relevant']:.1%}",
            _cell(row["auc"]),
            _cell(row["accuracy"]),
            f"{row['majority']:.3f}",
        ]
        for kind, part in _load()
        for number, row in enumerate(part["rows"])
    ]


def actions() -> list[list[str]]:
    """What CRAG's actions are on those halves."""
    return [
        [
            NAMES[kind] if number == 0 else "",
            row["set"],
            f"{row['with']} / {row['without']}",
            _shares(row["correct_with"], row["incorrect_with"]),
            _shares(row["correct_without"], row["incorrect_without"]),
        ]
        for kind, part in _load()
        for number, row in enumerate(part["actions"])
    ]


def _load() -> list[tuple[str, dict[str, Any]]]:
    found = json.loads(RESULT.read_text(encoding="utf-8"))
    return [(kind, found[kind]) for kind in NAMES if kind in found]


def _cell(value: dict[str, float]) -> str:
    return "{value:.3f} [{low:.3f}, {high:.3f}]".format(**value)


def _shares(correct: float, incorrect: float) -> str:
    return f"{correct:.0%} / {max(0.0, 1 - correct - incorrect):.0%} / {incorrect:.0%}"
