"""What a search may change, as plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rag_kit.errors import InvalidInputError

_KINDS = ("choices", "int", "float")
_KEYS = {*_KINDS, "step", "log", "default", "when"}
_FORM = (
    "give a list of choices, or an object with one of choices, int, float (such as {'int': [1, 20]}) and, if you "
    "like, step, log, default and when"
)
_MOST = 1_000  # choices, or values of a range that are counted
_MOST_PARAMETERS = 100
_MOST_SETTINGS = 20_000
_GREATEST = 2**53  # beyond it, floats cannot hold every whole number


@dataclass(frozen=True)
class Parameter:
    """One parameter, checked.

    Args:
        name: Its name, as ``make_pipeline`` gets it.
        kind: ``"choices"``, ``"int"`` or ``"float"``.
        choices: The values, for ``"choices"``.
        low: Smallest number.
        high: Greatest number.
        step: Distance of the numbers from one another; ``None`` for any.
        log: Small numbers are as likely as great ones.
        default: What it is where nothing was tuned.
        when: Name of an earlier parameter -> values of it; it is active only while all of them hold.
    """

    name: str
    kind: str
    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    step: float | None = None
    log: bool = False
    default: Any = None
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: Any, form: Any) -> Parameter:
        """Read and check a parameter given as plain data.

        Raises:
            InvalidInputError: If the data do not say what values there are.

        Example:
            >>> Parameter.of("k", {"int": [1, 20], "default": 5}).high
            20
        """
        if not isinstance(name, str) or not name.strip() or len(name) > 100:
            raise InvalidInputError(
                f"a parameter has the name {name!r:.120}; give a text of 1 to 100 characters"
            )
        if isinstance(form, list | tuple):
            form = {"choices": form}
        kinds = [kind for kind in _KINDS if isinstance(form, Mapping) and kind in form]
        if len(kinds) != 1 or not set(form) <= _KEYS:
            raise InvalidInputError(f"parameter {name!r} is {_shown(form)}; {_FORM}")
        when = _conditions(name, form.get("when"))
        if kinds[0] == "choices":
            made = cls(name, "choices", choices=_choices(name, form), when=when)
            default = made.choices[0]
        else:
            low, high, step, log = _range(name, kinds[0], form)
            made = cls(name, kinds[0], low=low, high=high, step=step, log=log, when=when)
            default = made.nearest(math.sqrt(low * high) if log else (low + high) / 2)
        return replace(made, default=made.check(form.get("default", default)))

    def check(self, value: Any) -> Any:
        """Check a value: the choice that it equals, or the number as int or float.

        Raises:
            InvalidInputError: If the value is not allowed.
        """
        if self.kind == "choices":
            wanted = label(value, f"parameter {self.name!r}")
            for choice in self.choices:
                if label(choice) == wanted:
                    return choice
            allowed = ", ".join(map(repr, self.choices[:20]))
            raise InvalidInputError(f"parameter {self.name!r} is {_shown(value)}; allowed are {allowed:.400}")
        if not _is_number(value, self.kind) or not self.low <= value <= self.high:
            raise InvalidInputError(
                f"parameter {self.name!r} is {_shown(value)}; allowed are numbers from {self.low!r} to "
                f"{self.high!r}, whole ones for an int"
            )
        if self.step is not None and abs(self.nearest(value) - value) > 1e-9 * max(1.0, abs(value)):
            raise InvalidInputError(
                f"parameter {self.name!r} is {_shown(value)}; it goes from {self.low!r} in steps of {self.step!r}"
            )
        return int(value) if self.kind == "int" else float(value)

    def nearest(self, value: float) -> Any:
        """The nearest allowed number, short enough to be read."""
        if self.step is not None:
            steps = min(round((value - self.low) / self.step), self._steps())
            value = self.low + steps * self.step
        value = min(max(value, self.low), self.high)
        if self.kind == "int":
            return round(value)
        return float(min(max(float(f"{value:.6g}"), self.low), self.high))

    def values(self) -> tuple[Any, ...] | None:
        """All values of the parameter, or ``None`` for a float without steps or more than 1,000 numbers."""
        if self.kind == "choices":
            return self.choices
        if self.low == self.high:
            return (self.nearest(self.low),)
        if self.step is None and self.kind == "float":
            return None
        count = self._steps() + 1
        if count > _MOST:
            return None
        return tuple(self.nearest(self.low + n * (self.step or 1)) for n in range(count))

    def is_active(self, settings: Mapping[str, Any]) -> bool:
        """Whether the settings of the parameters before it meet its conditions (``when``)."""
        for name, allowed in self.when.items():
            if name not in settings or label(settings[name]) not in map(label, allowed):
                return False
        return True

    def suggest(self, trial: Any) -> Any:
        """The value that an Optuna trial proposes."""
        if self.kind == "choices":
            labels = [label(choice) for choice in self.choices]
            return self.choices[labels.index(trial.suggest_categorical(self.name, labels))]
        if self.kind == "int":
            step = int(self.step or 1)
            return int(trial.suggest_int(self.name, int(self.low), int(self.high), step=step, log=self.log))
        return self.nearest(trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.log))

    def to_optuna(self, value: Any) -> Any:
        """A value as Optuna's trials name it: choices by their labels."""
        return label(value) if self.kind == "choices" else value

    def to_json(self) -> dict[str, Any]:
        """The plain form that ``of`` reads."""
        ends: Any = list(self.choices) if self.kind == "choices" else [self.low, self.high]
        form = {self.kind: ends, "step": self.step, "log": self.log, "default": self.default}
        form["when"] = {name: list(values) for name, values in self.when.items()}
        return {
            key: value for key, value in form.items() if key == "default" or value not in (None, False, {})
        }

    def _steps(self) -> int:
        return math.floor((self.high - self.low) / (self.step or 1) + 1e-9)


class SearchSpace:
    """The parameters of a search, in order, and the setting to compare with.

    A parameter is a list of choices, or an object with one of ``choices``, ``int`` and ``float`` (the last two as
    ``[low, high]``), and with any of ``step``, ``log`` (spread over orders of magnitude), ``default``, and ``when``:
    the parameter is active only while an earlier one has the value, or one of the values, named there. A choice is
    a text, a number, True, False, None, or a list or dict of these.

    Args:
        parameters: Name -> parameter.
        default: Values of the default setting; what is not named has its own ``default``, else the first choice or
            the middle of the range.

    Raises:
        InvalidInputError: If a parameter is malformed, or depends on what is not there.

    Example:
        >>> space = SearchSpace({
        ...     "fusion": ["rrf", "convex"],
        ...     "rrf_k": {"int": [1, 100], "log": True, "default": 60, "when": {"fusion": "rrf"}},
        ...     "weight": {"float": [0, 1], "step": 0.25, "when": {"fusion": "convex"}},
        ... })
        >>> space.default
        {'fusion': 'rrf', 'rrf_k': 60}
        >>> space.settle({"fusion": "convex", "weight": 0.25})
        {'fusion': 'convex', 'weight': 0.25}
    """

    def __init__(self, parameters: Mapping[str, Any], default: Mapping[str, Any] | None = None) -> None:
        if not isinstance(parameters, Mapping) or not 0 < len(parameters) <= _MOST_PARAMETERS:
            raise InvalidInputError(
                f"the space is {_shown(parameters)}; give 1 to {_MOST_PARAMETERS} parameters by name, such as "
                "{'k': {'int': [1, 20]}}"
            )
        self.parameters: dict[str, Parameter] = {}
        for name, form in parameters.items():
            parameter = Parameter.of(name, form)
            for earlier, values in parameter.when.items():
                if earlier not in self.parameters:
                    raise InvalidInputError(
                        f"parameter {name!r} depends on {earlier!r}, which does not stand before it; before it are "
                        f"{', '.join(map(repr, self.parameters)) or 'none'}"
                    )
                for value in values:
                    self.parameters[earlier].check(value)
            self.parameters[name] = parameter
        self.default: dict[str, Any] = {}
        self.default = self.settle(default or {})

    @classmethod
    def of(cls, space: SearchSpace | Mapping[str, Any]) -> SearchSpace:
        """A space, from one or from plain data."""
        return space if isinstance(space, SearchSpace) else cls(space)

    def pick(self, choose: Callable[[Parameter], Any]) -> dict[str, Any]:
        """Settings in which every active parameter has the value that ``choose`` returns for it."""
        settings: dict[str, Any] = {}
        for parameter in self.parameters.values():
            if parameter.is_active(settings):
                settings[parameter.name] = choose(parameter)
        return settings

    def settle(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Check settings: the active parameters in their order, with the defaults of those that are not named.

        Raises:
            InvalidInputError: If a name is unknown, or a value is not allowed.
        """
        if not isinstance(values, Mapping):
            raise InvalidInputError(f"the settings are {_shown(values)}; give names with values")
        if unknown := [name for name in values if name not in self.parameters]:
            raise InvalidInputError(
                f"there is no parameter {unknown[0]!r:.120}; there are {', '.join(map(repr, self.parameters)):.400}"
            )
        checked = {name: self.parameters[name].check(value) for name, value in values.items()}
        return self.pick(lambda p: checked.get(p.name, self.default.get(p.name, p.default)))

    def settings(self) -> list[dict[str, Any]] | None:
        """Every setting there is, or ``None`` if there are more than 20,000.

        Example:
            >>> len(SearchSpace({"a": [1, 2], "b": {"int": [1, 3], "when": {"a": 2}}}).settings())
            4
        """
        found: list[dict[str, Any]] = []
        for settings in self._walk(list(self.parameters.values()), {}):
            if settings is None or len(found) == _MOST_SETTINGS:
                return None
            found.append(settings)
        return found

    def _walk(self, left: list[Parameter], settings: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
        """All settings that begin with these; ``None`` where the values of a parameter cannot be listed."""
        if not left:
            yield settings
        elif not left[0].is_active(settings):
            yield from self._walk(left[1:], settings)
        elif (values := left[0].values()) is None:
            yield None
        else:
            for value in values:
                yield from self._walk(left[1:], {**settings, left[0].name: value})

    def to_json(self) -> dict[str, Any]:
        """The parameters as plain data."""
        return {name: parameter.to_json() for name, parameter in self.parameters.items()}

    def identity(self) -> dict[str, Any]:
        """What else decides a score, as plain data; a search is taken up again only while it is the same."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.parameters)})"


class PipelineSpace(SearchSpace):
    """A space that makes its own pipelines, so that ``tune`` needs no function beside it."""

    def make(self, settings: Mapping[str, Any]) -> Any:
        """The pipeline of a setting."""
        raise NotImplementedError


def label(value: Any, what: str = "a value") -> str:
    """A plain value as one text: equal for equal values, and different for 1, 1.0, True and "1".

    Args:
        value: Text, number, bool, ``None``, or lists and dicts with text keys of these.
        what: What it is, for the message.

    Raises:
        InvalidInputError: If it holds anything else, such as a number that is not finite.

    Example:
        >>> label({"b": 1, "a": "é"})
        '{"a": "\\\\u00e9", "b": 1}'
    """
    try:
        text = json.dumps(value, sort_keys=True, allow_nan=False)
        plain = json.loads(text) == (list(value) if isinstance(value, tuple) else value)
    except (TypeError, ValueError, RecursionError):
        plain = False
    if not plain:
        raise InvalidInputError(
            f"{what} holds {_shown(value)}; allowed are texts, finite numbers, True, False, None, and lists and dicts "
            "of these. Name what is no plain value, and look it up in make_pipeline"
        )
    return text


def _choices(name: str, form: Mapping[str, Any]) -> tuple[Any, ...]:
    given = form["choices"]
    if not isinstance(given, list | tuple) or not 0 < len(given) <= _MOST:
        raise InvalidInputError(
            f"parameter {name!r} has the choices {_shown(given)}; give a list of 1 to {_MOST} values"
        )
    if "step" in form or "log" in form:
        raise InvalidInputError(f"parameter {name!r} has choices; step and log are for int and float")
    if len({label(value, f"parameter {name!r}") for value in given}) != len(given):
        raise InvalidInputError(f"parameter {name!r} names a choice twice: {_shown(given)}")
    return tuple(json.loads(label(value)) for value in given)


def _range(name: str, kind: str, form: Mapping[str, Any]) -> tuple[float, float, float | None, bool]:
    ends, step, log = form[kind], form.get("step"), form.get("log", False)
    numbers = list(ends) if isinstance(ends, list | tuple) else []
    if len(numbers) != 2 or not all(_is_number(each, kind) for each in numbers) or numbers[0] > numbers[1]:
        raise InvalidInputError(
            f"parameter {name!r} has the ends {_shown(ends)}; give two numbers (whole ones for an int), the smaller "
            f"first, between -{_GREATEST} and {_GREATEST}"
        )
    if step is not None and not (
        _is_number(step, kind) and step > 0 and (numbers[1] - numbers[0]) / step <= _GREATEST
    ):
        raise InvalidInputError(
            f"parameter {name!r} has the step {_shown(step)}; give a number above 0 that is not too small for its range"
        )
    if not isinstance(log, bool) or (log and (numbers[0] <= 0 or step is not None)):
        raise InvalidInputError(
            f"parameter {name!r} has log={_shown(log)}; it is True or False, and True needs a low end above 0 and goes "
            "without a step"
        )
    return numbers[0], numbers[1], step, log


def _conditions(name: str, when: Any) -> dict[str, tuple[Any, ...]]:
    if when is None:
        return {}
    if not isinstance(when, Mapping) or not when or not all(isinstance(key, str) for key in when):
        raise InvalidInputError(
            f"parameter {name!r} has when={_shown(when)}; give names of earlier parameters with a value or a list of "
            "values, such as {'search': 'hybrid'}"
        )
    return {
        key: tuple(values) if isinstance(values, list | tuple) else (values,) for key, values in when.items()
    }


def _is_number(value: Any, kind: str) -> bool:
    allowed = int if kind == "int" else int | float
    return isinstance(value, allowed) and not isinstance(value, bool) and -_GREATEST <= value <= _GREATEST


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.160}"
    except ValueError:  # Python writes no number of so many digits
        return "a number of thousands of digits"
