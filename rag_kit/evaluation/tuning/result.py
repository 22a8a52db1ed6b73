"""Result of a search: the settings tried, the best of them, and whether it is really better than the default."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_kit.documents.display import Table
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import write_json
from rag_kit.evaluation.comparison import Comparison, compare
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.tuning.space import label, quiet
from rag_kit.evaluation.wording import SpokenResult

FILE = "study.log"
_STUDY_NAME = "rag_kit"
_FEW_QUESTIONS = 30  # below which only great differences can be distinguished from noise
_MAX_LISTED = 10  # settings in the table


@dataclass(frozen=True)
class Trial:
    """One setting that was tried; ``calls`` and ``tokens`` are those of pipeline and judge.

    Its ``state``: ``complete``: it answered every question; ``pruned``: it was given up; ``failed``: it has too few
    values to be compared; ``unfinished``: the search ended meanwhile. ``reason`` says why it is not complete.
    """

    number: int  # from 0, which is the default setting
    settings: Mapping[str, Any]
    state: str = "unfinished"
    reason: str = ""
    scores: Mapping[str, float] = field(default_factory=dict, repr=False)  # by question
    asked: int = 0  # questions
    calls: int = 0
    tokens: int = 0

    @property
    def value(self) -> float | None:
        """Mean of the scores."""
        return statistics.fmean(self.scores.values()) if self.scores else None


@dataclass(frozen=True)
class TuningResult(SpokenResult):
    """The search kept in ``folder``; its Optuna ``study`` has every finished trial, for plots and importances."""

    folder: Path
    study: Any = field(repr=False)

    @cached_property
    def records(self) -> dict[str, dict[str, Any]]:
        """Map `record_name` to the record of each setting: from the study if its trial is finished, else its folder."""
        finished = [dict(trial.user_attrs) for trial in self.study.get_trials(deepcopy=False)]
        by_name = {record_name(record["settings"], "search"): record for record in finished}
        for path in sorted(self.folder.glob("*-s*")):  # "...-search" and "...-set_aside"
            if path.name not in by_name:
                with suppress(InvalidInputError, LookupError, ValueError, TypeError):  # killed at its start
                    by_name[path.name] = record_of(Results.load(path))
        return by_name

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The settings tried, in order, unfinished ones last; the first is the default."""
        searched = [record for name, record in self.records.items() if name.endswith("-search")]
        ordered = sorted(searched, key=lambda record: "state" not in record)  # finished ones first
        ordered = ordered or [{"settings": self.setup["default"]}]  # not asked anything yet
        return tuple(Trial(number, **record) for number, record in enumerate(ordered))

    @cached_property
    def setup(self) -> Mapping[str, Any]:
        """The subject of the search: metric, space, counts of questions, seed."""
        return dict(self.study.user_attrs["search"])

    @property
    def stopped(self) -> str:
        """Why the search ended."""
        return str(self.study.user_attrs["ended"])

    @property
    def usage(self) -> dict[str, Any]:
        """Questions asked, calls, tokens and seconds of all sittings."""
        return {**self.counts, "seconds": self.study.user_attrs.get("elapsed", 0.0)}

    @property
    def counts(self) -> dict[str, int]:
        """Questions asked, calls and tokens of all sittings."""
        kinds = ("asked", "calls", "tokens")
        return {kind: sum(record[kind] for record in self.records.values()) for kind in kinds}

    @property
    def best_trial(self) -> Trial:
        """The complete trial with the best mean, the first of equal ones; the default's if no trial is complete."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        sign = 1.0 if self.setup["higher_is_better"] else -1.0
        return max(complete, key=lambda trial: sign * (trial.value or 0.0), default=self.trials[0])

    @property
    def best(self) -> Mapping[str, Any]:
        """The setting with the best mean over the search part; the default one where nothing was finished."""
        return self.best_trial.settings

    @property
    def default(self) -> Mapping[str, Any]:
        """The default setting."""
        return self.trials[0].settings

    @cached_property
    def set_aside(self) -> Comparison | None:
        """The best setting compared with the default one on the questions set aside; ``None`` if not all were asked."""
        total = self.setup["counts"]["set_aside"]
        if not total or self.best == self.default:
            return None
        names = [record_name(settings, "set_aside") for settings in (self.best, self.default)]
        if any(self.records.get(name, {}).get("asked") != total for name in names):
            return None
        best, default = (Results.load(self.folder / name) for name in names)
        baseline = self._say("default")
        return compare(
            {self._say("best"): best, baseline: default}, metrics=self.setup["metric"], baseline=baseline
        )

    @property
    def verdict(self) -> str:
        """One sentence: what was gained, and whether it can be distinguished from noise."""
        return self._say(self._english_verdict())

    @cached_property
    def language(self) -> str:
        """The language of most questions, in which the result is printed."""
        return str(self.setup.get("language", "en"))

    def _english_verdict(self) -> str:
        metric, default = self.setup["metric"], self.trials[0]
        if default.state != "complete":
            return "The search ended before the default setting had answered every question: nothing is compared."
        if self.best_trial == default:
            return f"No setting was better than the default on {metric}."
        pair = self.set_aside.pairs[0] if self.set_aside else None  # the best against the default
        if pair is None or pair.difference is None or pair.low is None or pair.high is None:
            return (
                f"The best setting was not judged on questions of its own, so its gain in {metric} over the default "
                "is too good: it was chosen for it."
            )
        start = {
            None: "The gain is not distinguishable from noise",
            pair.pipeline: "The best setting is better",
            pair.other: "The best setting of the search is worse",
        }[pair.better]
        return (
            f"{start}: {pair.difference:+.3f} {metric} against the default on {pair.n} questions set aside (95% "
            f"interval {pair.low:+.3f} to {pair.high:+.3f}, p = {pair.p_adjusted:.2g})."
        )

    @property
    def notes(self) -> list[str]:
        """Warnings: few questions, questions left out."""
        counts, notes = self.setup["counts"], []
        if counts["left_out"]:
            notes.append(f"{counts['left_out']} questions lack what the metric reads and were left out.")
        if counts["search"] < _FEW_QUESTIONS or 0 < counts["set_aside"] < _FEW_QUESTIONS:
            notes.append(
                f"{counts['search']} questions to search with and {counts['set_aside']} set aside are few: only great "
                "differences can be distinguished from noise."
            )
        return list(map(self._say, notes))

    def to_json(self) -> dict[str, Any]:
        """Return settings, verdict, trials and usage as plain JSON."""
        return {
            "best": dict(self.best), "verdict": self.verdict, "stopped": self.stopped, "notes": self.notes,
            "usage": self.usage, "setup": dict(self.setup),
            "set_aside": None if self.set_aside is None else self.set_aside.to_json(),
            "trials": [{**asdict(trial), "value": trial.value} for trial in self.trials],
        }  # fmt: skip

    def save(self, path: Path | str) -> Path:
        """Write `to_json` to a file; ``json.loads(path.read_text())["best"]`` is the setting."""
        write_json(Path(path), self.to_json())
        return Path(path)

    def _english(self) -> tuple[str, list[Table], list[str]]:
        took = f"{self.usage['calls']} model calls, {self.usage['seconds']:.0f} s"
        ending = f"ended: {self.stopped}; {len(self.trials)} settings; {took}"
        return self.verdict, [self._trials_table()], [ending, *self.notes]

    def _trials_table(self) -> Table:
        """Make a table of the best settings, complete ones first, with the default setting always among them."""
        trials, default = self.trials, self.trials[0]
        sign = -1.0 if self.setup["higher_is_better"] else 1.0

        def rank(trial: Trial) -> tuple[bool, float, int]:
            return trial.state != "complete", sign * (trial.value or 0.0), trial.number

        listed = sorted(trials, key=rank)[:_MAX_LISTED]
        if default not in listed:
            listed[-1] = default
        rows = []
        for trial in listed:
            values = json.dumps(dict(trial.settings), ensure_ascii=False)
            rows.append([trial.number or self._say("default"), trial.value, self._say(trial.state), values])
        return Table(["setting", self.setup["metric"], "state", "values"], rows, right=[0, 1], width=120)


def open_study(path: Path, direction: str) -> Any:
    """Load the Optuna study that a file holds; create one with this direction if it holds none."""
    with quiet() as optuna:
        from optuna.storages.journal import JournalFileBackend

        try:
            storage = optuna.storages.JournalStorage(JournalFileBackend(str(path)))
            if optuna.get_all_study_names(storage):
                return optuna.load_study(study_name=_STUDY_NAME, storage=storage)
            return optuna.create_study(study_name=_STUDY_NAME, storage=storage, direction=direction)
        except Exception as error:  # a file that Optuna did not write fails in many ways
            raise InvalidInputError(
                f"{str(path)!r} is damaged, or cannot be read or written ({type(error).__name__}: {error}); give "
                "another folder as out"
            ) from error


def record_name(settings: Mapping[str, Any], part: str) -> str:
    """Name the folder that keeps the answers of a setting on a part of the questions."""
    return f"{hashlib.sha256(label(dict(settings)).encode()).hexdigest()[:16]}-{part}"


def record_of(results: Results) -> dict[str, Any]:
    """Return the scores of a setting, the number of questions asked, and their model calls and tokens."""
    charged: list[Any] = [part for row in results.rows for part in (row.output, *row.cells.values())]
    return {
        "settings": json.loads(results.manifest["pipeline"]["version"]),  # a search gives them as the version
        "scores": results.values(results.metrics[0]), "asked": len(results),
        "calls": sum(part.calls for part in charged), "tokens": sum(part.tokens for part in charged),
    }  # fmt: skip
