"""What a search found: the settings tried, the best of them, and whether it is really better than the default."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.tuning.pruning import best_number

if TYPE_CHECKING:
    import pandas as pd

State = Literal["complete", "pruned", "failed", "unfinished"]


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
        seconds: Wall-clock seconds.
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
class Judged:
    """One setting on the questions held aside.

    Args:
        mean: Mean of the values.
        low: Lower end of its interval.
        high: Upper end.
        n: Questions with a value.
        total: Questions asked.
    """

    mean: float
    low: float
    high: float
    n: int
    total: int


@dataclass(frozen=True)
class HeldAside:
    """The winner and the default setting on questions that the search has not seen.

    Args:
        best: The winner.
        default: The default setting.
        difference: Mean of winner minus default, over the questions on which both have a value.
        low: Lower end of the paired interval of the difference.
        high: Upper end.
        p: Two-sided p-value of the sign-flip test.
        pairs: Questions on which both have a value.
        total: Questions held aside.
        level: Share of the intervals.
        better: Whether the winner is better beyond noise: the interval leaves out 0 on the good side, and ``p`` is
            at most ``1 - level``.
        looks: Settings that were judged on these questions, in all sittings; each further one makes the verdict
            weaker.
    """

    best: Judged
    default: Judged
    difference: float
    low: float
    high: float
    p: float
    pairs: int
    total: int
    level: float
    better: bool
    looks: int = 1


@dataclass(frozen=True)
class TuningResult:
    """What a search found.

    Args:
        best: The setting with the best mean over the search part; the default one where nothing was finished.
        trials: The settings tried, in order; the first is the default.
        held_aside: Winner against default on the other part; ``None`` where nothing was held aside, or the budget
            did not suffice.
        metric: Its name.
        higher_is_better: Its direction.
        stopped: Why the search ended.
        notes: What a reader should know.
        setup: The search itself, as its log has it: space, seed, counts.
        usage: Calls, tokens, money (``None`` where not known) and seconds of all sittings.
        maker: Module and name of the function that makes a pipeline, where a file can import it.
    """

    best: Mapping[str, Any]
    trials: tuple[Trial, ...]
    held_aside: HeldAside | None
    metric: str
    higher_is_better: bool
    stopped: str
    notes: tuple[str, ...] = ()
    setup: Mapping[str, Any] = field(default_factory=dict, repr=False)
    usage: Mapping[str, Any] = field(default_factory=dict)
    maker: tuple[tuple[str, str], str] | None = None

    @property
    def default(self) -> Mapping[str, Any]:
        """The default setting."""
        return self.trials[0].settings

    @property
    def best_trial(self) -> Trial:
        """The trial of the best setting."""
        finished = {trial.number: trial.scores for trial in self.trials if trial.state == "complete"}
        number = best_number(finished, self.higher_is_better)
        return self.trials[0 if number is None else number]

    @property
    def verdict(self) -> str:
        """One sentence for people: what was gained, and whether it can be told from noise."""
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
        told = (
            f"{held.difference:+.3f} {self.metric} against the default on {held.pairs} questions held aside "
            f"({held.level:.0%} interval {held.low:+.3f} to {held.high:+.3f}, p = {held.p:.2g})"
        )
        if held.better:
            return f"The best setting is better: {told}."
        return f"The gain is not distinguishable from noise: {told}."

    def write_python(self, path: Path | str) -> Path:
        """Write the best setting as a Python file that makes its pipeline.

        Raises:
            InvalidInputError: If the path is a folder.
        """
        from rag_kit.evaluation.tuning.writing import write_python

        return write_python(self, Path(path))

    @classmethod
    def load(cls, folder: Path | str) -> TuningResult:
        """Read what a search wrote to its folder, also while it goes on.

        Raises:
            InvalidInputError: If there is no search in the folder, or a line is damaged.
        """
        from rag_kit.evaluation.tuning.history import load_result

        return load_result(Path(folder))

    def study(self) -> Any:
        """The trials as an Optuna study, for its plots and importances.

        Raises:
            MissingExtraError: If Optuna is not installed.
        """
        from rag_kit.evaluation.tuning.optimiser import Optimiser
        from rag_kit.evaluation.tuning.space import SearchSpace

        space = SearchSpace(dict(self.setup["space"]), self.setup["default"])
        optimiser = Optimiser(space, higher_is_better=self.higher_is_better)
        for trial in self.trials:
            values = {} if trial.value is None else {trial.asked: trial.value}
            optimiser.add(trial.settings, trial.state.replace("unfinished", "pruned"), trial.value, values)
        return optimiser.study

    def to_pandas(self) -> pd.DataFrame:
        """One line a setting.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("eval", "TuningResult.to_pandas") from None
        return pd.DataFrame([_record(trial, self.metric) for trial in self.trials]).set_index("number")

    def __str__(self) -> str:
        from rag_kit.evaluation.tuning.showing import text

        return text(self)

    def _repr_html_(self) -> str:
        from rag_kit.evaluation.tuning.showing import html

        return html(self)


def judge_held(
    best: Mapping[str, float],
    default: Mapping[str, float],
    *,
    total: int,
    higher_is_better: bool = True,
    level: float = 0.95,
    looks: int = 1,
) -> HeldAside | None:
    """Compare two settings on the questions held aside; ``None`` where fewer than 2 have values of both.

    Args:
        best: Question -> value of the winner.
        default: The same of the default setting.
        total: Questions held aside.
        higher_is_better: The direction of the metric.
        level: Share of the intervals.
        looks: Settings judged on these questions so far.

    Example:
        >>> a = dict(enumerate([.9, .8, .7, .6, .9, .8, .75, .85]))
        >>> b = dict(enumerate([.7, .8, .6, .5, .7, .8, .70, .65]))
        >>> held = judge_held(a, b, total=8)
        >>> round(held.difference, 5), round(held.low, 4), round(held.high, 4), held.p, held.better
        (0.10625, 0.05, 0.1625, 0.03125, True)
    """
    from rag_kit.evaluation.comparing.significance import sign_flip_test
    from rag_kit.evaluation.statistics import bootstrap_interval

    shared = [key for key in best if key in default]
    if len(shared) < 2:
        return None
    differences = [best[key] - default[key] for key in shared]
    low, high = bootstrap_interval(differences, level=level)
    p = sign_flip_test(differences).p
    good_side = low > 0 if higher_is_better else high < 0
    return HeldAside(
        best=_judged(list(best.values()), total, level),
        default=_judged(list(default.values()), total, level),
        difference=statistics.fmean(differences),
        low=low,
        high=high,
        p=p,
        pairs=len(shared),
        total=total,
        level=level,
        better=good_side and p <= 1 - level + 1e-12,
        looks=looks,
    )


def _judged(values: Sequence[float], total: int, level: float) -> Judged:
    from rag_kit.evaluation.statistics import bootstrap_interval

    low, high = bootstrap_interval(values, level=level)
    return Judged(statistics.fmean(values), low, high, len(values), total)


def _record(trial: Trial, metric: str) -> dict[str, Any]:
    row = {"number": trial.number, "state": trial.state, metric: trial.value, "asked": trial.asked}
    row |= {f"setting.{name}": value for name, value in trial.settings.items()}
    return row | {
        "calls": trial.calls, "tokens": trial.tokens, "money": trial.money, "seconds": trial.seconds,
        "reason": trial.reason,
    }  # fmt: skip


def check_level(level: object) -> None:
    """Refuse what is no share.

    Raises:
        InvalidInputError: If it is not between 0 and 1.
    """
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise InvalidInputError(f"level is {level!r:.80}; give a number between 0 and 1, such as 0.95")
