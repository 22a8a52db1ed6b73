"""Arguments of the wrong type are refused by name, not by an error from the depths."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import (
    EvaluationSet,
    Example,
    Results,
    assert_quality,
    compare,
    evaluate,
    load_dataset,
)
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.rows import Row
from rag_kit.evaluation.statistics import bootstrap_interval

EXAMPLES = [Example(f"q{number}", "Why?") for number in range(4)]
ROWS = [Row(example, Output("x"), {"m": Cell.ok(0.5)}) for example in EXAMPLES]
ONE, TWO = Results("one", ROWS), Results("two", ROWS)
WRONG: list[Any] = [
    None,
    5,
    -1,
    math.nan,
    b"x",
    object(),
    int,
    [None],
    [5],
    {5: 5},
    "\ud800",
    "a\0b",
    10**400,
]
ALLOWED: dict[str, list[Any]] = {  # what is right where other things are wrong
    "corpus": [None], "metrics": [None], "rule": [], "level": [], "n": [5], "seed": [5, 10**400], "slices": [],
    "out": [None], "judge": [None], "columns": [None], "split": [], "name": [None],
    "values": [WRONG[8]],
    "thresholds": [None, 5, -1], "value": [5, -1], "spans": [], "history": [], "metrics of a run": [],
    "metrics to compute": [None],
}  # fmt: skip


class Fixed(Metric):
    """Gives the same."""

    name, source, stage = "ours_fixed", "ours", "generation"

    async def score(self, example: Example, output: Output, judge: Any) -> Cell:
        """One."""
        return Cell.ok(1.0)


def ask(**given: Any) -> Any:
    """A run in which one argument is wrong."""
    pipeline: Callable[[str], str] = lambda question: "yes"  # noqa: E731
    return evaluate(pipeline, **{"dataset": EXAMPLES, "metrics": Fixed(), "progress": False, **given})


CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Example(spans)": ("spans", lambda w: Example("a", "b", spans=w)),
    "Example(history)": ("history", lambda w: Example("a", "b", history=w)),
    "EvaluationSet(examples)": ("examples", lambda w: EvaluationSet("n", w)),
    "EvaluationSet(corpus)": ("corpus", lambda w: EvaluationSet("n", EXAMPLES, corpus=w)),
    "Results(rows)": ("rows", lambda w: Results("n", w)),
    "Results(metrics)": ("metrics of a run", lambda w: Results("n", ROWS, w)),
    "Results.load": ("path", Results.load),
    "Results.save": ("path", lambda w: ONE.save(w)),
    "EvaluationSet.load": ("path", EvaluationSet.load),
    "EvaluationSet.from_feedback": ("path", EvaluationSet.from_feedback),
    "EvaluationSet.save": ("path", lambda w: EvaluationSet("n", EXAMPLES).save(w)),
    "load_dataset": ("path", load_dataset),
    "assert_quality(results)": ("results", lambda w: assert_quality(w, {"m": 0.1})),
    "assert_quality(thresholds)": ("quality", lambda w: assert_quality(ONE, {"m": w} if w != 5 else w)),
    "bootstrap_interval(values)": ("values", bootstrap_interval),
    "bootstrap_interval(level)": ("level", lambda w: bootstrap_interval([1, 2], level=w)),
    "bootstrap_interval(n)": ("n", lambda w: bootstrap_interval([1, 2], n=w)),
    "compare(metrics)": ("metrics", lambda w: compare([ONE, TWO], metrics=w)),
    "compare(slices)": ("slices", lambda w: compare([ONE, TWO], slices=w)),
    "compare(thresholds)": ("thresholds", lambda w: compare([ONE, TWO], thresholds=w)),
    "Cell(value)": ("value", Cell.ok),
    "evaluate(dataset)": ("dataset", lambda w: ask(dataset=w)),
    "evaluate(metrics)": ("metrics to compute", lambda w: ask(metrics=w)),
    "evaluate(judge)": ("judge", lambda w: ask(judge=w)),
    "evaluate(out)": ("out", lambda w: ask(out=w)),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types_are_refused_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, numbers, bytes, NaN, objects, lists of these, half characters, a number that no float holds."""
    monkeypatch.chdir(tmp_path)
    argument, call = CALLS[name]
    right = ALLOWED.get(argument, [])
    if argument == "quality":
        right = [-1]
    for wrong in WRONG:
        if any(wrong is each or (type(wrong) is int and wrong == each) for each in right):
            continue
        with pytest.raises(InvalidInputError):
            call(wrong)
