"""The table of docs/benchmarks.md about intervals with labels by people, from results/labels.json."""

from __future__ import annotations

import json
from pathlib import Path

RESULT = Path(__file__).resolve().parent / "results" / "labels.json"
HEAD = [
    "set", "judge", "of", "truth", "judge says", "judge's interval covers", "10 labels cover", "20 labels cover",
    "60 labels cover", "width with 60",
]  # fmt: skip


def rows() -> list[list[str]]:
    """A row for each set, judge, and mean or difference."""
    by_key: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for row in json.loads(RESULT.read_text(encoding="utf-8"))["rows"]:
        by_key.setdefault((row["set"], row["judge_name"], row["what"]), []).append(row)
    return [
        [
            *key, f"{found[0]['truth']:.3f}", f"{found[0]['judge']:.3f}", f"{found[0]['judge_coverage']:.1%}",
            *(f"{row['coverage']:.1%}" for row in found), f"{found[-1]['width']:.3f}",
        ]
        for key, found in by_key.items()
    ]  # fmt: skip
