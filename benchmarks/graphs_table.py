"""The table of docs/benchmarks.md about whole graphs, from results/graphs.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULT = Path(__file__).resolve().parent / "results" / "graphs.json"
HEAD = [
    "set", "graph", "right", "wrong", "declined wrongly", "declined rightly", "declined rightly, held out",
    "kept of plain's right ones", "model calls a question",
]  # fmt: skip


def rows() -> list[list[str]]:
    """One row a graph and set."""
    table = []
    before = None
    for row in json.loads(RESULT.read_text(encoding="utf-8")):
        every = row["all"]
        table.append(
            [
                row["set"] if row["set"] != before else "",
                row["graph"],
                *(_cell(every[kind]) for kind in ("right", "wrong", "declined_wrongly", "declined_rightly")),
                _cell(row["held_out"]["declined_rightly"]),
                f"{row['kept_of_plain']:.1%}",
                f"{row['calls']:.1f}",
            ]
        )
        before = row["set"]
    return table


def _cell(share: dict[str, Any]) -> str:
    if share["value"] is None:
        return "–"
    return "{value:.1%} [{low:.1%}, {high:.1%}] of {of}".format(**share)
