"""The one pool of threads: made when first needed, as large as the work asks for, never deadlocked by nesting.

- At most ``MAX_ACTIVE`` threads work or stand ready at a time.
- A thread that only waits for a nested fan-out does not count, so its children always find a thread; the most deeply
  nested work is taken first, which keeps the number of waiting threads small.
- A thread whose call was given up (a hung call cannot be killed) does not count either. While ``MAX_ABANDONED`` of
  them hang, new work is refused with an error.
- Threads are daemons: a hung one does not keep the interpreter from exiting. After a fork the child has a new pool.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from rag_kit.concurrency.budget import Branch, check_abandoned
from rag_kit.errors import BranchError

T = TypeVar("T")

MAX_ACTIVE = 256
MAX_ABANDONED = 256
_IDLE_SECONDS = 10.0


class Call(Generic[T]):
    """A function for a thread of the pool, in a copy of the caller's context and a branch of its own.

    Attributes:
        branch: The branch.
        future: Gets what the function returns or raises.
        started: When it began, by ``time.monotonic``; ``None`` while it waits for a thread.
        worker: The thread that runs it.
    """

    __slots__ = ("_context", "_func", "branch", "future", "pool", "started", "worker")

    def __init__(self, func: Callable[[], T], pool: Pool) -> None:
        self._func = func
        self.pool = pool
        self.branch = Branch()
        self._context = self.branch.context()
        self.future: Future[T] = Future()
        self.started: float | None = None
        self.worker: Worker | None = None

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end; whether it came in time."""
        with self.pool.waiting():
            wait([self.future], seconds)
        return self.future.done()

    def give_up(self) -> None:
        """Stop waiting: what has not begun never will, and the thread of what runs counts no more."""
        if not self.future.done():
            self.branch.abandon()
            if not self.future.cancel():
                self.pool.abandon(self)

    def run(self) -> None:
        """Do the work; called on the pool's thread."""
        if not self.future.set_running_or_notify_cancel():
            return
        self.started = time.monotonic()
        try:
            value = self._context.run(self._checked)
        except StopIteration as error:
            refused = RuntimeError("StopIteration was raised, which cannot pass through await.")
            refused.__cause__ = error
            self.future.set_exception(refused)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            self.future.set_exception(error)
        else:
            self.future.set_result(value)

    def _checked(self) -> T:
        check_abandoned()
        return self._func()


class Worker(threading.Thread):
    """A thread of the pool.

    Attributes:
        excuses: Why it does not count as active: calls that it waits for, and one if its call was given up.
        abandoned: Whether its call was given up.
    """

    def __init__(self, pool: Pool, number: int) -> None:
        super().__init__(name=f"rag_kit-{number}", daemon=True)
        self.pool = pool
        self.excuses = 0
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
        self._queue: list[tuple[int, int, Call[Any]]] = []
        self._numbers = itertools.count(1)
        self.threads = 0
        self.abandoned = 0
        self._idle = 0
        self._excused = 0

    def start(self, func: Callable[[], T]) -> Call[T]:
        """Queue a function; the most deeply nested ones go first.

        Raises:
            BranchError: If too many abandoned calls still hang, or no thread can be started and none is there.
        """
        call = Call(func, self)
        with self._condition:
            if self.abandoned >= self.max_abandoned:
                raise BranchError(
                    f"{self.abandoned} branches that were abandoned at their time-out still hang, which is the most "
                    "that is allowed; no new one is started until some end. Give the calls inside them a time-out of "
                    "their own (in the HTTP client, in the database driver)."
                )
            heapq.heappush(self._queue, (-call.branch.depth, next(self._numbers), call))
            self._find_thread()
            if self._active() <= 0:
                call.future.cancel()
                raise BranchError("The system lets no thread be started. Lower max_concurrency.")
        return call

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While in the block, the calling thread only waits: another one may work in its place."""
        worker = threading.current_thread()
        if not isinstance(worker, Worker) or worker.pool is not self:
            yield
            return
        with self._condition:
            self._excuse(worker, 1)
            self._find_thread()
        try:
            yield
        finally:
            with self._condition:
                self._excuse(worker, -1)

    def abandon(self, call: Call[Any]) -> None:
        """Stop counting on the thread that runs a call nobody waits for."""
        with self._condition:
            worker = call.worker
            if worker is not None and not worker.abandoned:
                worker.abandoned = True
                self.abandoned += 1
                self._excuse(worker, 1)
                self._find_thread()

    def work(self, worker: Worker) -> None:
        """The life of a worker thread."""
        while (call := self._next_call(worker)) is not None:
            call.run()
            with self._condition:
                call.worker = None
                if worker.abandoned:
                    worker.abandoned = False
                    self.abandoned -= 1
                    self._excuse(worker, -1)
            del call  # not kept while the thread is idle

    def _next_call(self, worker: Worker) -> Call[Any] | None:
        with self._condition:
            if self._active() > self.max_active:
                self.threads -= 1
                return None
            self._idle += 1
            try:
                while not self._queue:
                    if not self._condition.wait(self._idle_seconds) and not self._queue:
                        self.threads -= 1
                        return None
                call = heapq.heappop(self._queue)[2]
            finally:
                self._idle -= 1
            call.worker = worker
            return call

    def _active(self) -> int:
        return self.threads - self._excused

    def _excuse(self, worker: Worker, change: int) -> None:
        """Count one reason more or less; the caller holds the lock."""
        before = worker.excuses > 0
        worker.excuses += change
        self._excused += (worker.excuses > 0) - before

    def _find_thread(self) -> None:
        """Wake an idle thread for the queue, or start one; the caller holds the lock."""
        if len(self._queue) <= self._idle:
            self._condition.notify()
            return
        if self._active() >= self.max_active:
            return
        worker = Worker(self, self.threads + 1)
        self.threads += 1
        try:
            worker.start()
        except RuntimeError:
            # No thread to be had; those there are will take the work, or ``start`` refuses it.
            self.threads -= 1


class PoolExecutor(ThreadPoolExecutor):
    """An event loop's default executor that runs on the shared pool, so that closing the loop joins no thread.

    asyncio looks host names up on its default executor and joins its threads when the loop closes: a name server that
    does not answer would keep a cancelled run from ending.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As ``ThreadPoolExecutor.submit``, on the shared pool."""
        return shared_pool().start(partial(fn, *args, **kwargs)).future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: the threads are those of the shared pool, which outlives the loop."""


_pool: Pool | None = None
_pool_lock = threading.Lock()


def shared_pool() -> Pool:
    """The pool of this process."""
    global _pool
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
