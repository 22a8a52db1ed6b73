"""The tables for the terminal and for Jupyter."""

from __future__ import annotations

from support.report_results import HOSTILE, hostile_results, results_of_pipelines

from rag_kit.evaluation.reporting import html_table, results_html, results_text, text_table
from rag_kit.evaluation.reporting.tables import Drawing
from rag_kit.evaluation.runs.summary import Summary


def test_every_metric_has_its_interval_and_its_coverage() -> None:
    """A line says the mean, the interval, and what became of the questions without a value."""
    results = results_of_pipelines(60)[0]
    line = next(line for line in results_text(results).splitlines() if line.startswith("faithfulness"))
    summary = results.summary()["faithfulness"]
    assert line.split() == [
        "faithfulness",
        f"{summary.mean:.3f}",
        f"[{summary.low:.3f},",
        f"{summary.high:.3f}]",
        "55",
        "/",
        "60",
        "3",
        "2",
        "0",
    ]
    assert "60 questions, 2 of them failed" in results_text(results)


def test_a_metric_without_values_shows_no_number() -> None:
    """Neither a mean nor an interval is made of nothing."""
    line = next(
        line for line in results_text(hostile_results()).splitlines() if line.startswith("javascript:")
    )
    assert line.split()[1:6] == ["-", "-", "0", "/", "4"]


def test_columns_line_up_with_chinese_names() -> None:
    """A Chinese character takes two columns of a terminal."""
    lines = text_table(["name", "n"], [["混合检索", 1], ["bm25", 22]], right=[1]).splitlines()
    assert lines == ["name       n", "混合检索   1", "bm25      22"]


def test_hostile_names_stay_text() -> None:
    """Nothing moves the cursor of a terminal; nothing becomes markup in Jupyter."""
    text, html = results_text(hostile_results()), results_html(hostile_results())
    assert "\x1b" not in text and "\u202e" not in text and "\\x1b[31m" in text
    assert "<script" not in html and "<img" not in html and "&lt;/script&gt;" in html
    assert len(text_table(["x"], [[HOSTILE[0] * 100]]).splitlines()[1]) == 60


def test_jupyter_draws_intervals_on_the_scale_alone() -> None:
    """An interval within 0 and 1 is drawn; one on another scale is not drawn wrongly."""
    assert results_html(results_of_pipelines(12)[0]).count("<circle") == 5
    assert (
        Drawing(Summary(2.0, 1.5, 2.5, 3, 3)).svg == "" and Drawing(Summary(None, None, None, 0, 3)).svg == ""
    )
    assert "<td" in html_table(["a", "b"], [["x", Drawing(Summary(0.5, None, None, 1, 1))]])
