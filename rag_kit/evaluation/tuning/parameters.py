"""One thing that a search may change: what values it can have, and under which others it counts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rag_kit.errors import InvalidInputError

Kind = Literal["choices", "int", "float"]

_FORM = (
    "give a list of choices, or an object with one of choices, int, float (such as {'int': [1, 20]}) and, if you "
    "like, step, log, default and when"
)
_KEYS = frozenset({"choices", "int", "float", "step", "log", "default", "when"})
_DEPTH = 8
_MOST_CHOICES = 1_000
_MOST_BITS = 1_024
_GREATEST = 2**63 - 1
"""Of the ends of a range and its steps: beyond it, whole and broken numbers are not told apart any more."""


@dataclass(frozen=True)
class Parameter:
    """One parameter, checked.

    Args:
        name: Its name, as ``make_pipeline`` gets it.
        kind: ``"choices"``, ``"int"`` or ``"float"``.
        choices: The values, for ``"choices"``.
        low: Smallest value, for numbers.
        high: Greatest value, for numbers.
        step: Distance of the values from one another; ``None`` for any.
        log: Small values are as likely as great ones.
        default: What it is where nothing was tuned.
        when: Name of an earlier parameter -> values of it; it counts only while all of them hold.
    """

    name: str
    kind: Kind
    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    step: float | None = None
    log: bool = False
    default: Any = None
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: Any, form: Any) -> Parameter:
        """Read it from plain data.

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
        if isinstance(form, (list, tuple)):
            form = {"choices": form}
        kinds = [kind for kind in ("choices", "int", "float") if isinstance(form, Mapping) and kind in form]
        if len(kinds) != 1 or not set(form) <= _KEYS:
            raise InvalidInputError(f"parameter {name!r} is {form!r:.200}; {_FORM}")
        when = _conditions(name, form.get("when"))
        if kinds[0] == "choices":
            return cls._of_choices(name, form, when)
        return cls._of_numbers(name, kinds[0] == "int", form, when)

    @classmethod
    def _of_choices(
        cls, name: str, form: Mapping[str, Any], when: Mapping[str, tuple[Any, ...]]
    ) -> Parameter:
        given = form["choices"]
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or not given:
            raise InvalidInputError(
                f"parameter {name!r} has the choices {given!r:.200}; give a list of values"
            )
        if len(given) > _MOST_CHOICES:
            raise InvalidInputError(
                f"parameter {name!r} has {len(given)} choices; give at most {_MOST_CHOICES}, or an int or a float"
            )
        if "step" in form or "log" in form:
            raise InvalidInputError(f"parameter {name!r} has choices; step and log are for int and float")
        choices = tuple(plain(value, f"parameter {name!r}") for value in given)
        if len({label(value) for value in choices}) != len(choices):
            raise InvalidInputError(f"parameter {name!r} names a choice twice: {list(choices)!r:.200}")
        made = cls(name, "choices", choices, default=choices[0], when=when)
        return made._with_default(form)

    @classmethod
    def _of_numbers(
        cls, name: str, whole: bool, form: Mapping[str, Any], when: Mapping[str, tuple[Any, ...]]
    ) -> Parameter:
        ends = form["int" if whole else "float"]
        step, log = form.get("step"), form.get("log", False)
        numbers = [*ends] if isinstance(ends, (list, tuple)) else []
        right = len(numbers) == 2 and all(_is_number(n, whole) for n in numbers) and numbers[0] <= numbers[1]
        if not right:
            raise InvalidInputError(
                f"parameter {name!r} has the ends {_brief(ends)}; give two {'whole ' * whole}numbers, the smaller "
                "first, between -2**63 and 2**63"
            )
        if step is not None and not (_is_number(step, whole) and step > 0):
            raise InvalidInputError(f"parameter {name!r} has the step {step!r:.80}; give a number above 0")
        if step is not None and (numbers[1] - numbers[0]) / step > _GREATEST:
            raise InvalidInputError(
                f"parameter {name!r} has the step {step!r:.80}; that is too small for its range"
            )
        if not isinstance(log, bool) or (log and (numbers[0] <= 0 or step is not None)):
            raise InvalidInputError(
                f"parameter {name!r} has log={log!r:.80}; it is True or False, and True needs a low end above 0 and "
                "goes without a step"
            )
        low, high = numbers
        middle = math.sqrt(low * high) if log else (low + high) / 2
        made = cls(name, "int" if whole else "float", (), low, high, step, log, None, when)
        return made._with_default({"default": made.rounded(middle), **form})

    def _with_default(self, form: Mapping[str, Any]) -> Parameter:
        default = self.check(form["default"]) if "default" in form else self.default
        return Parameter(
            self.name, self.kind, self.choices, self.low, self.high, self.step, self.log, default, self.when
        )

    def rounded(self, value: float) -> Any:
        """The nearest allowed number, short enough to be read."""
        if self.step is not None:
            value = self.low + round((value - self.low) / self.step) * self.step
            value = min(value, self.low + math.floor((self.high - self.low) / self.step + 1e-9) * self.step)
        value = min(max(value, self.low), self.high)
        return (
            round(value)
            if self.kind == "int"
            else float(min(max(float(f"{value:.6g}"), self.low), self.high))
        )

    def check(self, value: Any) -> Any:
        """The value as it is kept.

        Raises:
            InvalidInputError: If it is none of those allowed.
        """
        if self.kind == "choices":
            for choice in self.choices:
                if _same(choice, value):
                    return choice
            raise InvalidInputError(
                f"parameter {self.name!r} is {value!r:.120}; allowed are "
                f"{', '.join(map(repr, self.choices[:20])):.400}"
            )
        whole = self.kind == "int"
        if not _is_number(value, whole) or not self.low <= value <= self.high:
            raise InvalidInputError(
                f"parameter {self.name!r} is {value!r:.120}; allowed are {'whole ' * whole}numbers from {self.low!r} "
                f"to {self.high!r}"
            )
        if self.step is not None and abs(self.rounded(value) - value) > 1e-9 * max(1.0, abs(value)):
            raise InvalidInputError(
                f"parameter {self.name!r} is {value!r:.120}; it goes from {self.low!r} in steps of {self.step!r}"
            )
        return int(value) if whole else float(value)

    def values(self) -> tuple[Any, ...] | None:
        """All its values, or ``None`` where they are not to be counted."""
        if self.kind == "choices":
            return self.choices
        step = self.step if self.step is not None else (1 if self.kind == "int" else None)
        if step is None and self.low < self.high:
            return None
        count = 1 if step is None else math.floor((self.high - self.low) / step + 1e-9) + 1
        if count > _MOST_CHOICES:
            return None
        return tuple(dict.fromkeys(self.rounded(self.low + place * (step or 1)) for place in range(count)))

    def counts(self, settings: Mapping[str, Any]) -> bool:
        """Whether it has a say under these settings of the parameters before it."""
        return all(
            name in settings and any(_same(settings[name], value) for value in values)
            for name, values in self.when.items()
        )

    def suggest(self, trial: Any) -> Any:
        """Ask Optuna's trial for a value."""
        if self.kind == "choices":
            labels = [label(value) for value in self.choices]
            return self.choices[labels.index(trial.suggest_categorical(self.name, labels))]
        if self.kind == "int":
            step = int(self.step or 1)
            return int(trial.suggest_int(self.name, int(self.low), int(self.high), step=step, log=self.log))
        number = trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.log)
        return self.rounded(number)

    def to_json(self) -> dict[str, Any]:
        """The plain form that ``of`` reads."""
        form: dict[str, Any]
        if self.kind == "choices":
            form = {"choices": list(self.choices)}
        else:
            form = {self.kind: [self.low, self.high]}
            form |= {} if self.step is None else {"step": self.step}
            form |= {"log": True} if self.log else {}
        form["default"] = self.default
        if self.when:
            form["when"] = {name: list(values) for name, values in self.when.items()}
        return form


def label(value: Any) -> str:
    """A plain value as one text: equal for equal values, and different for 1, 1.0, True and "1".

    Example:
        >>> label({"b": 1, "a": "é"})
        '{"a": "\\\\u00e9", "b": 1}'
    """
    return json.dumps(value, sort_keys=True)


def plain(value: Any, what: str, *, _depth: int = 0) -> Any:
    """A copy made of plain values only: what can be written as a literal and read back equal.

    Args:
        value: Text, number, bool, ``None``, or lists and objects with text keys of these.
        what: What it is, for the message.

    Raises:
        InvalidInputError: If it holds anything else, such as a number that is not finite.
    """
    kind = type(value)
    if kind is int and value.bit_length() > _MOST_BITS:
        raise InvalidInputError(
            f"{what} holds a whole number of {value.bit_length()} bits; allowed are {_MOST_BITS}"
        )
    if value is None or kind in (str, int, bool):
        return value
    if kind is float and math.isfinite(value):
        return value
    if _depth < _DEPTH and kind in (list, tuple):
        return [plain(item, what, _depth=_depth + 1) for item in value]
    if _depth < _DEPTH and kind is dict and all(type(key) is str for key in value):
        return {key: plain(item, what, _depth=_depth + 1) for key, item in value.items()}
    raise InvalidInputError(
        f"{what} holds {value!r:.120} ({kind.__name__}); allowed are texts, finite numbers, True, False, None, and "
        f"lists and dicts of these, at most {_DEPTH} deep. Name what is no plain value, and look it up in make_pipeline"
    )


def _same(one: Any, other: Any) -> bool:
    try:
        return label(one) == label(other)
    except (TypeError, ValueError):
        return False


def _brief(value: Any) -> str:
    try:
        return f"{value!r:.120}"
    except ValueError:  # Python writes no number of so many digits
        return "a number of thousands of digits"


def _is_number(value: Any, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_GREATEST <= value <= _GREATEST:
        return False
    return not whole or isinstance(value, int)


def _conditions(name: str, when: Any) -> dict[str, tuple[Any, ...]]:
    if when is None:
        return {}
    if not isinstance(when, Mapping) or not when or not all(isinstance(key, str) for key in when):
        raise InvalidInputError(
            f"parameter {name!r} has when={when!r:.200}; give names of earlier parameters with a value or a list of "
            "values, such as {'search': 'hybrid'}"
        )
    return {
        key: tuple(plain(item, f"parameter {name!r}, when") for item in _listed(values))
        for key, values in when.items()
    }


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]
