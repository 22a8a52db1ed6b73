"""Space of a search: parameters as plain data, and Optuna's distributions of their values."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import import_extra

_ADVICE = (
    "give a list of choices, or an object with one of choices, int and float (such as {'int': [1, 20]}) and any of "
    "step, log and default"
)


@contextmanager
def quiet() -> Iterator[Any]:
    """Import Optuna, which is an extra, and silence it within the context."""
    optuna = import_extra("optuna", "rag_kit.evaluation.tune")
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield optuna
    finally:
        optuna.logging.set_verbosity(verbosity)


def label(value: Any) -> str:
    """Write a plain value as JSON: equal values have one label, but 1, True and "1" differ."""
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError(
            f"{value!r:.160} is no plain value; allowed are texts, finite numbers, True, False, None, and lists and "
            "dicts of these. Name what is something else, and look it up in make_pipeline"
        ) from None


class SearchSpace:
    """The parameters of a search, in order, and the setting to compare with.

    A parameter is a list of choices, or an object with one of ``choices``, ``int`` and ``float`` (the last two as
    ``[low, high]``), and with any of ``step``, ``log`` (spread over orders of magnitude) and ``default``. A choice is
    a text, a number, True, False, None, or a list or dict of these.

    Args:
        parameters: Name -> parameter. One without a ``default`` has its first choice, or the middle of its range.

    Raises:
        InvalidInputError: If a parameter is malformed.
        MissingExtraError: If Optuna is not installed.

    Example:
        >>> space = SearchSpace({"fusion": ["rrf", "convex"], "k": {"int": [1, 9]}})
        >>> space.default
        {'fusion': 'rrf', 'k': 5}
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise InvalidInputError(
                f"the space is {parameters!r:.160}; give parameters by name, such as {{'k': {{'int': [1, 20]}}}}"
            )
        self.parameters: dict[str, dict[str, Any]] = {}
        self.distributions: dict[str, Any] = {}  # Optuna's, by parameter; choices by their labels
        for name, spec in parameters.items():
            try:
                self.parameters[name] = _read_parameter(name, spec)
                self.distributions[name] = _make_distribution(self.parameters[name])
            except (ValueError, TypeError, ArithmeticError) as error:
                raise InvalidInputError(
                    f"parameter {name!r:.120} is {spec!r:.160} ({error}); {_ADVICE}"
                ) from error
        defaults = {
            name: spec["default"] if "default" in spec else _default_value(spec, self.distributions[name])
            for name, spec in self.parameters.items()
        }
        try:  # Optuna checks the values of a trial that is made
            self.default = self.setting(self.trial(defaults, value=0.0).params)
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidInputError(f"the default {defaults!r:.200} is not allowed: {error!s:.300}") from None

    def setting(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Turn the parameters of an Optuna trial into a setting, as ``make_pipeline`` gets it."""
        specs = self.parameters.items()
        return {name: _plain_value(spec, self.distributions[name], params[name]) for name, spec in specs}

    def trial(self, settings: Mapping[str, Any], *, state: str = "COMPLETE", **extra: Any) -> Any:
        """Make an Optuna trial of a setting; ``state`` names a ``TrialState``, ``extra`` goes to ``create_trial``."""
        with quiet() as optuna:
            choices = {name for name, spec in self.parameters.items() if "choices" in spec}
            stored = {name: label(value) if name in choices else value for name, value in settings.items()}
            return optuna.trial.create_trial(
                params=stored, distributions=self.distributions, state=optuna.trial.TrialState[state], **extra
            )


def _read_parameter(name: Any, values: Any) -> dict[str, Any]:
    """Check a parameter as the user gave it, and return a copy; a list becomes ``{"choices": [...]}``."""
    spec = {"choices": values} if isinstance(values, list | tuple) else values
    kinds = [kind for kind in ("choices", "int", "float") if isinstance(spec, Mapping) and kind in spec]
    if not isinstance(name, str) or len(kinds) != 1:
        raise ValueError("a name and one kind of values are needed")
    allowed = {kinds[0], "default", *(() if kinds[0] == "choices" else ("step", "log"))}
    if unknown := set(spec) - allowed:
        raise ValueError(f"unknown: {', '.join(sorted(map(str, unknown)))}")
    # refuses what is no JSON, and copies, so that later changes of the user's lists do not matter
    return {key: json.loads(label(value)) for key, value in spec.items()}


def _make_distribution(spec: Mapping[str, Any]) -> Any:
    """Make Optuna's distribution of a parameter, such as ``{"int": [1, 9]}``; ValueError or TypeError if malformed."""
    with quiet() as optuna:
        if "choices" in spec:
            labels = [label(choice) for choice in spec["choices"]]
            if len(set(labels)) != len(labels):
                raise ValueError("a choice comes twice")
            return optuna.distributions.CategoricalDistribution(labels)
        low, high = spec["int"] if "int" in spec else spec["float"]
        log, step = spec.get("log", False), spec.get("step")
        if "float" in spec:
            return optuna.distributions.FloatDistribution(low, high, log, step)
        if not all(isinstance(number, int) for number in (low, high, step or 1)):
            raise ValueError("an int has whole numbers")
        return optuna.distributions.IntDistribution(low, high, log, 1 if step is None else step)


def _default_value(spec: Mapping[str, Any], bounds: Any) -> Any:
    """Return the first choice, or the middle of a range: its geometric mean with ``log``, else a value on a step."""
    if "choices" in spec:
        return spec["choices"][0]
    middle = math.sqrt(bounds.low * bounds.high) if bounds.log else (bounds.low + bounds.high) / 2
    if bounds.step and not bounds.log:
        middle = bounds.low + round((middle - bounds.low) / bounds.step) * bounds.step
    return round(middle) if "int" in spec else middle


def _plain_value(spec: Mapping[str, Any], bounds: Any, value: Any) -> Any:
    """Turn a value of Optuna's into the user's: a choice from its label, a number without rounding errors."""
    if "choices" in spec:
        return json.loads(value)
    if "int" in spec:
        return round(value)
    return min(max(float(f"{value:.6g}"), bounds.low), bounds.high)  # rounded, but still within the range
