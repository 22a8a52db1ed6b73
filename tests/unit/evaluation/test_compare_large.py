"""Twenty pipelines, two thousand questions: compared in seconds of processor time, in bounded memory."""

from __future__ import annotations

import time

import numpy as np
import pytest

from rag_kit.evaluation import Example, Results, compare
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.rows import Row


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_pipelines_and_two_thousand_questions() -> None:
    """190 pairs of two metrics, with failures that make nearly every pair's set of questions another one."""
    draw = np.random.default_rng(0)
    examples = [Example(f"q{i}", f"What is number {i}?") for i in range(2000)]
    runs = []
    for number in range(20):
        graded = np.clip(draw.normal(0.5 + 0.01 * number, 0.2, 2000), 0, 1)
        hits, failed = draw.random(2000) < 0.5 + 0.01 * number, draw.random(2000) < 0.01
        rows = [
            Row(e, Output("It.", seconds=0.1), {
                "graded": Cell.error("time-out") if failed[i] else Cell.ok(float(graded[i])),
                "hit": Cell.ok(float(hits[i])),
            })
            for i, e in enumerate(examples)
        ]  # fmt: skip
        runs.append(Results(f"p{number}", rows, ("graded", "hit")))
    started = time.process_time()
    comparison = compare(runs)
    text, record = str(comparison), comparison.to_json()
    seconds = time.process_time() - started
    assert len(comparison.pairs) == comparison.tests == 380
    assert comparison.pair("p0", "p19", "graded").better == "p19"
    assert len(text) < 100_000 and len(record["slices"]) >= 40
    assert seconds < 120, seconds
