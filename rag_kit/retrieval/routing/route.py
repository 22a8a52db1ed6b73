"""What routing decided: where a question goes, how sure that is, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from rag_kit.documents.plain import to_plain
from rag_kit.errors import RagKitError


class RoutingError(RagKitError):
    """A router gave nothing that can be used; with ``on_error="raise"``."""


class NoRouteError(RoutingError):
    """No source fits the question; with ``on_none="raise"``."""


@dataclass(frozen=True)
class Choice:
    """One source to go to.

    Attributes:
        name: Its name.
        score: How well it fits; ``None`` where there is no number (a model, a function).
        reason: Why, in words.
    """

    name: str
    score: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Route:
    """Where a question goes. True if it goes anywhere.

    Attributes:
        question: The question.
        how: What decided: ``"model"``, ``"similarity"``, ``"keywords"``, ``"function"``.
        outcome: ``"chosen"``: the choices fit. ``"none"``: nothing fits, and there are no choices.
            ``"fallback"`` and ``"all"``: nothing fits, so the question goes to the fallback or to all sources.
            ``"degraded"``: the router failed, so the question goes to all sources.
        choices: Where to go, best first.
        scores: The score of each source that was considered, where there are numbers.
        notes: What else happened, for people.

    Example:
        >>> route = Route("Why?", "keywords", "chosen", (Choice("manuals", 0.5, "shared words: fan"),))
        >>> route.names, bool(route), route.fits
        (('manuals',), True, True)
    """

    question: str
    how: str
    outcome: Literal["chosen", "none", "fallback", "all", "degraded"]
    choices: tuple[Choice, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the choices, best first."""
        return tuple(choice.name for choice in self.choices)

    @property
    def reasons(self) -> dict[str, str]:
        """Why each choice was made."""
        return {choice.name: choice.reason for choice in self.choices}

    @property
    def fits(self) -> bool:
        """Whether the router found that the choices fit the question."""
        return self.outcome == "chosen"

    @property
    def degraded(self) -> bool:
        """Whether the router failed."""
        return self.outcome == "degraded"

    def __bool__(self) -> bool:
        return bool(self.choices)

    def to_dict(self) -> dict[str, Any]:
        """The route as plain JSON."""
        plain: dict[str, Any] = to_plain(asdict(self))
        return plain
