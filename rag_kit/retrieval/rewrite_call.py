"""One call of a rewriting retriever: what it asks the model, what it searches, its budget, its notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from rag_kit.concurrency import Budget
from rag_kit.concurrency.outcome import FanOut, describe_failure
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.batching import groups_of
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.merging import Found
from rag_kit.retrieval.rewrite_memory import MISSING, Memory
from rag_kit.retrieval.rewrite_steps import Call, side_by_side

__all__ = ["RewriteCall", "Search", "texts_of"]

# The rest of a deadline is for the search; without it a slow model would leave no time for any result.
_SHARE_OF_MODEL = 0.75
_LEAST_SECONDS = 0.001


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


class RewriteCall:
    """The state of one call.

    Args:
        owner: The `RewritingRetriever` that was called.
        question: The user's question.
        request: What the call asks for.

    Attributes:
        notes: Notes for every result.
        extra: More for the last stage of every result.
        budget: The caps on calls and tokens, and what was used.
        memory: What the cache of answers gave, and gets.
        settled: The question alone is all there is to search for, and nothing went wrong.
    """

    def __init__(self, owner: Any, question: str, request: Request) -> None:
        self.owner = owner
        self.question = question
        self.request = request
        self.budget = Budget(max_calls=owner.max_calls, max_tokens=owner.max_tokens)
        model_seconds = None if owner.deadline is None else owner.deadline * _SHARE_OF_MODEL
        self._model_budget = Budget(deadline=model_seconds)
        self.notes: list[str] = []
        self.extra: dict[str, Any] = {}
        self.settled = False
        self.memory = Memory(owner.cache, self.note)
        self._searched = 0
        self._answered = False

    def note(self, text: str) -> None:
        """Tell every result something."""
        if text not in self.notes:
            self.notes.append(text)

    def costs(self) -> list[str]:
        """What the models were asked so far; nothing where there is no model to ask."""
        calls = self.budget.calls
        model: Any = self.owner.llm  # a technique may do without
        if model is None and not calls:
            return []
        line = f"model: {calls} call{'' if calls == 1 else 's'}, {self.budget.tokens} tokens"
        served = self.memory.served
        return [f"{line}, {served} answer{'' if served == 1 else 's'} from the cache" if served else line]

    async def ask(
        self, values: Sequence[Mapping[str, Any]], *, prompt: Any = None, form: Any = None, name: str = ""
    ) -> list[Any]:
        """Ask the model, once for each set of values, side by side.

        Args:
            values: The prompt's variables, which it may leave out.
            prompt: The prompt; by default the retriever's own in the language of the question.
            form: What the answer must fit if the prompt does not say it; ``str`` for plain text.
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
        known = [
            {key: value for key, value in given.items() if key in prompt.input_variables} for given in values
        ]
        keys = self.memory.keys(owner.llm, prompt, known, schema, self.request.config)
        answers = await self.memory.recall(keys, schema)
        missing = [place for place, answer in enumerate(answers) if answer is MISSING]
        if missing:
            labels = [name if len(values) == 1 else f"{name} {place + 1}" for place in missing]
            calls = [
                self._model_call(label, prompt, known[place], schema)
                for label, place in zip(labels, missing, strict=True)
            ]
            result = await side_by_side(calls, "skip", None, None, self._width(), self._model_budget)
            for place, outcome in zip(missing, result.outcomes, strict=True):
                if outcome.ok:
                    answers[place] = outcome.value
                    self.memory.add(keys[place], outcome.value)
                else:
                    self._failed(outcome.name, outcome.error)
        return [answer for answer in answers if answer is not MISSING]

    async def do(self, call: Call) -> Any:
        """Do one other thing, such as embedding texts.

        Returns:
            What it gave; ``None`` if it failed, which is noted (``on_error="skip"``) or raised.
        """
        result = await side_by_side([call], "skip", self.owner.timeout, self._left(), None)
        (outcome,) = result.outcomes
        if not outcome.ok:
            self._failed(outcome.name, outcome.error)
        return outcome.value

    async def search(self, searches: Sequence[Search]) -> list[Found]:
        """Search side by side; a technique may do so several times, one after the other.

        Returns:
            What each search found, those left out that failed (``on_error="skip"``, noted) or have weight 0.

        Raises:
            BranchError: One failed (``on_error="raise"``), or all of this call did.
            BudgetExceededError: The same, for a used-up budget.
        """
        owner, request = self.owner, self.request
        before, self._searched = self._searched, self._searched + len(searches)
        weights = self.weights(self._searched)[before:]
        weighted = [pair for pair in zip(searches, weights, strict=True) if pair[1] > 0]
        k = request.fetch(owner.fetch_k)
        asked = [owner.retriever if search.retriever is None else search.retriever for search, _ in weighted]
        groups = groups_of([(one, search.query) for one, (search, _) in zip(asked, weighted, strict=True)])
        names, calls = [], []
        for number, ((search, _), retriever, group) in enumerate(
            zip(weighted, asked, groups, strict=True), start=before + 1
        ):
            settings: dict[str, Any] = {
                "config": request.child(f"query_{number}"),
                "k": k,
                "filter": request.filter,
            }
            names.append(retriever.get_name())
            calls.append(
                Call(
                    f"{names[-1]}, query {number}",
                    partial(group.call, call_retriever, retriever, search.query, **settings),
                    partial(group.acall, acall_retriever, retriever, search.query, **settings),
                )
            )
        result = await side_by_side(calls, owner.on_error, owner.timeout, self._left(), self._width())
        for line in result.degradations:
            self.note(f"degraded: {line}")
        self._answered = self._answered or bool(result.values)
        if calls and not self._answered:
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

    def _model_call(self, name: str, prompt: Any, values: dict[str, Any], schema: Any) -> Call:
        settings: dict[str, Any] = {"timeout": self.owner.timeout, "config": self.request.child("rewrite")}
        sync: Any
        native: Any
        arguments: tuple[Any, ...]
        sync, native, arguments = text_call, atext_call, (self.owner.llm, prompt, values)
        if schema is not str:
            sync, native, arguments = structured_call, astructured_call, (*arguments, schema)
        return Call(name, partial(sync, *arguments, **settings), partial(native, *arguments, **settings))

    def _width(self) -> int | None:
        width: int | None = self.owner.max_concurrency or self.request.config.get("max_concurrency")
        return width

    def _left(self) -> float | None:
        if self.owner.deadline is None:
            return None
        left: float = self.owner.deadline - self._model_budget.seconds
        return max(_LEAST_SECONDS, left)

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
