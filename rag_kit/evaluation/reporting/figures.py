"""The plots of the page, drawn where Matplotlib is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.reporting.svg import safe_svg

#: What is drawn where only one metric can be: the first of these that was compared.
PREFERRED = (
    "answer_correctness", "factual_correctness", "ours_answer_found", "faithfulness", "context_recall", "ndcg@10"
)  # fmt: skip


def figures(results: Sequence[Any], comparison: Any, notes: list[str]) -> list[tuple[str, str]]:
    """Kind and SVG of each plot.

    Args:
        results: The pipelines.
        comparison: What ``compare`` gave, or ``None``; without it there are only the histograms.
        notes: Receives why plots are missing.
    """
    from rag_kit.evaluation import plots

    drawn: list[tuple[str, str]] = []
    compared = comparison if comparison and hasattr(comparison, "score") else None
    wanted: list[tuple[str, Callable[[], Any]]] = []
    if compared is not None:
        metric = main_metric(_with_values(results, compared.metrics))
        wanted = [
            ("scores", lambda: plots.scores_with_intervals(compared)),
            ("latency", lambda: plots.latency_against_quality(compared, metric=metric)),
            ("complementarity", lambda: plots.complementarity_heatmap(compared, metric=metric)),
            ("confidence", lambda: plots.confidence_histogram(compared, metric=metric)),
        ]
    else:
        metrics = _with_values(results, dict.fromkeys(str(name) for one in results for name in one.metrics))
        if metrics:
            metric = main_metric(metrics)
            wanted = [("confidence", lambda: plots.confidence_histogram(results, metric=metric))]
    for kind, draw in wanted:
        try:
            drawn.append((kind, as_svg(draw(), kind)))
        except MissingExtraError as error:
            notes.append(f"No plots: {error}")
            break
        except InvalidInputError as error:  # results of another kind, or nothing to draw
            notes.append(f"No plot ({kind}): {error}")
    return drawn


def as_svg(figure: Any, kind: str) -> str:
    """A figure as an element for the page, at the size it was drawn for."""
    from rag_kit.evaluation.plots import to_svg

    return safe_svg(to_svg(figure), prefix=f"{kind}-", label=str(figure.get_label() or kind))


def _with_values(results: Sequence[Any], metrics: Iterable[str]) -> list[str]:
    """Those that have a value; all of them where none has: a plot of nothing says more than a guess."""
    names = list(metrics)
    found = {name for one in results for name, summary in one.summary().items() if summary.mean is not None}
    return [name for name in names if name in found] or names


def main_metric(metrics: Sequence[str]) -> str:
    """The metric that says most of the whole.

    Example:
        >>> main_metric(["mrr", "faithfulness"]), main_metric(["mrr"])
        ('faithfulness', 'mrr')
    """
    return next((name for name in PREFERRED if name in metrics), metrics[0])
