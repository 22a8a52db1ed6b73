"""What a search may change, as plain data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.tuning.parameters import Parameter, label

_MOST_PARAMETERS = 100
_ENUMERATED = 20_000


class SearchSpace:
    """The parameters of a search, in order, and the setting to compare with.

    A parameter is a list of choices, or an object with one of ``choices``, ``int`` and ``float`` (the last two as
    ``[low, high]``), and with any of ``step``, ``log`` (spread over orders of magnitude), ``default``, and ``when``:
    the parameter has a say only while an earlier one has the value, or one of the values, named there. A choice is
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
                f"the space is {parameters!r:.120}; give 1 to {_MOST_PARAMETERS} parameters by name, such as "
                "{'k': {'int': [1, 20]}}"
            )
        self.parameters: dict[str, Parameter] = {}
        for name, form in parameters.items():
            parameter = Parameter.of(name, form)
            self._check_conditions(parameter)
            self.parameters[name] = parameter
        self.default: dict[str, Any] = self.settle(default or {})

    @classmethod
    def of(cls, space: SearchSpace | Mapping[str, Any]) -> SearchSpace:
        """A space, from one or from plain data."""
        return space if isinstance(space, SearchSpace) else cls(space)

    def _check_conditions(self, parameter: Parameter) -> None:
        for name, values in parameter.when.items():
            earlier = self.parameters.get(name)
            if earlier is None:
                raise InvalidInputError(
                    f"parameter {parameter.name!r} depends on {name!r}, which does not stand before it; before it are "
                    f"{', '.join(map(repr, self.parameters)) or 'none'}"
                )
            for value in values:
                earlier.check(value)

    def pick(self, choose: Callable[[Parameter], Any]) -> dict[str, Any]:
        """Settings in which every parameter that counts has the value that ``choose`` gives it."""
        settings: dict[str, Any] = {}
        for parameter in self.parameters.values():
            if parameter.counts(settings):
                settings[parameter.name] = choose(parameter)
        return settings

    def settle(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Check settings: those that count in their order, with the defaults of what is not named.

        Raises:
            InvalidInputError: If a name is unknown, or a value is not allowed.
        """
        if not isinstance(values, Mapping):
            raise InvalidInputError(f"the settings are {values!r:.120}; give names with values")
        unknown = [name for name in values if name not in self.parameters]
        if unknown:
            raise InvalidInputError(
                f"there is no parameter {unknown[0]!r:.120}; there are {', '.join(map(repr, self.parameters)):.400}"
            )
        checked = {name: self.parameters[name].check(value) for name, value in values.items()}
        own = getattr(self, "default", {})
        return self.pick(lambda p: checked.get(p.name, own.get(p.name, p.default)))

    def settings(self, limit: int = _ENUMERATED) -> list[dict[str, Any]] | None:
        """Every setting there is, or ``None`` if there are more than ``limit``.

        Example:
            >>> len(SearchSpace({"a": [1, 2], "b": {"int": [1, 3], "when": {"a": 2}}}).settings())
            4
        """
        found: list[dict[str, Any]] = []
        for settings in self._walk():
            if settings is None or len(found) >= limit:
                return None
            found.append(settings)
        return found

    def _walk(self) -> Iterator[dict[str, Any] | None]:
        parameters = list(self.parameters.values())

        def below(place: int, settings: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
            while place < len(parameters) and not parameters[place].counts(settings):
                place += 1
            if place == len(parameters):
                yield settings
                return
            values = parameters[place].values()
            if values is None:
                yield None
                return
            for value in values:
                yield from below(place + 1, {**settings, parameters[place].name: value})

        return below(0, {})

    def to_json(self) -> dict[str, Any]:
        """The parameters as plain data."""
        return {name: parameter.to_json() for name, parameter in self.parameters.items()}

    def fingerprint(self) -> str:
        """Equal for spaces with the same parameters in the same order, and the same default."""
        text = label([list(self.to_json().items()), self.default])
        return hashlib.sha256(text.encode()).hexdigest()

    def identity(self) -> dict[str, Any]:
        """What else decides a score, as plain data; a search is taken up again only while it is the same."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.parameters)})"


class PipelineSpace(SearchSpace):
    """A space that knows how to make its pipelines, so that ``tune`` needs no function beside it."""

    def make(self, settings: Mapping[str, Any]) -> Any:
        """The pipeline of a setting."""
        raise NotImplementedError

    def prepare(self) -> None:
        """What is made once, before the first pipeline."""

    def source(self) -> tuple[tuple[str, str], str]:
        """How a file makes the pipeline: module and name to import, and the parameters of the function it writes."""
        raise NotImplementedError


def settings_key(settings: Mapping[str, Any]) -> str:
    """Equal for equal settings."""
    return label(dict(settings))
