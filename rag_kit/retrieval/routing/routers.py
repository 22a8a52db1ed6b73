"""The base of routers, what they may use in one call, and what they give."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig

from rag_kit.concurrency import Budget
from rag_kit.concurrency.outcome import Outcome, describe_failure
from rag_kit.concurrency.steps import Logic
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, RagKitError
from rag_kit.retrieval.rewrite_steps import Call, side_by_side
from rag_kit.retrieval.routing.options import Option
from rag_kit.retrieval.routing.route import Choice, RoutingError


@dataclass(frozen=True)
class Ruling:
    """What a router says.

    Attributes:
        choices: What fits, best first; empty if nothing does.
        scores: The score of each option, where the router gives numbers.
    """

    choices: Sequence[Choice]
    scores: Mapping[str, float] = field(default_factory=dict)


class RouterCall:
    """What a router may use in one call.

    Args:
        question: The question.
        options: What it may be routed to: only what this caller is allowed.
        most: How many may be chosen.
        config: For models and runnables.
        timeout: Seconds one request may take.
        clock: The deadline of the decision.
        seconds: That deadline, for messages.

    Attributes:
        notes: Notes for people.
    """

    def __init__(
        self,
        question: str,
        options: Sequence[Option],
        most: int,
        config: RunnableConfig,
        timeout: float | None,
        clock: Budget,
        seconds: float | None,
    ) -> None:
        self.question = question
        self.options = options
        self.most = most
        self.config = config
        self.timeout = timeout
        self._clock = clock
        self._seconds = seconds
        self.notes: list[str] = []

    async def do(self, *calls: Call, timed: bool = True) -> list[Any]:
        """Do things side by side.

        Args:
            *calls: The things.
            timed: Whether the time-out holds for them from outside.

        Returns:
            What they gave, in their order.

        Raises:
            RagKitError: What the first one that failed raised, wrapped if it is not the kit's own.
        """
        if self._clock.remaining_seconds() == 0:
            raise BudgetExceededError("deadline", self._seconds or 0)
        result = await side_by_side(calls, "skip", self.timeout if timed else None, None, None, self._clock)
        for outcome in result.outcomes:
            if not outcome.ok:
                raise _failure(outcome)
        return result.values

    def known(self, given: Sequence[Choice]) -> list[Choice]:
        """The choices that are options, each once, at most ``most``; the others are noted.

        Raises:
            RoutingError: If something was chosen and none of it is an option.
        """
        exact = {option.name: option.name for option in self.options}
        loose = {_loose(name): name for name in exact}
        kept: dict[str, Choice] = {}
        unknown = []
        for choice in given:
            name = exact.get(choice.name) or loose.get(_loose(choice.name))
            if name is None:
                unknown.append(choice.name)
            elif name not in kept:
                kept[name] = Choice(name, choice.score, choice.reason)
        if unknown:
            # What the router wrote may be anything, so it is cut short.
            said = ", ".join(repr(name[:40]) for name in unknown[:3])
            if not kept:
                raise RoutingError(f"The router named {said}, which is no source that may be searched.")
            self.notes.append(f"route: {said} left out: no source that may be searched")
        chosen = list(kept.values())
        if len(chosen) > self.most:
            self.notes.append(f"route: {len(chosen)} sources chosen, the first {self.most} kept")
        return chosen[: self.most]


class Router(ABC):
    """Decides what fits a question; subclass it for a way of one's own.

    Attributes:
        name: Stands in the provenance as ``"route:<name>"``.
    """

    name: str

    def prepare(self, options: Sequence[Option]) -> None:  # noqa: B027 - most need nothing
        """Get ready for all options; called once, when the part is made."""

    @abstractmethod
    def decide(self, call: RouterCall) -> Logic[Ruling]:
        """Choose among ``call.options``."""


@dataclass(frozen=True)
class Selection:
    """Which of the options that have scores are chosen.

    Attributes:
        threshold: A score below it does not fit.
        margin: How far a further option may be behind the best one; ``None`` for any distance.

    Example:
        >>> pick = Selection(threshold=0.2, margin=0.1)
        >>> pick.names({"a": 0.5, "b": 0.45, "c": 0.3, "d": 0.1}, most=3)
        ['a', 'b']
    """

    threshold: float
    margin: float | None = None

    def names(self, scores: Mapping[str, float], most: int) -> list[str]:
        """The best options, best first; equal ones in their order. A score of 0 never fits words in common."""
        fitting = [name for name, score in scores.items() if score >= self.threshold and math.isfinite(score)]
        fitting.sort(key=lambda name: -scores[name])
        if self.margin is not None and fitting:
            least = scores[fitting[0]] - self.margin - 1e-9
            fitting = [name for name in fitting if scores[name] >= least]
        return fitting[:most]


def check_selection(threshold: Any, margin: Any, default: float) -> Selection:
    """Check threshold and margin.

    Raises:
        InvalidInputError: If one is no finite number, or the margin is negative.
    """
    for name, value, least in (("threshold", threshold, -1.0), ("margin", margin, 0.0)):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= 1:
            raise InvalidInputError(
                f"{name}={value!r} was given; it must be a number from {least:g} to 1, or None."
            )
    return Selection(default if threshold is None else float(threshold), margin)


def _failure(outcome: Outcome[Any]) -> Exception:
    error = outcome.error
    if isinstance(error, RagKitError):
        return error
    wrapped = BranchError(describe_failure(outcome.name, error))
    wrapped.__cause__ = error
    return wrapped


def _loose(name: str) -> str:
    return name.strip(" \t\n\"'`“”‘’「」.。").casefold()
