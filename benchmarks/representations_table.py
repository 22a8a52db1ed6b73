"""The table of docs/benchmarks.md about representations, from results/representations.json."""

from __future__ import annotations

import json
from pathlib import Path

from parents_table import _against

RESULT = Path(__file__).resolve().parent / "results" / "representations.json"
HEAD = ["set", "search", "questions", "found by", "gold span", "against the text alone"]


def rows() -> list[list[str]]:
    """One row an arm; in bold what is above or below the text alone beyond chance."""
    content = json.loads(RESULT.read_text(encoding="utf-8"))
    table: list[list[str]] = []
    before = None
    for row in content["rows"]:
        key = (row["set"], row["pipeline"], f"{row['questions']:,}")
        table.append(
            [
                *(key if key != before else ("", "", "")),
                row["arm"],
                "{value:.3f} [{low:.3f}, {high:.3f}]".format(**row["recall"]),
                _against(row.get("best_plain")).partition(" (")[0],
            ]
        )
        before = key
    return table
