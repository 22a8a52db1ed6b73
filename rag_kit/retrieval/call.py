"""One call of a retriever: what it asks for, what it may spend, what it notes, and all that it waits for."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs, patch_config
from pydantic import BaseModel

from rag_kit.concurrency import Budget, afan_out, fan_out, use_budget
from rag_kit.concurrency.branches import FanOut, OnError, Outcome, describe_failure
from rag_kit.concurrency.bridge import acall_function, call_function, run_in_thread
from rag_kit.concurrency.notes import outages, write_note
from rag_kit.concurrency.steps import Logic, Step, both_forms, is_control_flow, timed_step
from rag_kit.documents import Filter, with_provenance
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, RagKitError
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.models.clients import give_up_vectors, share_vectors
from rag_kit.models.json_cache import call_key
from rag_kit.models.model_call import is_extractive, watch_stand_ins
from rag_kit.models.runnables import NOSTREAM, callbacks_below, is_kit_retriever
from rag_kit.models.schema import UnreadableError, target_of
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.inner import acall_retriever, call_retriever

_log = logging.getLogger("rag_kit.retrieval")
T = TypeVar("T")
ALL = 2**31 - 1
"""The ``k`` of a call that wants all documents that are found."""


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


@dataclass(frozen=True)
class Job:
    """One thing to do: a blocking function, and its coroutine function ``native``."""

    name: str
    sync: Callable[[], Any]
    native: Callable[[], Awaitable[Any]] | None = None

    @property
    def coroutine_function(self) -> Callable[[], Awaitable[Any]]:
        """The function to await on an event loop; without ``native`` it runs the blocking one on a thread."""
        return self.native or partial(run_in_thread, self.sync)


@dataclass(eq=False, repr=False)
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
        by_rule: The model asked last is the embedded one, which is no language model, or that one stood in for it.
        settled: The query alone is all there is to search for, and nothing went wrong.
    """

    owner: Any
    query: str
    _: KW_ONLY
    k: int
    filter: Filter | None
    config: RunnableConfig
    run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun | None
    question: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list, init=False)
    extra: dict[str, Any] = field(default_factory=dict, init=False)
    settled: bool = field(default=False, init=False)
    by_rule: bool = field(default=False, init=False)
    _new_replies: dict[str, Any] = field(default_factory=dict, init=False)
    _cache_hits: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.question = self.question or self.query

    def fetch(self, minimum: int | None = None) -> int | None:
        """Return how many documents to ask an inner retriever for: ``k`` of the call, but at least ``minimum``.

        ``None``, if the call wants all documents and gives no minimum, leaves the number to the inner retriever.
        """
        if self.k == ALL:
            return minimum or None
        return max(self.k, minimum or 0)

    def child(self, tag: str | None = None) -> RunnableConfig:
        """Return the config for a child run: that of the call, with callbacks that report under this run.

        The tag ``nostream`` keeps what models write for a retriever out of the stream of the answer.
        """
        if self.run_manager is None:  # outside of any run of a retriever
            return merge_configs(self.config, {"tags": [NOSTREAM]})
        return patch_config(self.config, callbacks=callbacks_below(self.run_manager, tag))

    @cached_property
    def limits(self) -> Limits:
        """The limits that the retriever's fields set; those for which it has no field keep their defaults."""
        names = type(self.owner).model_fields
        return Limits(
            **{each.name: getattr(self.owner, each.name) for each in fields(Limits) if each.name in names}
        )

    @cached_property
    def budget(self) -> Budget:
        """The budget of the call, which counts its model calls and tokens, and ends them at its deadline."""
        limits = self.limits
        return Budget(max_calls=limits.max_calls, max_tokens=limits.max_tokens, deadline=limits.deadline)

    def bounds(self) -> AbstractContextManager[Any]:
        """Return a context in which the call's caps and deadline hold and its model calls are counted, if need be."""
        limits = self.limits
        is_limited = (limits.max_calls, limits.max_tokens, limits.deadline) != (None, None, None)
        return use_budget(self.budget) if is_limited or self.owner.asks_models else nullcontext()

    def before_search(self) -> AbstractContextManager[Any]:
        """Return a context in which models must end early enough to leave the search its share of the deadline."""
        deadline = self.limits.deadline
        if deadline is None:
            return nullcontext()
        search_seconds = deadline * (1 - self.owner.model_share)
        return use_budget(Budget(deadline=max(0.0, (self.budget.remaining_seconds() or 0) - search_seconds)))

    def note(self, text: str, *, unsearched: bool = False) -> None:
        """Add a note to every result and to the notes of the run."""
        if text not in self.notes:
            self.notes.append(text)
        write_note(text, unsearched=unsearched)

    def note_failure(
        self, name: str, error: BaseException | None, instead: str = "", *, unsearched: bool = False
    ) -> None:
        """Note that a part of the call failed, and what was done ``instead``; log it if an outage begins."""
        text = f"degraded: {describe_failure(name, error)}"
        if instead:
            text += f"; {instead}"
        outages.failed(_log, f"{self.owner.get_name()} > {name}", text)
        self.note(text, unsearched=unsearched)

    def report(self) -> list[str]:
        """Return all notes, the last of them on the number of model calls, tokens and answers from the cache."""
        if self._cache_hits or self.budget.calls:
            note = f"model: {plural(self.budget.calls, 'call')}, {self.budget.tokens} tokens"
            if self._cache_hits:
                note += f", {plural(self._cache_hits, 'answer')} from the cache"
            self.note(note)
        return self.notes

    def with_stage(self, doc: Document, stage: str, rank: int, score: float | None, **more: Any) -> Document:
        """Copy a document, with one more stage of this retriever and query in its provenance."""
        names = {"retriever": self.owner.get_name(), "query": self.query}
        return with_provenance(doc, score=score, rank=rank, stage=stage, **names, **more)

    async def do(
        self, name: str, sync: Callable[[], T], native: Callable[[], Awaitable[T]] | None = None
    ) -> T:
        """Call ``sync``, or on an event loop await ``native``, within the time-out and the deadline of the call.

        Without ``native``, ``sync`` runs on a thread there. An error is raised as a ``BranchError`` with the error as
        its cause, or as a ``BudgetExceededError`` if no time is left.
        """
        return cast("T", value_or_raise(await self._outcome(Job(name, sync, native), self.limits.timeout)))

    async def call(self, name: str, func: Callable[..., Any], *arguments: Any) -> Any:
        """Call a user's function, which may be asynchronous, as ``do`` does."""
        native = partial(acall_function, func, *arguments)
        return await self.do(name, partial(call_function, func, *arguments), native)

    async def side_by_side(
        self, jobs: Sequence[Job], *, on_error: OnError = "skip", timed: bool = True
    ) -> list[Outcome[Any]]:
        """Do several jobs at the same time, each within the time-out; with ``timed=False`` jobs apply it themselves."""
        timeout = self.limits.timeout if timed else None
        if len(jobs) == 1:
            outcome = await self._outcome(jobs[0], timeout)
            if on_error == "raise":
                value_or_raise(outcome)
            return [outcome]
        deadline = self.limits.deadline
        if deadline is not None and self.budget.remaining_seconds() == 0:  # a fan-out would raise for all
            error = BudgetExceededError("deadline", deadline)
            return [Outcome(job.name, error=error) for job in jobs]
        settings: dict[str, Any] = {
            "names": [job.name for job in jobs],
            "on_error": on_error,
            "max_concurrency": self.limits.max_concurrency or self.config.get("max_concurrency"),
            "timeout": timeout,
        }
        step: Step[FanOut[Any]] = Step(  # in blocking code on threads, on an event loop as tasks
            "side by side",
            lambda _: fan_out([job.sync for job in jobs], **settings),
            lambda _: afan_out([job.coroutine_function for job in jobs], **settings),
        )
        return (await step).outcomes

    async def _outcome(self, job: Job, timeout: float | None) -> Outcome[Any]:
        """Do one job within a time limit; an error is returned in the outcome, not raised."""
        try:
            return Outcome(job.name, await timed_step(job.name, job.sync, job.coroutine_function, timeout))
        except Exception as error:
            if is_control_flow(error):
                raise
            return Outcome(job.name, error=error)  # the caller decides

    async def attempt(self, name: str, work: Logic[T], instead: str, *, unsearched: bool = False) -> T | None:
        """Await ``work``, which may fail; after a failure return ``None``, and note it and what is done ``instead``.

        With ``on_error="raise"`` the failure is raised. So is an ``InvalidInputError`` always: it would come each time.
        """
        try:
            value = await work
        except Exception as error:
            is_final = isinstance(error, InvalidInputError) or is_control_flow(error)
            if is_final or self.limits.on_error == "raise":
                raise
            cause = error.__cause__ if isinstance(error, BranchError) and error.__cause__ else error
            self.note_failure(name, cause, instead, unsearched=unsearched)
            return None
        self._note_outcome(Outcome(name, value), unsearched=unsearched)
        return value

    async def search(
        self,
        retriever: Runnable[str, list[Document]],
        query: str,
        k: int | None,
        filter: Filter | None = None,
    ) -> list[Document]:
        """Ask a retriever for ``k`` documents under a filter, by default the call's; errors are those of ``do``."""
        settings: dict[str, Any] = {"k": k, "filter": filter or self.filter}
        if self.question != self.query:
            settings["question"] = self.question
        job = _search_job(retriever.get_name(), retriever, query, self.child("retriever"), settings)
        documents: list[Document] = value_or_raise(await self._outcome(job, self.limits.timeout))
        return documents

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
            label = search.name or f"{search.retriever.get_name()}, query {number}"  # type: ignore[union-attr]
            if "source" in search.route and not search.name:
                label = f"source {search.route['source']!r}"
            jobs.append(_search_job(label, search.retriever, search.query, config, settings))
        groups = group_queries([(search.retriever, search.query) for search in searches])
        with share_vectors() if groups else nullcontext():
            await self.prepare(groups)
            outcomes = await self.side_by_side(jobs, on_error=self.limits.on_error)
        failed = [outcome for outcome in outcomes if not outcome.ok]
        if failed and self.limits.on_error == "raise":
            value_or_raise(failed[0])
        if failed and len(failed) == len(outcomes) and first == 1:  # no searches were made before these
            for outcome in outcomes:
                if isinstance(outcome.error, BudgetExceededError):
                    raise outcome.error
            lines = "; ".join(describe_failure(outcome.name, outcome.error) for outcome in outcomes)
            first_error = outcomes[0].error
            raise BranchError(f"All {tasks} of {self.owner.get_name()} failed. {lines}") from first_error
        answered = []
        for search, outcome in zip(searches, outcomes, strict=True):
            self._note_outcome(outcome, unsearched=True)
            if outcome.ok:
                # the provenance names the retriever alone; the label of a job also numbers its searches
                name = search.name or search.retriever.get_name()  # type: ignore[union-attr]
                answered.append(replace(search, name=name, documents=outcome.value or []))
        return answered

    async def prepare(self, groups: Sequence[tuple[Any, list[str]]]) -> None:
        """Have each retriever prepare its queries together, such as embed them in one request.

        A failure is not raised: each search then meets it by itself. After a time-out the searches inside the same
        ``share_vectors`` block do not wait for the vectors again.
        """
        name = "preparing the queries"
        jobs = [Job(name, *both_forms(retriever.prepare, queries)) for retriever, queries in groups]
        outcomes = await self.side_by_side(jobs) if jobs else []
        for outcome, (_, queries) in zip(outcomes, groups, strict=True):
            give_up_vectors(queries, outcome.error)

    def _note_outcome(self, outcome: Outcome[Any], *, unsearched: bool) -> None:
        """Note the failure of a part of the call, or record that its outage is over."""
        if outcome.error is not None:
            self.note_failure(outcome.name, outcome.error, unsearched=unsearched)
        elif (part := f"{self.owner.get_name()} > {outcome.name}") in outages.failing:
            outages.worked(part)

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

        If ``max_calls`` allows fewer calls than there are sets, the first sets are asked. Values that are no variables
        of the prompt are left out; one that is lacking raises ``InvalidInputError``. The answer must fit the prompt's
        own schema, else ``form`` (``str``: plain text); with ``form_holds`` it must fit ``form`` in any case.
        """
        schema = form if form_holds else getattr(prompt, "result_schema", None) or form
        used_values = [{key: row[key] for key in row if key in prompt.input_variables} for row in values]
        outcomes, cache_keys = await self._from_cache(model, prompt, used_values, schema, names)
        missing = [position for position, outcome in enumerate(outcomes) if outcome is None]
        max_calls = self.budget.max_calls
        calls_left = len(missing) if max_calls is None else max(0, max_calls - self.budget.calls)
        asked, refused = missing[:calls_left], missing[calls_left:]
        jobs = [self._model_job(names[n], model, prompt, used_values[n], schema) for n in asked]
        with self.before_search(), watch_stand_ins() as stand_ins:
            answers = await self.side_by_side(jobs, timed=False) if jobs else []
        self.by_rule = bool(stand_ins) or is_extractive(model)
        for position in refused:
            answers.append(Outcome(names[position], error=BudgetExceededError("calls", max_calls or 0)))
        for position, outcome in zip(missing, answers, strict=True):
            outcomes[position] = outcome
            if isinstance(outcome.error, InvalidInputError):
                raise outcome.error
            key, reply = cache_keys[position], outcome.value
            if key is not None and outcome.ok and not stand_ins:  # a stand-in's reply is not this model's
                if isinstance(reply, BaseModel):
                    reply = reply.model_dump(mode="json", warnings=False)
                self._new_replies[key] = reply
        return cast("list[Outcome[Any]]", outcomes)

    def _model_job(self, name: str, model: Any, prompt: Any, values: Any, schema: Any) -> Job:
        """Make the job of one model call, for text or an object; the call applies the time-out to each request."""
        functions: Any = (text_call, atext_call) if schema is str else (structured_call, astructured_call)
        arguments = (model, prompt, values) if schema is str else (model, prompt, values, schema)
        settings: dict[str, Any] = {"timeout": self.limits.timeout, "config": self.child("model")}
        return Job(name, *(partial(function, *arguments, **settings) for function in functions))

    def note_replies(self, outcomes: Sequence[Outcome[Any]], model: Any) -> list[Any]:
        """Return the values of a model's answers; failed ones are noted, or raised (``on_error="raise"``).

        A failure counts as ``unsearched``, since the answer would have led to searches. Not so one of the embedded
        model, which has written a note of its own.
        """
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors and self.limits.on_error == "raise":
            raise errors[0]
        asked_embedded_model = is_extractive(model)
        if self.by_rule and not asked_embedded_model:
            stands_in = "'extractive', which is no language model, stood in for the model"
            self.note(f"degraded: {outcomes[0].name}: {stands_in}")
        for outcome in outcomes:
            self._note_outcome(outcome, unsearched=not asked_embedded_model)
        return [outcome.value for outcome in outcomes if outcome.ok]

    async def keep_replies(self) -> None:
        """Write the new answers to the cache; to be called when they were of use, else they are asked for again."""
        if self._new_replies:
            await self._use_cache(partial(self.limits.cache.put, self._new_replies))
            self._new_replies = {}

    async def _from_cache(
        self, model: Any, prompt: Any, values: Sequence[Mapping[str, Any]], schema: Any, names: Sequence[str]
    ) -> tuple[list[Outcome[Any] | None], list[str | None]]:
        """Return the cached answer for each set of values, and the key of each; ``None`` where there is none."""
        if (cache := self.limits.cache) is None:
            return [None] * len(values), [None] * len(values)
        config = self.child("model")
        keys = [call_key(model, prompt, row, schema, config) for row in values]
        stored = await self._use_cache(partial(cache.get, [key for key in keys if key])) or {}
        outcomes = [_cached(name, stored.get(key), schema) for name, key in zip(names, keys, strict=True)]
        self._cache_hits += sum(outcome is not None for outcome in outcomes)
        return outcomes, keys

    async def _use_cache(self, work: Callable[[], Any]) -> Any:
        """Read or write the cache; a failure is noted and gives ``None``, since answers do not depend on it."""
        outcome = await self._outcome(Job("cache", work), None)
        if outcome.error is not None:
            self.note_failure("cache", outcome.error)
        return outcome.value


def value_or_raise(outcome: Outcome[Any]) -> Any:
    """Return the value of an outcome, or raise its error; one that is not the kit's becomes a ``BranchError``."""
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


def group_queries(searches: Sequence[tuple[Any, str]]) -> list[tuple[Any, list[str]]]:
    """Group the queries of ``(retriever, query)`` pairs by the retriever that prepares them together.

    A query is left out if its retriever does not search together, or if it is the only one of its retriever.
    """
    if len(searches) < 2:
        return []
    retrievers: dict[int, Any] = {}  # by `id`, as a retriever cannot be hashed
    queries: dict[int, dict[str, None]] = {}  # by the same; each query once
    for retriever, query in searches:
        while isinstance(retriever, RunnableBindingBase):
            retriever = retriever.bound
        if is_kit_retriever(retriever) and retriever.searches_together and query.strip():
            retrievers[id(retriever)] = retriever
            queries.setdefault(id(retriever), {})[query] = None
    return [(retrievers[key], list(texts)) for key, texts in queries.items() if len(texts) > 1]


def _search_job(
    name: str, retriever: Any, query: str, config: RunnableConfig, settings: Mapping[str, Any]
) -> Job:
    """Make the job of a search by an inner retriever; ``settings`` are ``k``, ``filter`` and more.

    The kit's own retrievers take these as they are; for others `call_retriever` finds out which they take.
    """
    forms: Any = (retriever.invoke, retriever.ainvoke)
    if not is_kit_retriever(retriever):
        forms = (partial(call_retriever, retriever), partial(acall_retriever, retriever))
    return Job(name, *(partial(form, query, config=config, **settings) for form in forms))


def plural(count: int, noun: str) -> str:
    """Write a number with its noun: ``(1, "call") -> "1 call"``, ``(2, "call") -> "2 calls"``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _cached(name: str, value: Any, schema: Any) -> Outcome[Any] | None:
    """Make an outcome of an answer from the cache; ``None`` if there is none, or it does not fit the ``schema``."""
    if value is None or schema is str:
        return Outcome(name, value) if isinstance(value, str) and value else None
    try:
        return Outcome(name, target_of(schema).accept(value))
    except UnreadableError:
        return None
