"""What the first screen says: which pipeline is best, by how much, how sure that is, why answers fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.evaluation.reporting.questions import cleaned

#: What is compared where only one metric can be: the first of these that has values.
PREFERRED = (
    "answer_correctness", "factual_correctness", "ours_answer_found", "faithfulness", "context_recall", "ndcg@10"
)  # fmt: skip


def main_metric(metrics: Sequence[Mapping[str, Any]]) -> int | None:
    """The number of the metric that says most of the whole, among those that most pipelines have a value of.

    Args:
        metrics: As the page reads them.
    """

    def rank(number: int) -> tuple[int, int]:
        known = sum(1 for one in metrics[number]["summary"] if one and one["mean"] is not None)
        name = metrics[number]["name"]
        return -known, PREFERRED.index(name) if name in PREFERRED else len(PREFERRED)

    best = min(range(len(metrics)), key=rank, default=None)
    return None if best is None or rank(best)[0] == 0 else best


def answer_data(
    pipelines: Sequence[Mapping[str, Any]],
    metrics: Sequence[Mapping[str, Any]],
    comparison: Any,
    diagnosis: Sequence[Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """The best pipeline by the main metric, the tests against the others, and its causes of wrong answers.

    Args:
        pipelines: As the page reads them.
        metrics: As the page reads them.
        comparison: What ``compare`` gave, or ``None``.
        diagnosis: As the page reads it.

    Returns:
        ``metric`` and ``best`` (numbers, ``None`` where no metric has a value), ``tests`` (the other pipelines by
        their means, with difference, interval and p-value), ``diagnosed``, and ``failed``: where cells could not be
        computed.
    """
    failed = [
        {"metric": number, "pipeline": place, "errors": summary["errors"], "total": summary["total"]}
        for number, metric in enumerate(metrics)
        for place, summary in enumerate(metric["summary"])
        if summary
        and summary["errors"] > pipelines[place]["failed"]  # where a pipeline fails, all its metrics do
    ]
    names = [one["name"] for one in pipelines]
    number = main_metric(metrics)
    if number is None:
        return {"metric": None, "best": None, "tests": [], "diagnosed": None, "failed": failed}
    metric = metrics[number]
    sign = 1 if metric["higher"] else -1

    def tested(order: Sequence[int]) -> list[dict[str, Any] | None]:
        return [_test(names[order[0]], names[place], metric["name"], comparison, sign) for place in order[1:]]

    known = [place for place, one in enumerate(metric["summary"]) if one and one["mean"] is not None]
    order = sorted(known, key=lambda place: -sign * metric["summary"][place]["mean"])
    tests = tested(order)
    if beaten := [test for test in tests if test and test["better"] == test["other"]]:
        order.insert(0, order.pop(order.index(names.index(beaten[0]["other"]))))  # on the shared questions
        tests = tested(order)
    return {
        "metric": number, "best": order[0], "failed": failed,
        "diagnosed": next((one for one in diagnosis or () if one["pipeline"] == order[0]), None),
        "tests": [{"pipeline": place, "test": test} for place, test in zip(order[1:], tests, strict=True)],
    }  # fmt: skip


def _test(best: str, other: str, metric: str, comparison: Any, sign: int) -> dict[str, Any] | None:
    """The test of the best against another, turned so that a positive difference speaks for the best."""
    for pair in comparison.pairs if comparison else ():
        two = [cleaned(pair.pipeline), cleaned(pair.other)]
        if cleaned(pair.metric) != metric or sorted(two) != sorted([best, other]) or pair.difference is None:
            continue
        turn = sign if two[0] == best else -sign
        ends = sorted(turn * end for end in (pair.low, pair.high) if end is not None) or [None, None]
        return {
            "other": other, "better": None if pair.better is None else cleaned(pair.better), "n": pair.n,
            "p": pair.p_adjusted, "difference": turn * pair.difference, "low": ends[0], "high": ends[1],
        }  # fmt: skip
    return None
