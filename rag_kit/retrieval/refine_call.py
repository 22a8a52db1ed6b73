"""One call of a refining retriever: its search, its model calls side by side, its budget, its notes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from langchain_core.documents import Document

from rag_kit.concurrency import Budget
from rag_kit.concurrency.outcome import Outcome, describe_failure
from rag_kit.concurrency.steps import Logic
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, RagKitError
from rag_kit.models import astructured_call, structured_call
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.rewrite_steps import Call, side_by_side

T = TypeVar("T")
_LEAST_SECONDS = 0.002


class RefiningError(RagKitError):
    """A reranker or compressor gave something that does not belong to the documents it was given."""


class RefineCall:
    """The state of one call; rerankers and compressors do all their work through it.

    Args:
        owner: The `RefiningRetriever` that was called.
        query: The query.
        request: What the call asks for.

    Attributes:
        notes: Notes for every result.
        budget: The caps on calls and tokens, and what was used.
    """

    def __init__(self, owner: Any, query: str, request: Request) -> None:
        self.owner = owner
        self.query = query
        self.request = request
        self.budget = Budget(max_calls=owner.max_calls, max_tokens=owner.max_tokens)
        self._clock = Budget(deadline=owner.deadline)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Tell every result something."""
        if text not in self.notes:
            self.notes.append(text)

    def cost(self) -> str | None:
        """What the models were asked, if they were."""
        calls = self.budget.calls
        return (
            f"model: {calls} call{'' if calls == 1 else 's'}, {self.budget.tokens} tokens" if calls else None
        )

    async def search(self, k: int) -> list[Document]:
        """Ask the inner retriever.

        Raises:
            BranchError: It failed; its own error is the ``__cause__``. There is nothing to fall back to.
        """
        retriever = self.owner.retriever
        settings: dict[str, Any] = {"config": self.request.child("retriever"), "k": k}
        settings["filter"] = self.request.filter
        found: list[Document] = await self.do(
            retriever.get_name(),
            partial(call_retriever, retriever, self.query, **settings),
            partial(acall_retriever, retriever, self.query, **settings),
        )
        return found

    async def do(self, name: str, sync: Callable[[], T], native: Callable[[], Awaitable[T]]) -> T:
        """Do one thing, within the time-out and the deadline.

        Args:
            name: What it is, for messages.
            sync: Does it on a thread.
            native: Does it without blocking.

        Raises:
            BranchError: It failed or was late; its own error is the ``__cause__``.
            BudgetExceededError: No time is left.
        """
        (outcome,) = await self.do_all([Call(name, sync, native)])
        if not outcome.ok:
            raise self.failure(outcome)
        return cast("T", outcome.value)

    async def do_all(self, calls: Sequence[Call]) -> list[Outcome[Any]]:
        """Do several things side by side; one outcome each, in their order.

        Raises:
            BudgetExceededError: No time is left.
        """
        result = await side_by_side(calls, "skip", self.owner.timeout, self._left(), self._width())
        return self._checked(result.outcomes)

    async def ask(
        self, model: Any, prompt: Any, values: Sequence[Mapping[str, Any]], form: Any, names: Sequence[str]
    ) -> list[Outcome[Any]]:
        """Ask a model, once for each set of values, side by side.

        Of more sets than ``max_calls`` allows, the first ones are asked.

        Args:
            model: The chat model.
            prompt: The prompt.
            values: The prompt's variables; what it does not know is left out.
            form: What the answer must fit if the prompt does not say it.
            names: One name a set, for messages.

        Returns:
            One outcome a set, in their order.

        Raises:
            BudgetExceededError: No time is left.
            InvalidInputError: The prompt wants values that are not given: it would fail every time.
        """
        left = self._left()
        schema = getattr(prompt, "result_schema", None) or form
        settings: dict[str, Any] = {"timeout": self.owner.timeout, "config": self.request.child("model")}
        cap = self.budget.max_calls
        room = len(values) if cap is None else max(0, cap - self.budget.calls)
        calls = []
        for name, given in list(zip(names, values, strict=True))[:room]:
            known = {key: value for key, value in given.items() if key in prompt.input_variables}
            arguments: Any = (model, prompt, known, schema)
            calls.append(
                Call(
                    name,
                    partial(structured_call, *arguments, **settings),
                    partial(astructured_call, *arguments, **settings),
                )
            )
        outcomes: list[Outcome[Any]] = []
        if calls:
            result = await side_by_side(calls, "skip", None, left, self._width(), self._model_clock())
            outcomes = self._checked(result.outcomes)
        refused = [
            Outcome[Any](name, error=BudgetExceededError("calls", cap or 0)) for name in names[len(calls) :]
        ]
        return outcomes + refused

    async def attempt(self, name: str, steps: Logic[T], instead: str) -> T | None:
        """Take steps that may fail.

        Args:
            name: What they are, for the note.
            steps: The steps.
            instead: What happens if they fail, for the note.

        Returns:
            What they gave; ``None`` if they failed, which is noted (``on_error="skip"``).

        Raises:
            RagKitError: What they raise, with ``on_error="raise"``.
            InvalidInputError: Always: a wrong argument is the caller's mistake and would fail every time.
        """
        try:
            return await steps
        except InvalidInputError:
            raise
        except Exception as error:
            if self.owner.on_error == "raise":
                raise
            cause = error.__cause__ if isinstance(error, BranchError) and error.__cause__ else error
            self.note(f"degraded: {describe_failure(name, cause)}; {instead}")
            return None

    def failure(self, outcome: Outcome[Any]) -> Exception:
        """What a failed outcome is raised as."""
        error = outcome.error
        if isinstance(error, (BranchError, BudgetExceededError)):
            return error
        wrapped = BranchError(describe_failure(outcome.name, error))
        wrapped.__cause__ = error
        return wrapped

    def _checked(self, outcomes: list[Outcome[Any]]) -> list[Outcome[Any]]:
        for outcome in outcomes:
            if isinstance(outcome.error, InvalidInputError):
                raise outcome.error
        return outcomes

    def _width(self) -> int | None:
        width: int | None = self.owner.max_concurrency or self.request.config.get("max_concurrency")
        return width

    def _left(self) -> float | None:
        left = self._clock.remaining_seconds()
        if left is not None and left < _LEAST_SECONDS:
            raise BudgetExceededError("deadline", self.owner.deadline or 0)
        return left

    def _model_clock(self) -> Budget | None:
        return None if self.owner.deadline is None else self._clock
