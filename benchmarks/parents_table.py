"""The table of docs/benchmarks.md about parents and sentence windows, from results/parents.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULT = Path(__file__).resolve().parent / "results" / "parents.json"
HEAD = [
    "set",
    "search",
    "what is searched and returned",
    "mean passage",
    "gold span",
    "against its own size",
    "against the best plain size",
]


def rows() -> list[list[str]]:
    """One row an arm; in bold what is above or below plain chunks beyond chance."""
    content = json.loads(RESULT.read_text(encoding="utf-8"))
    table: list[list[str]] = []
    before = None
    for row in content["rows"]:
        key = (row["set"], row["pipeline"])
        table.append(
            [
                row["set"] if key != before else "",
                row["pipeline"] if key != before else "",
                row["arm"],
                f"{row['passage_characters']:,}",
                "{value:.3f} [{low:.3f}, {high:.3f}]".format(**row["recall"]),
                _against(row.get("same_size")),
                _against(row.get("best_plain")),
            ]
        )
        before = key
    return table


def _against(other: dict[str, Any] | None) -> str:
    if other is None:
        return "–"
    difference = other["difference"]
    text = f"{difference['value']:+.3f} [{difference['low']:+.3f}, {difference['high']:+.3f}]"
    certain = difference["low"] > 0 or difference["high"] < 0
    return f"{f'**{text}**' if certain else text} ({other['arm']})"
