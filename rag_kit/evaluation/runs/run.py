"""One run: what is to be done, done by workers that ask the pipeline and workers that score what it gave."""

from __future__ import annotations

import asyncio
import platform
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook

from rag_kit._redact import error_text, redact
from rag_kit.concurrency import Budget, afan_out, use_budget
from rag_kit.concurrency.branch import current_branch
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.budget import charge_call, charge_tokens, current_budget
from rag_kit.concurrency.seconds import check_seconds
from rag_kit.errors import (
    BranchError,
    BranchTimeoutError,
    BudgetExceededError,
    InvalidInputError,
    MissingExtraError,
)
from rag_kit.evaluation._files import as_path
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.asking import MakeInput, asker, default_name, pipeline_hash, resolve
from rag_kit.evaluation.runs.metering import Prices, Progress, Reporter, Usage
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import (
    FORMAT,
    Known,
    Record,
    Row,
    RunFolder,
    clean,
    digest,
    given_digest,
    read_manifest,
)
from rag_kit.evaluation.scorers import default_metrics, get_metrics
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.judge import Judge

_PACKAGES = (
    "rag-kit", "ragas", "ir-measures", "langchain-core", "langgraph", "langchain-openai", "openai", "numpy",
    "sacrebleu", "rouge-score", "rapidfuzz", "datacompy",
)  # fmt: skip
_MAX_HASHES = 16


@dataclass
class Task:
    """One example of a run.

    Args:
        example: The example.
        row: Its row; ``None`` until the pipeline has been asked.
        given: The row's `given_digest`.
        missing: Metrics that are to be computed.
    """

    example: Example
    row: Row | None = None
    given: str = ""
    missing: list[Metric] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether nothing is to be computed."""
        return self.row is not None and not self.missing


@dataclass
class Run:
    """A run of ``evaluate``, whose arguments these are.

    Made, it has read files and imported packages, so it is made on a thread.

    Raises:
        InvalidInputError: If an argument is not allowed.
    """

    pipeline: Any
    dataset: Any
    metrics: Any
    judge: Judge | None
    out: Path | str | None
    name: str | None
    version: str | None
    max_concurrency: int
    timeout: float | None
    metric_timeout: float | None
    caps: dict[str, Any]
    prices: Any
    progress: bool | Callable[[Progress], None]
    make_input: MakeInput | None
    retry_errors: bool

    def __post_init__(self) -> None:
        self._check()
        self.pipeline = resolve(self.pipeline)
        self.ask = asker(self.pipeline, self.make_input)
        self.name = default_name(self.pipeline) if self.name is None else self.name
        if isinstance(self.dataset, (str, Path)):
            self.dataset = EvaluationSet.load(self.dataset)
        self.examples = take_examples(self.dataset)
        self.metrics = default_metrics(self.examples) if self.metrics is None else get_metrics(self.metrics)
        self.prices = Prices.of(self.prices)
        self.folder: RunFolder | None = None
        self.asked = self.scored = self.finished = self.calls = self.tokens = 0
        self.money: float | None = 0.0 if self.prices.table else None
        self.stopped: str | None = None
        self._pending: list[Record] = []

    def _check(self) -> None:
        for what, value in (("name", self.name), ("version", self.version)):
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise InvalidInputError(f"{what} is {value!r:.80}; give a text that is not blank")
        width = self.max_concurrency
        if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= 10_000:
            raise InvalidInputError(f"max_concurrency is {width!r:.80}; give a whole number from 1 to 10000")
        if not isinstance(self.progress, bool) and not callable(self.progress):
            raise InvalidInputError(f"progress is {self.progress!r:.80}; give True, False or a function")
        if self.judge is not None and not hasattr(self.judge, "fingerprint"):
            kind = type(self.judge).__name__
            raise InvalidInputError(
                f"judge is a {kind}; give a Judge (of a name or a model: Judge(...)), or None"
            )
        if self.out is not None:
            self.out = as_path(self.out, "out")
        check_seconds("timeout", self.timeout)
        check_seconds("metric_timeout", self.metric_timeout)
        Budget(**self.caps)  # refuses what makes no sense

    async def results(self) -> Results:
        """Do what is missing, save it, and return all.

        Raises:
            ResultsLockedError: If another run writes to the folder.
            InvalidInputError: If the folder holds something else.
        """
        if self.out is not None:
            self.folder = await run_in_thread(RunFolder, Path(self.out))
        try:
            await run_in_thread(self._plan)
            return await self._work()
        finally:
            if self.folder is not None:
                await _to_the_end(self.folder.close)

    def _plan(self) -> None:
        """Find what is missing beside what the folder holds, and write the manifest of a running run."""
        self.known = Known() if self.folder is None else self.folder.known
        judge = None if self.judge is None else clean(self.judge.fingerprint())
        before: dict[str, Any] = {}
        if self.folder is not None:
            with suppress(InvalidInputError):  # none yet, or a damaged one
                before = read_manifest(self.folder.path)
        self._identify(before.get("pipeline") or {})
        self.keys = {metric.name: _metric_key(metric, judge) for metric in self.metrics}
        self.tasks = [self._task(example) for example in self.examples]
        self.reused = self.finished = sum(task.done for task in self.tasks)
        self.manifest = self._manifest(judge, before)
        if self.folder is not None:
            self.folder.write_manifest({**self.manifest, "status": "running"})
            self.folder.save(self.rows)

    def _identify(self, before: Mapping[str, Any]) -> None:
        """The pipeline's key: that of the last run where it is the same one.

        What it looks like after a run is noted too: one that counts in a field of its own is the same nevertheless.
        """
        now, hashes = self._hash(), before.get("hashes")
        same = [before.get("name"), before.get("version")] == [self.name, self.version]
        known = same and isinstance(hashes, list) and now in hashes and isinstance(before.get("key"), str)
        self.key = before["key"] if known else digest([self.name, self.version, now])
        self.hashes = hashes if known and hashes else [now]

    def _hash(self) -> str:
        return "" if self.version is not None else pipeline_hash([self.pipeline, self.make_input])

    def _output_key(self, example: Example) -> str:
        whole = self.make_input is not None  # may use any field
        asked = example.to_json() if whole else {"question": example.question, "history": example.history}
        return f"{self.key}:{digest(asked)}"

    def _task(self, example: Example) -> Task:
        task = Task(example)
        known = self.known.outputs.get((example.id, self._output_key(example)))
        if known is not None and (known.output.error is None or not self.retry_errors):
            self._take(task, known.output, dict(known.usage))
        return task

    def _take(self, task: Task, output: Output, usage: dict[str, Usage]) -> Row:
        """Make the task's row of an output and of the cells that are known for this same output."""
        row = Row(task.example, output, {}, usage, {"output": self._output_key(task.example)})
        task.row, task.given = row, given_digest(task.example, output)
        self.known.fill(row, self.keys, task.given, errors=not self.retry_errors)
        task.missing = [metric for metric in self.metrics if metric.name not in row.cells]
        return row

    @property
    def rows(self) -> list[Row]:
        """The rows that there are, in the order of the set, each with its cells in the order of the metrics."""
        rows = [task.row for task in self.tasks if task.row is not None]
        for row in rows:
            row.cells = {name: row.cells[name] for name in self.keys if name in row.cells}
            row.keys = {name: row.keys[name] for name in ("output", *row.cells)}
            row.usage = {name: row.usage[name] for name in ("pipeline", *row.cells) if name in row.usage}
        return rows

    async def _work(self) -> Results:
        assert self.name is not None
        reporter = Reporter(self.progress, self.name, len(self.tasks), self.reused)
        status = "failed"
        try:
            await self._work_on(reporter)
            status = "stopped" if self.stopped else "complete"
        except (asyncio.CancelledError, KeyboardInterrupt):
            status = "interrupted"
            raise
        finally:
            reporter.close()
            await _to_the_end(partial(self._end, status))
        return Results(self.name, self.rows, tuple(self.keys), self.manifest, len(self.examples))

    async def _work_on(self, reporter: Reporter) -> None:
        """Work until everything is done, a cap is reached (``stopped`` says which), or something else ends it.

        The queue between those who ask and those who score is bounded, and as many rows are scored at a time as the
        judge, which has a limit of its own, needs never to wait for work.
        """
        scorers = max(self.max_concurrency, getattr(self.judge, "max_concurrency", 1))
        queue: asyncio.Queue[Task | None] = asyncio.Queue(scorers)
        todo: Iterator[Task] = iter([task for task in self.tasks if not task.done])
        asking = self.max_concurrency
        self._writing, self._outer = asyncio.Lock(), current_budget()

        async def ask_all() -> None:
            nonlocal asking
            for task in todo:
                if self.stopped or (task.row is None and not await self._ask(task)):
                    break
                await queue.put(task)
            asking -= 1
            for _ in range(0 if asking else scorers):
                await queue.put(None)

        async def score_all() -> None:
            while (task := await queue.get()) is not None:
                await self._score(task)
                if task.done:
                    self.finished += 1
                    reporter.report(self.finished, self.calls, self.tokens, self.money)

        try:
            with use_budget(RunBudget(**self.caps)):
                await afan_out([ask_all] * asking + [score_all] * scorers)
        except BudgetExceededError as error:
            self._stop(error)
        except BranchError as error:
            raise error.__cause__ or error from None

    async def _ask(self, task: Task) -> bool:
        """Ask the pipeline; False where a cap of the run ended that."""
        budget, started = Budget(), time.perf_counter()
        self.asked += 1
        with recording() as recorder, use_budget(budget):
            answer = partial(_answer, self.ask, task.example)
            (outcome,) = (await afan_out([answer], timeout=self.timeout, on_error="skip")).outcomes
        error = outcome.error
        if isinstance(error, BudgetExceededError) and _is_used_up(self._outer):
            recorder.refused.append(error)
        if recorder.refused:  # whatever it gave, it gave it with less than it asked for
            self._stop(recorder.refused[0])
            return False
        output = outcome.value or Output(error="the pipeline gave nothing")
        if isinstance(error, BranchTimeoutError):
            output = Output(error=f"TimeoutError: no answer within {self.timeout:g} s")
        elif error is not None:
            output = Output(error=error_text(error))
        output = _counted(output, budget, recorder, time.perf_counter() - started)
        self._count(output, budget, recorder)
        row = self._take(task, output, {"pipeline": recorder.usage} if recorder.usage else {})
        await self._write(row.output_record())
        return True

    async def _score(self, task: Task) -> None:
        """Compute what is missing; after a cap was reached only what asks no model."""
        wanted = [each for each in task.missing if not (self.stopped and _asks(each))]
        measures = [partial(self._measure, task, metric) for metric in wanted]
        done = await afan_out(measures, timeout=self.metric_timeout, on_error="skip")
        for metric, outcome in zip(wanted, done.outcomes, strict=True):
            if isinstance(outcome.error, BudgetExceededError):
                self._stop(outcome.error)
            elif isinstance(outcome.error, BranchTimeoutError):
                late = Cell.error(f"no value within metric_timeout={self.metric_timeout} s")
                await self._keep(task, metric, late, {})
            elif outcome.error is not None:
                raise outcome.error

    async def _measure(self, task: Task, metric: Metric) -> None:
        assert task.row is not None
        with recording() as recorder:
            try:
                cell = await metric.measure(task.example, task.row.output, self.judge)
                if recorder.refused:
                    raise recorder.refused[0]
            except (BudgetExceededError, MissingExtraError):
                self._count(recorder, recorder, recorder)
                raise
        reason = redact(cell.reason) if cell.status == "error" else cell.reason
        calls, tokens = max(cell.calls, recorder.calls), max(cell.tokens, recorder.tokens)
        counted = replace(cell, reason=reason, calls=calls, tokens=tokens, seconds=round(cell.seconds, 6))
        self._count(counted, cell, recorder)
        await self._keep(task, metric, counted, recorder.usage)

    async def _keep(self, task: Task, metric: Metric, cell: Cell, usage: Usage) -> None:
        row, name = task.row, metric.name
        assert row is not None
        self.scored += 1
        row.cells[name], row.keys[name] = cell, f"{self.keys[name]}:{task.given}"
        if usage:
            row.usage[name] = usage
        task.missing.remove(metric)
        await self._write(row.cell_record(name))

    async def _write(self, record: Record) -> None:
        """Append a line; whoever comes first writes for all that wait."""
        if self.folder is None:
            return
        self._pending.append(record)
        async with self._writing:
            if self._pending:
                batch, self._pending = self._pending, []
                await run_in_thread(self.folder.append, batch)

    def _count(self, took: Any, charged: Any, recorder: UsageRecorder) -> None:
        """Add ``calls`` and ``tokens`` of what was done, and charge the caps with those that nobody charged yet."""
        self.calls += took.calls
        self.tokens += took.tokens
        if self.money is not None:
            cost = self.prices.cost(recorder.usage, tokens=took.tokens, calls=took.calls)
            self.money = None if cost is None else self.money + cost
        try:
            charge_tokens(max(0, took.tokens - charged.tokens))
            for _ in range(took.calls - charged.calls):
                charge_call()
        except BudgetExceededError as error:
            self._stop(error)

    def _stop(self, error: BaseException) -> None:
        self.stopped = self.stopped or redact(str(error))

    def _manifest(self, judge: Any, before: Mapping[str, Any]) -> dict[str, Any]:
        """What the run is made with, as plain JSON: versions, settings, fingerprints, the commit; no key."""
        limits = {name: getattr(self, name) for name in ("max_concurrency", "timeout", "metric_timeout")}
        started = _now()
        return {
            "format": FORMAT, "name": self.name, "created": before.get("created") or started, "started": started,
            "examples": len(self.examples),
            "dataset": {
                "name": name if isinstance(name := getattr(self.dataset, "name", None), str) else None,
                "fingerprint": digest([example.to_json() for example in self.examples]),
            },
            "pipeline": {"name": self.name, "version": self.version, "key": self.key, "hashes": self.hashes},
            "metrics": [_describe_metric(each, self.keys[each.name]) for each in self.metrics],
            "judge": judge, "settings": clean({**limits, **self.caps, "retry_errors": self.retry_errors}),
            "prices": {name: dict(price) for name, price in self.prices.table.items()} or None,
            "versions": _versions(), "commit": _commit(),
        }  # fmt: skip

    def _end(self, status: str) -> None:
        """Complete the manifest with what was done and what all rows took, and save."""
        hashes = list(dict.fromkeys([*self.hashes, self._hash()]))[-_MAX_HASHES:]
        self.manifest["pipeline"]["hashes"] = hashes
        names = ("reused", "asked", "scored", "calls", "tokens", "money")
        outputs = [row.output for row in self.rows]
        cells = [cell for row in self.rows for cell in row.cells.values()]
        took = {
            part: {"calls": sum(each.calls for each in of), "tokens": sum(each.tokens for each in of)}
            for part, of in (("pipeline", outputs), ("judge", cells))
        }
        done = {name: getattr(self, name) for name in names}
        self.manifest |= {"status": status, "ended": _now(), "stopped_by": self.stopped}
        self.manifest |= {"done": done, "usage": took}
        if self.folder is not None:
            self.folder.save(self.rows)
            self.folder.write_manifest(self.manifest)


async def _answer(ask: Any, example: Example) -> Output:
    output = Output.of(await ask(example))
    output.to_json()  # what cannot be written down is a fault of this row, and ends no run
    return output


def _counted(output: Output, budget: Budget, recorder: UsageRecorder, seconds: float) -> Output:
    """The output with what it took: as the pipeline says it, or as it was counted from outside."""
    return replace(
        output,
        calls=max(output.calls, budget.calls, recorder.calls),
        tokens=max(output.tokens, budget.tokens, recorder.tokens),
        seconds=round(output.seconds or seconds, 6),
        notes=tuple(redact(note) for note in output.notes),
        error=None if output.error is None else redact(output.error),
    )


def _asks(metric: Metric) -> bool:
    return metric.needs_judge or metric.needs_embeddings


def _is_used_up(budget: Budget | None) -> bool:
    """Whether a cap around the run is reached, and not one of the pipeline's own."""
    return budget is not None and (
        (budget.max_calls is not None and budget.calls >= budget.max_calls)
        or (budget.max_tokens is not None and budget.tokens >= budget.max_tokens)
        or budget.remaining_seconds() == 0
    )


async def _to_the_end(function: Callable[[], object]) -> None:
    """Run a blocking function on a thread and wait for it, also while the run is being cancelled."""
    if (branch := current_branch.get()) is not None and branch.abandoned:
        function()  # no thread would do it: nobody waits for this run any more
        return
    cancelled = None
    waiting = asyncio.ensure_future(run_in_thread(function))
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError as error:
            if waiting.cancelled():
                raise
            cancelled = error
    waiting.result()
    if cancelled is not None:
        raise cancelled


def take_examples(dataset: Any) -> tuple[Example, ...]:
    """The examples of a set or a sequence.

    Raises:
        InvalidInputError: If there is none, one is no example, or an id comes twice.
    """
    try:
        examples = tuple(dataset)
    except TypeError:
        raise InvalidInputError(
            f"the dataset is a {type(dataset).__name__}; give an EvaluationSet, a list of Examples, or a path"
        ) from None
    wrong = [type(each).__name__ for each in examples if not isinstance(each, Example)]
    if wrong:
        frame = callable(getattr(dataset, "to_dict", None))
        how = "EvaluationSet.from_pandas reads a frame" if frame else "EvaluationSet.load reads a file"
        raise InvalidInputError(f"the dataset holds a {wrong[0]}; give objects of the class Example ({how})")
    if not examples:
        raise InvalidInputError("the dataset holds no example; there is nothing to evaluate")
    ids = Counter(example.id for example in examples)
    if twice := [each for each, count in ids.items() if count > 1]:
        raise InvalidInputError(f"the id {twice[0]!r:.80} comes twice in the dataset; give each its own")
    return examples


def _metric_key(metric: Metric, judge: Mapping[str, Any] | None) -> str:
    """A hash of a metric's name and settings, and of the part of the judge's fingerprint that decides it.

    A metric that names its prompts depends on no other.
    """
    settings = metric.settings()
    asked = dict(judge) if judge is not None and _asks(metric) else None
    if asked is not None:
        if not metric.needs_embeddings:
            asked.pop("embeddings", None)
        names, prompts = settings.get("prompts"), asked.get("prompts")
        if isinstance(names, (list, tuple)) and isinstance(prompts, Mapping):
            asked["prompts"] = {key: each for key, each in prompts.items() if key.partition(".")[0] in names}
    kind = f"{type(metric).__module__}.{type(metric).__qualname__}"
    return digest({"name": metric.name, "class": kind, "settings": settings, "judge": asked})


def _describe_metric(metric: Metric, key: str) -> dict[str, Any]:
    """What a metric is, for tables and comparisons."""
    names = ("name", "source", "stage", "low", "high", "higher_is_better")
    described = {name: getattr(metric, name) for name in names}
    return {**described, "asks_judge": _asks(metric), "settings": clean(metric.settings()), "key": key}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide results; those that are not installed are left out."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _commit() -> dict[str, Any] | None:
    """The commit of the working folder and whether tracked files differ from it; ``None`` outside of git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    commit, _, changed = done.stdout.strip().partition("-")
    return {"commit": commit, "changed": bool(changed)}


class UsageRecorder(BaseCallbackHandler):
    """Requests and tokens by the model's name, and what a `RunBudget` refused meanwhile."""

    run_inline = True  # counting takes microseconds; a thread for it would take more
    only_models = True

    def __init__(self) -> None:
        super().__init__()
        self.usage: Usage = {}
        self.refused: list[BudgetExceededError] = []
        self._names: dict[Any, str] = {}
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        """Requests so far."""
        return sum(counts["calls"] for counts in self.usage.values())

    @property
    def tokens(self) -> int:
        """Tokens in and out so far."""
        return sum(counts["input_tokens"] + counts["output_tokens"] for counts in self.usage.values())

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        """Remember the model's name, for answers that do not give it."""
        with self._lock:
            self._names[kwargs.get("run_id")] = str(
                (kwargs.get("metadata") or {}).get("ls_model_name", "unknown")
            )

    def on_llm_start(self, serialized: Any, prompts: Any, **kwargs: Any) -> None:
        """As for chat models."""
        self.on_chat_model_start(serialized, prompts, **kwargs)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count a request that was answered."""
        generations = response.generations[0] if response.generations else []
        message = getattr(generations[0], "message", None) if generations else None
        used = getattr(message, "usage_metadata", None) or {}
        named = getattr(message, "response_metadata", {}).get("model_name")
        self._count(kwargs.get("run_id"), named, used)

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """A request that failed was one, too."""
        self._count(kwargs.get("run_id"), None, {})

    def _count(self, run_id: Any, named: Any, used: Mapping[str, Any]) -> None:
        with self._lock:
            name = str(named or self._names.get(run_id, "unknown"))
            self._names.pop(run_id, None)
            counts = self.usage.setdefault(name, dict.fromkeys(("calls", "input_tokens", "output_tokens"), 0))
            counts["calls"] += 1
            for kind in ("input_tokens", "output_tokens"):
                counts[kind] += int(used.get(kind) or 0)


_recorder: ContextVar[UsageRecorder | None] = ContextVar("rag_kit_evaluation_usage", default=None)
register_configure_hook(_recorder, inheritable=True)


@contextmanager
def recording() -> Iterator[UsageRecorder]:
    """Count what is asked in the block, threads and tasks that are started in it included."""
    recorder = UsageRecorder()
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)


class RunBudget(Budget):
    """The caps of a run. A refusal is noted for the work in whose course it came.

    Graphs go on with less when a call is refused; what they answer then is no result of theirs.
    """

    def charge_call(self) -> None:
        """As `Budget.charge_call`."""
        try:
            super().charge_call()
        except BudgetExceededError as error:
            if (recorder := _recorder.get()) is not None:
                recorder.refused.append(error)
            raise
