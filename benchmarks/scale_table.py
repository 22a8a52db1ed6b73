"""The table of a large index beside bm25s and Chroma, from benchmarks/results/scale.json."""

from __future__ import annotations

import json
from pathlib import Path

RESULT = Path(__file__).resolve().parent / "results" / "scale.json"
HEAD = ["measured", "ratio", "limit", "in figures"]


def rows() -> list[list[str]]:
    """One row for each ratio."""
    return [
        [row["name"], f"{row['ratio']:.3g}", row["target"], row["note"]]
        for row in json.loads(RESULT.read_text(encoding="utf-8"))["rows"]
    ]


def note() -> str:
    """How long it took, in how much memory, and how busy the machine was."""
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    text = f"One run of {result['minutes']} minutes, all sides together in at most {result['gigabytes']} GB."
    if result["load_per_cpu"] > 1:  # its own threads keep about one process a core running
        text += (
            f" Other work ran beside it ({result['load_per_cpu']} running processes a core): the seconds are far too "
            "long, and what was timed minutes apart (build, open) is off by as much as the load changed meanwhile."
        )
    return text
