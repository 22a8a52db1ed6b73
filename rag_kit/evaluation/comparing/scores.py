"""How each pipeline did: on all questions, with what a question took, and on parts of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.runs.results import Summary
from rag_kit.evaluation.statistics import column_intervals

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.matching import Matched
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.runs.results import Results

_FEW = 5  # questions below which a part gets no interval: the bootstrap of three values only looks sure
_UNTAGGED = "(not said)"
_RESAMPLES = 2_000
_CJK = r"\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_BUILT_IN = ("type", "language", "length")


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
    """One metric of one pipeline on a part of the questions.

    Args:
        by: What the questions are parted by: ``type``, ``language``, ``length`` or a tag.
        value: Which part.
        metric: The metric's name.
        pipeline: The pipeline's name.
        mean: Mean over those that have a value; ``None`` without any.
        low: Lower end of its interval; ``None`` below five values.
        high: Upper end.
        n: Questions of the part that have a value.
        total: Questions of the part.
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

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def scores(matched: Matched, *, level: float, prices: Any = None) -> list[Score]:
    """One for each metric and pipeline, metric by metric."""
    costs = [_cost(run, prices) for run in matched.runs]
    found = []
    for metric in matched.metrics:
        values = matched.values[metric]
        intervals = column_intervals(values, level=level)
        for column, (name, run) in enumerate(zip(matched.names, matched.runs, strict=True)):
            present = values[:, column][values[:, column] == values[:, column]]
            counts = Counter(row.cells[metric].status for row in run.rows if metric in row.cells)
            without = counts.total() - counts["ok"]
            found.append(
                Score(
                    pipeline=name,
                    metric=metric,
                    mean=float(present.mean()) if len(present) else None,
                    low=intervals[column][0],
                    high=intervals[column][1],
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
    """Seconds of the questions that were answered; calls, tokens and money of all."""
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
    """The mean; ``None`` where one of them is unknown, because an unknown price is not zero."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def check_slices(examples: Iterable[Example], slices: Iterable[str] | str) -> tuple[str, ...]:
    """Names of the ways to part the questions.

    Raises:
        InvalidInputError: If one is neither built in nor a tag of any example.
    """
    if not isinstance(slices, Iterable):
        raise InvalidInputError(f"slices is {slices!r:.80}; give names of slices, or () for none")
    wanted = (slices,) if isinstance(slices, str) else tuple(slices)
    allowed = dict.fromkeys([*_BUILT_IN, *sorted({tag for example in examples for tag in example.tags})])
    for name in wanted:
        if not isinstance(name, str) or name not in allowed:
            raise InvalidInputError(
                f"no example has the tag {name!r:.80} to slice by; allowed are {', '.join(allowed)}"
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
            intervals = column_intervals(table, level=level, n=_RESAMPLES)
            for number, (metric, name) in enumerate((m, p) for m in matched.metrics for p in matched.names):
                column = table[:, number]
                column = column[column == column]
                low, high = intervals[number] if len(column) >= _FEW else (None, None)
                mean = float(column.mean()) if len(column) else None
                found.append(Slice(by, value, metric, name, mean, low, high, len(column), int(rows.sum())))
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
