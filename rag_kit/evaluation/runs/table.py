"""Results as a small table, for the terminal and for Jupyter."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from rag_kit.documents import clean_text

if TYPE_CHECKING:
    from rag_kit.evaluation.runs.results import Results
    from rag_kit.evaluation.runs.summary import Summary

HEAD = ("metric", "mean", "95% interval", "n of all", "without a value")


def table_rows(results: Results) -> list[tuple[str, ...]]:
    """One row for each metric: name, mean, interval, coverage, and what the others are."""
    return [(name, *_cells(summary)) for name, summary in results.summary().items()]


def caption(results: Results) -> str:
    """One line about the run."""
    text = f"{results.name}: {len(results)} of {results.examples} examples"
    failed = sum(1 for row in results.rows if row.output.error is not None)
    if failed:
        text += f", the pipeline failed on {failed}"
    stopped = results.manifest.get("stopped_by")
    return f"{text}; stopped: {stopped}" if stopped else text


def text_table(results: Results) -> str:
    """For the terminal."""
    rows = [HEAD, *table_rows(results)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    lines = [caption(results)]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(clean_text(line.rstrip()).replace("\n", " ") for line in lines)


def html_table(results: Results) -> str:
    """For Jupyter; texts are escaped."""
    head = "".join(f"<th>{cell}</th>" for cell in HEAD)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(clean_text(cell))}</td>" for cell in row) + "</tr>"
        for row in table_rows(results)
    )
    about = html.escape(clean_text(caption(results)))
    return f"<table><caption>{about}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(summary: Summary) -> tuple[str, str, str, str]:
    mean = "-" if summary.mean is None else f"{summary.mean:.3f}"
    interval = "-" if summary.low is None else f"{summary.low:.3f} to {summary.high:.3f}"
    counts = {
        "undefined": summary.undefined, "errors": summary.errors,
        "not applicable": summary.not_applicable, "missing": summary.missing,
    }  # fmt: skip
    without = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return mean, interval, f"{summary.n} of {summary.total}", without or "-"
