"""Several runs over the same questions side by side; how each did, at what cost, on all questions and on parts."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.runs.results import Results, Summary, higher_is_better
from rag_kit.evaluation.statistics import column_intervals

if TYPE_CHECKING:
    import numpy as np

    from rag_kit.evaluation.examples import Example

_FEW = 5  # questions below which a part gets no interval: the bootstrap of three values only looks sure
_UNTAGGED = "(not said)"
_CJK = r"\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_BUILT_IN = ("type", "language", "length")


#: What must be the same of an example in all runs: with other gold the scores mean something else.
_GOLD = (
    "question",
    "reference",
    "answers",
    "reference_contexts",
    "relevant",
    "spans",
    "answerable",
    "history",
)


@dataclass
class Matched:
    """Runs side by side: ``values`` has, by metric, questions by pipelines, NaN where there is no ok cell."""

    names: tuple[str, ...]
    runs: tuple[Results, ...]
    metrics: tuple[str, ...]
    examples: dict[str, Example]
    values: dict[str, np.ndarray]
    notes: list[str]
    lower: frozenset[str]

    @property
    def questions(self) -> int:
        """Questions in all; those that no run has come to yet included."""
        return max(len(self.examples), *(run.examples for run in self.runs))


def match_results(
    results: Iterable[Results | Path | str] | Mapping[str, Results | Path | str],
    metrics: Iterable[str] | str | None = None,
) -> Matched:
    """Lay runs side by side, matched by the ids of their questions; arguments as for `compare`."""
    import numpy as np

    names, runs = _runs(results)
    examples = _examples(names, runs)
    chosen = _metrics(runs, metrics)
    rows = {key: number for number, key in enumerate(examples)}
    values = {metric: np.full((len(examples), len(runs)), np.nan) for metric in chosen}
    for column, run in enumerate(runs):
        for row in run.rows:
            for metric in chosen:
                cell = row.cells.get(metric)
                if cell is not None and cell.status == "ok" and cell.value is not None:
                    values[metric][rows[row.example.id], column] = cell.value
    notes = _notes(names, runs, len(examples))
    lower = frozenset(
        metric
        for metric in chosen
        if not higher_is_better(next(r for r in runs if metric in r.metrics), metric)
    )
    return Matched(names, runs, chosen, examples, values, notes, lower)


def _runs(results: Any) -> tuple[tuple[str, ...], tuple[Results, ...]]:
    if isinstance(results, (str, Path, Results)) or not isinstance(results, Iterable):
        raise InvalidInputError(
            f"results is a {type(results).__name__}; give a list of at least two Results or folders, or a mapping "
            "from names to them"
        )
    given = list(results.items()) if isinstance(results, Mapping) else [(None, item) for item in results]
    runs, names = [], []
    for name, item in given:
        run = Results.load(item) if isinstance(item, (str, Path)) else item
        if not isinstance(run, Results):
            raise InvalidInputError(
                f"a {type(run).__name__} was given among the results; give Results or folders"
            )
        chosen = run.name if name is None else name
        if not isinstance(chosen, str) or not chosen.strip():
            raise InvalidInputError(f"a pipeline has the name {chosen!r:.80}; give a text that is not blank")
        runs.append(run)
        names.append(chosen)
    if len(runs) < 2:
        raise InvalidInputError(
            f"{len(runs)} given; a comparison needs the results of at least two runs. One alone shows itself: "
            "print(results), results.summary()"
        )
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(
                f"{names.count(name)} results have the name {name!r:.80}; give a mapping from names of your own to "
                "the results: compare({'before': first, 'after': second}); on the command line: NAME=FOLDER"
            )
    return tuple(names), tuple(runs)


def _examples(names: Sequence[str], runs: Sequence[Results]) -> dict[str, Example]:
    examples: dict[str, Example] = {}
    owner: dict[str, str] = {}
    for name, run in zip(names, runs, strict=True):
        if not run.rows:
            raise InvalidInputError(f"the results of {name!r:.80} have no rows; run evaluate first")
        if examples and not any(row.example.id in examples for row in run.rows):
            raise InvalidInputError(
                f"the results of {name!r:.80} and {names[0]!r:.80} have no question in common; only runs over the "
                "same set of questions can be compared"
            )
        for row in run.rows:
            known = examples.setdefault(row.example.id, row.example)
            for part in _GOLD if known is not row.example else ():
                if getattr(known, part) != getattr(row.example, part):
                    raise InvalidInputError(
                        f"the example {known.id!r:.80} has the {part} {getattr(known, part)!r:.120} in the results of "
                        f"{owner[known.id]!r:.80} and {getattr(row.example, part)!r:.120} in those of {name!r:.80}: "
                        "these are different sets of questions; run both pipelines over the same set"
                    )
            owner.setdefault(row.example.id, name)
    return examples


def _metrics(runs: Sequence[Results], metrics: Iterable[str] | str | None) -> tuple[str, ...]:
    present = Counter(metric for run in runs for metric in run.metrics)
    if metrics is None:
        if shared := tuple(metric for metric in present if present[metric] > 1):
            return shared
        raise InvalidInputError(f"the results have no metric in common; there are {', '.join(present)}")
    wanted = [metrics] if isinstance(metrics, str) or not isinstance(metrics, Iterable) else list(metrics)
    for metric in wanted:
        if not isinstance(metric, str) or metric not in present:
            raise InvalidInputError(
                f"no result has the metric {metric!r:.80}; metrics are {', '.join(present)}"
            )
    if not wanted or len(set(wanted)) != len(wanted):
        raise InvalidInputError(f"the metrics are {wanted!r:.120}; give at least one, each once")
    return tuple(wanted)


def _notes(names: Sequence[str], runs: Sequence[Results], count: int) -> list[str]:
    """Questions that were not asked, and judges that differ."""
    notes = [
        f"{name}: {count - len(run.rows)} of {count} questions have not been asked."
        for name, run in zip(names, runs, strict=True)
        if len(run.rows) < count
    ]
    judges: dict[str, list[str]] = {}
    for name, run in zip(names, runs, strict=True):
        if judge := run.manifest.get("judge"):
            judges.setdefault(json.dumps(judge, sort_keys=True, default=str), []).append(name)
    if len(judges) > 1:
        groups = "; ".join(", ".join(group) for group in judges.values())
        notes.append(
            f"Judged by different judges ({groups}): their judged scores differ for more reasons than the pipelines. "
            "Score them again with one judge."
        )
    return notes


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
    wanted: tuple[Any, ...] = (slices,)
    if isinstance(slices, Iterable) and not isinstance(slices, str):
        wanted = tuple(slices)
    allowed = dict.fromkeys([*_BUILT_IN, *sorted({tag for example in examples for tag in example.tags})])
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
