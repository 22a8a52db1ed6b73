"""The table of docs/benchmarks.md about the check of citations, from results/citations.json."""

from __future__ import annotations

import json
from pathlib import Path

RESULT = Path(__file__).resolve().parent / "results" / "citations.json"
HEAD = ["statements", "of", "number", "passed", "flagged", "undecided", "false alarms", "misses"]


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def rows() -> list[list[str]]:
    """One row a kind of statement and set; the statuses as shares."""
    return [
        [
            row["what"],
            row["set"],
            f"{row['statements']:,}",
            *(_share(row[name]) if name in row else "" for name in HEAD[3:]),
        ]
        for row in json.loads(RESULT.read_text(encoding="utf-8"))
    ]
