"""Asking models on behalf of a query: their prompts, what a call may spend, its notes, and all that it waits for."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar, cast

from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel, BeforeValidator, ValidationInfo, field_validator

from rag_kit.concurrency import Budget, afan_out, fan_out, use_budget
from rag_kit.concurrency.branches import FanOut, OnError, Outcome, describe_failure, log_degraded
from rag_kit.concurrency.bridge import acall_function, call_function, run_in_thread
from rag_kit.concurrency.budget import check_count
from rag_kit.concurrency.steps import Logic, Step, arun, run
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, RagKitError
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.models.identity import call_key
from rag_kit.models.schema import UnreadableError, target_of
from rag_kit.prompts import load_prompt
from rag_kit.prompts.format import LANGUAGES
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import (
    BranchingRetriever,
    Seconds,
    acall_retriever,
    call_retriever,
    groups_of,
    raise_all_failed,
)
from rag_kit.retrieval.fusion import Search
from rag_kit.text import detect_language

_log = logging.getLogger(__name__)
T = TypeVar("T")


class LanguagePrompts:
    """A prompt for each language; read now, as no call may wait for files.

    ``prompt`` is one prompt, or one a language (``{"en": ..., "zh": ...}``), with the variables that ``needs`` names;
    ``None`` for the kit's own of that ``name``. ``language="auto"`` goes by the question.
    """

    def __init__(self, name: str, prompt: Any, needs: Sequence[str], language: str = "auto") -> None:
        if language not in ("auto", *LANGUAGES):
            raise InvalidInputError(f"language={language!r} was given; allowed: 'auto', 'en', 'zh'.")
        if prompt is None:
            prompt = {tongue: load_prompt(name, language=tongue) for tongue in LANGUAGES}
        self.language = language
        self._prompts = dict(prompt) if isinstance(prompt, Mapping) else dict.fromkeys(LANGUAGES, prompt)
        for tongue, template in (self._prompts or {"": None}).items():
            takes = template.input_variables if isinstance(template, BasePromptTemplate) else None
            if tongue not in LANGUAGES or takes is None or not {*needs} <= {*takes}:
                raise InvalidInputError(
                    f"prompt holds {type(template).__name__} for {tongue!r}, which takes {takes}; it must be a "
                    f"LangChain prompt that takes {', '.join(needs)}, or one for each of: {', '.join(LANGUAGES)}."
                )

    def choose(self, question: str) -> Any:
        """The prompt in the language of a question, else in the one there is."""
        tongue = detect_language(question) if self.language == "auto" else self.language
        return self._prompts.get(tongue) or next(iter(self._prompts.values()))


def check_model(llm: Any) -> Runnable[Any, Any]:
    """See that something can be asked as a chat model."""
    if not isinstance(llm, Runnable) or isinstance(llm, BaseRetriever):
        raise InvalidInputError(
            f"llm is {type(llm).__name__}; it must be a chat model (or another runnable that takes messages), and "
            "from_llm takes it first."
        )
    return llm


@dataclass(frozen=True)
class Call:
    """One thing to do, in both forms."""

    name: str
    sync: Callable[[], Any]
    native: Callable[[], Awaitable[Any]]


class QueryCall:
    """The state of one call of a retriever; models, searches and other slow things are asked through it.

    ``notes`` go to every result, ``extra`` into its last stage. ``settled``: the query alone is all there is to search
    for, and nothing went wrong.
    """

    def __init__(self, owner: CallRetriever, query: str, request: Request) -> None:
        self.owner = owner
        self.query = query
        self.request = request
        self.budget = Budget(max_calls=owner.max_calls, max_tokens=owner.max_tokens)
        self._clock = Budget(deadline=owner.deadline)
        share = None if owner.deadline is None else owner.deadline * owner.model_share
        self._model_clock = Budget(deadline=share)
        self._new: dict[str, Any] = {}
        self._served = 0
        self.notes: list[str] = []
        self.extra: dict[str, Any] = {}
        self.settled = False

    def note(self, text: str) -> None:
        """Add a note to every result."""
        if text not in self.notes:
            self.notes.append(text)

    def report(self) -> list[str]:
        """All notes, with what the models were asked; what failed is logged, too."""
        calls, served = self.budget.calls, self._served
        if calls or served:
            line = f"model: {calls} call{'' if calls == 1 else 's'}, {self.budget.tokens} tokens"
            cached = f", {served} answer{'' if served == 1 else 's'} from the cache"
            self.note(line + cached if served else line)
        for note in self.notes:
            if note.startswith("degraded"):
                log_degraded(_log, self.owner.get_name(), note)
        return self.notes

    async def do(
        self, name: str, sync: Callable[[], T], native: Callable[[], Awaitable[T]] | None = None
    ) -> T:
        """Do one thing, within the time-out and the deadline; without ``native``, ``sync`` on a thread.

        Raises ``BranchError`` with its own error as the cause, or ``BudgetExceededError`` where no time is left.
        """
        result = await self.do_all([Call(name, sync, native or partial(run_in_thread, sync))])
        return cast("T", self.value_or_raise(result.outcomes[0]))

    async def call(self, name: str, func: Callable[..., Any], *arguments: Any) -> Any:
        """Call a user's function, which may be asynchronous; raises as ``do``."""
        native = partial(acall_function, func, *arguments)
        return await self.do(name, partial(call_function, func, *arguments), native)

    async def do_all(self, calls: Sequence[Call], on_error: OnError = "skip") -> FanOut[Any]:
        """Do several things side by side; each has the time-out, and all of them what the deadline leaves."""
        return await self._run_side_by_side(calls, self.owner.timeout, self._clock, on_error)

    async def do_first(self, calls: Sequence[Call]) -> FanOut[Any]:
        """As ``do_all``, within the models' share of the deadline, for what comes before the search."""
        return await self._run_side_by_side(calls, self.owner.timeout, self._model_clock)

    async def search(
        self, retriever: Runnable[str, list[Document]], query: str, k: int | None, filter: Any = None
    ) -> list[Document]:
        """Ask a retriever, under the filter of the call if no other is given; raises as ``do``."""
        settings: dict[str, Any] = {"config": self.request.child("retriever"), "k": k}
        settings["filter"] = filter or self.request.filter
        sync = partial(call_retriever, retriever, query, **settings)
        native = partial(acall_retriever, retriever, query, **settings)
        return await self.do(retriever.get_name(), sync, native)

    async def search_all(
        self, retriever: Any, searches: Sequence[Search], k: int | None, *, first: int = 1
    ) -> list[Search]:
        """Search side by side, each search for ``k`` documents; what fails is noted, or raised (``on_error="raise"``).

        If all fail, that raises, unless there were searches before (``first``: number of the first one).
        """
        targets = [search.retriever or retriever for search in searches]
        groups = groups_of([(target, search.query) for target, search in zip(targets, searches, strict=True)])
        calls = []
        rows = zip(searches, targets, groups, strict=True)
        for number, (search, target, group) in enumerate(rows, start=first):
            config = self.request.child(f"query_{number}")
            settings: dict[str, Any] = {"config": config, "k": k, "filter": self.request.filter}
            sync = partial(group.call, call_retriever, target, search.query, **settings)
            native = partial(group.acall, acall_retriever, target, search.query, **settings)
            source = search.route.get("source")
            name = f"{target.get_name()}, query {number}" if source is None else f"source {source!r}"
            calls.append(Call(name, sync, native))
        result = await self.do_all(calls, on_error=self.owner.on_error)
        if first == 1 and not result.values:
            raise_all_failed(f"searches of {self.owner.get_name()}", result)
        for line in result.degradations:
            self.note(f"degraded: {line}")
        return [
            replace(search, name=target.get_name(), documents=outcome.value or [])
            for search, target, outcome in zip(searches, targets, result.outcomes, strict=True)
            if outcome.ok
        ]

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

        Of more sets than ``max_calls`` allows, the first ones are asked. Values that the prompt does not know are left
        out; without one that it needs, ``InvalidInputError`` is raised. The answer must fit what the prompt says, else
        ``form`` (``str``: plain text); with ``form_holds`` always ``form``.
        """
        schema = form if form_holds else getattr(prompt, "result_schema", None) or form
        used_values = [{key: row[key] for key in row if key in prompt.input_variables} for row in values]
        config = self.request.child("model")
        outcomes: list[Outcome[Any] | None] = [None] * len(values)
        keys: list[str | None] = [None] * len(values)
        if (cache := getattr(self.owner, "cache", None)) is not None:
            keys = [call_key(model, prompt, variables_used, schema, config) for variables_used in used_values]
            stored = await self._cached(partial(cache.get, [key for key in keys if key])) or {}
            outcomes = [
                _stored_outcome(name, stored.get(key), schema) for name, key in zip(names, keys, strict=True)
            ]
        missing = [at for at, outcome in enumerate(outcomes) if outcome is None]
        self._served += len(outcomes) - len(missing)
        cap = self.budget.max_calls
        room = len(missing) if cap is None else max(0, cap - self.budget.calls)
        functions: Any = (text_call, atext_call) if schema is str else (structured_call, astructured_call)
        form_of = () if schema is str else (schema,)
        settings: dict[str, Any] = {"timeout": self.owner.timeout, "config": config}
        calls = []
        for at in missing[:room]:
            arguments = model, prompt, used_values[at], *form_of
            sync, native = (partial(function, *arguments, **settings) for function in functions)
            calls.append(Call(names[at], sync, native))
        # each model call has the time-out itself
        answers = (await self._run_side_by_side(calls, None, self._model_clock)).outcomes
        answers += [Outcome(names[at], error=BudgetExceededError("calls", cap or 0)) for at in missing[room:]]
        for at, outcome in zip(missing, answers, strict=True):
            outcomes[at] = outcome
            if isinstance(outcome.error, InvalidInputError):
                raise outcome.error
            if (key := keys[at]) is not None and outcome.ok:
                value = outcome.value
                self._new[key] = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        return cast("list[Outcome[Any]]", outcomes)

    async def keep_answers(self) -> None:
        """Write new answers to the cache, now that they were of use; a useless one is to be asked for again."""
        if self._new:
            await self._cached(partial(self.owner.cache.put, self._new))  # type: ignore[attr-defined]
            self._new = {}

    async def attempt(self, name: str, steps: Logic[T], instead: str) -> T | None:
        """Take steps that may fail; ``None`` if so, which is noted (``on_error="skip"``), with what is done instead.

        A wrong argument is raised always: it is the caller's mistake and would fail every time.
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

    def failures_or_raise(self, outcomes: Sequence[Outcome[Any]]) -> list[Outcome[Any]]:
        """Those that failed; raises the first one's error if all did, or with ``on_error="raise"``."""
        failed = [outcome for outcome in outcomes if not outcome.ok]
        if failed and (len(failed) == len(outcomes) or self.owner.on_error == "raise"):
            self.value_or_raise(failed[0])
        return failed

    @staticmethod
    def value_or_raise(outcome: Outcome[Any]) -> Any:
        """The value of an outcome; if there is none, raises its error, in a ``BranchError`` if it is not the kit's."""
        if isinstance(outcome.error, RagKitError):
            raise outcome.error
        if outcome.error is not None:
            raise BranchError(describe_failure(outcome.name, outcome.error)) from outcome.error
        return outcome.value

    async def _cached(self, work: Callable[[], Any]) -> Any:
        """Use the cache; the answer is the same without it, so its failure is only noted."""
        call = Call("cache", work, partial(run_in_thread, work))
        (outcome,) = (await self._run_side_by_side([call], None, Budget())).outcomes
        if not outcome.ok:
            self.note(f"degraded: {describe_failure(outcome.name, outcome.error)}")
        return outcome.value

    async def _run_side_by_side(
        self, calls: Sequence[Call], timeout: float | None, clock: Budget, on_error: OnError = "skip"
    ) -> FanOut[Any]:
        """Run calls concurrently, on threads or on the event loop.

        ``timeout`` limits each of them, ``clock`` all together, ``self.budget`` the model calls and tokens they use.
        """
        if clock.remaining_seconds() == 0:
            error = BudgetExceededError("deadline", self.owner.deadline or 0)
            return FanOut([Outcome(call.name, error=error) for call in calls])
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


def _stored_outcome(name: str, value: Any, schema: Any) -> Outcome[Any] | None:
    """An answer out of the cache; what does not fit the form that is asked for is asked for anew."""
    if value is None or schema is str:
        return Outcome(name, value) if isinstance(value, str) and value else None
    try:
        return Outcome(name, target_of(schema).accept(value))
    except UnreadableError:
        return None


def _check_cap(value: Any, info: ValidationInfo) -> Any:
    """Refuse what is not a count, before Pydantic takes True for 1 and a text for its number."""
    check_count(str(info.field_name), value)
    return value


Cap = Annotated[int | None, BeforeValidator(_check_cap)]


class CallRetriever(BranchingRetriever):
    """Base of the retrievers that do everything through a ``QueryCall``, in steps that are written once."""

    # The models' share of a deadline; a slow model would leave no time for the search that follows.
    model_share: ClassVar[float] = 0.75

    max_calls: Cap = None
    max_tokens: Cap = None
    deadline: Seconds = None

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
    """Base of the retrievers that ask one other retriever, and perhaps a model."""

    retriever: Runnable[str, list[Document]]

    @field_validator("retriever", mode="before")
    @classmethod
    def _retriever_is_runnable(cls, value: Any) -> Any:
        if isinstance(value, Runnable):
            return value
        name = type(value).__name__
        hint = f" Wrap it: VectorRetriever(vectorstore={name})." if isinstance(value, VectorStore) else ""
        raise InvalidInputError(
            f"retriever is {name}; it must be a LangChain retriever (or another runnable from a string to "
            f"documents).{hint}"
        )
