"""How each pipeline did, at what cost, on all questions and on parts of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Summary
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.statistics import column_intervals

if TYPE_CHECKING:
    import numpy as np

    from rag_kit.evaluation.comparing.matched import Matched
    from rag_kit.evaluation.examples import Example

_FEW = 5  # questions below which a part gets no interval: the bootstrap of three values only looks sure
_UNTAGGED = "(not said)"
_CJK = r"\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


@dataclass(frozen=True, kw_only=True)
class Score(Summary):
    """One metric of one pipeline: its `Summary` over the questions compared, and what a question takes.

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


@dataclass(frozen=True)
class Slice:
    """One metric of one pipeline on the part of the questions where ``by`` (``type``, ``length``, a tag) is ``value``.

    ``n`` of its ``total`` questions have a value; without any there is no mean, below five no interval.
    """

    by: str
    value: str
    metric: str
    pipeline: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int


def scores(matched: Matched, *, level: float, prices: Any = None) -> list[Score]:
    """One for each metric and pipeline, metric by metric."""
    import numpy as np

    costs = [_cost(run, prices) for run in matched.runs]
    table = np.concatenate(list(matched.values.values()), axis=1)
    intervals = iter(column_intervals(table, level=level))
    found = []
    for metric, values in matched.values.items():
        for column, (name, run) in enumerate(zip(matched.names, matched.runs, strict=True)):
            present, (low, high) = present_values(values[:, column]), next(intervals)
            known = Counter(row.cells[metric].status for row in run.rows if metric in row.cells)
            found.append(Score(
                pipeline=name, metric=metric, mean=mean(present.tolist()), low=low, high=high, n=len(present),
                total=matched.questions, undefined=known["undefined"], errors=known["error"],
                not_applicable=known["not_applicable"], missing=matched.questions - known.total(), **costs[column],
            ))  # fmt: skip
    return found


def present_values(column: np.ndarray) -> np.ndarray:
    """The values of a column without its gaps."""
    chosen: np.ndarray = column[column == column]
    return chosen


def _cost(run: Results, prices: Any) -> dict[str, Any]:
    """Seconds of the questions that were answered; calls, tokens and money of all."""
    import numpy as np

    seconds = [row.output.seconds for row in run.rows if row.output.error is None]
    p50, p95 = np.quantile(seconds, [0.5, 0.95]).tolist() if seconds else (None, None)
    return {
        "p50_seconds": p50,
        "p95_seconds": p95,
        "calls": mean([row.output.calls for row in run.rows]),
        "tokens": mean([row.output.tokens for row in run.rows]),
        "money": mean(run.money("pipeline", prices=prices)),
    }


def mean(values: Sequence[float | None]) -> float | None:
    """The mean; ``None`` where one of them is unknown, because an unknown price is not zero."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def check_slices(examples: Iterable[Example], slices: Iterable[str] | str) -> tuple[str, ...]:
    """Names of the ways to part the questions; one that is neither built in nor a tag of an example is refused."""
    wanted = (slices,) if isinstance(slices, str) or not isinstance(slices, Iterable) else tuple(slices)
    tags = sorted({tag for example in examples for tag in example.tags})
    allowed = dict.fromkeys(["type", "language", "length", *tags])
    for name in wanted:
        if not isinstance(name, str) or name not in allowed:
            raise InvalidInputError(
                f"slices has {name!r:.80}: no example has the tag {name!r:.80}; allowed are {', '.join(allowed)}"
            )
    return tuple(dict.fromkeys(wanted))


def slice_scores(matched: Matched, slices: Sequence[str], *, level: float) -> list[Slice]:
    """Scores of every pipeline on every part; parts in order of size."""
    import numpy as np

    found = []
    examples = list(matched.examples.values())
    for by in slices:
        labels = _labels(examples, by)
        array = np.array(labels, dtype=object)
        for value in _ordered(labels, by):
            rows = array == value
            table = np.concatenate([matched.values[metric][rows] for metric in matched.metrics], axis=1)
            intervals = column_intervals(table, level=level, n=2_000)
            for number, (metric, name) in enumerate((m, p) for m in matched.metrics for p in matched.names):
                column = present_values(table[:, number])
                low, high = intervals[number] if len(column) >= _FEW else (None, None)
                average = mean(column.tolist())
                found.append(Slice(by, value, metric, name, average, low, high, len(column), int(rows.sum())))
    return found


def _labels(examples: Sequence[Example], by: str) -> list[str]:
    if by == "length":
        return _lengths([example.question for example in examples])
    if by == "language":
        from rag_kit.text import detect_language

        return [example.tags.get("language") or detect_language(example.question) for example in examples]
    return [example.tags.get(by) or _UNTAGGED for example in examples]


def _lengths(questions: Sequence[str]) -> list[str]:
    """Thirds of the set by words; a Chinese character counts as a word. The limits stand in the names."""
    counts = [len(_WORD.findall(question)) for question in questions]
    ordered = sorted(counts)
    first, second = ordered[len(ordered) // 3], ordered[2 * len(ordered) // 3]
    names = (f"short (up to {first} words)", f"medium (up to {second} words)", f"long (over {second} words)")
    return [names[(count > first) + (count > second)] for count in counts]


def _ordered(labels: Sequence[str], by: str) -> list[str]:
    counts = Counter(labels)
    if by == "length":
        return sorted(counts, key=lambda label: ("short", "medium", "long").index(label.split(" ")[0]))
    return sorted(counts, key=lambda label: (label == _UNTAGGED, -counts[label], label))
