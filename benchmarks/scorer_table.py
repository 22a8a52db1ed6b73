"""The table of docs/benchmarks.md about the truthfulness of the scorer, from results/scorer.json."""

from __future__ import annotations

import json
from pathlib import Path

RESULT = Path(__file__).resolve().parent / "results" / "scorer.json"
HEAD = [
    "scorer", "claims", "scored", "share supported", "balanced accuracy", "ROC-AUC", "Cohen's kappa",
    "of the supported, accepted", "of the others, refused",
]  # fmt: skip


def rows() -> list[list[str]]:
    """How far each scorer agrees with the labels, on each set and kind of claim."""
    found = json.loads(RESULT.read_text(encoding="utf-8"))
    return [
        [
            name if number == 0 else "",
            row["task"],
            f"{row['scored']:,} of {row['claims']:,}",
            f"{row['supported']:.0%}",
            _cell(row["balanced_accuracy"]),
            _cell(row["auc"]),
            _cell(row["kappa"]),
            f"{row['true_positive_rate']:.0%}",
            f"{row['true_negative_rate']:.0%}",
        ]
        for name, entry in found.items()
        for number, row in enumerate(entry["rows"])
    ]


def _cell(value: dict[str, float]) -> str:
    return "{value:.3f} [{low:.3f}, {high:.3f}]".format(**value)
