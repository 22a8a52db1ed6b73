"""One question: its three readings, the cause they name, and what else its row shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.evaluation.diagnosing.cases import TABLE, TEXTS, CaseName, Level

if TYPE_CHECKING:
    from rag_kit.evaluation.cells import Cell
    from rag_kit.evaluation.runs.rows import Row

_TEXTS: dict[str, list[str]] = TEXTS["hints"]
_HOLD = ("supported", "undecided", "grounded")
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


def hints_of(row: Row, language: str) -> tuple[str, ...]:
    """What the output says of itself: failed, nothing retrieved, declined, wrong citations."""
    from rag_kit.text.citations import is_declined

    output = row.output
    found: list[tuple[str, object]] = []
    if output.error is not None:
        found.append(("failed", output.error))
    elif output.answer is not None and not output.answer.strip():
        found.append(("empty", ""))
    if output.passages is not None and len(output.passages) < 2 and output.error is None:
        # CRAG hands on what its evaluator keeps, and tells what it had
        retrieved = output.extra.get("retrieved")
        had = len(retrieved) if isinstance(retrieved, (list, tuple)) else 0
        if had > len(output.passages):
            found.append(("one kept" if output.passages else "aside", had))
        else:
            found.append(("one" if output.passages else "nothing", ""))
    if output.status == "declined" or (output.answer and is_declined(output.answer)):
        found.append(("declined", ""))
    wrong = sum(1 for item in output.citations if item.get("status") not in (None, *_HOLD))
    if wrong:
        found.append(("citations", wrong))
    place = 1 if language == "zh" else 0
    return tuple(_TEXTS[key][place].format(value) for key, value in found)


def translated(hint: str, language: str) -> str:
    """A hint in the other language; what is no hint of ours stays.

    Example:
        >>> translated("the pipeline failed: no {room}", "zh")
        '流程运行失败：no {room}'
    """
    for both in _TEXTS.values():
        wanted, given = (both[1], both[0]) if language == "zh" else both
        before, place, after = given.partition("{0}")
        pattern = re.escape(before) + ("(.*)" if place else "") + re.escape(after)
        if found := re.fullmatch(pattern, hint, re.DOTALL):
            return wanted.format(*found.groups())
    return hint
