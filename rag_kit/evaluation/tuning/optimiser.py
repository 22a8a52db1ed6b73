"""Which setting to try next: Optuna's TPE, told of every setting that was tried before."""

from __future__ import annotations

import hashlib
import random
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from rag_kit.errors import MissingExtraError
from rag_kit.evaluation.tuning.parameters import Parameter, label
from rag_kit.evaluation.tuning.space import SearchSpace, settings_key

_STARTUP = 8
"""Settings drawn at random before the model of the space is believed."""
_ATTEMPTS = 25


class Optimiser:
    """Proposes settings. What it proposes depends on the space, the seed and the settings tried, on nothing else.

    So a search that was killed goes on as it would have gone on. The study is kept in memory and built again from
    the search's own log: docs/decisions/0232.

    Args:
        space: What may be changed.
        seed: Of all draws.
        higher_is_better: The direction of the metric.

    Raises:
        MissingExtraError: If Optuna is not installed.
    """

    def __init__(self, space: SearchSpace, *, seed: int = 0, higher_is_better: bool = True) -> None:
        self.space = space
        self.seed = seed
        self._every = space.settings()
        self._tried: set[str] = set()
        with quiet():
            optuna = import_optuna()
            self.study = optuna.create_study(direction="maximize" if higher_is_better else "minimize")

    def add(
        self, settings: Mapping[str, Any], state: str, value: float | None, values: Mapping[int, float]
    ) -> None:
        """Tell of a setting that was tried.

        Args:
            settings: The setting.
            state: ``"complete"``, ``"pruned"`` or ``"failed"``.
            value: Its mean, where it is complete.
            values: Number of questions -> mean after them.
        """
        optuna = import_optuna()
        self._tried.add(settings_key(settings))
        if state == "failed" or (state == "pruned" and not values):
            return  # nothing is known of what it is worth
        with quiet():
            recorder = _Recorder(optuna)
            params = {
                name: recorder.of(self.space.parameters[name], value) for name, value in settings.items()
            }
            complete = state == "complete"
            self.study.add_trial(
                optuna.trial.create_trial(
                    state=optuna.trial.TrialState.COMPLETE if complete else optuna.trial.TrialState.PRUNED,
                    value=value if complete else None,
                    params=params,
                    distributions=recorder.distributions,
                    intermediate_values=dict(values),
                )
            )

    def propose(self, number: int) -> dict[str, Any] | None:
        """A setting that was not tried yet, or ``None`` when there is none left.

        Args:
            number: Of the setting; another number draws otherwise.
        """
        optuna = import_optuna()
        for attempt in range(_ATTEMPTS):
            seed = _seed(self.seed, number, attempt)
            with quiet():
                self.study.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=_STARTUP)
                trial = self.study.ask()
                settings = self.space.pick(partial(_suggested, trial))
                self.study.tell(
                    trial, state=optuna.trial.TrialState.FAIL
                )  # it is added with what it was worth
            if settings_key(settings) not in self._tried:
                return settings
        return self._untried(number)

    def _untried(self, number: int) -> dict[str, Any] | None:
        """TPE draws the same good setting again and again where choices are few: then one of the others, by lot."""
        draw = random.Random(_seed(self.seed, number, _ATTEMPTS))
        if self._every is not None:
            left = [settings for settings in self._every if settings_key(settings) not in self._tried]
            return draw.choice(left) if left else None
        for _ in range(1000):
            settings = self.space.pick(lambda parameter: _drawn(parameter, draw))
            if settings_key(settings) not in self._tried:
                return settings
        return None


def import_optuna() -> Any:
    """Optuna.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("eval", "rag_kit.evaluation.tune") from None
    return optuna


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna says nothing meanwhile; what the user has set for its messages holds again afterwards."""
    optuna = import_optuna()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


class _Recorder:
    """Stands where a trial would, and writes down the distributions that a setting comes from."""

    def __init__(self, optuna: Any) -> None:
        self._of = optuna.distributions
        self.distributions: dict[str, Any] = {}
        self._value: Any = None

    def of(self, parameter: Parameter, value: Any) -> Any:
        """The value as Optuna keeps it."""
        self._value = label(value) if parameter.kind == "choices" else value
        parameter.suggest(self)
        return self._value

    def suggest_categorical(self, name: str, choices: list[str]) -> Any:
        self.distributions[name] = self._of.CategoricalDistribution(choices)
        return self._value

    def suggest_int(self, name: str, low: int, high: int, *, step: int, log: bool) -> Any:
        self.distributions[name] = self._of.IntDistribution(low, high, log=log, step=step)
        return self._value

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None, log: bool) -> Any:
        self.distributions[name] = self._of.FloatDistribution(low, high, log=log, step=step)
        return self._value


def _suggested(trial: Any, parameter: Parameter) -> Any:
    return parameter.suggest(trial)


def _drawn(parameter: Parameter, draw: random.Random) -> Any:
    if parameter.kind == "choices":
        return draw.choice(parameter.choices)
    return parameter.rounded(draw.uniform(parameter.low, parameter.high))


def _seed(seed: int, number: int, attempt: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}/{attempt}".encode()).digest()[:4], "big")
