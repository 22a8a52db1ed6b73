"""A comparison as tables for the terminal and for Jupyter. Whatever a name holds stays text."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.reporting.tables import html_table, interval_text, text_table

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.comparing.complementary import Complementarity
    from rag_kit.evaluation.comparing.pairs import Pair

_MANY = 60
"""Rows of a table in the terminal; the rest is in `Comparison.to_pandas`."""

Rows = list[list[Any]]
#: Heading, header, rows, and the columns set flush right.
Table = tuple[str, list[str], Rows, list[int]]


def comparison_text(comparison: Comparison) -> str:
    """The tables, one below the other; the slices, by far the longest, are only named."""
    below = notes(comparison)
    if comparison.sliced_by:
        below.append(
            f'By {", ".join(comparison.sliced_by)}: .slices or to_pandas("slices"); rag-kit compare --slice TAG.'
        )
    shown = [_text(table) for table in tables(comparison)]
    return "\n".join([_line(title(comparison)), *filter(None, shown), "", *map(_line, below)])


def slices_text(comparison: Comparison) -> str:
    """The table of the slices; empty where no way of slicing gives two parts."""
    return _text(slices_table(comparison)).strip()


def comparison_html(comparison: Comparison) -> str:
    """The same for Jupyter; the slices are folded."""
    shown = "".join(_html(table) for table in tables(comparison))
    slices = _html(slices_table(comparison))
    if slices:
        by = html.escape(_line(", ".join(comparison.sliced_by)))
        slices = f'<details class="mathjax_ignore"><summary>By {by}</summary>{slices}</details>'
    return shown + slices + html_table([title(comparison)], [], notes=notes(comparison))


def _text(table: Table) -> str:
    heading, header, rows, right = table
    if not rows:
        return ""
    more = f"\n... and {len(rows) - _MANY} more rows: to_pandas() has them all" if len(rows) > _MANY else ""
    return f"\n{heading}\n{text_table(header, rows[:_MANY], right=right)}{more}"


def _html(table: Table) -> str:
    heading, header, rows, right = table
    return html_table(header, rows[:_MANY], caption=heading, right=right) if rows else ""


def title(comparison: Comparison) -> str:
    """How many of what."""
    against = f", against {comparison.baseline}" if comparison.baseline else ""
    return f"{len(comparison.pipelines)} pipelines on {comparison.questions} questions{against}"


def tables(comparison: Comparison) -> list[Table]:
    """All but the slices."""
    level = f"{100 * comparison.level:g}% interval"
    empty = _empty(comparison)
    return [
        ("Scores", ["metric", "pipeline", "mean", level, "n / total", "coverage"], _scores(comparison), [2, 4, 5]),
        ("A question takes", ["pipeline", "p50 s", "p95 s", "calls", "tokens", "money"], _costs(comparison),
         [1, 2, 3, 4, 5]),
        ("Differences", ["metric", "pipeline", "other", "difference", level, "n", "p", "corrected", "better"],
         [_pair(pair, comparison) for pair in comparison.pairs if pair.metric not in empty], [3, 5, 6, 7]),
        ("Hits", ["metric", "pipeline", "other", "got", "only it", "only other", "n", "McNemar p", "corrected"],
         [_hits(pair) for pair in comparison.pairs if pair.hits is not None], [3, 4, 5, 6, 7, 8]),
        ("Complementary", ["metric", "pipeline", "gets", "only it gets", "place", "adds", "set gets", "union",
                           "n / total"],
         [row for name, item in comparison.complementarity.items() if name not in empty
          for row in _complement(item)], [2, 3, 4, 5, 6, 7, 8]),
    ]  # fmt: skip


def _empty(comparison: Comparison) -> list[str]:
    """Metrics without a value in any pipeline: rows of dashes would bury the others."""
    known = {row.metric for row in comparison.table if row.n}
    return [metric for metric in comparison.metrics if metric not in known]


def slices_table(comparison: Comparison) -> Table:
    """Every score on every part of the questions."""
    level = f"{100 * comparison.level:g}% interval"
    header = ["by", "part", "metric", "pipeline", "mean", level, "n / total"]
    return "Slices", header, _slices(comparison), [4, 6]


def notes(comparison: Comparison) -> list[str]:
    """What is needed to read the tables right."""
    how = {
        "holm": "corrected by Holm", "bh": "corrected by Benjamini and Hochberg", "none": "not corrected",
    }[comparison.correction]  # fmt: skip
    tests = f"{comparison.tests} test{'' if comparison.tests == 1 else 's'}"
    found = [
        *comparison.notes,
        "Differences stand on the n questions that both have a value for; a failed cell is never a number.",
        f"p: two-sided sign-flip test, {how} for {tests}; better: below {1 - comparison.level:.2g}.",
    ]
    thresholds = ", ".join(f"{name} {value:g}" for name, value in comparison.thresholds.items())
    found.append(f"A question is got from this value on: {thresholds}.")
    if empty := _empty(comparison):
        found.append(f"No pipeline has a value of {', '.join(empty)}: print one of the results to see why.")
    if comparison.lower_is_better:
        found.append(f"Less is better: {', '.join(sorted(comparison.lower_is_better))}.")
    return found


def _scores(comparison: Comparison) -> Rows:
    return [
        [row.metric, row.pipeline, row.mean, interval_text(row.low, row.high), f"{row.n} / {row.total}",
         f"{row.coverage:.0%}"]
        for row in comparison.table
    ]  # fmt: skip


def _costs(comparison: Comparison) -> Rows:
    rows = [comparison.score(name, comparison.metrics[0]) for name in comparison.pipelines]
    return [
        [
            row.pipeline,
            row.p50_seconds,
            row.p95_seconds,
            _plain(row.calls),
            _plain(row.tokens),
            money(row.money),
        ]
        for row in rows
    ]


def _pair(pair: Pair, comparison: Comparison) -> list[Any]:
    return [
        pair.metric, pair.pipeline, pair.other, "-" if pair.difference is None else f"{pair.difference:+.3f}",
        interval_text(pair.low, pair.high), pair.n, p_text(pair.p), p_text(pair.p_adjusted),
        pair.better or ("not shown" if pair.p is not None else "no common questions"),
    ]  # fmt: skip


def _hits(pair: Pair) -> list[Any]:
    hits = pair.hits or {}
    return [
        pair.metric, pair.pipeline, pair.other, hits.get("pipeline"), hits.get("only_pipeline"),
        hits.get("only_other"), pair.n, p_text(pair.mcnemar_p), p_text(pair.mcnemar_p_adjusted),
    ]  # fmt: skip


def _complement(item: Complementarity) -> Rows:
    steps = {step.pipeline: (place, step) for place, step in enumerate(item.greedy, start=1)}
    rows = []
    for name in item.pipelines:
        place, step = steps.get(name, (None, None))
        rows.append(
            [item.metric, name, len(item.got[name]), len(item.only[name]), place, step.gain if step else 0,
             step.share if step else None, item.union, f"{item.n} / {item.total}"]
        )  # fmt: skip
    return rows


def _slices(comparison: Comparison) -> Rows:
    """A way of slicing that gives one part only says nothing new."""
    parts: dict[str, set[str]] = {}
    for row in comparison.slices:
        parts.setdefault(row.by, set()).add(row.value)
    return [
        [row.by, row.value, row.metric, row.pipeline, row.mean, interval_text(row.low, row.high),
         f"{row.n} / {row.total}"]
        for row in comparison.slices
        if len(parts[row.by]) > 1
    ]  # fmt: skip


def p_text(p: float | None) -> str:
    """A p-value for people; no more digits than it deserves.

    Example:
        >>> p_text(0.03125), p_text(0.00002), p_text(None)
        ('0.031', '< 0.001', '-')
    """
    if p is None:
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def money(value: float | None) -> str:
    """A small sum with the digits that matter; ``-`` where no price is known.

    Example:
        >>> money(0.000123), money(0.0), money(None)
        ('0.000123', '0', '-')
    """
    return "-" if value is None else f"{value:.3g}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _line(text: str) -> str:
    from rag_kit.documents import clean_text

    return clean_text(" ".join(text.split()))
