"""The table of docs/benchmarks.md about GraphRetriever, from results/graph_retriever.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULT = Path(__file__).resolve().parent / "results" / "graph_retriever.json"
HEAD = [
    "set",
    "passages",
    "questions",
    "pipeline",
    "nDCG@10",
    "recall@10",
    "all found",
    "recall beside hybrid",
]


def rows() -> list[list[str]]:
    """One row a pipeline of a set."""
    table = []
    before = None
    for row in json.loads(RESULT.read_text(encoding="utf-8"))["rows"]:
        first = row["set"] != before
        before = row["set"]
        table.append(
            [
                *([row["set"], f"{row['passages']:,}", f"{row['questions']:,}"] if first else ["", "", ""]),
                row["pipeline"],
                f"{row['ndcg']:.3f}",
                f"{row['recall']:.3f}",
                f"{row['all']:.1%}",
                _beside(row),
            ]
        )
    return table


def _beside(row: dict[str, Any]) -> str:
    if row["pipeline"] == "hybrid":
        return "–"
    return "{value:+.3f} [{low:+.3f}, {high:+.3f}]".format(**row["beside_hybrid"])
