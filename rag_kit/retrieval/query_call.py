"""One call of a retriever that asks models: what it may spend, its notes, and everything it waits for."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import field_validator

from rag_kit.concurrency import Budget, afan_out, fan_out, use_budget
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.outcome import FanOut, OnError, Outcome, describe_failure
from rag_kit.concurrency.steps import Logic, Step, arun, run
from rag_kit.concurrency.telling import tell_degraded
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, RagKitError
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.bounded import BudgetedRetriever
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.rewrite_memory import MISSING, Memory

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One thing to do, in both forms."""

    name: str
    sync: Callable[[], Any]
    native: Callable[[], Awaitable[Any]]


class QueryCall:
    """The state of one call; models, searches and other slow things are asked through it.

    Args:
        owner: The retriever that was called; its caps, time-outs and ``on_error`` hold.
        query: The query.
        request: What the call asks for.

    Attributes:
        notes: Notes for every result.
        extra: More for the last stage of every result.
        budget: The caps on calls and tokens, and what was used.
        settled: The query alone is all there is to search for, and nothing went wrong.
    """

    def __init__(self, owner: CallRetriever, query: str, request: Request) -> None:
        self.owner = owner
        self.query = query
        self.request = request
        self.budget = Budget(max_calls=owner.max_calls, max_tokens=owner.max_tokens)
        self._clock = Budget(deadline=owner.deadline)
        share = None if owner.deadline is None else owner.deadline * owner.model_share
        self._model_clock = Budget(deadline=share)
        self._memory = Memory(getattr(owner, "cache", None))
        self.notes: list[str] = []
        self.extra: dict[str, Any] = {}
        self.settled = False

    def note(self, text: str) -> None:
        """Add a note to every result."""
        if text not in self.notes:
            self.notes.append(text)

    def report(self) -> list[str]:
        """All notes, with what the models were asked; what failed is logged, too."""
        calls, served = self.budget.calls, self._memory.served
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
            sync: Does it, blocking.
            native: Does it without blocking; ``None``: ``sync`` on a thread.

        Raises:
            BranchError: It failed or was late; its own error is the ``__cause__``.
            BudgetExceededError: No time is left.
        """
        result = await self.do_all([Call(name, sync, native or partial(run_in_thread, sync))])
        return cast("T", self.value(result.outcomes[0]))

    async def do_all(self, calls: Sequence[Call], on_error: OnError = "skip") -> FanOut[Any]:
        """Do several things side by side; each has the time-out, and all of them what the deadline leaves."""
        return await self._done(calls, self.owner.timeout, self._clock, on_error)

    async def do_first(self, calls: Sequence[Call], timeout: float | None = None) -> FanOut[Any]:
        """As ``do_all``, for what comes before the search, within the models' share of the deadline."""
        return await self._done(calls, timeout, self._model_clock)

    async def search(
        self, retriever: Runnable[str, list[Document]], query: str, k: int | None, filter: Any = None
    ) -> list[Document]:
        """Ask a retriever, under the filter of the call if no other is given; raises as ``do``."""
        settings: dict[str, Any] = {"config": self.request.child("retriever"), "k": k}
        settings["filter"] = filter or self.request.filter
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
        keys = self._memory.keys(model, prompt, known, schema, config)
        recalled = await self._cached(partial(self._memory.read, keys, schema)) if any(keys) else None
        answers = recalled or [MISSING] * len(keys)
        missing = [at for at, answer in enumerate(answers) if answer is MISSING]
        cap = self.budget.max_calls
        room = len(missing) if cap is None else max(0, cap - self.budget.calls)
        settings: dict[str, Any] = {"timeout": self.owner.timeout, "config": config}
        calls = [
            _model_call(names[at], schema, (model, prompt, known[at]), settings) for at in missing[:room]
        ]
        done = iter((await self.do_first(calls)).outcomes)
        outcomes = []
        for name, key, answer in zip(names, keys, answers, strict=True):
            outcome = Outcome(name, answer) if answer is not MISSING else next(done, None)
            if outcome is None:
                outcome = Outcome(name, error=BudgetExceededError("calls", cap or 0))
            if isinstance(outcome.error, InvalidInputError):
                raise outcome.error
            if outcome.ok:
                self._memory.add(key, outcome.value)
            outcomes.append(outcome)
        return outcomes

    async def keep_answers(self) -> None:
        """Write new answers to the cache, now that they were of use."""
        if self._memory.new:
            await self._cached(self._memory.write)

    async def attempt(self, name: str, steps: Logic[T], instead: str) -> T | None:
        """Take steps that may fail; ``None`` if they do, which is noted (``on_error="skip"``).

        Args:
            name: What they are, for the note.
            steps: The steps.
            instead: What happens if they fail, for the note.

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

    @staticmethod
    def value(outcome: Outcome[Any]) -> Any:
        """The value of an outcome; if there is none, raises its error, in a ``BranchError`` if it is not the kit's."""
        if isinstance(outcome.error, RagKitError):
            raise outcome.error
        if outcome.error is not None:
            raise BranchError(describe_failure(outcome.name, outcome.error)) from outcome.error
        return outcome.value

    async def _cached(self, work: Callable[[], Any]) -> Any:
        """Use the cache; the answer is the same without it, so its failure is only noted."""
        call = Call("cache", work, partial(run_in_thread, work))
        (outcome,) = (await self._done([call], None, Budget())).outcomes
        if not outcome.ok:
            self.note(f"degraded: {describe_failure(outcome.name, outcome.error)}")
        return outcome.value

    async def _done(
        self, calls: Sequence[Call], timeout: float | None, clock: Budget, on_error: OnError = "skip"
    ) -> FanOut[Any]:
        """Do things side by side, on threads or on the event loop, charging the call's budget."""
        if clock.remaining_seconds() == 0:
            late = BudgetExceededError("deadline", self.owner.deadline or 0)
            return FanOut([Outcome(call.name, error=late) for call in calls])
        settings: dict[str, Any] = {"names": [call.name for call in calls], "on_error": on_error}
        settings["max_concurrency"] = self.owner.max_concurrency or self.request.config.get("max_concurrency")

        def sync(context: Any) -> FanOut[Any]:
            with use_budget(self.budget, clock):
                return fan_out([call.sync for call in calls], timeout=timeout, **settings)

        async def native(context: Any) -> FanOut[Any]:
            with use_budget(self.budget, clock):
                return await afan_out([call.native for call in calls], timeout=timeout, **settings)

        step: Step[FanOut[Any]] = Step("side by side", sync, native)
        return await step


def _model_call(name: str, schema: Any, given: tuple[Any, ...], settings: dict[str, Any]) -> Call:
    both: tuple[Any, Any] = (text_call, atext_call)
    if schema is not str:
        both, given = (structured_call, astructured_call), (*given, schema)
    sync, native = (partial(function, *given, **settings) for function in both)
    return Call(name, sync, native)


class CallRetriever(BudgetedRetriever):
    """Base of the retrievers that do everything through a ``QueryCall``, in steps that are written once."""

    # The models' share of a deadline; a slow model would leave no time for the search that follows.
    model_share: ClassVar[float] = 0.75

    @abstractmethod
    def _steps(self, call: QueryCall) -> Logic[list[Document]]:
        """Find documents; a coroutine that awaits steps."""

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        call = QueryCall(self, query, request)
        return run(self._steps(call), call.budget)

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        call = QueryCall(self, query, request)
        return await arun(self._steps(call), call.budget)


class WrappingRetriever(CallRetriever):
    """Base of the retrievers that ask one other retriever, and perhaps a model.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
    """

    retriever: Runnable[str, list[Document]]

    @field_validator("retriever", mode="before")
    @classmethod
    def _retriever_is_runnable(cls, value: Any) -> Any:
        if isinstance(value, Runnable):
            return value
        name = type(value).__name__
        how = f" Wrap it: VectorRetriever(vectorstore={name})." if isinstance(value, VectorStore) else ""
        raise InvalidInputError(
            f"retriever is {name}; it must be a LangChain retriever (or another runnable from a string to "
            f"documents).{how}"
        )
