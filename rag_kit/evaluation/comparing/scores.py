"""How each pipeline did: mean, interval and coverage of every metric, and what a question took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.comparing.intervals import column_intervals

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.matching import Matched
    from rag_kit.evaluation.runs import Results


@dataclass(frozen=True)
class Score:
    """One metric of one pipeline, beside what a question takes it.

    ``n + undefined + errors + not_applicable + missing == total``.

    Args:
        pipeline: Its name.
        metric: The metric's name.
        mean: Mean over the questions that have a value; ``None`` without any.
        low: Lower end of its bootstrap interval; ``None`` below two values.
        high: Upper end.
        n: Questions that have a value.
        total: Questions in all.
        undefined: Questions for which the metric has no value.
        errors: Questions whose cell could not be computed.
        not_applicable: Questions that lack what the metric reads.
        missing: Questions that were not asked, or not scored, yet.
        p50_seconds: Half of the answers took at most so long; ``None`` where no question was answered.
        p95_seconds: 95 of 100 took at most so long.
        calls: Model calls of the pipeline a question, on average.
        tokens: Its tokens a question, on average.
        money: Its cost a question, on average; ``None`` where no price is known.
    """

    pipeline: str
    metric: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    undefined: int = 0
    errors: int = 0
    not_applicable: int = 0
    missing: int = 0
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    calls: float | None = None
    tokens: float | None = None
    money: float | None = None

    @property
    def coverage(self) -> float:
        """Share of the questions that the mean speaks of."""
        return self.n / self.total if self.total else 0.0

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, with the coverage."""
        return {**asdict(self), "coverage": self.coverage}


def scores(matched: Matched, *, level: float, prices: Any = None) -> list[Score]:
    """One row for each metric and pipeline, metric by metric."""
    costs = [_cost(run, prices) for run in matched.runs]
    found = []
    for metric in matched.metrics:
        values = matched.values[metric]
        intervals = column_intervals(values, level=level)
        for column, (name, run) in enumerate(zip(matched.names, matched.runs, strict=True)):
            present = values[:, column][values[:, column] == values[:, column]]
            counts = {"undefined": 0, "error": 0, "not_applicable": 0}
            for row in run.rows:
                cell = row.cells.get(metric)
                if cell is not None and cell.status in counts:
                    counts[cell.status] += 1
            low, high = intervals[column]
            found.append(
                Score(
                    name, metric, float(present.mean()) if len(present) else None, low, high, len(present),
                    matched.questions, counts["undefined"], counts["error"], counts["not_applicable"],
                    matched.questions - len(present) - sum(counts.values()), **costs[column],
                )
            )  # fmt: skip
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
