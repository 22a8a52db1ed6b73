"""Ragas's own classes: imported off the event loop, and run so that a long text does not hold it up."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from rag_kit.concurrency import run_coroutine, run_in_thread
from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.ragas_import import import_ragas, require_ragas

_LONG = 20_000  # characters above which a computation leaves the event loop


class Lazy:
    """An object of one of Ragas's classes, made when it is first asked for.

    Args:
        needed_for: The metric, for messages.
        build: From the module ``ragas.metrics.collections`` to the object.
        packages: What the object imports when it computes, so that this too happens off the event loop.

    Raises:
        MissingExtraError: If Ragas is not installed.
    """

    def __init__(
        self, needed_for: str, build: Callable[[ModuleType], Any], packages: tuple[str, ...] = ()
    ) -> None:
        require_ragas(needed_for)
        self._needed_for, self._build, self._packages = needed_for, build, packages
        self._made: Any = None

    async def get(self) -> Any:
        """The object.

        Raises:
            MissingExtraError: If a package that Ragas needs is not installed.
        """
        if self._made is None:
            self._made = await run_in_thread(self._make)
        return self._made

    def _make(self) -> Any:
        module = import_ragas(self._needed_for)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the packages below Ragas
                for package in self._packages:
                    import_module(package)
                return self._build(module)
        except ImportError as error:
            raise MissingExtraError("eval", self._needed_for) from error


async def ascore(metric: Any, **inputs: Any) -> Any:
    """Ragas's ``ascore``, for a metric that asks no model: on a thread where the texts are long."""
    size = sum(len(value) for value in inputs.values() if isinstance(value, str))
    if size > _LONG:
        return await run_in_thread(_in_own_loop, metric, inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Ragas warns of is said in the cell's reason
        return await metric.ascore(**inputs)


def _in_own_loop(metric: Any, inputs: Mapping[str, Any]) -> Any:
    return run_coroutine(metric.ascore(**inputs))


def cell(result: Any, reason: str = "", *, low: float = 0.0, high: float = 1.0, **details: Any) -> Cell:
    """Ragas's result as a cell: its NaN is undefined, and what is off the range by rounding is put on its end."""
    value = float(result.value)
    reason = reason or (result.reason or "")
    if math.isnan(value):
        return Cell.undefined(reason or "Ragas gave no number", **details)
    for end in (low, high):
        if abs(value - end) < 1e-9:
            value = end
    return Cell.ok(value, reason, **details)


def check_length(name: str, most: int, **texts: str) -> None:
    """Refuse texts that a metric would take minutes for.

    Raises:
        InvalidInputError: If one is longer than ``most`` characters.
    """
    for what, text in texts.items():
        if len(text) > most:
            raise InvalidInputError(
                f"the {what} has {len(text):,} characters; {name} reads at most {most:,}, so cut it to what is to "
                "be compared"
            )


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> Any:
    """``value``, if it is allowed.

    Raises:
        InvalidInputError: If it is not.
    """
    if value not in allowed:
        raise InvalidInputError(f"{name}={value!r:.80} is not allowed; give one of {', '.join(allowed)}")
    return value
