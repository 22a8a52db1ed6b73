"""One call of a rewriting retriever: its model calls and searches as steps, its budget, its notes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from rag_kit.concurrency import Budget, FanOut, afan_out, fan_out, use_budget
from rag_kit.concurrency.outcome import describe_failure
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError
from rag_kit.models import astructured_call, structured_call
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.merging import Found

if TYPE_CHECKING:
    from rag_kit.retrieval.rewriting import RewritingRetriever

T = TypeVar("T")
# The rest of a deadline is for the search; without it a slow model would leave no time for any result.
_SHARE_OF_MODEL = 0.75
_LEAST_SECONDS = 0.001


@dataclass(frozen=True)
class Call:
    """One thing to do, in both forms."""

    name: str
    sync: Callable[[], Any]
    native: Callable[[], Awaitable[Any]]


@dataclass(frozen=True)
class Batch:
    """Calls to make side by side; answered by their ``FanOut``.

    Attributes:
        calls: The calls.
        on_error: As for ``fan_out``.
        timeout: Seconds one call may take.
        deadline: Seconds all of them may take.
        max_concurrency: Most calls at a time.
        budget: A budget for these calls alone, beside that of the whole.
    """

    calls: Sequence[Call]
    on_error: Literal["raise", "skip"]
    timeout: float | None
    deadline: float | None
    max_concurrency: int | None
    budget: Budget | None = None


Steps = Generator[Batch, FanOut[Any], T]


@dataclass(frozen=True)
class Search:
    """One search to make.

    Attributes:
        query: The text to search for.
        role: ``"original"``, ``"variant"``, ``"passage"``...; stands in the provenance.
        retriever: Asked instead of the inner retriever.
        shown: Stands in the provenance for the query.
    """

    query: str
    role: str
    retriever: Runnable[str, list[Document]] | None = None
    shown: str | None = None


def drive(steps: Steps[T], budget: Budget) -> T:
    """Carry out the steps on threads."""
    reply: Any = None
    while True:
        try:
            batch = steps.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result
        with ExitStack() as stack:
            _enter(stack, budget, batch)
            reply = fan_out([call.sync for call in batch.calls], **_settings(batch))


async def adrive(steps: Steps[T], budget: Budget) -> T:
    """Carry out the steps without blocking the event loop."""
    reply: Any = None
    while True:
        try:
            batch = steps.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result
        with ExitStack() as stack:
            _enter(stack, budget, batch)
            reply = await afan_out([call.native for call in batch.calls], **_settings(batch))


def _enter(stack: ExitStack, budget: Budget, batch: Batch) -> None:
    stack.enter_context(use_budget(budget))
    if batch.budget is not None:
        stack.enter_context(use_budget(batch.budget))


def _settings(batch: Batch) -> dict[str, Any]:
    return {
        "names": [call.name for call in batch.calls],
        "on_error": batch.on_error,
        "timeout": batch.timeout,
        "deadline": batch.deadline,
        "max_concurrency": batch.max_concurrency,
    }


class RewriteCall:
    """The state of one call.

    Args:
        owner: The retriever that was called.
        question: The user's question.
        request: What the call asks for.

    Attributes:
        notes: What every result is told.
        extra: More for the last stage of every result.
        budget: The caps on calls and tokens, and what was used.
    """

    def __init__(self, owner: RewritingRetriever, question: str, request: Request) -> None:
        self.owner = owner
        self.question = question
        self.request = request
        self.budget = Budget(max_calls=owner.max_calls, max_tokens=owner.max_tokens)
        model_seconds = None if owner.deadline is None else owner.deadline * _SHARE_OF_MODEL
        self._model_budget = Budget(deadline=model_seconds)
        self.notes: list[str] = []
        self.extra: dict[str, Any] = {}

    def note(self, text: str) -> None:
        """Tell every result something."""
        if text not in self.notes:
            self.notes.append(text)

    def cost(self) -> str:
        """What the models were asked so far."""
        calls = self.budget.calls
        return f"model: {calls} call{'' if calls == 1 else 's'}, {self.budget.tokens} tokens"

    def ask(
        self, values: Sequence[Mapping[str, Any]], *, prompt: Any = None, form: Any = None, name: str = ""
    ) -> Steps[list[Any]]:
        """Ask the model, once for each set of values, side by side.

        Args:
            values: The prompt's variables, which it may leave out.
            prompt: The prompt; by default the retriever's own in the language of the question.
            form: What the answer must fit if the prompt does not say it.
            name: What is asked for, for the report.

        Returns:
            The answers that came. Failures are noted (``on_error="skip"``) or raised.
        """
        owner = self.owner
        name = name or owner.task
        left = self._model_budget.remaining_seconds()
        if left == 0:
            self._failed(name, BudgetExceededError("deadline", owner.deadline or 0))
            return []
        prompt = owner.prompt_for(self.question) if prompt is None else prompt
        schema = getattr(prompt, "result_schema", None) or form or owner.answer_form
        settings: dict[str, Any] = {"timeout": owner.timeout, "config": self.request.child("rewrite")}
        calls = []
        for number, given in enumerate(values, start=1):
            known = {key: value for key, value in given.items() if key in prompt.input_variables}
            label = name if len(values) == 1 else f"{name} {number}"
            arguments: Any = (owner.llm, prompt, known, schema)
            calls.append(
                Call(
                    label,
                    partial(structured_call, *arguments, **settings),
                    partial(astructured_call, *arguments, **settings),
                )
            )
        result = yield Batch(calls, "skip", None, None, self._width(), self._model_budget)
        answers = []
        for outcome in result.outcomes:
            if outcome.ok:
                answers.append(outcome.value)
            else:
                self._failed(outcome.name, outcome.error)
        return answers

    def do(self, call: Call) -> Steps[Any]:
        """Do one other thing, such as embedding texts.

        Returns:
            What it gave; ``None`` if it failed, which is noted (``on_error="skip"``) or raised.
        """
        result = yield Batch([call], "skip", self.owner.timeout, self._left(), None)
        (outcome,) = result.outcomes
        if not outcome.ok:
            self._failed(outcome.name, outcome.error)
        return outcome.value

    def search(self, searches: Sequence[Search]) -> Steps[list[Found]]:
        """Search side by side.

        Returns:
            What each search found, those left out that failed (``on_error="skip"``, noted) or have weight 0.

        Raises:
            BranchError: One failed (``on_error="raise"``), or all did.
            BudgetExceededError: The same, for a used-up budget.
        """
        owner, request = self.owner, self.request
        weighted = [pair for pair in zip(searches, self.weights(len(searches)), strict=True) if pair[1] > 0]
        k = max(request.k, owner.fetch_k or 0)
        names, calls = [], []
        for number, (search, _) in enumerate(weighted, start=1):
            retriever = owner.retriever if search.retriever is None else search.retriever
            settings: dict[str, Any] = {
                "config": request.child(f"query_{number}"),
                "k": k,
                "filter": request.filter,
            }
            names.append(retriever.get_name())
            calls.append(
                Call(
                    f"{names[-1]}, query {number}",
                    partial(call_retriever, retriever, search.query, **settings),
                    partial(acall_retriever, retriever, search.query, **settings),
                )
            )
        result = yield Batch(calls, owner.on_error, owner.timeout, self._left(), self._width())
        for line in result.degradations:
            self.note(f"degraded: {line}")
        if not result.values:
            _raise_all_failed(owner.get_name(), result)
        return [
            Found(search.shown or search.query, search.role, name, weight, outcome.value or [])
            for (search, weight), name, outcome in zip(weighted, names, result.outcomes, strict=True)
            if outcome.ok
        ]

    def weights(self, count: int) -> list[float]:
        """The weights of that many searches, the question's first if it is among them."""
        given = list(self.owner.weights or [1.0])
        weights = (given + [given[-1]] * count)[:count]
        # The plain search is made whatever weight the question has beside its rewrites.
        return weights if any(weights) else [1.0] * count

    def _width(self) -> int | None:
        width: int | None = self.owner.max_concurrency or self.request.config.get("max_concurrency")
        return width

    def _left(self) -> float | None:
        if self.owner.deadline is None:
            return None
        return max(_LEAST_SECONDS, self.owner.deadline - self._model_budget.seconds)

    def _failed(self, name: str, error: BaseException | None) -> None:
        # A wrong argument is the caller's mistake: it would fail every time, and is not to be hidden.
        if error is not None and (self.owner.on_error == "raise" or isinstance(error, InvalidInputError)):
            raise error
        self.note(f"degraded: {describe_failure(name, error)}")


def texts_of(answers: Sequence[Any], field: str) -> list[str]:
    """The texts under a field of the answers: the first of each answer, then the second of each...

    Example:
        >>> texts_of([{"queries": ["a", "b"]}, {"queries": ["c"]}, {"queries": "d"}], "queries")
        ['a', 'c', 'd', 'b']
    """
    lists = []
    for answer in answers:
        value = getattr(answer, field, None) if isinstance(answer, BaseModel) else dict(answer).get(field)
        lists.append([value] if isinstance(value, str) else [str(item) for item in value or []])
    longest = max(map(len, lists), default=0)
    return [items[place] for place in range(longest) for items in lists if place < len(items)]


def _raise_all_failed(name: str, result: FanOut[Any]) -> None:
    errors = [outcome.error for outcome in result.outcomes]
    for error in errors:
        if isinstance(error, BudgetExceededError):
            raise error
    raise BranchError(f"All searches of {name} failed. {'; '.join(result.degradations)}") from errors[0]
