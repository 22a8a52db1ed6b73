"""Runs over the same questions side by side: one table of values for each metric."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.runs.results import Results, higher_is_better

if TYPE_CHECKING:
    import numpy as np

    from rag_kit.evaluation.examples import Example

#: What must be the same of an example in all runs: with other gold the scores mean something else.
_GOLD = (
    "question", "reference", "answers", "reference_contexts", "relevant", "spans", "answerable", "history",
)  # fmt: skip


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

    runs = _named_runs(results)
    examples = _shared_examples(runs)
    chosen = _metrics(runs.values(), metrics)
    place = {key: number for number, key in enumerate(examples)}
    values = {metric: np.full((len(examples), len(runs)), np.nan) for metric in chosen}
    for column, run in enumerate(runs.values()):
        for row in run.rows:
            for metric in chosen:
                cell = row.cells.get(metric)
                if cell is not None and cell.status == "ok" and cell.value is not None:
                    values[metric][place[row.example.id], column] = cell.value
    owners = {metric: next(run for run in runs.values() if metric in run.metrics) for metric in chosen}
    lower = frozenset(metric for metric, run in owners.items() if not higher_is_better(run, metric))
    return Matched(
        tuple(runs), tuple(runs.values()), chosen, examples, values, _notes(runs, len(examples)), lower
    )


def _named_runs(results: Any) -> dict[str, Results]:
    """Name -> run, at least two of different names."""
    if isinstance(results, (str, Path, Results)) or not isinstance(results, Iterable):
        raise InvalidInputError(
            f"results is a {type(results).__name__}; give a list of at least two Results or folders, or a mapping "
            "from names to them"
        )
    given = list(results.items()) if isinstance(results, Mapping) else [(None, item) for item in results]
    runs: dict[str, Results] = {}
    for name, item in given:
        run = Results.load(item) if isinstance(item, (str, Path)) else item
        if not isinstance(run, Results):
            raise InvalidInputError(
                f"a {type(run).__name__} was given among the results; give Results or folders"
            )
        chosen = run.name if name is None else name
        if not isinstance(chosen, str) or not chosen.strip():
            raise InvalidInputError(f"a pipeline has the name {chosen!r:.80}; give a text that is not blank")
        if chosen in runs:
            raise InvalidInputError(
                f"two results have the name {chosen!r:.80}; give a mapping from names of your own to the results: "
                "compare({'before': first, 'after': second}); on the command line: NAME=FOLDER"
            )
        if not run.rows:
            raise InvalidInputError(f"the results of {chosen!r:.80} have no rows; run evaluate first")
        runs[chosen] = run
    if len(runs) < 2:
        raise InvalidInputError(
            f"{len(runs)} given; a comparison needs the results of at least two runs. One alone shows itself: "
            "print(results), results.summary()"
        )
    return runs


def _shared_examples(runs: Mapping[str, Results]) -> dict[str, Example]:
    """Id -> example of all runs, which must agree in question and gold."""
    examples: dict[str, Example] = {}
    owner: dict[str, str] = {}
    for name, run in runs.items():
        if examples and not any(row.example.id in examples for row in run.rows):
            raise InvalidInputError(
                f"the results of {name!r:.80} and {next(iter(runs))!r:.80} have no question in common; only runs over "
                "the same set of questions can be compared"
            )
        for row in run.rows:
            known = examples.setdefault(row.example.id, row.example)
            owner.setdefault(row.example.id, name)
            for part in _GOLD if known is not row.example else ():
                if getattr(known, part) != getattr(row.example, part):
                    raise InvalidInputError(
                        f"the example {known.id!r:.80} has the {part} {getattr(known, part)!r:.120} in the results of "
                        f"{owner[known.id]!r:.80} and {getattr(row.example, part)!r:.120} in those of {name!r:.80}: "
                        "these are different sets of questions; run both pipelines over the same set"
                    )
    return examples


def _metrics(runs: Iterable[Results], metrics: Iterable[str] | str | None) -> tuple[str, ...]:
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


def _notes(runs: Mapping[str, Results], count: int) -> list[str]:
    """Questions that were not asked, and judges that differ."""
    notes = [
        f"{name}: {count - len(run.rows)} of {count} questions have not been asked."
        for name, run in runs.items()
        if len(run.rows) < count
    ]
    judges: dict[str, list[str]] = {}
    for name, run in runs.items():
        if judge := run.manifest.get("judge"):
            judges.setdefault(json.dumps(judge, sort_keys=True, default=str), []).append(name)
    if len(judges) > 1:
        groups = "; ".join(", ".join(group) for group in judges.values())
        notes.append(
            f"Judged by different judges ({groups}): their judged scores differ for more reasons than the pipelines. "
            "Score them again with one judge."
        )
    return notes
