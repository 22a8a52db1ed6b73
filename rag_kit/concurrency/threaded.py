"""Run functions side by side on the shared pool."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from rag_kit.concurrency.budget import Branch, check_abandoned, current_branch
from rag_kit.concurrency.outcome import FanOut, Outcome, Plan, check_map, plan, raise_failure
from rag_kit.concurrency.pool import Pool, shared_pool
from rag_kit.errors import BranchTimeoutError

T = TypeVar("T")
S = TypeVar("S")


def fan_out(
    tasks: Sequence[Callable[[], T]],
    *,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    names: Sequence[str] | None = None,
    deadline: float | None = None,
) -> FanOut[T]:
    """Run functions side by side, each in a copy of the caller's context (so callbacks and budgets arrive).

    A branch that is too slow is abandoned: its thread runs on in the background, but nobody waits for it; it
    ends at its next model call or nested fan-out. It no longer counts towards ``max_concurrency``. At most
    256 abandoned branches may hang at a time in a process.

    Args:
        tasks: Functions without arguments.
        max_concurrency: Most branches at a time; ``None`` for as many as there are (256 in a process).
        timeout: Seconds each branch may take from its own start.
        on_error: ``"raise"`` the first failure at once, or ``"skip"`` failed branches and report them.
        names: One name a branch, for the report.
        deadline: Seconds the whole may take. The deadlines of active budgets hold as well.

    Returns:
        Outcomes in the order of the tasks.

    Raises:
        BranchError: A branch failed and ``on_error="raise"``; its own error is the ``__cause__``.
        BranchTimeoutError: The same for one that was too slow.
        BudgetExceededError: The deadline of an active budget has passed, or (``on_error="raise"``) a branch
            used its budget up.
        InvalidInputError: An argument is not allowed.

    Example:
        >>> fan_out([lambda: 1, lambda: 2]).values
        [1, 2]
        >>> result = fan_out([lambda: 1 / 0, lambda: 2], on_error="skip", names=["first", "second"])
        >>> result.values, result.degradations
        ([2], ['first failed: ZeroDivisionError: division by zero'])
    """
    the_plan = plan(
        tasks,
        max_concurrency=max_concurrency,
        timeout=timeout,
        on_error=on_error,
        names=names,
        deadline=deadline,
    )
    check_abandoned()
    if not tasks:
        return FanOut([])
    if the_plan.width == 1 and the_plan.timeout is None and the_plan.seconds is None:
        return FanOut(_one_by_one(tasks, the_plan))
    return FanOut(_Run(tasks, the_plan, shared_pool()).result())


def fan_out_map(func: Callable[[S], T], items: Sequence[S], **options: Any) -> FanOut[T]:
    """Apply a function to items side by side; options and errors are those of `fan_out`.

    Example:
        >>> fan_out_map(len, ["a", "bc"]).values
        [1, 2]
    """
    check_map(func, items)
    return fan_out([partial(func, item) for item in items], **options)


def _one_by_one(tasks: Sequence[Callable[[], T]], the_plan: Plan) -> list[Outcome[T]]:
    """Without a time-out and at most one at a time, no thread is needed."""
    base, parent = copy_context(), current_branch.get()
    outcomes: list[Outcome[T]] = []
    for name, task in zip(the_plan.names, tasks, strict=True):
        check_abandoned()
        started = time.monotonic()
        try:
            value = Branch(parent).context(base).run(task)
        except Exception as error:  # noqa: BLE001 - the caller's policy decides
            outcome = Outcome[T](name, error=error, seconds=time.monotonic() - started)
            if the_plan.on_error == "raise":
                raise_failure(outcome)
        else:
            outcome = Outcome(name, value=value, seconds=time.monotonic() - started)
        outcomes.append(outcome)
    return outcomes


class _Running:
    """A branch that has started."""

    __slots__ = ("branch", "started", "thread")

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.started = time.monotonic()
        self.thread = threading.current_thread()


class _Run(Generic[T]):
    """One fan-out on the pool. Each runner takes branch after branch; the caller only watches the clock."""

    def __init__(self, tasks: Sequence[Callable[[], T]], the_plan: Plan, pool: Pool) -> None:
        self._tasks = tasks
        self._plan = the_plan
        self._pool = pool
        self._base = copy_context()
        self._parent = current_branch.get()
        self._condition = threading.Condition(threading.Lock())
        self._pending = deque(range(len(tasks)))
        self._running: dict[int, _Running] = {}
        self._outcomes: list[Outcome[T] | None] = [None] * len(tasks)
        self._left = len(tasks)
        self._failed = False
        self._crash: BaseException | None = None

    def result(self) -> list[Outcome[T]]:
        self._pool.check_room()
        started = time.monotonic()
        ends = None if self._plan.seconds is None else started + self._plan.seconds
        try:
            for _ in range(min(self._plan.width, self._pool.max_active)):
                self._start_runner()
            with self._pool.waiting(), self._condition:
                while self._left and not self._finished_early():
                    now = time.monotonic()
                    if ends is not None and now >= ends:
                        self._give_up_all()
                        break
                    self._give_up_late(now)
                    if self._left and not self._finished_early():
                        self._condition.wait(self._patience(now, ends))
        finally:
            # On success nothing is left; on an error or Ctrl-C the rest is dropped or abandoned.
            self._stop()
        if self._crash is not None:
            raise self._crash
        return self._finish()

    def _finish(self) -> list[Outcome[T]]:
        if self._plan.on_error == "raise":
            for outcome in self._outcomes:
                if outcome is not None and not outcome.ok:
                    raise_failure(outcome)
        return [outcome for outcome in self._outcomes if outcome is not None]

    def _finished_early(self) -> bool:
        return self._crash is not None or (self._failed and self._plan.on_error == "raise")

    def _start_runner(self) -> None:
        self._pool.submit(self._run_branches, 0 if self._parent is None else self._parent.depth + 1)

    def _run_branches(self) -> None:
        """A runner's work: branch after branch, until none is left or its own was abandoned."""
        while True:
            branch = Branch(self._parent)
            with self._condition:
                if not self._pending:
                    return
                index = self._pending.popleft()
                mine = self._running[index] = _Running(branch)
            value: T | None = None
            error: BaseException | None = None
            try:
                if branch.abandoned:
                    raise BranchTimeoutError("Not started: the branch around it was abandoned.")
                value = branch.context(self._base).run(self._tasks[index])
            except BaseException as raised:  # noqa: BLE001 - handed to the waiting caller
                error = raised
            with self._condition:
                if self._running.get(index) is not mine:
                    return
                del self._running[index]
                if error is not None and not isinstance(error, Exception):
                    self._crash = error
                self._settle(index, value, error, time.monotonic() - mine.started)
                if not self._left or self._finished_early():
                    self._condition.notify()

    def _settle(self, index: int, value: T | None, error: BaseException | None, seconds: float) -> None:
        self._outcomes[index] = Outcome(self._plan.names[index], value=value, error=error, seconds=seconds)
        self._left -= 1
        self._failed = self._failed or error is not None

    def _patience(self, now: float, ends: float | None) -> float | None:
        """How long to wait: a branch that starts meanwhile cannot be late before one time-out from now."""
        waits = [] if ends is None else [ends - now]
        if self._plan.timeout is not None:
            waits.append(self._plan.timeout)
            waits.extend(r.started + self._plan.timeout - now for r in self._running.values())
        return max(0.0, min(waits)) if waits else None

    def _give_up_late(self, now: float) -> None:
        timeout = self._plan.timeout
        if timeout is None:
            return
        for index, running in list(self._running.items()):
            if now - running.started >= timeout:
                self._abandon(index, running)
                self._settle(
                    index, None, self._plan.late(self._plan.names[index], whole=False), now - running.started
                )
                if self._pending:
                    self._start_runner()

    def _give_up_all(self) -> None:
        now = time.monotonic()
        for index, running in list(self._running.items()):
            self._abandon(index, running)
            self._settle(
                index, None, self._plan.late(self._plan.names[index], whole=True), now - running.started
            )
        while self._pending:
            index = self._pending.popleft()
            self._settle(index, None, self._plan.late(self._plan.names[index], whole=True), 0.0)

    def _stop(self) -> None:
        with self._condition:
            self._pending.clear()
            for index, running in list(self._running.items()):
                self._abandon(index, running)

    def _abandon(self, index: int, running: _Running) -> None:
        del self._running[index]
        running.branch.abandon()
        self._pool.abandon(running.thread)
