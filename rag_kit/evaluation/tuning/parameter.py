"""One parameter of a search: what the user gave as plain data, and Optuna's distribution of its values."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rag_kit.errors import InvalidInputError, MissingExtraError

_FORM = (
    "give a list of choices, or an object with one of choices, int and float (such as {'int': [1, 20]}) and any of "
    "step, log, default and when"
)
_GREATEST = 2**53  # beyond it, floats cannot hold every whole number


@contextmanager
def quiet() -> Iterator[Any]:
    """Import Optuna, which is an extra, and silence it within the context."""
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("eval", "rag_kit.evaluation.tune") from None
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield optuna
    finally:
        optuna.logging.set_verbosity(before)


def label(value: Any) -> str:
    """A plain value as one text: equal for equal values, and different for 1, True and "1"."""
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError(
            f"{value!r:.160} is no plain value; allowed are texts, finite numbers, True, False, None, and lists and "
            "dicts of these. Name what is something else, and look it up in make_pipeline"
        ) from None


@dataclass(frozen=True)
class Parameter:
    """One parameter: what the user gave, and its values as Optuna's distribution (choices by their labels).

    It is active while the earlier parameters in ``when`` have values whose labels stand there.
    """

    name: str
    form: Mapping[str, Any]
    distribution: Any
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def default(self) -> Any:
        """The value in the default setting: as given, or the first choice, or the middle of the range."""
        if "default" in self.form:
            return self.check(self.form["default"])
        if "choices" in self.form:
            return json.loads(self.distribution.choices[0])
        found = self.distribution
        middle = math.sqrt(found.low * found.high) if found.log else (found.low + found.high) / 2
        step = None if found.log else found.step
        return self._number(found.low + round((middle - found.low) / step) * step if step else middle)

    def check(self, value: Any) -> Any:
        """The value in its plain form; one that is not allowed is refused."""
        try:
            self.trial_of(value)
        except (ValueError, TypeError, OverflowError):
            raise InvalidInputError(
                f"parameter {self.name!r} is {value!r:.160}; allowed are {label(self.form):.400}"
            ) from None
        return json.loads(label(value)) if "choices" in self.form else self._number(value)

    def trial_of(self, value: Any) -> Any:
        """A trial of Optuna with this value alone."""
        import optuna

        stored = label(value) if "choices" in self.form else value
        return optuna.trial.create_trial(
            value=0.0, params={self.name: stored}, distributions={self.name: self.distribution}
        )

    def suggest(self, trial: Any) -> Any:
        """The value that a trial of Optuna proposes."""
        found = self.distribution
        if "choices" in self.form:
            return json.loads(trial.suggest_categorical(self.name, found.choices))
        ask = trial.suggest_int if "int" in self.form else trial.suggest_float
        return self._number(ask(self.name, found.low, found.high, step=found.step, log=found.log))

    def is_active(self, settings: Mapping[str, Any]) -> bool:
        """Whether the values of earlier parameters are those of ``when``."""
        return all(
            name in settings and label(settings[name]) in allowed for name, allowed in self.when.items()
        )

    def _number(self, value: float) -> Any:
        if "int" in self.form:
            return round(value)
        return min(max(float(f"{value:.6g}"), self.distribution.low), self.distribution.high)


def make_parameter(name: Any, form: Any, earlier: Mapping[str, Parameter]) -> Parameter:
    """The parameter of a form, checked by Optuna's own rules for ranges."""
    form = {"choices": form} if isinstance(form, list | tuple) else form
    kinds = [kind for kind in ("choices", "int", "float") if isinstance(form, Mapping) and kind in form]
    if not isinstance(name, str) or len(kinds) != 1:
        raise InvalidInputError(f"parameter {name!r:.120} is {form!r:.160}; {_FORM}")
    form = {key: value for key, value in json.loads(label(form)).items() if value is not None}
    allowed_keys = {kinds[0], "default", "when", *(() if kinds[0] == "choices" else ("step", "log"))}
    try:
        if unknown := set(form) - allowed_keys:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        distribution = _distribution(kinds[0], form)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InvalidInputError(
            f"parameter {name!r:.120} is {label(form):.160} ({error}); {_FORM}"
        ) from error
    when = {}
    for other, values in form.get("when", {}).items():
        if other not in earlier:
            raise InvalidInputError(
                f"parameter {name!r:.120} depends on {other!r:.120}, which does not stand before it; before it are "
                f"{', '.join(map(repr, earlier)) or 'none'}"
            )
        allowed = values if isinstance(values, list) else [values]
        when[other] = tuple(label(earlier[other].check(value)) for value in allowed)
    return Parameter(name, form, distribution, when)


def _distribution(kind: str, form: Mapping[str, Any]) -> Any:
    """Optuna's distribution; a malformed form is its ValueError or TypeError."""
    with quiet() as optuna:
        if kind == "choices":
            labels = [label(choice) for choice in form["choices"]]
            if len(set(labels)) != len(labels):
                raise ValueError("a choice comes twice")
            return optuna.distributions.CategoricalDistribution(labels)
        low, high = form[kind]
        if not -_GREATEST <= low <= high <= _GREATEST:
            raise ValueError(f"the ends are two numbers, the smaller first, within {_GREATEST} of 0")
        log, step = form.get("log", False), form.get("step")
        if kind == "float":
            return optuna.distributions.FloatDistribution(low, high, log, step)
        if not all(isinstance(each, int) for each in (low, high, step or 1)):
            raise ValueError("an int has whole numbers")
        return optuna.distributions.IntDistribution(low, high, log, 1 if step is None else step)
