"""What a search found: the settings tried, the best of them, and whether it is really better than the default."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.documents import clean_text
from rag_kit.documents.tables import Table, tables_html
from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.tuning.space import label
from rag_kit.evaluation.tuning.study import load_study, quiet
from rag_kit.evaluation.tuning.verdict import HeldAside, judge_held

if TYPE_CHECKING:
    import pandas as pd

State = Literal["complete", "pruned", "failed", "unfinished"]
_STATES: dict[str, State] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
_FEW = 30
_LISTED = 10  # settings in the table


@dataclass(frozen=True)
class Trial:
    """One setting that was tried.

    Args:
        number: From 0, which is the default setting.
        settings: The setting.
        state: ``complete``: it answered every question; ``pruned``: it was given up; ``failed``: it has too few
            values to be compared; ``unfinished``: the search ended meanwhile.
        scores: Question -> value, of the questions that have one.
        asked: Questions asked.
        reason: Why it is not complete.
        calls: Model calls of the pipeline and the judge.
        tokens: Their tokens.
        money: Their price; ``None`` where it is not known.
        seconds: Seconds that the pipeline took for all questions together.
    """

    number: int
    settings: Mapping[str, Any]
    state: State
    scores: Mapping[str, float] = field(default_factory=dict, repr=False)
    asked: int = 0
    reason: str = ""
    calls: int = 0
    tokens: int = 0
    money: float | None = 0.0
    seconds: float = 0.0

    @property
    def value(self) -> float | None:
        """Mean of the scores."""
        return statistics.fmean(self.scores.values()) if self.scores else None


@dataclass(frozen=True)
class TuningResult:
    """The result of a search: its trials, the best setting, and how that did on the questions held aside.

    Args:
        trials: The settings tried, in order; the first is the default.
        held_aside: Winner against default on the other part; ``None`` where nothing was held aside, or the budget
            did not suffice.
        metric: Name of the metric.
        higher_is_better: Direction of the metric.
        stopped: Why the search ended.
        notes: Warnings: few questions, questions without a value, several winners judged.
        setup: What was searched: space, seed, counts.
        usage: Calls, tokens, money (``None`` where not known) and seconds of all sittings.
        maker: Module and name of the function that makes a pipeline, where a file can import it.
    """

    trials: tuple[Trial, ...]
    held_aside: HeldAside | None
    metric: str
    higher_is_better: bool
    stopped: str
    notes: tuple[str, ...] = ()
    setup: Mapping[str, Any] = field(default_factory=dict, repr=False)
    usage: Mapping[str, Any] = field(default_factory=dict)
    maker: tuple[str, str] | None = None

    @classmethod
    def load(cls, folder: Path | str) -> TuningResult:
        """Read what a search wrote to its folder, also while it goes on.

        Raises:
            InvalidInputError: If there is no search in the folder, or it is damaged.
        """
        found = cls.of(load_study(Path(folder)))
        if not found.trials:
            raise InvalidInputError(f"{str(folder)!r} holds no setting yet")
        return found

    @classmethod
    def of(cls, study: Any) -> TuningResult:
        """The result of `tune`, read from its Optuna study.

        Raises:
            InvalidInputError: If the study is damaged, or not one of `tune`.
        """
        try:
            return cls._of(study)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(
                f"the study is damaged, or is none of tune's ({type(error).__name__}: {error}); give another folder"
            ) from error

    @classmethod
    def _of(cls, study: Any) -> TuningResult:
        attributes = study.user_attrs
        setup = attributes["search"]
        trials = _trials(study)
        ended, judged = attributes.get("ended", {}), attributes.get("held", {})
        usage = no_usage()
        for each in [*(vars(trial) for trial in trials), *(record["usage"] for record in judged.values())]:
            add_usage(usage, each)
        usage["seconds"] = attributes.get("elapsed", 0.0)
        found = cls(
            trials=trials,
            held_aside=None,
            metric=setup["metric"],
            higher_is_better=setup["higher_is_better"],
            stopped=ended.get("reason", "it still goes on, or was killed"),
            setup=setup,
            usage=usage,
            maker=tuple(ended["maker"]) if ended.get("maker") else None,
        )
        if not trials:
            return found
        best, default = (
            judged.get(label(dict(each)), {}).get("scores", {}) for each in (found.best, found.default)
        )
        looks = len(judged) - (label(dict(found.default)) in judged)
        held = judge_held(
            best,
            default,
            total=setup["counts"]["held"],
            higher_is_better=found.higher_is_better,
            level=ended.get("level", 0.95),
            looks=looks,
        )
        return cls(**{**vars(found), "held_aside": held, "notes": tuple(_notes(setup["counts"], held))})

    @property
    def best(self) -> Mapping[str, Any]:
        """The setting with the best mean over the search part; the default one where nothing was finished."""
        return self.best_trial.settings

    @property
    def default(self) -> Mapping[str, Any]:
        """The default setting."""
        return self.trials[0].settings

    @property
    def best_trial(self) -> Trial:
        """The trial of the best setting; of equal ones the first."""
        finished = [trial for trial in self.trials if trial.state == "complete"]
        sign = 1.0 if self.higher_is_better else -1.0
        return max(finished, key=lambda trial: sign * (trial.value or 0.0), default=self.trials[0])

    @property
    def verdict(self) -> str:
        """One sentence: what was gained, and whether it can be told from noise."""
        if self.trials[0].state != "complete":
            return "The search ended before the default setting had answered every question: nothing is compared."
        if self.best_trial.number == 0:
            return f"No setting was better than the default on {self.metric}."
        if self.held_aside is None:
            return (
                f"The best setting was not judged on questions of its own, so its gain in {self.metric} over the "
                "default is too good: it was chosen for it."
            )
        held = self.held_aside
        gain = (
            f"{held.difference:+.3f} {self.metric} against the default on {held.pairs} questions held aside "
            f"({held.level:.0%} interval {held.low:+.3f} to {held.high:+.3f}, p = {held.p:.2g})"
        )
        start = "The best setting is better" if held.better else "The gain is not distinguishable from noise"
        return f"{start}: {gain}."

    def write_python(self, path: Path | str) -> Path:
        """Write the best setting as a Python file that makes its pipeline.

        Raises:
            InvalidInputError: If the path is a folder.
        """
        from rag_kit.evaluation.tuning.writing import write_python

        return write_python(self, Path(path))

    def study(self) -> Any:
        """The trials as an Optuna study in memory, for its plots and importances.

        Raises:
            MissingExtraError: If Optuna is not installed.
        """
        from rag_kit.evaluation.tuning.space import SearchSpace

        parameters = SearchSpace(dict(self.setup["space"])).parameters
        with quiet() as optuna:
            study = optuna.create_study(direction="maximize" if self.higher_is_better else "minimize")
            states = {"complete": "COMPLETE", "pruned": "PRUNED", "unfinished": "PRUNED", "failed": "FAIL"}
            for trial in self.trials:
                study.sampler = optuna.samplers.PartialFixedSampler(
                    {name: parameters[name].to_optuna(value) for name, value in trial.settings.items()},
                    optuna.samplers.RandomSampler(seed=0),
                )
                asked = study.ask()
                for name in trial.settings:
                    parameters[name].suggest(asked)
                if trial.value is not None:
                    asked.report(trial.value, step=trial.asked)
                state = optuna.trial.TrialState[states[trial.state]]
                study.tell(asked, trial.value if trial.state == "complete" else None, state=state)
        return study

    def to_pandas(self) -> pd.DataFrame:
        """One line a setting.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("eval", "TuningResult.to_pandas") from None
        rows = []
        for trial in self.trials:
            row = {**vars(trial), self.metric: trial.value}
            row |= {f"setting.{name}": value for name, value in row.pop("settings").items()}
            del row["scores"]
            rows.append(row)
        return pd.DataFrame(rows).set_index("number")

    def __str__(self) -> str:
        notes = [f"note: {note}" for note in self.notes]
        head = [self.verdict, f"best: {_settings(self.best_trial)}", self._ending(), *notes, ""]
        return "\n".join([*map(clean_text, head), self._table().text()])

    def _repr_html_(self) -> str:
        return tables_html(self.verdict, [self._table()], [self._ending(), *self.notes])

    def _ending(self) -> str:
        """One line: why the search ended, after how many settings, calls and seconds."""
        states = [trial.state for trial in self.trials]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        return (
            f"ended: {self.stopped}; {len(states)} settings ({counts}); {self.usage['calls']} model calls, "
            f"{self.usage['seconds']:.0f} s"
        )

    def _table(self) -> Table:
        """Rows of the best settings, complete ones first; the default setting is always among them."""
        sign = -1.0 if self.higher_is_better else 1.0
        ranked = sorted(self.trials, key=lambda t: (t.state != "complete", sign * (t.value or 0.0), t.number))
        listed = ranked[:_LISTED]
        if self.trials[0] not in listed:
            listed[-1] = self.trials[0]
        rows = [
            [t.number, "-" if t.value is None else f"{t.value:.4f}", t.state, _settings(t)] for t in listed
        ]
        return Table(["setting", self.metric, "state", "values"], rows, right=[0, 1], width=120)


def no_usage() -> dict[str, Any]:
    """Zero of each kind that `add_usage` adds up."""
    return {"calls": 0, "tokens": 0, "money": 0.0, "seconds": 0.0}


def add_usage(total: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add usage to a total in place; a price that is not known makes the sum unknown."""
    for kind in total:
        unknown = total[kind] is None or more[kind] is None
        total[kind] = None if unknown else total[kind] + more[kind]


def _trials(study: Any) -> tuple[Trial, ...]:
    """A trial for each setting, in the order they were started; of a setting that was started again, the last."""
    found: dict[str, Any] = {}
    for each in study.get_trials(deepcopy=False):
        if settings := each.user_attrs.get("settings"):
            found[label(settings)] = each
    trials = []
    for number, each in enumerate(found.values()):
        own = each.user_attrs
        state: State = _STATES.get(each.state.name, "unfinished") if "reason" in own else "unfinished"
        usage = own.get("usage", no_usage())
        trials.append(
            Trial(
                number,
                own["settings"],
                state,
                own.get("scores", {}),
                own.get("asked", 0),
                own.get("reason", ""),
                **usage,
            )
        )
    return tuple(trials)


def _notes(counts: Mapping[str, int], held: HeldAside | None) -> list[str]:
    notes = []
    if counts["left_out"]:
        notes.append(f"{counts['left_out']} questions lack what the metric reads and were left out.")
    if counts["search"] < _FEW or 0 < counts["held"] < _FEW:
        notes.append(
            f"{counts['search']} questions to search with and {counts['held']} held aside are few: only great "
            "differences can be told from noise."
        )
    if held is not None and held.looks > 1:
        notes.append(
            f"{held.looks} settings were judged on the questions held aside, one after the other; each further look "
            "makes the verdict weaker."
        )
    if held is not None and held.pairs < held.total:
        notes.append(
            f"{held.total - held.pairs} of the {held.total} questions held aside have no value of both."
        )
    return notes


def _settings(trial: Trial) -> str:
    values = ", ".join(f"{name}={value!r}" for name, value in trial.settings.items())
    return ("default: " if trial.number == 0 else "") + values
