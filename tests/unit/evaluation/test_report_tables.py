"""The tables for the terminal and for Jupyter."""

from __future__ import annotations

from support.report_results import HOSTILE, hostile_results, results_of_pipelines

from rag_kit.documents.display import Table


def test_every_metric_has_its_interval_and_its_coverage() -> None:
    """A line says the mean, the interval, and what became of the questions without a value."""
    results = results_of_pipelines(60)[0]
    line = next(line for line in str(results).splitlines() if line.startswith("faithfulness"))
    summary = results.summary()["faithfulness"]
    interval = f"[{summary.low:.3f}, {summary.high:.3f}]"
    assert " ".join(line.split()).startswith(f"faithfulness {summary.mean:.3f} {interval} 55 / 60 3 2 0")
    assert "60 questions, 2 of them failed" in str(results)


def test_a_metric_without_values_shows_no_number() -> None:
    """Neither a mean nor an interval is made of nothing."""
    line = next(line for line in str(hostile_results()).splitlines() if line.startswith("javascript:"))
    assert line.split()[1:6] == ["-", "-", "0", "/", "4"]


def test_columns_line_up_with_chinese_names() -> None:
    """A Chinese character takes two columns of a terminal."""
    lines = Table(["name", "n"], [["混合检索", 1], ["bm25", 22]], right=[1]).text().splitlines()
    assert lines == ["name       n", "混合检索   1", "bm25      22"]


def test_hostile_names_stay_text() -> None:
    """Nothing moves the cursor of a terminal; nothing becomes markup in Jupyter."""
    text, html = str(hostile_results()), hostile_results()._repr_html_()
    assert "\x1b" not in text and "\u202e" not in text and "\\x1b[31m" in text
    assert "<script" not in html and "<img" not in html and "&lt;/script&gt;" in html
    assert len(Table(["x"], [[HOSTILE[0] * 100]]).text().splitlines()[1]) == 60


def test_a_long_table_says_how_much_is_left_out() -> None:
    """In the terminal and in Jupyter."""
    table = Table(["n"], [[n] for n in range(9)], "Numbers", limit=2)
    assert table.text().splitlines()[-1] == "... and 7 more rows: to_pandas() has them all"
    assert "... and 7 more rows" in table.html() and table.html().count("<tr>") == 3
