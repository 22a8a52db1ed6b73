"""A comparison as tables for the terminal and for Jupyter. Whatever a name holds stays text."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from rag_kit.documents.tables import Table, one_line, tables_html, tables_text
from rag_kit.evaluation.runs.results import interval_text

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.comparison import Comparison


def comparison_text(comparison: Comparison) -> str:
    """The tables, one below the other; the slices, by far the longest, are only named."""
    below = _notes(comparison)
    if comparison.sliced_by:
        below.append(
            f'By {", ".join(comparison.sliced_by)}: .slices or to_pandas("slices"); rag-kit compare --slice TAG.'
        )
    return tables_text(_title(comparison), _tables(comparison), ["", *below])


def slices_text(comparison: Comparison) -> str:
    """The table of the slices; empty where no way of slicing gives two parts."""
    table = _slices(comparison)
    return table.text().strip() if table.rows else ""


def comparison_html(comparison: Comparison) -> str:
    """The same for Jupyter; the slices are folded."""
    slices = _slices(comparison)
    by = html.escape(one_line(", ".join(comparison.sliced_by)))
    folded = f'<details class="mathjax_ignore"><summary>By {by}</summary>{slices.html()}</details>'
    head = tables_html(_title(comparison), _tables(comparison), _notes(comparison))
    return head + (folded if slices.rows else "")


def p_text(p: float | None) -> str:
    """A p-value for people; no more digits than it deserves.

    Example:
        >>> p_text(0.03125), p_text(0.00002), p_text(None)
        ('0.031', '< 0.001', '-')
    """
    if p is None:
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _table(heading: str, header: str, rows: list[list[Any]], right: list[int]) -> Table:
    return Table(header.split("|"), rows, heading, right, most=60)


def _title(comparison: Comparison) -> str:
    against = f", against {comparison.baseline}" if comparison.baseline else ""
    return f"{len(comparison.pipelines)} pipelines on {comparison.questions} questions{against}"


def _tables(comparison: Comparison) -> list[Table]:
    """All but the slices. Metrics without a value in any pipeline are left out of the longer ones."""
    level = f"{100 * comparison.level:g}% interval"
    empty = _without_values(comparison)
    costs = [comparison.score(name, comparison.metrics[0]) for name in comparison.pipelines]
    pairs = [pair for pair in comparison.pairs if pair.metric not in empty]
    together = [
        record
        for metric, item in comparison.complementarity.items()
        if metric not in empty
        for record in item.records()
    ]
    scores = [
        [one.metric, one.pipeline, one.mean, interval_text(one.low, one.high), f"{one.n} / {one.total}",
         f"{one.coverage:.0%}"]
        for one in comparison.table
    ]  # fmt: skip
    question = [
        [one.pipeline, one.p50_seconds, one.p95_seconds, _number(one.calls, 4), _number(one.tokens, 4),
         _number(one.money, 3)]
        for one in costs
    ]  # fmt: skip
    differences = [
        [pair.metric, pair.pipeline, pair.other,
         "-" if pair.difference is None else f"{pair.difference:+.3f}",
         interval_text(pair.low, pair.high), pair.n, p_text(pair.p), p_text(pair.p_adjusted),
         pair.better or ("not significant" if pair.n else "no common questions")]
        for pair in pairs
    ]  # fmt: skip
    hits = [
        [pair.metric, pair.pipeline, pair.other, pair.hits["pipeline"], pair.hits["only_pipeline"],
         pair.hits["only_other"], pair.n, p_text(pair.mcnemar_p), p_text(pair.mcnemar_p_adjusted)]
        for pair in pairs
        if pair.hits is not None
    ]  # fmt: skip
    complementary = [
        [each["metric"], each["pipeline"], each["got"], each["only"], each["place"], each["gain"],
         each["share_with_it"], each["union"], f"{each['n']} / {each['total']}"]
        for each in together
    ]  # fmt: skip
    return [
        _table("Scores", f"metric|pipeline|mean|{level}|n / total|coverage", scores, [2, 4, 5]),
        _table("A question takes", "pipeline|p50 s|p95 s|calls|tokens|money", question, [1, 2, 3, 4, 5]),
        _table("Differences", f"metric|pipeline|other|difference|{level}|n|p|corrected|better", differences,
               [3, 5, 6, 7]),
        _table("Hits", "metric|pipeline|other|got|only it|only other|n|McNemar p|corrected", hits,
               [3, 4, 5, 6, 7, 8]),
        _table("Complementary", "metric|pipeline|gets|only it gets|place|adds|set gets|union|n / total",
               complementary, [2, 3, 4, 5, 6, 7, 8]),
    ]  # fmt: skip


def _slices(comparison: Comparison) -> Table:
    """Every score on every part; a way of slicing that gives only one part is left out."""
    parts: dict[str, set[str]] = {}
    for one in comparison.slices:
        parts.setdefault(one.by, set()).add(one.value)
    rows: list[list[Any]] = [
        [one.by, one.value, one.metric, one.pipeline, one.mean, interval_text(one.low, one.high),
         f"{one.n} / {one.total}"]
        for one in comparison.slices
        if len(parts[one.by]) > 1
    ]  # fmt: skip
    header = f"by|part|metric|pipeline|mean|{100 * comparison.level:g}% interval|n / total"
    return _table("Slices", header, rows, [4, 6])


def _notes(comparison: Comparison) -> list[str]:
    """What is needed to read the tables right."""
    tests = f"{comparison.tests} test{'' if comparison.tests == 1 else 's'}"
    thresholds = ", ".join(f"{name} {value:g}" for name, value in comparison.thresholds.items())
    found = [
        *comparison.notes,
        "Differences stand on the n questions that both have a value for; a failed cell is never a number.",
        f"p: two-sided sign-flip test, corrected by Holm for {tests}; better: below {1 - comparison.level:.2g}.",
        f"A question is got from this value on: {thresholds}.",
    ]
    if empty := _without_values(comparison):
        found.append(f"No pipeline has a value of {', '.join(empty)}: print one of the results to see why.")
    if comparison.lower_is_better:
        found.append(f"Less is better: {', '.join(sorted(comparison.lower_is_better))}.")
    return found


def _without_values(comparison: Comparison) -> list[str]:
    known = {one.metric for one in comparison.table if one.n}
    return [metric for metric in comparison.metrics if metric not in known]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}g}"
