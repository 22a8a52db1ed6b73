"""One run: workers that ask the pipeline an example, score what it gave, and keep each step at once."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rag_kit._redact import error_text, redact
from rag_kit.concurrency import Budget, afan_out, use_budget
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.budget import charge_call, charge_tokens
from rag_kit.errors import BranchError, BranchTimeoutError, BudgetExceededError, InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.fingerprint import is_own, pipeline_hash
from rag_kit.evaluation.runs.metering import Prices, Recorder, Report, RunBudget, RunProgress, cost, recording
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import PIPELINE, Row, RunFolder, T, clean, digest, hash_input, read_manifest

_UTC = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(eq=False)
class Run:
    """A run of `aevaluate`: pipeline, set, metrics and its other arguments, and how far it is."""

    name: str
    version: str | None
    key: str  # hash of the pipeline's name and version, or code
    ask: Callable[[Example], Awaitable[Any]]
    reads_whole_example: bool  # else only its question and history
    examples: tuple[Example, ...]
    metrics: tuple[Metric, ...]
    judge: Judge | None
    prices: Prices
    caps: RunBudget  # a copy is charged, whose deadline runs from the start of the asking
    max_concurrency: int
    timeout: float | None
    metric_timeout: float | None
    retry_errors: bool
    about: Mapping[str, Any]  # what the manifest says of the set, its gold and its histories
    folder: RunFolder | None = None
    report: Report = lambda progress: None

    def __post_init__(self) -> None:
        self._rows: dict[str, Row | None] = dict.fromkeys(example.id for example in self.examples)
        self.asked = self.scored = self.calls = self.tokens = 0
        self.money: float | None = 0.0 if self.prices else None
        self.stopped: str | None = None
        self._started = time.monotonic()

    @property
    def rows(self) -> list[Row]:
        """The rows so far, in the order of the set."""
        return [row for row in self._rows.values() if row is not None]

    def stop(self, cap: BudgetExceededError) -> None:
        """Note which cap ends the run; the first one that was reached stays."""
        self.stopped = self.stopped or redact(str(cap))

    async def results(self) -> Results:
        """Ask and score what the folder does not have yet, save it, and return the results of all examples."""
        await run_in_thread(self._prepare)
        try:
            await self._ask_and_score()
        except BaseException as error:
            is_interrupt = isinstance(error, (asyncio.CancelledError, KeyboardInterrupt))
            self._finish("interrupted" if is_interrupt else "failed")  # not on a thread: nobody waits
            raise
        await run_in_thread(self._finish, "stopped" if self.stopped else "complete")
        results = Results(self.name, self.rows, tuple(self.keys), self.manifest, len(self._rows))
        return await run_in_thread(results.load_labels, self.folder.path) if self.folder else results

    def restore_rows(self) -> dict[str, Any] | None:
        """Restore the rows that the folder has; return the judge's fingerprint, ``None`` without a judge."""
        judge = None if self.judge is None else clean(self.judge.fingerprint())
        self.keys = {metric.name: _metric_key(metric, judge) for metric in self.metrics}
        for example in self.examples:
            key = self._output_key(example)
            if self.folder and (stored := self.folder.take(key, Output, self.retry_errors)):
                self._add_row(example, *stored)
        return judge

    def _prepare(self) -> None:
        """Restore the folder's rows, and make the manifest; a folder that has one keeps its ``created``."""
        self.manifest = self._make_manifest(self.restore_rows())
        self.reused = sum(map(self._is_done, self.rows))
        self.finished = self.reused
        if self.folder is None:
            return
        try:
            self.manifest["created"] = str(read_manifest(self.folder.path).get("created"))
        except InvalidInputError:  # none yet, or a damaged one
            self.folder.write_manifest({**self.manifest, "status": "running"})

    def _output_key(self, example: Example) -> str:
        """Return the key of the output for an example: a hash of the pipeline and of what it reads of the example."""
        content: Any = [example.id, example.question, example.history]
        if self.reads_whole_example:
            content = example.to_json()
        return f"{self.key}:{digest(content)}"

    def _add_row(self, example: Example, output: Output, usage: Any) -> Row:
        """Add the row of an output, with the cells that the folder has for it."""
        input_hash = hash_input(example, output)
        keys = {metric: f"{key}:{input_hash}" for metric, key in self.keys.items()}
        row = Row(example, output, keys={PIPELINE: self._output_key(example), **keys})
        row.usage[PIPELINE] = usage
        for name, key in keys.items():
            if self.folder and (stored := self.folder.take(key, Cell, self.retry_errors)):
                row.cells[name], row.usage[name] = stored
        self._rows[example.id] = row
        return row

    def _is_done(self, row: Row | None) -> bool:
        return row is not None and len(row.cells) == len(self.keys)

    async def _ask_and_score(self) -> None:
        """Ask and score the examples until all are done, a cap is reached (``stopped``), or an error is raised.

        A worker takes one example after another and does both. There are as many workers as examples may be asked plus
        scored at a time: the judge, which has a limit of its own, never waits for work, and outputs do not pile up.
        """
        scored_at_once = max(self.max_concurrency, getattr(self.judge, "max_concurrency", 1))
        unfinished = iter([item for item in self.examples if not self._is_done(self._rows[item.id])])
        asking = asyncio.Semaphore(self.max_concurrency)
        self._report_progress()

        async def work() -> None:
            for example in unfinished:  # shared by all workers
                row = self._rows[example.id]
                if row is None:
                    async with asking:
                        row = None if self.stopped else await self.ask_example(example)
                if row is None:
                    return
                await self._score_row(row)  # also after a cap: what asks no model costs nothing
                if self.stopped:
                    return

        try:
            with use_budget(replace(self.caps)):
                await afan_out([work] * (self.max_concurrency + scored_at_once))
        except BudgetExceededError as error:
            self.stop(error)
        except BranchError as error:
            raise error.__cause__ or error from None

    def _report_progress(self) -> None:
        seconds = time.monotonic() - self._started
        counts = self.finished, len(self._rows), self.reused, self.calls, self.tokens
        self.report(RunProgress(*counts, self.money, seconds))

    async def ask_example(self, example: Example) -> Row | None:
        """Ask the pipeline an example, and return its row; ``None`` if a cap of the run stopped it."""
        budget, started = Budget(), time.perf_counter()

        async def ask() -> Output:
            output = Output.of(await self.ask(example))
            output.to_json()  # raises if it is no JSON: an error of this row alone, not when the run is saved
            return output

        with recording() as recorder, use_budget(budget):
            outcome = (await afan_out([ask], timeout=self.timeout, on_error="skip")).outcomes[0]
        if recorder.refused:  # the output was made without a model call that a cap refused: it is no result
            self.stop(recorder.refused[0])
            return None
        self.asked += 1
        output, error = outcome.value, outcome.error
        if isinstance(error, BranchTimeoutError):
            output = Output(error=f"TimeoutError: no answer within {self.timeout:g} s")
        elif output is None:
            output = Output(error="no answer" if error is None else error_text(error))
        output = replace(
            self._add_usage(output, budget, recorder),
            seconds=round(output.seconds or time.perf_counter() - started, 6),
            notes=tuple(map(redact, output.notes)),
            error=None if output.error is None else redact(output.error),
        )
        row = self._add_row(example, output, recorder.usage)
        await self._append_part(row, PIPELINE)
        return row

    async def _score_row(self, row: Row) -> None:
        """Compute the cells that the row lacks; if a cap of the run ends that, set ``stopped``."""
        missing = [metric for metric in self.metrics if metric.name not in row.cells]
        result = await afan_out([partial(self._measure, row, metric) for metric in missing], on_error="skip")
        for error in (outcome.error for outcome in result.outcomes):
            if isinstance(error, BudgetExceededError):
                self.stop(error)
            elif error is not None:
                raise error
        if self._is_done(row):
            self.finished += 1
            self._report_progress()

    async def _measure(self, row: Row, metric: Metric) -> None:
        """Compute a metric's cell, count its calls and tokens, and write it; raise if a cap refused a call."""
        limit = self.metric_timeout
        with recording() as recorder:
            try:
                async with asyncio.timeout(limit) as clock:
                    cell = await metric.measure(row.example, row.output, self.judge)
            except TimeoutError:
                if not clock.expired():
                    raise
                cell = Cell.error(f"no value within metric_timeout={limit} s")
        if recorder.refused:
            raise recorder.refused[0]
        reason = redact(cell.reason) if cell.status == "error" else cell.reason
        cell = self._add_usage(cell, cell, recorder)
        row.cells[metric.name] = replace(cell, reason=reason, seconds=round(cell.seconds, 6))
        row.usage[metric.name] = recorder.usage
        self.scored += 1
        await self._append_part(row, metric.name)

    async def _append_part(self, row: Row, part: str) -> None:
        if self.folder is not None:
            await run_in_thread(self.folder.append, row, part)

    def _add_usage(self, part: T, charged: Budget | Cell, recorder: Recorder) -> T:
        """Add what an output or cell took to the run's counts and caps, and return it with its calls and tokens.

        The caps were charged for the calls and tokens of ``charged`` when these were made; here they are charged for
        the rest, such as calls of a model outside of the kit, which only the recorder saw.
        """
        calls = max(part.calls, charged.calls, recorder.calls)
        tokens = max(part.tokens, charged.tokens, recorder.tokens)
        part = replace(part, calls=calls, tokens=tokens)
        self.calls += calls
        self.tokens += tokens
        if self.money is not None:
            money = cost(self.prices, recorder.usage, part)
            self.money = None if money is None else self.money + money
        try:
            charge_tokens(tokens - charged.tokens)
            for _ in range(calls - charged.calls):
                charge_call()
        except BudgetExceededError as error:
            self.stop(error)
        return part

    def _make_manifest(self, judge: Any) -> dict[str, Any]:
        """Describe the run as plain JSON without secrets; ``judge`` is the judge's fingerprint."""
        started = time.strftime(_UTC, time.gmtime())
        settings = {name: getattr(self.caps, name) for name in ("max_calls", "max_tokens", "deadline")}
        for name in ("max_concurrency", "timeout", "metric_timeout", "retry_errors"):
            settings[name] = getattr(self, name)
        return {
            "name": self.name, "created": started, "started": started, "examples": len(self.examples), **self.about,
            "pipeline": {"name": self.name, "version": self.version, "key": self.key},
            "metrics": [clean(metric.describe()) | {"key": self.keys[metric.name]} for metric in self.metrics],
            "judge": judge, "prices": self.prices or None, "settings": settings, "versions": versions(),
        }  # fmt: skip

    def _finish(self, status: str) -> None:
        """Add status, counts and usage to the manifest; save rows and manifest, and close the folder."""
        cells = [cell for row in self.rows for cell in row.cells.values()]
        by_payer: dict[str, list[Any]] = {"pipeline": [row.output for row in self.rows], "judge": cells}
        names = ("reused", "asked", "scored", "calls", "tokens", "money")
        self.manifest |= {
            "status": status, "ended": time.strftime(_UTC, time.gmtime()), "stopped_by": self.stopped,
            "done": {name: getattr(self, name) for name in names},
            "usage": {
                payer: {"calls": sum(item.calls for item in items), "tokens": sum(item.tokens for item in items)}
                for payer, items in by_payer.items()
            },
        }  # fmt: skip
        if self.folder is not None:
            self.folder.save(self.rows, self.manifest)
            self.folder.close()


def _metric_key(metric: Metric, judge: dict[str, Any] | None) -> str:
    """Hash all that decides a metric's values: class, name, settings, own code, its part of the judge's fingerprint."""
    cls, settings = type(metric), metric.settings()
    judge_part = dict(judge or {}) if metric.needs_judge or metric.needs_embeddings else {}
    if not metric.needs_embeddings:
        judge_part.pop("embeddings", None)
    prompt_names, hashes = settings.get("prompts"), judge_part.get("prompts")
    if prompt_names and hashes:  # the keys of hashes end with a language: "judge_context_relevance.en"
        sent = {key: text_hash for key, text_hash in hashes.items() if key.partition(".")[0] in prompt_names}
        judge_part["prompts"] = sent
    code = {"code": pipeline_hash(cls)} if is_own(cls) else {}
    class_name = f"{cls.__module__}.{cls.__qualname__}"
    return digest(
        {"name": metric.name, "class": class_name, "settings": settings, "judge": judge_part, **code}
    )


def versions() -> dict[str, str]:
    """Return the versions of installed packages that decide results."""
    by_package = {"python": platform.python_version()}
    for name in ("rag-kit", "ragas", "ir-measures", "langchain-core", "langgraph", "openai", "numpy"):
        with suppress(PackageNotFoundError):
            by_package[name] = version(name)
    return by_package
