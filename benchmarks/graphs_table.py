"""The tables of docs/benchmarks.md about whole graphs, from results/graphs.json and results/declines.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULT = Path(__file__).resolve().parent / "results" / "graphs.json"
DECLINES = Path(__file__).resolve().parent / "results" / "declines.json"
HEAD = [
    "set", "graph", "right", "right beside plain, of all questions", "declined rightly", "beside plain", "wrong",
    "declined wrongly", "model calls a question",
]  # fmt: skip


def rows() -> list[list[str]]:
    """One row a graph and set."""
    table = []
    before = None
    for row in json.loads(RESULT.read_text(encoding="utf-8")):
        table.append(
            [
                row["set"] if row["set"] != before else "",
                row["graph"],
                _cell(row["right"]),
                _gain(row["right_beside_plain"]),
                _cell(row["declined_rightly"]),
                _gain(row["declined_beside_plain"]),
                _cell(row["wrong"]),
                _cell(row["declined_wrongly"]),
                f"{row['calls']:.1f}",
            ]
        )
        before = row["set"]
    return table


def declines_head() -> list[str]:
    """The columns of the table of thresholds: a measure, the threshold's choice, the sets."""
    return ["measure", "threshold chosen", *json.loads(DECLINES.read_text(encoding="utf-8"))[0]["sets"]]


def declines() -> list[list[str]]:
    """Right answers lost (of all questions) and questions without an answer declined besides plain RAG's."""
    return [
        [
            row["measure"] if way == "left_out" else "",
            {"left_out": "on the other sets", "hindsight": "in hindsight"}[way],
            *(_pair(cells[way]) for cells in row["sets"].values()),
        ]
        for row in json.loads(DECLINES.read_text(encoding="utf-8"))
        for way in ("left_out", "hindsight")
    ]


def _pair(cell: dict[str, Any]) -> str:
    return f"-{cell['lost']:.1%}" + ("" if cell["declined"] is None else f", +{cell['declined']:.0%}")


def _cell(share: dict[str, Any]) -> str:
    if share["value"] is None:
        return "–"
    return "{value:.1%} [{low:.1%}, {high:.1%}] of {of}".format(**share)


def _gain(share: dict[str, Any]) -> str:
    if share["value"] is None:
        return "–"
    return "{value:+.1%} [{low:+.1%}, {high:+.1%}]".format(**share)
