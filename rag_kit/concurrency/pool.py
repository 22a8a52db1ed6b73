"""The one pool of threads: made when first needed, as large as the work asks for, never deadlocked by
nesting.

How its size is bounded:

- at most ``MAX_ACTIVE`` threads work or stand ready at a time;
- a thread that only waits for a nested fan-out does not count as active, so its children always find a
  thread; the most deeply nested work is taken first, which keeps the number of such waiting threads small;
- a thread whose branch was abandoned (a hung call cannot be killed) does not count as active either. When
  ``MAX_ABANDONED`` of them are still hanging, new work is refused with an error, until some end.

Threads are daemons: a hung one does not keep the interpreter from exiting. After a fork the child has a new
pool.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar

from rag_kit.concurrency.budget import Branch, current_branch
from rag_kit.errors import BranchError, BranchTimeoutError

T = TypeVar("T")

MAX_ACTIVE = 256
MAX_ABANDONED = 256
_IDLE_SECONDS = 10.0


class Worker(threading.Thread):
    """A thread of the pool."""

    def __init__(self, pool: Pool, number: int) -> None:
        super().__init__(name=f"rag_kit-{number}", daemon=True)
        self.pool = pool
        self.waiting = 0
        self.abandoned = False

    def run(self) -> None:
        """Take work until there is none for a while."""
        self.pool.work(self)


class Pool:
    """See the module's text.

    Args:
        max_active: Most threads that work at a time.
        max_abandoned: Most abandoned threads before new work is refused.
        idle_seconds: A thread without work for so long ends.
    """

    def __init__(
        self,
        max_active: int = MAX_ACTIVE,
        max_abandoned: int = MAX_ABANDONED,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> None:
        self.max_active = max_active
        self.max_abandoned = max_abandoned
        self._idle_seconds = idle_seconds
        self._condition = threading.Condition(threading.Lock())
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count(1)
        self._live = 0
        self._idle = 0
        self._waiting = 0
        self._abandoned = 0

    @property
    def threads(self) -> int:
        """Threads that exist."""
        return self._live

    @property
    def abandoned(self) -> int:
        """Threads whose branch was abandoned and still runs."""
        return self._abandoned

    def check_room(self) -> None:
        """See whether new work may be started.

        Raises:
            BranchError: If too many abandoned branches are still hanging.
        """
        if self._abandoned >= self.max_abandoned:
            raise BranchError(
                f"{self._abandoned} branches that were abandoned at their time-out still hang, which is the most "
                "that is allowed; no new one is started until some end. Give the calls inside them a time-out of "
                "their own (in the HTTP client, in the database driver)."
            )

    def submit(self, job: Callable[[], None], depth: int = 0) -> None:
        """Queue a job, which must not raise; deeper ones go first.

        Raises:
            BranchError: If no thread can be started and none is there to take the job.
        """
        with self._condition:
            entry = (-depth, next(self._numbers), job)
            heapq.heappush(self._queue, entry)
            self._find_thread()
            if self._active() <= 0:
                self._queue.remove(entry)
                heapq.heapify(self._queue)
                raise BranchError("The system lets no thread be started. Lower max_concurrency.")

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While in the block, the calling thread only waits: another one may work in its place."""
        worker = threading.current_thread()
        if not isinstance(worker, Worker) or worker.pool is not self:
            yield
            return
        self._wait_more(worker)
        try:
            yield
        finally:
            with self._condition:
                worker.waiting -= 1
                if worker.waiting == 0 and not worker.abandoned:
                    self._waiting -= 1

    def abandon(self, thread: threading.Thread) -> None:
        """Stop counting on a thread that runs a branch nobody waits for."""
        with self._condition:
            if not isinstance(thread, Worker) or thread.pool is not self or thread.abandoned:
                return
            thread.abandoned = True
            self._abandoned += 1
            if thread.waiting:
                self._waiting -= 1
            self._find_thread()

    def work(self, worker: Worker) -> None:
        """The life of a worker thread."""
        while (job := self._next_job(worker)) is not None:
            try:
                job()
            finally:
                del job
                with self._condition:
                    if worker.abandoned:
                        worker.abandoned = False
                        self._abandoned -= 1

    def _wait_more(self, worker: Worker) -> None:
        with self._condition:
            worker.waiting += 1
            if worker.waiting == 1 and not worker.abandoned:
                self._waiting += 1
                self._find_thread()

    def _next_job(self, worker: Worker) -> Callable[[], None] | None:
        with self._condition:
            if self._active() > self.max_active:
                self._live -= 1
                return None
            self._idle += 1
            try:
                while not self._queue:
                    if not self._condition.wait(self._idle_seconds) and not self._queue:
                        self._live -= 1
                        return None
                return heapq.heappop(self._queue)[2]
            finally:
                self._idle -= 1

    def _active(self) -> int:
        return self._live - self._waiting - self._abandoned

    def _find_thread(self) -> None:
        """Wake an idle thread for the queue, or start one; the caller holds the lock."""
        if len(self._queue) <= self._idle:
            self._condition.notify()
            return
        if self._active() >= self.max_active:
            return
        worker = Worker(self, self._live + 1)
        self._live += 1
        try:
            worker.start()
        except RuntimeError:
            # No thread to be had; those there are will take the work, or ``submit`` refuses it.
            self._live -= 1


class Call(Generic[T]):
    """A function on a thread of the pool, in a branch of its own; whoever waits for it may give it up.

    Args:
        func: The function.
        settle: Given its value and its error (one is ``None``) on its thread, unless it was given up before.
        base: The context that it runs in a copy of; default: the caller's.
        parent: The branch around it, where ``base`` is given.
        pool: Default: the shared one.

    Attributes:
        started: When it began, by ``time.monotonic``; ``None`` while it waits for a thread.
    """

    __slots__ = ("_context", "_func", "_lock", "_open", "_pool", "_settle", "_thread", "branch", "started")

    def __init__(
        self,
        func: Callable[[], T],
        settle: Callable[[T | None, BaseException | None], None],
        base: Context | None = None,
        parent: Branch | None = None,
        pool: Pool | None = None,
    ) -> None:
        self._func, self._settle = func, settle
        self._pool = pool or shared_pool()
        self.branch = Branch(current_branch.get() if base is None else parent)
        self._context = self.branch.context(copy_context() if base is None else base)
        self._lock, self._open = threading.Lock(), True
        self._thread: threading.Thread | None = None
        self.started: float | None = None

    def start(self) -> Call[T]:
        """Queue it.

        Raises:
            BranchError: No thread can be started and none is there.
        """
        self._pool.submit(self._run, self.branch.depth)
        return self

    def give_up(self) -> None:
        """Stop waiting: what has not begun never will, and the thread of what runs counts no more."""
        with self._lock:
            if self._open:
                self._open = False
                self.branch.abandon()
                if self._thread is not None:
                    self._pool.abandon(self._thread)

    def _run(self) -> None:
        with self._lock:
            if not self._open:
                return
            self._thread, self.started = threading.current_thread(), time.monotonic()
        value: T | None = None
        error: BaseException | None = None
        try:
            if self.branch.abandoned:
                raise BranchTimeoutError("Not started: the branch around it was abandoned.")
            value = self._context.run(self._func)
        except BaseException as raised:  # noqa: BLE001 - handed to whoever waits
            error = raised
        with self._lock:
            self._thread, wanted, self._open = None, self._open, False
        if wanted:
            self._settle(value, error)


def settle_future(
    future: Future[T] | asyncio.Future[T], value: T | None, error: BaseException | None
) -> None:
    """Give a future the value of a `Call`, or its error."""
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)  # type: ignore[arg-type]


class PoolExecutor(ThreadPoolExecutor):
    """An event loop's default executor that runs on the shared pool, so that closing the loop joins no thread.

    asyncio looks host names up on its default executor and joins its threads when the loop closes: a name server that
    does not answer would keep a cancelled run from ending.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As ``ThreadPoolExecutor.submit``, on the shared pool."""
        future: Future[Any] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - handed to whoever waits
                future.set_exception(error)

        shared_pool().submit(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: the threads are those of the shared pool, which outlives the loop."""


_pool: Pool | None = None
_pool_lock = threading.Lock()


def shared_pool() -> Pool:
    """The pool of this process."""
    global _pool
    if _pool is None:
        with _pool_lock:
            if _pool is None:
                _pool = Pool()
    return _pool


def _forget_pool() -> None:
    global _pool, _pool_lock
    _pool = None
    _pool_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
