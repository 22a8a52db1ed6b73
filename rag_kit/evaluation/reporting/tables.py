"""Results as a table for the terminal and as one for Jupyter. Whatever a name or a text holds stays text."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence

from rag_kit._redact import redact
from rag_kit.documents import clean_text
from rag_kit.evaluation.reporting.shapes import ResultsLike, SummaryLike, metric_names, quantile, why_empty

_HEADER = ("metric", "mean", "95% interval", "n / total", "undefined", "errors", "not applicable")
_INTERVAL_NOTE = (
    "Means and intervals stand on the n questions that have a value; a failed cell is never a number."
)


def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    right: Sequence[int] = (),
    max_width: int = 60,
) -> str:
    """A plain table: columns parted by two blanks, Chinese characters counted as two columns wide.

    Args:
        header: Names of the columns.
        rows: Cells; ``None`` becomes ``-``, floats get three decimals.
        right: Numbers of the columns that are set flush right.
        max_width: Columns of a cell; longer ones are cut and end in ``...``.

    Example:
        >>> print(text_table(["name", "mean"], [["bm25", 0.5], ["混合", None]], right=[1]))
        name   mean
        bm25  0.500
        混合      -
    """
    table = [[_cut(_line(cell), max_width) for cell in row] for row in [header, *rows]]
    widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = [
            _pad(cell, width, number in right)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def html_table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    notes: Sequence[str] = (),
    right: Sequence[int] = (),
) -> str:
    """The same as HTML for Jupyter; the first cell of a row is its header.

    Cells are escaped. A cell of :class:`Drawing` is markup that this package made.

    Example:
        >>> "&lt;b&gt;" in html_table(["name"], [["<b>"]])
        True
    """

    def cell(value: object, number: int) -> str:
        tag = "td" if number else 'th scope="row"'
        side = "right" if number in right else "left"
        inner = value.svg if isinstance(value, Drawing) else f"<bdi>{html.escape(_line(value))}</bdi>"
        return f'<{tag} style="text-align:{side};vertical-align:middle">{inner}</{tag[:2]}>'

    head = "".join(
        f'<th scope="col" style="text-align:{"right" if number in right else "left"}">'
        f"{html.escape(_line(name))}</th>"
        for number, name in enumerate(header)
    )
    body = "".join(
        "<tr>" + "".join(cell(value, number) for number, value in enumerate(row)) + "</tr>" for row in rows
    )
    title = f'<caption style="text-align:left">{html.escape(_line(caption))}</caption>' if caption else ""
    below = "".join(f"<p><em>{html.escape(_line(note))}</em></p>" for note in notes)
    # The two classes keep MathJax from reading formulas into "$".
    return (
        f'<div class="tex2jax_ignore mathjax_ignore"><table>{title}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{below}</div>"
    )


class Drawing:
    """A small drawing of an interval on a scale, for a cell of :func:`html_table`; none where it does not fit."""

    def __init__(self, summary: SummaryLike, low: float = 0.0, high: float = 1.0) -> None:
        self.svg = ""
        ends = [value for value in (summary.mean, summary.low, summary.high) if value is not None]
        if summary.mean is None or high <= low or min(ends) < low or max(ends) > high:
            return

        mean = summary.mean

        def place(value: float | None) -> float:
            return 4 + 92 * ((mean if value is None else value) - low) / (high - low)

        self.svg = (
            '<svg width="100" height="12" viewBox="0 0 100 12" aria-hidden="true">'
            '<path d="M4 6H96" stroke="currentColor" stroke-opacity="0.2" stroke-width="2"/>'
            f'<path d="M{place(summary.low):.1f} 6H{place(summary.high):.1f}" stroke="currentColor" '
            'stroke-opacity="0.6" stroke-width="4"/>'
            f'<circle cx="{place(summary.mean):.1f}" cy="6" r="4" fill="currentColor"/></svg>'
        )


def results_text(results: ResultsLike) -> str:
    """Results as a table for the terminal: mean, interval and coverage of every metric, and what it took.

    Example:
        >>> from types import SimpleNamespace as Any
        >>> from rag_kit.evaluation.cells import Cell
        >>> row = Any(example=None, output=Any(error=None, seconds=0.2, calls=1, tokens=30), cells={"mrr": Cell.ok(1)})
        >>> mrr = Any(mean=1.0, low=1.0, high=1.0, n=1, total=1, undefined=0, errors=0, not_applicable=0)
        >>> print(results_text(Any(name="bm25", rows=[row], metrics=["mrr"], summary=lambda: {"mrr": mrr})))
        bm25: 1 question
        metric   mean  95% interval    n / total  undefined  errors  not applicable
        mrr     1.000  [1.000, 1.000]      1 / 1          0       0               0
        Pipeline: p50 0.20 s, p95 0.20 s; 1 call, 30 tokens. Scoring: 0 calls, 0 tokens.
        Means and intervals stand on the n questions that have a value; a failed cell is never a number.
    """
    header, rows = _table(results)
    table = text_table(header, rows, right=[1, *range(3, len(header))])
    return "\n".join([_title(results), table, *_notes(results)])


def results_html(results: ResultsLike) -> str:
    """The same for Jupyter, with a drawing of each interval on the scale from 0 to 1."""
    summary = results.summary()
    header, table = _table(results)
    rows = [[row[0], row[1], Drawing(summary[str(row[0])]), *row[2:]] for row in table]
    names = [*header[:2], "0 to 1", *header[2:]]
    right = [1, *range(4, len(names))]
    return html_table(names, rows, caption=_title(results), notes=_notes(results), right=right)


def interval_text(low: float | None, high: float | None) -> str:
    """``[0.250, 0.750]``, or ``-`` where there is none."""
    return "-" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def _table(results: ResultsLike) -> tuple[list[str], list[list[object]]]:
    """Header and rows; with a column of cells that a run has not come to yet only where there are any."""
    summary = results.summary()
    missing = any(getattr(one, "missing", 0) for one in summary.values())
    rows: list[list[object]] = []
    for name in metric_names(results):
        one = summary[name]
        row: list[object] = [name, one.mean, interval_text(one.low, one.high), f"{one.n} / {one.total}",
               one.undefined, one.errors, one.not_applicable]  # fmt: skip
        rows.append([*row, getattr(one, "missing", 0)] if missing else row)
    return [*_HEADER, "missing"] if missing else [*_HEADER], rows


def _title(results: ResultsLike) -> str:
    failed = sum(1 for row in results.rows if row.output.error is not None)
    title = f"{results.name}: {_count(len(results.rows), 'question')}"
    return _line(title + (f", {failed} of them failed" if failed else ""))


def _notes(results: ResultsLike) -> list[str]:
    outputs = [row.output for row in results.rows]
    seconds = [output.seconds for output in outputs if output.error is None]
    p50, p95 = quantile(seconds, 0.5), quantile(seconds, 0.95)
    cells = [cell for row in results.rows for cell in row.cells.values()]
    time = "" if p50 is None or p95 is None else f"p50 {p50:.2f} s, p95 {p95:.2f} s; "
    pipeline = _cost(sum(o.calls for o in outputs), sum(o.tokens for o in outputs))
    scoring = _cost(sum(cell.calls for cell in cells), sum(cell.tokens for cell in cells))
    empty = [
        f"{_line(name)} has no value: {redact(_cut(_line(why), 200))}"
        for name in metric_names(results)
        if (why := why_empty(results, name)) is not None
    ]
    return [*empty, f"Pipeline: {time}{pipeline}. Scoring: {scoring}.", _INTERVAL_NOTE]


def _cost(calls: int, tokens: int) -> str:
    return f"{_count(calls, 'call')}, {_count(tokens, 'token')}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _line(value: object) -> str:
    if value is None:
        return "-"
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return clean_text(" ".join(text.split()))


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    text = text[:width]
    while _width(text) > width - 3:
        text = text[:-1]
    return f"{text}..."


def _pad(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks
