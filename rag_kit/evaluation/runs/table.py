"""Results as a table, and below it what the reader must know of the run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_kit.documents import redact
from rag_kit.documents.tables import Markup, Table, cut, one_line, tables_html, tables_text

if TYPE_CHECKING:
    from rag_kit.evaluation.runs.results import Results
    from rag_kit.evaluation.runs.summary import Summary

_HEADER = ("metric", "mean", "95% interval", "n / total", "undefined", "errors", "not applicable")


def results_text(results: Results) -> str:
    """For the terminal: mean, interval and coverage of every metric, and what it took."""
    header, rows = _rows(results, results.summary())
    return tables_text(
        _title(results), [Table(header, rows, right=[1, *range(3, len(header))])], _notes(results)
    )


def results_html(results: Results) -> str:
    """For Jupyter, with a drawing of each interval on the scale from 0 to 1."""
    summary = results.summary()
    header, rows = _rows(results, summary)
    rows = [[*row[:2], _interval_drawing(summary[row[0]]), *row[2:]] for row in rows]
    names = [*header[:2], "0 to 1", *header[2:]]
    return tables_html(
        _title(results), [Table(names, rows, right=[1, *range(4, len(names))])], _notes(results)
    )


def interval_text(low: float | None, high: float | None) -> str:
    """``[0.250, 0.750]``, or ``-`` where there is none."""
    return "-" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def why_empty(results: Results, name: str) -> str | None:
    """The most frequent reason of a metric that was asked for and has no value at all; ``None`` where it has one."""
    cells = [cell for row in results.rows if (cell := row.cells.get(name)) is not None]
    if any(cell.value is not None for cell in cells):
        return None
    reasons = Counter(cell.reason for cell in cells if cell.reason)
    return reasons.most_common(1)[0][0] if reasons else None


def _rows(results: Results, summary: dict[str, Summary]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows; with a column of cells that a run has not come to yet only where there are any."""
    missing = any(one.missing for one in summary.values())
    rows = [
        [name, one.mean, interval_text(one.low, one.high), f"{one.n} / {one.total}", one.undefined, one.errors,
         one.not_applicable, *([one.missing] if missing else [])]
        for name, one in summary.items()
    ]  # fmt: skip
    return [*_HEADER, *(["missing"] if missing else [])], rows


def _interval_drawing(summary: Summary) -> Markup:
    """An interval on the scale from 0 to 1; nothing where it does not fit."""
    if summary.mean is None:
        return Markup()
    low, high = (summary.mean if end is None else end for end in (summary.low, summary.high))
    if min(low, summary.mean) < 0 or max(high, summary.mean) > 1:
        return Markup()
    left, middle, right = (4 + 92 * value for value in (low, summary.mean, high))
    return Markup(
        '<svg width="100" height="12" viewBox="0 0 100 12" aria-hidden="true">'
        '<path d="M4 6H96" stroke="currentColor" stroke-opacity="0.2" stroke-width="2"/>'
        f'<path d="M{left:.1f} 6H{right:.1f}" stroke="currentColor" stroke-opacity="0.6" stroke-width="4"/>'
        f'<circle cx="{middle:.1f}" cy="6" r="4" fill="currentColor"/></svg>'
    )


def _title(results: Results) -> str:
    failed = sum(1 for row in results.rows if row.output.error is not None)
    title = f"{results.name}: {_count(len(results.rows), 'question')}"
    return title + (f", {failed} of them failed" if failed else "")


def _notes(results: Results) -> list[str]:
    """What has no value, what it took, what is missing, and which cap ended the run."""
    outputs = [row.output for row in results.rows]
    seconds = [output.seconds for output in outputs if output.error is None]
    cells = [cell for row in results.rows for cell in row.cells.values()]
    time = ""
    if seconds:
        p50, p95 = np.quantile(seconds, [0.5, 0.95])
        time = f"p50 {p50:.2f} s, p95 {p95:.2f} s; "
    pipeline = _cost(sum(o.calls for o in outputs), sum(o.tokens for o in outputs))
    scoring = _cost(sum(cell.calls for cell in cells), sum(cell.tokens for cell in cells))
    found = [
        f"{name} has no value: {redact(cut(one_line(why), 200))}"
        for name in results.metrics
        if (why := why_empty(results, name)) is not None
    ]
    found += [
        f"Pipeline: {time}{pipeline}. Scoring: {scoring}.",
        "Means and intervals stand on the n questions that have a value; a failed cell is never a number.",
    ]
    if results.examples > len(results):
        found.append(f"{results.examples - len(results)} of {results.examples} questions were not asked yet.")
    if failed := sum(1 for output in outputs if output.error is not None):
        found.append(f"The pipeline failed on {failed} questions.")
    if stopped := results.manifest.get("stopped_by"):
        found.append(f"The run was stopped: {stopped}")
    return found


def _cost(calls: int, tokens: int) -> str:
    return f"{_count(calls, 'call')}, {_count(tokens, 'token')}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
