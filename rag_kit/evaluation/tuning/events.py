"""What one batch of questions becomes in the log of a search: a line for each value, with what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_kit._redact import redact
from rag_kit.documents import clean_text

if TYPE_CHECKING:
    from rag_kit.evaluation.runs.results import Results, Row
    from rag_kit.evaluation.tuning.history import Part

_REASON = 300


def score_events(
    results: Results, metric: str, number: int, part: Part, seconds: float, *, prices: Any
) -> list[dict[str, Any]]:
    """A line for each question that has a cell.

    Args:
        results: Of the batch.
        metric: Name of the metric.
        number: Of the setting.
        part: Of the questions.
        seconds: Wall-clock seconds of the whole batch, which its questions share.
        prices: As for ``evaluate``.
    """
    costs = zip(
        results.rows,
        results.money("pipeline", prices=prices),
        results.money("judge", prices=prices),
        strict=True,
    )
    rows = [(row, pipeline, judge) for row, pipeline, judge in costs if metric in row.cells]
    each = round(seconds / max(1, len(rows)), 6)
    return [
        {
            "event": "score", "trial": number, "part": part, "id": row.example.id,
            "value": row.cells[metric].value, "status": row.cells[metric].status,
            "reason": told(row.cells[metric].reason), "seconds": each,
            **_cost(row, metric, pipeline, judge),
        }
        for row, pipeline, judge in rows
    ]  # fmt: skip


def told(reason: str) -> str:
    """A reason as it may be written down and shown: no key in it, no control characters, and short."""
    return clean_text(redact(reason))[:_REASON]


def _cost(row: Row, metric: str, pipeline: float | None, judge: float | None) -> dict[str, Any]:
    cell = row.cells[metric]
    money = None if pipeline is None or judge is None else round(pipeline + judge, 9)
    return {"calls": row.output.calls + cell.calls, "tokens": row.output.tokens + cell.tokens, "money": money}
