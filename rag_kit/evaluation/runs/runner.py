"""The run itself: some workers ask the pipeline, others score what it gave, a bounded queue lies between them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from rag_kit._redact import redact, told
from rag_kit.concurrency import (
    Budget,
    afan_out,
    charge_call,
    charge_tokens,
    current_budget,
    run_in_thread,
    use_budget,
)
from rag_kit.errors import BranchError, BranchTimeoutError, BudgetExceededError, MissingExtraError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.caps import RunBudget, refusals
from rag_kit.evaluation.runs.folder import RunFolder, cell_record, output_record
from rag_kit.evaluation.runs.planning import Plan, Task
from rag_kit.evaluation.runs.progress import Reporter
from rag_kit.evaluation.runs.results import Row
from rag_kit.evaluation.runs.settings import Settings
from rag_kit.evaluation.runs.usage import UsageRecorder, recording


class Runner:
    """Does the tasks of a plan.

    Args:
        settings: The run's arguments.
        plan: What is to be done.
        folder: Where lines are appended; ``None``: nowhere.
        reporter: Is told after each example.
    """

    def __init__(self, settings: Settings, plan: Plan, folder: RunFolder | None, reporter: Reporter) -> None:
        self._settings = settings
        self._plan = plan
        self._folder = folder
        self._reporter = reporter
        self._metrics = {metric.name: metric for metric in settings.metrics}
        self._todo: Iterator[Task] = iter([task for task in plan.tasks if not task.done])
        self._finished = sum(task.done for task in plan.tasks)
        self._pending: list[dict[str, Any]] = []
        self.asked = 0
        self.scored = 0
        self.calls = 0
        self.tokens = 0
        self.money: float | None = 0.0 if settings.prices.table else None
        self.stopped: str | None = None

    async def run(self) -> None:
        """Work until everything is done, a cap is reached (``stopped`` says which), or something else ends it."""
        self._queue: asyncio.Queue[Task | None] = asyncio.Queue(self._scorers)
        self._writing = asyncio.Lock()
        self._asking = self._settings.max_concurrency
        self._outer = current_budget()
        self._budget = RunBudget(**self._settings.caps)
        workers = [self._ask_all] * self._asking + [self._score_all] * self._scorers
        try:
            with use_budget(self._budget):
                await afan_out(workers)
        except BudgetExceededError as error:
            self._stop(error)
        except BranchError as error:
            raise error.__cause__ or error from None

    async def flush(self) -> None:
        """Write what is not written yet."""
        if self._folder is not None and self._pending:
            batch, self._pending = self._pending, []
            await run_in_thread(self._folder.append, batch)

    @property
    def _scorers(self) -> int:
        """Enough rows at a time that the judge, which has a limit of its own, never waits for work."""
        return max(self._settings.max_concurrency, getattr(self._settings.judge, "max_concurrency", 1))

    async def _ask_all(self) -> None:
        for task in self._todo:
            if self.stopped:
                break
            if task.row is None and not await self._ask(task):
                break
            await self._queue.put(task)
        self._asking -= 1
        if not self._asking:
            for _ in range(self._scorers):
                await self._queue.put(None)

    async def _score_all(self) -> None:
        while (task := await self._queue.get()) is not None:
            await self._score(task)
            if task.done:
                self._finished += 1
                self._reporter.tell(self._finished, self.calls, self.tokens, self.money)

    async def _ask(self, task: Task) -> bool:
        """Ask the pipeline; False where a cap of the run ended that."""
        budget = Budget()
        self.asked += 1
        started = time.perf_counter()
        with recording() as recorder, refusals() as refused, use_budget(budget):
            (outcome,) = (
                await afan_out(
                    [partial(_answer, self._settings.ask, task.example)],
                    timeout=self._settings.timeout,
                    on_error="skip",
                )
            ).outcomes
        seconds = time.perf_counter() - started
        if isinstance(outcome.error, BudgetExceededError) and self._outer_is_used_up():
            refused.append(outcome.error)
        if refused:  # whatever it gave, it gave it with less than it asked for
            self._stop(refused[0])
            return False
        if outcome.error is None and outcome.value is not None:
            output = outcome.value
        else:
            output = Output(error=self._why(outcome.error))
        output = _counted(output, budget, recorder, seconds)
        self._charge(output.calls - budget.calls, output.tokens - budget.tokens)
        row = Row(task.example, output, usage={"pipeline": recorder.usage} if recorder.usage else {})
        self._add(output.calls, output.tokens, recorder)
        self._plan.start_row(task, row)
        await self._write(output_record(row))
        return True

    async def _score(self, task: Task) -> None:
        wanted = [self._metrics[name] for name in task.missing]
        if self.stopped:
            wanted = [each for each in wanted if not (each.needs_judge or each.needs_embeddings)]
        if not wanted:
            return
        done = await afan_out(
            [partial(self._measure, task, metric) for metric in wanted],
            timeout=self._settings.metric_timeout,
            on_error="skip",
        )
        for metric, outcome in zip(wanted, done.outcomes, strict=True):
            if isinstance(outcome.error, BudgetExceededError):
                self._stop(outcome.error)
            elif isinstance(outcome.error, BranchTimeoutError):
                limit = self._settings.metric_timeout
                await self._keep(task, metric, Cell.error(f"no value within metric_timeout={limit} s"), None)
            elif outcome.error is not None:
                raise outcome.error

    async def _measure(self, task: Task, metric: Metric) -> None:
        assert task.row is not None
        with recording() as recorder, refusals() as refused:
            try:
                cell = await metric.measure(task.example, task.row.output, self._settings.judge)
                if refused:
                    raise refused[0]
            except (BudgetExceededError, MissingExtraError):
                self._add(recorder.calls, recorder.tokens, recorder)
                raise
        reason = redact(cell.reason) if cell.status == "error" else cell.reason
        calls, tokens = max(cell.calls, recorder.calls), max(cell.tokens, recorder.tokens)
        self._charge(calls - cell.calls, tokens - cell.tokens)
        cell = replace(cell, reason=reason, calls=calls, tokens=tokens, seconds=round(cell.seconds, 6))
        self._add(calls, tokens, recorder)
        await self._keep(task, metric, cell, recorder)

    async def _keep(self, task: Task, metric: Metric, cell: Cell, recorder: UsageRecorder | None) -> None:
        row, name = task.row, metric.name
        assert row is not None
        self.scored += 1
        row.cells[name] = cell
        row.keys[name] = task.cell_key(self._plan.metric_keys[name])
        if recorder is not None and recorder.usage:
            row.usage[name] = recorder.usage
        task.missing.remove(name)
        await self._write(cell_record(row, name))

    async def _write(self, record: dict[str, Any]) -> None:
        """Append a line; whoever comes first writes for all that wait."""
        if self._folder is None:
            return
        self._pending.append(record)
        async with self._writing:
            await self.flush()

    def _why(self, error: BaseException | None) -> str:
        if isinstance(error, BranchTimeoutError):
            return f"TimeoutError: no answer within {self._settings.timeout:g} s"
        return told(error) if error is not None else "the pipeline gave nothing"

    def _charge(self, calls: int, tokens: int) -> None:
        """Charge the caps with calls that went around the kit's own counting."""
        try:
            charge_tokens(max(0, tokens))
            for _ in range(max(0, calls)):
                charge_call()
        except BudgetExceededError as error:
            self._stop(error)

    def _outer_is_used_up(self) -> bool:
        """Whether a cap around the run is reached, and not one of the pipeline's own."""
        budget = self._outer
        return budget is not None and (
            (budget.max_calls is not None and budget.calls >= budget.max_calls)
            or (budget.max_tokens is not None and budget.tokens >= budget.max_tokens)
            or budget.remaining_seconds() == 0
        )

    def _add(self, calls: int, tokens: int, recorder: UsageRecorder) -> None:
        self.calls += calls
        self.tokens += tokens
        if self.money is not None:
            cost = self._settings.prices.cost(recorder.usage, tokens=tokens, calls=calls)
            self.money = None if cost is None else self.money + cost

    def _stop(self, error: BaseException) -> None:
        if self.stopped is None:
            self.stopped = redact(str(error))


async def _answer(ask: Any, example: Example) -> Output:
    output = Output.of(await ask(example))
    output.to_json()  # what cannot be written down is a fault of this row, and ends no run
    return output


def _counted(output: Output, budget: Budget, recorder: UsageRecorder, seconds: float) -> Output:
    """The output with what it took: as the pipeline tells it, or as it was counted from outside."""
    return replace(
        output,
        calls=max(output.calls, budget.calls, recorder.calls),
        tokens=max(output.tokens, budget.tokens, recorder.tokens),
        seconds=round(output.seconds or seconds, 6),
        notes=tuple(redact(note) for note in output.notes),
        error=None if output.error is None else redact(output.error),
    )
