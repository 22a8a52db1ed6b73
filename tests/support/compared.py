"""Scores and hits of two pipelines on the same questions, whose tests were computed by hand and with SciPy."""

from __future__ import annotations

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row

A = [0.9, 0.8, 0.7, 0.6, 0.9, 0.8, 0.75, 0.85]
B = [0.7, 0.8, 0.6, 0.5, 0.7, 0.8, 0.70, 0.65]
FIRST = [1, 1, 1, 0, 0, 1, 0, 1, 1, 0]
SECOND = [1, 0, 1, 1, 0, 1, 1, 1, 0, 0]


def four_rows(name: str, **values: float | None) -> Results:
    """Make results of four questions with these values; a metric without a value has no judge."""
    cells = {
        metric: Cell.not_applicable("no judge was given") if value is None else Cell.ok(value)
        for metric, value in values.items()
    }
    return Results(name, [Row(Example(f"q{n}", "Who?"), Output("It."), cells) for n in range(4)])
