"""One call of a retriever that asks models: what it may spend, its notes, and everything it waits for."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from rag_kit.concurrency import Budget
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.outcome import FanOut, OnError, Outcome, describe_failure
from rag_kit.concurrency.steps import Logic
from rag_kit.concurrency.telling import tell_degraded
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError
from rag_kit.models import JsonCache, astructured_call, atext_call, structured_call, text_call
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.rewrite_memory import MISSING, Memory
from rag_kit.retrieval.rewrite_steps import Call, side_by_side

_log = logging.getLogger(__name__)
T = TypeVar("T")
MODEL_SHARE = 0.75
"""The models' share of a deadline where a search follows; a slow model would leave no time for any result."""


class Owner(Protocol):
    """What a call takes from the retriever, or other part, that was called."""

    on_error: OnError
    timeout: float | None
    deadline: float | None
    max_calls: int | None
    max_tokens: int | None
    max_concurrency: int | None
    id_key: str | None

    def get_name(self) -> str:
        """The name for provenance and messages."""
        ...


class QueryCall:
    """The state of one call; models, searches and other slow things are asked through it.

    Args:
        owner: The retriever that was called; its caps, time-outs and ``on_error`` hold.
        query: The query.
        request: What the call asks for.
        model_share: The models' share of the deadline.
        cache: Answers of models that are known already.

    Attributes:
        notes: Notes for every result.
        extra: More for the last stage of every result.
        budget: The caps on calls and tokens, and what was used.
        clock: The deadline of the whole.
        model_clock: The deadline of what comes before the last search.
        memory: What the cache gave, and gets.
        settled: The query alone is all there is to search for, and nothing went wrong.
    """

    def __init__(
        self,
        owner: Owner,
        query: str,
        request: Request,
        *,
        model_share: float = 1.0,
        cache: JsonCache | None = None,
    ) -> None:
        self.owner = owner
        self.query = query
        self.request = request
        self.budget = Budget(max_calls=owner.max_calls, max_tokens=owner.max_tokens)
        self.clock = Budget(deadline=owner.deadline)
        self.model_clock = Budget(deadline=None if owner.deadline is None else owner.deadline * model_share)
        self.notes: list[str] = []
        self.extra: dict[str, Any] = {}
        self.memory = Memory(cache, self.note)
        self.settled = False

    def note(self, text: str) -> None:
        """Add a note to every result."""
        if text not in self.notes:
            self.notes.append(text)

    def report(self) -> list[str]:
        """All notes, with what the models were asked; what failed is logged, too."""
        calls, served = self.budget.calls, self.memory.served
        if calls or served:
            line = f"model: {calls} call{'' if calls == 1 else 's'}, {self.budget.tokens} tokens"
            cached = f", {served} answer{'' if served == 1 else 's'} from the cache"
            self.note(line + cached if served else line)
        for note in self.notes:
            if note.startswith("degraded"):
                tell_degraded(_log, self.owner.get_name(), note)
        return self.notes

    async def do(
        self, name: str, sync: Callable[[], T], native: Callable[[], Awaitable[T]] | None = None
    ) -> T:
        """Do one thing, within the time-out and the deadline.

        Args:
            name: What it is, for messages.
            sync: Does it on a thread.
            native: Does it without blocking; ``None``: on a thread, too.

        Raises:
            BranchError: It failed or was late; its own error is the ``__cause__``.
            BudgetExceededError: No time is left.
        """
        (outcome,) = (await self.do_all([Call(name, sync, native or partial(run_in_thread, sync))])).outcomes
        if not outcome.ok:
            raise self.failure(outcome)
        return cast("T", outcome.value)

    async def do_all(self, calls: Sequence[Call], on_error: OnError = "skip") -> FanOut[Any]:
        """Do several things side by side; each has the time-out, and all of them what the deadline leaves."""
        return await self._done(calls, self.owner.timeout, self.clock, on_error)

    async def ask_all(self, calls: Sequence[Call], timeout: float | None = None) -> FanOut[Any]:
        """Do what comes before the search, such as asking a model, side by side within the models' deadline."""
        return await self._done(calls, timeout, self.model_clock)

    async def search(
        self, retriever: Runnable[str, list[Document]], query: str, k: int | None, filter: Any = None
    ) -> list[Document]:
        """Ask a retriever, under the filter of the call if no other is given.

        Raises:
            BranchError: It failed; its own error is the ``__cause__``.
            BudgetExceededError: No time is left.
        """
        settings: dict[str, Any] = {
            "config": self.request.child("retriever"),
            "k": k,
            "filter": filter or self.request.filter,
        }
        sync = partial(call_retriever, retriever, query, **settings)
        return await self.do(
            retriever.get_name(), sync, partial(acall_retriever, retriever, query, **settings)
        )

    async def ask(
        self,
        model: Any,
        prompt: Any,
        values: Sequence[Mapping[str, Any]],
        form: Any,
        names: Sequence[str],
        *,
        form_holds: bool = False,
    ) -> list[Outcome[Any]]:
        """Ask a model, once for each set of values, side by side; what the cache knows is not asked again.

        Of more sets than ``max_calls`` allows, the first ones are asked.

        Args:
            model: The chat model.
            prompt: The prompt.
            values: The prompt's variables; what it does not know is left out.
            form: What the answer must fit if the prompt does not say it; ``str`` for plain text.
            names: One name a set, for messages.
            form_holds: ``form`` holds, whatever the prompt says.

        Returns:
            One outcome a set, in their order.

        Raises:
            InvalidInputError: The prompt wants values that are not given: it would fail every time.
        """
        schema = form if form_holds else getattr(prompt, "result_schema", None) or form
        known = [
            {key: value for key, value in given.items() if key in prompt.input_variables} for given in values
        ]
        config = self.request.child("model")
        keys = self.memory.keys(model, prompt, known, schema, config)
        recalled = await self.memory.recall(keys, schema)
        outcomes = {
            at: Outcome(names[at], value) for at, value in enumerate(recalled) if value is not MISSING
        }
        missing = [at for at in range(len(known)) if at not in outcomes]
        cap = self.budget.max_calls
        room = len(missing) if cap is None else max(0, cap - self.budget.calls)
        settings: dict[str, Any] = {"timeout": self.owner.timeout, "config": config}
        calls = [_model_call(names[at], model, prompt, known[at], schema, settings) for at in missing[:room]]
        done = await self.ask_all(calls)
        for at, outcome in zip(missing, done.outcomes, strict=False):
            outcomes[at] = outcome
            if isinstance(outcome.error, InvalidInputError):
                raise outcome.error
            if outcome.ok:
                self.memory.add(keys[at], outcome.value)
        for at in missing[room:]:
            outcomes[at] = Outcome(names[at], error=BudgetExceededError("calls", cap or 0))
        return [outcomes[at] for at in range(len(known))]

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
        if isinstance(error, (BranchError, BudgetExceededError, InvalidInputError)):
            return error
        wrapped = BranchError(describe_failure(outcome.name, error))
        wrapped.__cause__ = error
        return wrapped

    async def _done(
        self, calls: Sequence[Call], timeout: float | None, clock: Budget, on_error: OnError = "skip"
    ) -> FanOut[Any]:
        if clock.remaining_seconds() == 0:
            late = BudgetExceededError("deadline", self.owner.deadline or 0)
            return FanOut([Outcome(call.name, error=late) for call in calls])
        width = self.owner.max_concurrency or self.request.config.get("max_concurrency")
        return await side_by_side(calls, on_error, timeout, None, width, clock)


def _model_call(
    name: str, model: Any, prompt: Any, values: dict[str, Any], schema: Any, settings: dict[str, Any]
) -> Call:
    if schema is str:
        given: tuple[Any, ...] = (model, prompt, values)
        return Call(name, partial(text_call, *given, **settings), partial(atext_call, *given, **settings))
    given = (model, prompt, values, schema)
    return Call(
        name, partial(structured_call, *given, **settings), partial(astructured_call, *given, **settings)
    )
