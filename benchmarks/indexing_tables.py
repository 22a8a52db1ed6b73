"""The tables of docs/benchmarks.md about what is indexed, from titles.json, splitters.json and
readers.json of the results."""

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


READERS_HEAD = ["format", "reader", "files", "text", "order", "cells", "headings", "code"]
READERS_HEAD += ["recall", "precision", "seconds", "peak MB", "installed MB"]


def readers() -> list[list[str]]:
    """One row a reader of a format; the best of a format is bold."""
    rows = json.loads((RESULTS / "readers.json").read_text(encoding="utf-8"))["rows"]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    table: list[list[str]] = []
    for kind in kinds:
        same = [row for row in rows if row["kind"] == kind]
        means = [{name: _mean(row["files"], name) for name in READERS_HEAD[3:11]} for row in same]
        for number, (row, mean) in enumerate(zip(same, means, strict=True)):
            cells = [kind if number == 0 else "", row["reader"], str(len(row["files"]))]
            for name in READERS_HEAD[3:10]:
                best = max((one[name] or 0.0 for one in means), default=0.0)
                value = mean[name]
                text = "–" if value is None else f"{value:.3f}"
                cells.append(f"**{text}**" if value is not None and value > best - 0.0005 else text)
            peak = max((file.get("memory", 0.0) for file in row["files"]), default=0.0)
            seconds = mean["seconds"]
            cells += ["–" if seconds is None else f"{seconds:.2f}", f"{peak:.0f}", f"{row['megabytes']:.0f}"]
            table.append(cells)
    return table


def _mean(files: list[dict[str, float | None]], name: str) -> float | None:
    values = [value for file in files if (value := file.get(name)) is not None]
    return sum(values) / len(values) if values else None
