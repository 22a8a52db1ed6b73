"""How each pipeline did: mean, interval and coverage of every metric, and what a question took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.comparing.intervals import column_intervals
from rag_kit.evaluation.runs.summary import Summary, count_statuses

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.matching import Matched
    from rag_kit.evaluation.runs import Results


@dataclass(frozen=True, kw_only=True)
class Score(Summary):
    """One metric of one pipeline: its `Summary` over the questions compared, beside what a question takes it.

    Args:
        pipeline: Its name.
        metric: The metric's name.
        p50_seconds: Half of the answers took at most so long; ``None`` where no question was answered.
        p95_seconds: 95 of 100 took at most so long.
        calls: Model calls of the pipeline a question, on average.
        tokens: Its tokens a question, on average.
        money: Its cost a question, on average; ``None`` where no price is known.
    """

    pipeline: str
    metric: str
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    calls: float | None = None
    tokens: float | None = None
    money: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, names first, with the coverage."""
        names = {"pipeline": self.pipeline, "metric": self.metric}
        return {**names, **asdict(self), "coverage": self.coverage}


def scores(matched: Matched, *, level: float, prices: Any = None) -> list[Score]:
    """One row for each metric and pipeline, metric by metric."""
    costs = [_cost(run, prices) for run in matched.runs]
    found = []
    for metric in matched.metrics:
        values = matched.values[metric]
        intervals = column_intervals(values, level=level)
        for column, (name, run) in enumerate(zip(matched.names, matched.runs, strict=True)):
            present = values[:, column][values[:, column] == values[:, column]]
            counts = count_statuses(row.cells.get(metric) for row in run.rows)
            without = sum(count for status, count in counts.items() if status != "ok")
            low, high = intervals[column]
            found.append(
                Score(
                    pipeline=name,
                    metric=metric,
                    mean=float(present.mean()) if len(present) else None,
                    low=low,
                    high=high,
                    n=len(present),
                    total=matched.questions,
                    undefined=counts["undefined"],
                    errors=counts["error"],
                    not_applicable=counts["not_applicable"],
                    missing=matched.questions - len(present) - without,
                    **costs[column],
                )
            )
    return found


def _cost(run: Results, prices: Any) -> dict[str, float | None]:
    """What a question takes: seconds of those that were answered, calls, tokens and money of all."""
    import numpy as np

    seconds = [row.output.seconds for row in run.rows if row.output.error is None]
    p50, p95 = np.quantile(seconds, [0.5, 0.95]).tolist() if seconds else (None, None)
    return {
        "p50_seconds": p50,
        "p95_seconds": p95,
        "calls": _mean([row.output.calls for row in run.rows]),
        "tokens": _mean([row.output.tokens for row in run.rows]),
        "money": _mean(run.money("pipeline", prices=prices)),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; ``None`` where one of them is unknown, because an unknown price is not none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
