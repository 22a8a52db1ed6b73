"""One call of a retriever: what it asks for, what it may spend, what it notes, and all that it waits for."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, partial
from typing import Any, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel

from rag_kit.concurrency import Budget, afan_out, fan_out, use_budget
from rag_kit.concurrency.branches import FanOut, OnError, Outcome, describe_failure
from rag_kit.concurrency.bridge import acall_function, call_function, run_in_thread
from rag_kit.concurrency.notes import outages, write_note
from rag_kit.concurrency.steps import Logic, Step, acall_in_time, arun_logic, call_in_time, run_logic
from rag_kit.documents import Filter, with_provenance
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, RagKitError
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.models.chat import is_extractive
from rag_kit.models.identity import call_key
from rag_kit.models.query_vectors import give_up_vectors, share_vectors
from rag_kit.models.runnables import callbacks_below
from rag_kit.models.schema import UnreadableError, target_of
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.inner import acall_retriever, by_prepared_retriever, call_retriever

_log = logging.getLogger("rag_kit.retrieval")
T = TypeVar("T")
ALL = 2**31 - 1
"""The ``k`` of a call for whatever is found."""

_COPIED = ("tags", "metadata", "configurable")  # of a config, so that no child writes to the caller's
_OF_ONE_RUN = ("run_name", "run_id")  # of a config, not for a child


@dataclass(frozen=True)
class Limits:
    """Limits of a call, and what to do after a failure: the fields of a retriever with these names."""

    on_error: OnError = "raise"
    timeout: float | None = None
    max_concurrency: int | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    deadline: float | None = None
    cache: Any = None


_NO_LIMITS = Limits()


@cache
def _limit_names(owner: Any) -> tuple[str, ...]:
    """The limits that a class of retrievers has fields for."""
    return tuple(field.name for field in fields(Limits) if field.name in owner.model_fields)


@dataclass(frozen=True)
class Job:
    """One thing to do; without ``native``, its blocking form runs on a thread."""

    name: str
    sync: Callable[[], Any]
    native: Callable[[], Awaitable[Any]] | None = None

    @classmethod
    def of(cls, name: str, make: Callable[[], Logic[Any]]) -> Job:
        """Make the job that runs logic; the logic is made when its turn comes."""
        return cls(name, partial(run_logic, make), partial(arun_logic, make))

    def step(self, timeout: float | None = None) -> Step[Any]:
        """Make the step that does the job within a time limit."""
        native = self.native or partial(run_in_thread, self.sync)
        return Step(
            self.name,
            lambda _: call_in_time(self.sync, timeout, self.name),
            lambda _: acall_in_time(native, timeout, self.name),
        )


class Call:
    """One call of a retriever. Models, searches and other slow things are asked through it.

    Attributes:
        owner: The retriever.
        query: The text to search for.
        question: The user's own words, where the query was made of them; else the query.
        k: Most documents to return, or ``ALL`` for whatever is found.
        filter: The retriever's own filter AND the call's.
        config: The whole config; hand ``child(...)`` of it to what you call.
        arguments: The arguments that the class names in ``call_arguments``.
        notes: Notes for every result.
        extra: Fields for the last stage of every result.
        settled: The query alone is all there is to search for, and nothing went wrong.
    """

    def __init__(
        self,
        owner: Any,
        query: str,
        *,
        k: int,
        filter: Filter | None,
        config: RunnableConfig,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun | None,
        question: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.owner = owner
        self.query = query
        self.question = query if question is None else question
        self.k = k
        self.filter = filter
        self.config = config
        self.run_manager = run_manager
        self.arguments = arguments or {}
        self.notes: list[str] = []
        self.extra: dict[str, Any] = {}
        self.settled = False
        self._new_replies: dict[str, Any] = {}
        self._served = 0

    # What is asked for

    def fetch(self, minimum: int | None = None) -> int | None:
        """Return how many documents to ask an inner retriever for; ``None`` (its own number) where all are wanted."""
        return minimum or None if self.k == ALL else max(self.k, minimum or 0)

    def child(self, tag: str | None = None) -> RunnableConfig:
        """Return the whole config (``configurable``, tags, metadata...) for a child run of this one."""
        if self.run_manager is None:  # outside of any run of a retriever
            return self.config
        # As LangChain's patch_config, for a config that is known to be whole.
        config: dict[str, Any] = {**self.config, "callbacks": callbacks_below(self.run_manager, tag)}
        for key in _OF_ONE_RUN:
            config.pop(key, None)
        for key in _COPIED:
            if config.get(key) is not None:
                config[key] = config[key].copy()
        return cast("RunnableConfig", config)

    # What it may spend

    @cached_property
    def limits(self) -> Limits:
        """The bounds of the call."""
        owner_type: Any = type(self.owner)
        names = _limit_names(owner_type)
        return Limits(**{name: getattr(self.owner, name) for name in names}) if names else _NO_LIMITS

    @cached_property
    def budget(self) -> Budget:
        """Caps and counts the model calls and tokens of the call; its deadline is that of the whole."""
        limits = self.limits
        return Budget(max_calls=limits.max_calls, max_tokens=limits.max_tokens, deadline=limits.deadline)

    @contextmanager
    def bounds(self) -> Iterator[None]:
        """Apply the caps and the deadline to everything in the block."""
        if self.limits is _NO_LIMITS:
            yield
            return
        with use_budget(self.budget):
            yield

    @contextmanager
    def before_search(self) -> Iterator[None]:
        """Apply the models' share of the deadline to everything in the block."""
        whole, left = self.limits.deadline, self.budget.remaining_seconds()
        if whole is None or left is None:
            yield
            return
        with use_budget(Budget(deadline=max(0.0, left - whole * (1 - self.owner.model_share)))):
            yield

    # What it notes

    def note(self, text: str, *, unsearched: bool = False) -> None:
        """Add a note to every result and to the notes of the run."""
        if text not in self.notes:
            self.notes.append(text)
        write_note(text, unsearched=unsearched)

    def note_failure(
        self, name: str, error: BaseException | None, instead: str = "", *, unsearched: bool = False
    ) -> None:
        """Note that a part failed; log it if an outage begins."""
        text = f"degraded: {describe_failure(name, error)}{f'; {instead}' if instead else ''}"
        outages.failed(_log, f"{self.owner.get_name()} > {name}", text)
        self.note(text, unsearched=unsearched)

    def report(self) -> list[str]:
        """Return all notes, with a note on what the models were asked."""
        served = self._served
        if served or self.budget.calls:
            calls = self.budget.calls
            line = f"model: {calls} call{'' if calls == 1 else 's'}, {self.budget.tokens} tokens"
            cached = f", {served} answer{'' if served == 1 else 's'} from the cache"
            self.note(line + cached if served else line)
        return self.notes

    def with_stage(self, doc: Document, stage: str, rank: int, score: float | None, **more: Any) -> Document:
        """Copy a document, with one more stage of this retriever and query in its provenance."""
        names = {"retriever": self.owner.get_name(), "query": self.query}
        return with_provenance(doc, score=score, rank=rank, stage=stage, **names, **more)

    # What it waits for

    async def do(
        self, name: str, sync: Callable[[], T], native: Callable[[], Awaitable[T]] | None = None
    ) -> T:
        """Do one thing, within the time-out and the deadline; without ``native``, ``sync`` on a thread.

        Raises ``BranchError`` with its own error as the cause, or ``BudgetExceededError`` where no time is left.
        """
        return cast("T", value_or_raise(await self._outcome(Job(name, sync, native), self.limits.timeout)))

    async def call(self, name: str, func: Callable[..., Any], *arguments: Any) -> Any:
        """Call a user's function, which may be asynchronous, as ``do`` does."""
        native = partial(acall_function, func, *arguments)
        return await self.do(name, partial(call_function, func, *arguments), native)

    async def side_by_side(
        self, jobs: Sequence[Job], *, on_error: OnError = "skip", timed: bool = True
    ) -> list[Outcome[Any]]:
        """Do several jobs at the same time, each within the time-out, unless it keeps that itself (``timed=False``)."""
        timeout = self.limits.timeout if timed else None
        if len(jobs) == 1:
            outcome = await self._outcome(jobs[0], timeout)
            if on_error == "raise":
                value_or_raise(outcome)
            return [outcome]
        if self.budget.remaining_seconds() == 0:
            error = BudgetExceededError("deadline", self.limits.deadline or 0)
            return [Outcome(job.name, error=error) for job in jobs]
        width = self.limits.max_concurrency or self.config.get("max_concurrency")
        settings: dict[str, Any] = {"names": [job.name for job in jobs], "on_error": on_error}
        settings |= {"max_concurrency": width, "timeout": timeout}
        natives = [job.native or partial(run_in_thread, job.sync) for job in jobs]
        step: Step[FanOut[Any]] = Step(
            "side by side",
            lambda _: fan_out([job.sync for job in jobs], **settings),
            lambda _: afan_out(natives, **settings),
        )
        return (await step).outcomes

    async def _outcome(self, job: Job, timeout: float | None) -> Outcome[Any]:
        try:
            return Outcome(job.name, await job.step(timeout))
        except Exception as error:  # noqa: BLE001 - the caller decides
            return Outcome(job.name, error=error)

    async def attempt(
        self, name: str, steps: Logic[T], instead: str, *, unsearched: bool = False
    ) -> T | None:
        """Take steps that may fail; a failure is noted with what is done ``instead``, and gives ``None``.

        A wrong argument is raised always: it is the caller's mistake and would fail every time.
        """
        try:
            value = await steps
        except InvalidInputError:
            raise
        except Exception as error:
            if self.limits.on_error == "raise":
                raise
            cause = error.__cause__ if isinstance(error, BranchError) and error.__cause__ else error
            self.note_failure(name, cause, instead, unsearched=unsearched)
            return None
        self._worked(Outcome(name, value), unsearched=unsearched)
        return value

    # Retrievers

    async def search(
        self,
        retriever: Runnable[str, list[Document]],
        query: str,
        k: int | None,
        filter: Filter | None = None,
    ) -> list[Document]:
        """Ask a retriever, under the filter of the call if no other is given; raises as ``do``."""
        settings: dict[str, Any] = {"k": k, "filter": filter or self.filter}
        if self.question != self.query:
            settings["question"] = self.question
        job = _search_job(retriever.get_name(), retriever, query, self.child("retriever"), settings)
        return await self.do(job.name, job.sync, job.native)

    async def search_all(
        self,
        searches: Sequence[Search],
        k: int | None,
        *,
        first: int = 1,
        tag: str = "query",
        tasks: str = "searches",
        question: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> list[Search]:
        """Make searches side by side, each for ``k`` documents, under the filter of the call.

        Args:
            searches: What to search for, and the retriever of each.
            k: Documents of each search; ``None`` leaves it to the retriever.
            first: Number of the first search, of those of the whole call.
            tag: Tag of each child run, before its number.
            tasks: Name of the searches in an error.
            question: The user's words, for retrievers inside that read conditions in them; default: each query.
            arguments: Further arguments, for the kit's own retrievers.

        Returns:
            The searches that were answered, with their documents. What fails is noted, or raised
            (``on_error="raise"``); if all fail, that raises, unless there were searches before.
        """
        settings: dict[str, Any] = {"k": k, "filter": self.filter, **(arguments or {})}
        if question is not None:
            settings["question"] = question
        jobs = []
        for number, search in enumerate(searches, start=first):
            config = self.child(f"{tag}_{search.branch or number}")
            name = search.name or _label(search, number)
            jobs.append(_search_job(name, search.retriever, search.query, config, settings))
        asked = [(search.retriever, search.query) for search in searches]
        with share_vectors() if by_prepared_retriever(asked) else nullcontext():
            await self.prepare(asked)
            outcomes = await self.side_by_side(jobs, on_error=self.limits.on_error)
        failed = [outcome for outcome in outcomes if not outcome.ok]
        if failed and self.limits.on_error == "raise":
            value_or_raise(failed[0])
        if failed and len(failed) == len(outcomes) and first == 1:
            raise_all_failed(f"{tasks} of {self.owner.get_name()}", outcomes)
        answered = []
        for search, outcome in zip(searches, outcomes, strict=True):
            if self._worked(outcome, unsearched=True):
                name = search.name or search.retriever.get_name()  # type: ignore[union-attr]
                answered.append(replace(search, name=name, documents=outcome.value or []))
        return answered

    async def prepare(self, asked: Sequence[tuple[Any, str]]) -> None:
        """Do what searches of one retriever share; if this fails, each search meets the failure by itself.

        What takes too long here is not waited for again by the searches of a ``share_vectors``.
        """
        pairs = by_prepared_retriever(asked)
        if jobs := [Job.of("preparing the queries", partial(one.prepare, queries)) for one, queries in pairs]:
            for outcome, (_, queries) in zip(await self.side_by_side(jobs), pairs, strict=True):
                give_up_vectors(queries, outcome.error)

    def _worked(self, outcome: Outcome[Any], *, unsearched: bool) -> bool:
        """Tell whether a part worked; note its failure."""
        if outcome.error is not None:
            self.note_failure(outcome.name, outcome.error, unsearched=unsearched)
            return False
        part = f"{self.owner.get_name()} > {outcome.name}"
        if part in outages.failing:
            outages.worked(part)
        return True

    # Models

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
        """Ask a model once for each set of values, side by side; answers in the cache are used.

        Of more sets than ``max_calls`` allows, the first ones are asked. Values that the prompt does not know are left
        out; without one that it needs, ``InvalidInputError`` is raised. The answer must fit what the prompt says, else
        ``form`` (``str``: plain text); with ``form_holds`` always ``form``.
        """
        schema = form if form_holds else getattr(prompt, "result_schema", None) or form
        used = [{key: row[key] for key in row if key in prompt.input_variables} for row in values]
        outcomes, keys = await self._from_cache(model, prompt, used, schema, names)
        missing = [number for number, outcome in enumerate(outcomes) if outcome is None]
        cap = self.budget.max_calls
        room = len(missing) if cap is None else max(0, cap - self.budget.calls)
        jobs = [self._model_job(names[n], model, prompt, used[n], schema) for n in missing[:room]]
        with self.before_search():
            answers = await self.side_by_side(jobs, timed=False) if jobs else []
        answers += [Outcome(names[n], error=BudgetExceededError("calls", cap or 0)) for n in missing[room:]]
        for number, outcome in zip(missing, answers, strict=True):
            outcomes[number] = outcome
            if isinstance(outcome.error, InvalidInputError):
                raise outcome.error
            if (key := keys[number]) is not None and outcome.ok:
                value = outcome.value
                self._new_replies[key] = (
                    value.model_dump(mode="json") if isinstance(value, BaseModel) else value
                )
        return cast("list[Outcome[Any]]", outcomes)

    def _model_job(self, name: str, model: Any, prompt: Any, values: Any, schema: Any) -> Job:
        """Make the job of one model call; it applies the time-out itself, to each request."""
        functions: Any = (text_call, atext_call) if schema is str else (structured_call, astructured_call)
        arguments = (model, prompt, values) if schema is str else (model, prompt, values, schema)
        settings: dict[str, Any] = {"timeout": self.limits.timeout, "config": self.child("model")}
        return Job(name, *(partial(function, *arguments, **settings) for function in functions))

    def note_replies(self, outcomes: Sequence[Outcome[Any]], model: Any) -> list[Any]:
        """Return the values of a model's answers; failed ones are noted, or raised (``on_error="raise"``).

        What a model fails to write is not searched for; the embedded one, which cannot write, says so by itself.
        """
        for outcome in outcomes:
            if outcome.error is not None and self.limits.on_error == "raise":
                raise outcome.error
        failed = any(not outcome.ok for outcome in outcomes)
        unsearched = failed and not is_extractive(model)
        return [outcome.value for outcome in outcomes if self._worked(outcome, unsearched=unsearched)]

    async def keep_replies(self) -> None:
        """Write new answers that were of use to the cache; a useless one will be asked for again."""
        if self._new_replies:
            await self._use_cache(partial(self.limits.cache.put, self._new_replies))
            self._new_replies = {}

    async def _from_cache(
        self, model: Any, prompt: Any, values: Sequence[Mapping[str, Any]], schema: Any, names: Sequence[str]
    ) -> tuple[list[Outcome[Any] | None], list[str | None]]:
        """Return the answers in the cache, and the key of each set of values."""
        if (cache := self.limits.cache) is None:
            return [None] * len(values), [None] * len(values)
        config = self.child("model")
        keys = [call_key(model, prompt, row, schema, config) for row in values]
        stored = await self._use_cache(partial(cache.get, [key for key in keys if key])) or {}
        outcomes = [_stored(name, stored.get(key), schema) for name, key in zip(names, keys, strict=True)]
        self._served += sum(outcome is not None for outcome in outcomes)
        return outcomes, keys

    async def _use_cache(self, work: Callable[[], Any]) -> Any:
        """Call the cache; its failure is only noted, since answers do not depend on it."""
        outcome = await self._outcome(Job("cache", work), None)
        if outcome.error is not None:
            self.note_failure("cache", outcome.error)
        return outcome.value


def value_or_raise(outcome: Outcome[Any]) -> Any:
    """Return the value of an outcome, or raise its error, in a ``BranchError`` if it is not the kit's."""
    if isinstance(outcome.error, RagKitError):
        raise outcome.error
    if outcome.error is not None:
        raise BranchError(describe_failure(outcome.name, outcome.error)) from outcome.error
    return outcome.value


def failures_or_raise(outcomes: Sequence[Outcome[Any]], call: Call) -> list[Outcome[Any]]:
    """Return the failed outcomes; raise the first error if all failed, or with ``on_error="raise"``."""
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if failed and (len(failed) == len(outcomes) or call.limits.on_error == "raise"):
        value_or_raise(failed[0])
    return failed


def raise_all_failed(tasks: str, outcomes: Sequence[Outcome[Any]]) -> None:
    """Raise the error for tasks that all failed; a used-up budget as it is."""
    errors = [outcome.error for outcome in outcomes]
    for error in errors:
        if isinstance(error, BudgetExceededError):
            raise error
    lines = (describe_failure(outcome.name, outcome.error) for outcome in outcomes)
    raise BranchError(f"All {tasks} failed. {'; '.join(lines)}") from errors[0]


def _search_job(
    name: str, retriever: Any, query: str, config: RunnableConfig, settings: Mapping[str, Any]
) -> Job:
    """Make the job of a search by an inner retriever."""
    sync = partial(call_retriever, retriever, query, config=config, **settings)
    return Job(name, sync, partial(acall_retriever, retriever, query, config=config, **settings))


def _label(search: Search, number: int) -> str:
    """Name a search for the notes."""
    source, retriever = search.route.get("source"), cast("Runnable[Any, Any]", search.retriever)
    return f"{retriever.get_name()}, query {number}" if source is None else f"source {source!r}"


def _stored(name: str, value: Any, schema: Any) -> Outcome[Any] | None:
    """Read an answer from the cache; ``None`` if it does not fit the form that is asked for."""
    if value is None or schema is str:
        return Outcome(name, value) if isinstance(value, str) and value else None
    try:
        return Outcome(name, target_of(schema).accept(value))
    except UnreadableError:
        return None
