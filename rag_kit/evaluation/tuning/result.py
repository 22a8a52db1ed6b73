"""What a search found: the settings tried, the best of them, and whether it is really better than the default."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.tuning.held import HeldAside
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
