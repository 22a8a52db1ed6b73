"""One question: its three readings, the cause they name, and what else its row shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.evaluation.diagnosing.cases import TABLE, CaseName, Level
from rag_kit.evaluation.diagnosing.hints import hints_of

if TYPE_CHECKING:
    from rag_kit.evaluation.cells import Cell
    from rag_kit.evaluation.runs import Row

Role = Literal["answer", "recall", "precision"]
ROLES: tuple[Role, ...] = ("answer", "recall", "precision")


@dataclass(frozen=True)
class Reading:
    """One of the three scores.

    Args:
        metric: Name of the metric.
        value: Its value; ``None`` where there is none.
        level: ``high`` from the threshold on, else ``low``; ``None`` without a value.
        reason: Why there is no value.
    """

    metric: str
    value: float | None
    level: Level | None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"metric": self.metric, "value": self.value, "level": self.level, "reason": self.reason}


@dataclass(frozen=True)
class Finding:
    """One question.

    Args:
        id: Its id.
        question: Its text.
        answer: Reading of the answer's score.
        recall: Reading of the recall of the retrieval.
        precision: Reading of its precision.
        case: Name of the cause; ``None`` where one of the three is not known, and nothing is guessed.
        unknown: Why there is no cause.
        hints: What else the row shows: the pipeline failed, retrieved nothing, declined, cited wrongly.
    """

    id: str
    question: str
    answer: Reading
    recall: Reading
    precision: Reading
    case: CaseName | None
    unknown: str = ""
    hints: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "id": self.id, "question": self.question, "case": self.case, "unknown": self.unknown,
            "hints": list(self.hints), **{role: getattr(self, role).to_json() for role in ROLES},
        }  # fmt: skip


def find(row: Row, metrics: Mapping[Role, str], limits: Mapping[Role, float], language: str) -> Finding:
    """Read a row: the three scores against their thresholds, and the cause where all three are known."""
    readings = {role: _reading(row.cells.get(metrics[role]), metrics[role], limits[role]) for role in ROLES}
    case = TABLE.get(tuple(readings[role].level for role in ROLES))
    unknown = "; ".join(f"{r.metric}: {r.reason}" for r in readings.values() if r.level is None)
    if row.example.answerable is False:
        case = None
        unknown = {
            "en": "the documents do not answer this question; the right answer is to decline",
            "zh": "文档没有回答这个问题，正确的做法是说明无法回答",
        }[language]
    return Finding(
        row.example.id, row.example.question, readings["answer"], readings["recall"], readings["precision"], case,
        unknown, hints_of(row, language),
    )  # fmt: skip


def _reading(cell: Cell | None, metric: str, threshold: float) -> Reading:
    if cell is None:
        return Reading(metric, None, None, "missing")
    if cell.status != "ok" or cell.value is None:
        status = cell.status.replace("_", " ")
        return Reading(metric, None, None, f"{status} ({cell.reason})" if cell.reason else status)
    # ContextPrecision of a half comes out as 0.49999999995
    return Reading(metric, cell.value, "high" if cell.value >= threshold - 1e-9 else "low")
