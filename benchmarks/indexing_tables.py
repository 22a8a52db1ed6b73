"""The tables of docs/benchmarks.md about what is indexed, from results/titles.json and results/splitters.json."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"
TITLES_HEAD = ["set", "chunks", "search", "nDCG@10 of texts alone", "with titles and headings", "difference"]

SPLITTERS_HEAD = ["set", "splitter", "chunks", "mean chunk", "gold span in 3,000 characters"]


def splitters() -> list[list[str]]:
    """One row a splitter of a set; the best of a set is bold."""
    rows = json.loads((RESULTS / "splitters.json").read_text(encoding="utf-8"))["rows"]
    table: list[list[str]] = []
    before = ""
    for row in rows:
        best = max(one["recall"]["value"] for one in rows if one["set"] == row["set"])
        text = "{value:.3f} [{low:.3f}, {high:.3f}]".format(**row["recall"])
        table.append(
            [
                row["set"] if row["set"] != before else "",
                row["splitter"],
                f"{row['chunks']:,}",
                f"{row['passage_characters']:,}",
                f"**{text}**" if row["recall"]["value"] == best else text,
            ]
        )
        before = row["set"]
    return table


def titles() -> list[list[str]]:
    """One row a search of a set; a difference beyond chance is bold."""
    table: list[list[str]] = []
    before = ""
    for row in json.loads((RESULTS / "titles.json").read_text(encoding="utf-8"))["rows"]:
        difference = row["difference"]
        text = "{value:+.4f} [{low:+.4f}, {high:+.4f}]".format(**difference)
        certain = difference["low"] > 0 or difference["high"] < 0
        name, chunks = (row["set"], f"{row['chunks']:,}") if row["set"] != before else ("", "")
        table.append(
            [
                name,
                chunks,
                row["search"],
                f"{row['without']:.4f}",
                f"{row['with']:.4f}",
                f"**{text}**" if certain else text,
            ]
        )
        before = row["set"]
    return table
