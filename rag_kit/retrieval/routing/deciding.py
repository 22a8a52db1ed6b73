"""The decision: ask the router, and settle what happens if nothing fits or the router fails."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency import Budget
from rag_kit.concurrency.outcome import describe_failure
from rag_kit.concurrency.seconds import check_seconds
from rag_kit.concurrency.telling import tell_degraded
from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.retrieval.base import check_count
from rag_kit.retrieval.routing.by_function import FunctionRouter
from rag_kit.retrieval.routing.by_model import ModelRouter
from rag_kit.retrieval.routing.by_similarity import SimilarityRouter
from rag_kit.retrieval.routing.by_words import KeywordRouter
from rag_kit.retrieval.routing.options import MAX_OPTIONS, Option, check_options
from rag_kit.retrieval.routing.route import Choice, NoRouteError, Outcome, Route
from rag_kit.retrieval.routing.routers import Router, RouterCall

_log = logging.getLogger(__name__)
# The rest of a deadline is for the search.
_SHARE_OF_ROUTER = 0.75
WAYS = ("model", "similarity", "keywords")
OnNone = Literal["empty", "all", "raise"]


def make_router(
    how: Any = None,
    *,
    llm: Any = None,
    embeddings: Any = None,
    prompt: Any = None,
    language: str = "auto",
    pooling: str = "mean",
    threshold: float | None = None,
    margin: float | None = None,
) -> Router:
    """Make the router that the arguments of ``RoutingRetriever`` and ``route_prompt`` describe.

    Args:
        how: ``"model"``, ``"similarity"``, ``"keywords"``, a function, a runnable or a ``Router``; ``None`` for
            the model if there is one, else the embeddings if there are any, else keywords.
        llm: For ``"model"``.
        embeddings: For ``"similarity"``.
        prompt: For ``"model"``.
        language: For ``"model"``.
        pooling: For ``"similarity"``.
        threshold: For ``"similarity"`` and ``"keywords"``.
        margin: The same.

    Raises:
        InvalidInputError: If the way is unknown, or what it needs is missing, or another argument has no use.

    Example:
        >>> make_router().name
        'keywords'
    """
    if how is None:
        how = "model" if llm is not None else "similarity" if embeddings is not None else "keywords"
    if how == "similarity" and isinstance(llm, Embeddings):
        raise InvalidInputError("llm is an embedding model; give it as embeddings=.")
    used = {
        "model": {"llm", "prompt"},
        "similarity": {"embeddings", "threshold", "margin"},
        "keywords": {"threshold", "margin"},
    }.get(how if isinstance(how, str) else "", set())
    given = {"llm": llm, "embeddings": embeddings, "prompt": prompt, "threshold": threshold, "margin": margin}
    if isinstance(how, str) and how not in WAYS:
        raise InvalidInputError(
            f"how={how!r} was given; allowed: {', '.join(map(repr, WAYS))}, or a function of the question."
        )
    idle = [name for name, value in given.items() if value is not None and name not in used]
    if idle:
        way = repr(how) if isinstance(how, str) else "a function"
        raise InvalidInputError(f"{', '.join(idle)} has no use with how={way}; leave it out.")
    if how == "model":
        return ModelRouter(llm, prompt, language)
    if how == "similarity":
        return SimilarityRouter(embeddings, pooling=pooling, threshold=threshold, margin=margin)
    if how == "keywords":
        return KeywordRouter(threshold, margin)
    return how if isinstance(how, Router) else FunctionRouter(how)


@dataclass(frozen=True)
class Policy:
    """What holds for every decision of a part.

    Attributes:
        most: Most choices; ``None`` for all that fit.
        fallback: Where to go if nothing fits.
        on_none: What to do if nothing fits and there is no fallback.
        on_error: Whether a failing router leads to all options or raises.
        timeout: Seconds one request of the router may take.
        deadline: Seconds for the whole call; the router gets three quarters of them.
    """

    most: int | None = 1
    fallback: str | None = None
    on_none: OnNone = "empty"
    on_error: Literal["raise", "skip"] = "skip"
    timeout: float | None = None
    deadline: float | None = None


class Decider:
    """Options, the router that chooses among them, and the policy.

    Args:
        options: The options.
        router: The router.
        policy: The policy.
        what: What the options are called in messages.

    Raises:
        InvalidInputError: If something does not fit.
    """

    def __init__(self, options: Sequence[Option], router: Router, policy: Policy, what: str) -> None:
        self.options = check_options(options, what)
        self.router = router
        self.policy = policy
        self.what = what
        names = [option.name for option in self.options]
        if policy.most is not None:
            check_count("most", policy.most)
        if policy.fallback is not None and policy.fallback not in names:
            raise InvalidInputError(
                f"fallback={policy.fallback!r} was given; it must be one of the {what}: {', '.join(names)}."
            )
        for name, value, allowed in (
            ("on_none", policy.on_none, ("empty", "all", "raise")),
            ("on_error", policy.on_error, ("skip", "raise")),
        ):
            if value not in allowed:
                raise InvalidInputError(f"{name}={value!r} was given; allowed: {', '.join(allowed)}.")
        check_seconds("timeout", policy.timeout)
        check_seconds("deadline", policy.deadline)
        router.prepare(self.options)

    async def decide(self, question: str, allowed: Sequence[Option], config: RunnableConfig) -> Route:
        """Decide where a question goes.

        Args:
            question: The question.
            allowed: The options that this caller may use.
            config: For models and runnables.

        Raises:
            NoRouteError: Nothing fits, and ``on_none="raise"``.
            RagKitError: The router failed, and ``on_error="raise"``.
            InvalidInputError: The router was used wrongly; it would fail every time.
        """
        how, policy = self.router.name, self.policy
        if not allowed or not question.strip():
            why = "the question is empty" if allowed else f"none of the {self.what} is allowed"
            return self._none(question, [], (f"route: {why}",), {})
        seconds = None if policy.deadline is None else policy.deadline * _SHARE_OF_ROUTER
        call = RouterCall(
            question,
            allowed,
            min(policy.most or MAX_OPTIONS, len(allowed)),
            config,
            policy.timeout,
            Budget(deadline=seconds),
            seconds,
        )
        try:
            ruling = await self.router.decide(call)
        except InvalidInputError:
            raise
        except Exception as error:
            if policy.on_error == "raise":
                raise
            note = f"degraded: {describe_failure('route', error)}; all {self.what} are used"
            tell_degraded(_log, "route", note)
            return self._all(question, allowed, "degraded", note)
        notes = tuple(call.notes)
        if ruling.choices:
            return Route(question, how, "chosen", tuple(ruling.choices), dict(ruling.scores), notes)
        return self._none(question, allowed, notes, dict(ruling.scores))

    def _none(
        self, question: str, allowed: Sequence[Option], notes: tuple[str, ...], scores: dict[str, float]
    ) -> Route:
        how, policy = self.router.name, self.policy
        note = f"route: none of the {self.what} fits the question"
        if any(option.name == policy.fallback for option in allowed):
            text = f"{note}; the fallback {policy.fallback!r} is used"
            return self.fallback(question, *notes, text, scores=scores)
        if policy.on_none == "raise":
            known = ", ".join(option.name for option in allowed) or "none is allowed"
            raise NoRouteError(
                f"None of the {self.what} ({known}) fits the question. Give a fallback=, or on_none='empty' or 'all'."
            )
        if policy.on_none == "all" and allowed:
            route = self._all(question, allowed, "all", f"{note}; all are used")
            return Route(question, how, "all", route.choices, scores, (*notes, *route.notes))
        _log.info("%s", note)
        return Route(question, how, "none", (), scores, (*notes, note))

    def fallback(self, question: str, *notes: str, scores: dict[str, float] | None = None) -> Route:
        """The route to the fallback, which the policy names."""
        choice = Choice(self.policy.fallback or "", None, "fallback")
        return Route(question, self.router.name, "fallback", (choice,), scores or {}, notes)

    def _all(self, question: str, allowed: Sequence[Option], outcome: Outcome, note: str) -> Route:
        reason = "the router failed" if outcome == "degraded" else "nothing fits"
        choices = tuple(Choice(option.name, None, reason) for option in allowed)
        return Route(question, self.router.name, outcome, choices, {}, (note,))


def runnables_of(router: Router) -> list[Runnable[Any, Any]]:
    """The runnables inside a router."""
    parts = [getattr(router, "llm", None), getattr(router, "func", None)]
    return [part for part in parts if isinstance(part, Runnable)]


def spent(budget: Budget, seconds: float | None) -> float | None:
    """What is left of a deadline.

    Raises:
        BudgetExceededError: Nothing.
    """
    if seconds is None:
        return None
    if (left := seconds - budget.seconds) <= 0:
        raise BudgetExceededError("deadline", seconds)
    return left
