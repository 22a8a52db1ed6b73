"""Several runs over the same questions, laid side by side; what cannot be compared is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.runs.results import higher_is_better

if TYPE_CHECKING:
    import numpy as np

    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.runs.results import Results

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
"""What must be the same of an example in all runs: with other gold the scores mean something else."""


@dataclass
class Matched:
    """Runs side by side.

    Args:
        names: Of the pipelines, in the order given.
        runs: Their results.
        metrics: What is compared.
        examples: Id -> example, of every question that at least one run has.
        values: Metric -> questions by pipelines; NaN where there is no ok cell.
        notes: What a reader should know before believing a difference.
        lower: Metrics of which less is better.
    """

    names: tuple[str, ...]
    runs: tuple[Results, ...]
    metrics: tuple[str, ...]
    examples: dict[str, Example]
    values: dict[str, np.ndarray]
    notes: list[str] = field(default_factory=list)
    lower: frozenset[str] = frozenset()

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the questions."""
        return tuple(self.examples)

    @property
    def questions(self) -> int:
        """Questions in all; those that no run has come to yet included."""
        return max(len(self.examples), *(run.examples for run in self.runs))

    def index(self, name: str) -> int:
        """Number of a pipeline."""
        return self.names.index(name)


def match_results(
    results: Iterable[Results | Path | str] | Mapping[str, Results | Path | str],
    metrics: Iterable[str] | str | None = None,
) -> Matched:
    """Lay runs side by side.

    Args:
        results: At least two; or name -> results, to give them other names. A folder is loaded.
        metrics: Which; default: all that at least two runs have.

    Raises:
        InvalidInputError: If there are fewer than two, two have one name, they are of different sets of questions,
            or a metric is in none of them.
    """
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
    notes = [*_coverage_notes(names, runs, examples), *_judge_notes(names, runs)]
    lower = frozenset(
        metric
        for metric in chosen
        if not higher_is_better(next(r for r in runs if metric in r.metrics), metric)
    )
    return Matched(names, runs, chosen, examples, values, notes, lower)


def _runs(results: Any) -> tuple[tuple[str, ...], tuple[Results, ...]]:
    from rag_kit.evaluation.runs.results import Results

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
            if known is not row.example:
                _check_same(known, row.example, owner[known.id], name)
            owner.setdefault(row.example.id, name)
    return examples


def _check_same(one: Example, other: Example, first: str, second: str) -> None:
    for name in _GOLD:
        if getattr(one, name) != getattr(other, name):
            raise InvalidInputError(
                f"the example {one.id!r:.80} has the {name} {getattr(one, name)!r:.120} in the results of "
                f"{first!r:.80} and {getattr(other, name)!r:.120} in those of {second!r:.80}: these are different "
                "sets of questions; run both pipelines over the same set"
            )


def _metrics(runs: Sequence[Results], metrics: Iterable[str] | str | None) -> tuple[str, ...]:
    present = list(dict.fromkeys(metric for run in runs for metric in run.metrics))
    if metrics is None:
        shared = [metric for metric in present if sum(metric in run.metrics for run in runs) > 1]
        if not shared:
            raise InvalidInputError(
                "the results have no metric in common; there are "
                + "; ".join(", ".join(r.metrics) for r in runs)
            )
        return tuple(shared)
    if not isinstance(metrics, Iterable):
        raise InvalidInputError(f"metrics is {metrics!r:.80}; give names of metrics")
    wanted = [metrics] if isinstance(metrics, str) else list(metrics)
    for metric in wanted:
        if metric not in present:
            raise InvalidInputError(
                f"no result has the metric {metric!r:.80}; there are {', '.join(present) or 'none'}"
            )
    if not wanted or len(set(wanted)) != len(wanted):
        raise InvalidInputError(
            f"the metrics are {', '.join(wanted) or 'none'}; give at least one, each once"
        )
    return tuple(wanted)


def _coverage_notes(
    names: Sequence[str], runs: Sequence[Results], examples: Mapping[str, Example]
) -> list[str]:
    return [
        f"{name}: {len(examples) - len(run.rows)} of {len(examples)} questions have not been asked."
        for name, run in zip(names, runs, strict=True)
        if len(run.rows) < len(examples)
    ]


def _judge_notes(names: Sequence[str], runs: Sequence[Results]) -> list[str]:
    """Scores of two judges differ for more reasons than the pipelines."""
    judges: dict[str, list[str]] = {}
    for name, run in zip(names, runs, strict=True):
        judge = run.manifest.get("judge") if isinstance(run.manifest, Mapping) else None
        if judge:
            judges.setdefault(_canonical(judge), []).append(name)
    if len(judges) < 2:
        return []
    groups = "; ".join(", ".join(group) for group in judges.values())
    return [
        f"Judged by different judges ({groups}): their judged scores differ for more reasons than the pipelines. "
        "Score them again with one judge."
    ]


def _canonical(value: Any) -> str:
    import json

    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)
