"""The tables of docs/benchmarks.md about what is indexed, from titles.json, splitters.json, readers.json and
postgres_keyword.json of the results."""

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


KEYWORD_HEAD = [
    "way, documents",
    "largest difference",
    "µs to write a document",
    "bytes a document",
    "ms a query",
]
KEYWORD_HEAD += ["10% pass", "1% pass", "ms to change one"]


def keyword() -> list[list[str]]:
    """One row a way to keep postings in PostgreSQL."""
    rows = json.loads((RESULTS / "postgres_keyword.json").read_text(encoding="utf-8"))["rows"]
    columns = ("build_us", "bytes", "query_all_ms", "query_10%_ms", "query_1%_ms", "change_ms")
    return [
        [name, f"{row['difference']:.0e}" if row["difference"] else "0"]
        + [f"{row[column]:,.0f}" if column in row else "–" for column in columns]
        for name, row in rows.items()
    ]


def keyword_note() -> str:
    """How much of the time of writing chunks the leg takes."""
    shares = json.loads((RESULTS / "postgres_keyword.json").read_text(encoding="utf-8"))["shares"]
    parts = ", ".join(f"{share:.0%} with {group} a write" for group, share in shares.items())
    return f"Of an ingest of 10,000 chunks without vectors the leg takes {parts}; analysis included."


def _mean(files: list[dict[str, float | None]], name: str) -> float | None:
    values = [value for file in files if (value := file.get(name)) is not None]
    return sum(values) / len(values) if values else None


POSTGRES_HEAD = [
    "vectors",
    "rows that pass",
    "recall@10 by HNSW",
    "HNSW",
    "reading all",
    "what the index does",
    "recall@10",
]


def postgres_vectors() -> list[list[str]]:
    """One row a size and filter; times are medians."""
    table: list[list[str]] = []
    for row in json.loads((RESULTS / "postgres_vectors.json").read_text(encoding="utf-8"))["rows"]:
        times = [f"{row[f'{name} ms']:.1f} ms" for name in ("hnsw", "exact", "kit")]
        recalls = [f"{row[f'{name} recall']:.3f}" for name in ("hnsw", "kit")]
        table.append([f"{row['rows']:,}", row["passing"], recalls[0], *times, recalls[1]])
    return table
