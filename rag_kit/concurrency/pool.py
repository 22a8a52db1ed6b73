"""Threads for blocking calls: an idle one takes the next call, or a new one is started, so that no call waits.

Nothing queues, so nested calls cannot deadlock; whoever starts many calls bounds them. A thread whose call was given
up (a hung call cannot be killed) is left alone; while `MAX_ABANDONED` of them hang, new calls are refused. Threads are
daemons: a hung one does not keep the interpreter from exiting.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import closing
from contextvars import ContextVar, copy_context
from functools import partial
from itertools import islice, repeat, takewhile
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from rag_kit.errors import BranchError, BranchTimeoutError

S = TypeVar("S")
T = TypeVar("T")

#: Calls that one fan-out, or one event loop, has on threads at a time, where no other number is given.
MAX_WIDTH = 256
#: Threads with a call, above which each fan-out starts one branch at a time.
MAX_THREADS = 1024
MAX_ABANDONED = 256
_IDLE_SECONDS = 10.0
_END: Any = object()

#: One event for each branch around this code; it is set once nobody waits for the branch any more.
abandonments: ContextVar[tuple[threading.Event, ...]] = ContextVar("rag_kit_abandonments", default=())
_idle: deque[SimpleQueue[PooledCall[Any]]] = deque()  # one inbox for each thread without a call
_running: set[PooledCall[Any]] = set()


class PooledCall(Generic[T]):
    """A call of a function on a thread, in a copy of the caller's context; it starts at once.

    Raises BranchError where too many given-up calls hang or no thread starts, BranchTimeoutError in a given-up call.
    """

    __slots__ = ("_context", "_func", "future", "given_up", "started")

    def __init__(self, func: Callable[[], T]) -> None:
        check_abandoned()
        # counting takes time, and is needed only if so many calls run at all
        if len(_running) >= MAX_ABANDONED and (hung := count_abandoned()) >= MAX_ABANDONED:
            raise BranchError(
                f"{hung} branches that were abandoned at their time-out still hang, which is the most that "
                "is allowed; no new one is started until some end. Give the calls inside them a time-out of their own "
                "(in the HTTP client, in the database driver)."
            )
        self._func = func
        self.given_up = threading.Event()  # set once nobody waits for it any more
        self._context = copy_context()
        self._context.run(abandonments.set, (*abandonments.get(), self.given_up))
        self.future: Future[T] = Future()
        self.future.set_running_or_notify_cancel()  # from now on nobody can cancel it
        self.started = time.monotonic()
        _running.add(self)
        _idle_inbox(self).put(self)

    def give_up(self) -> None:
        """Stop waiting: the thread goes on, but ends at its next model call or fan-out."""
        self.given_up.set()

    def run(self, inbox: SimpleQueue[PooledCall[Any]]) -> None:
        """Call the function on this thread, which gets its calls from ``inbox``; set the future's result or error."""
        try:
            finish = partial(self.future.set_result, self._context.run(self._func))
        except StopIteration as raised:
            error = RuntimeError("StopIteration was raised, which cannot pass through await.")
            error.__cause__ = raised
            finish = partial(self.future.set_exception, error)
        except BaseException as raised:  # noqa: BLE001 - handed to whoever waits
            finish = partial(self.future.set_exception, raised)
        _idle.append(inbox)  # before the caller goes on, so that its next call finds this thread idle
        _running.discard(self)
        finish()


def check_abandoned() -> None:
    """Raise `BranchTimeoutError` inside a branch that nobody waits for any more."""
    if any(abandoned.is_set() for abandoned in abandonments.get()):
        raise BranchTimeoutError(
            "This branch was abandoned (its time-out passed, or its fan-out was stopped); it ends here."
        )


def count_abandoned() -> int:
    """Count the calls that were given up and still run."""
    return sum(call.given_up.is_set() for call in list(_running))


def pool_is_full() -> bool:
    """Tell whether `MAX_THREADS` threads have a call."""
    return len(_running) >= MAX_THREADS


def _idle_inbox(call: PooledCall[Any]) -> SimpleQueue[PooledCall[Any]]:
    """Return the inbox of an idle thread, or of a new one; if none can be started, forget the call and raise."""
    try:
        return _idle.pop()
    except IndexError:
        inbox: SimpleQueue[PooledCall[Any]] = SimpleQueue()
    try:
        threading.Thread(target=_work, args=(inbox,), name="rag_kit", daemon=True).start()
    except RuntimeError as error:
        _running.discard(call)
        raise BranchError("The system lets no thread be started. Lower max_concurrency.") from error
    return inbox


def _work(inbox: SimpleQueue[PooledCall[Any]]) -> None:
    """Carry out the calls that come into an inbox, until none came for a while: the life of a thread."""
    while True:
        try:
            inbox.get(timeout=_IDLE_SECONDS).run(inbox)
        except Empty:
            try:
                _idle.remove(inbox)
            except ValueError:
                continue  # a caller took the inbox meanwhile: its call is on the way
            return


def map_ahead(func: Callable[[S], T], items: Iterable[S], *, max_concurrency: int = 1) -> Generator[T]:
    """Yield ``func(item)`` for each item, in order; the next ones are computed on threads while the caller uses one.

    Items, which may be endless, are drawn on the caller's thread, at most ``max_concurrency`` ahead of the caller. An
    error of the function is raised after all results before it. Close the generator (``contextlib.closing``) to abandon
    the rest: a call that is running ends at its next model call or fan-out.
    """
    calls = (PooledCall(partial(func, item)) for item in items)
    running = deque(islice(calls, max_concurrency))
    try:
        while running:
            result = running[0].future.result()
            running.popleft()  # not before: if the wait is interrupted, the call is given up below
            running.extend(islice(calls, 1))
            yield result
    finally:
        for call in running:
            call.give_up()


def draw_ahead(items: Iterable[T]) -> Generator[T]:
    """Yield items, each drawn on a thread while the caller uses the one before; to be closed as `map_ahead` is."""
    source = iter(items)
    # each call of `map_ahead` draws one item; after the last one it draws _END
    with closing(map_ahead(lambda _: next(source, _END), repeat(None))) as results:
        yield from takewhile(lambda item: item is not _END, results)


def _forget_threads() -> None:
    """Drop all threads in a forked process, where none of them runs."""
    _idle.clear()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
