"""Work on later items on the shared pool while earlier ones are used."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from contextvars import copy_context
from itertools import repeat
from typing import Any, Generic, TypeVar

from rag_kit.concurrency.budget import Branch, current_branch
from rag_kit.concurrency.pool import shared_pool

S = TypeVar("S")
T = TypeVar("T")
_END: Any = object()


def map_ahead(
    func: Callable[[S], T], items: Iterable[S], *, max_concurrency: int = 1, waiting: int = 1
) -> Generator[T]:
    """Apply a function to items on threads while the caller uses the results before; results come in order.

    Items are drawn on the caller's thread, at most ``max_concurrency + waiting`` ahead of the caller. The first error,
    of the function or of drawing, is raised after all results before it. Close the generator
    (``contextlib.closing``) to abandon the rest: a call that is running ends at its next model call or fan-out.

    Args:
        func: Applied to each item, in a copy of the caller's context.
        items: May be endless.
        max_concurrency: Most calls at a time.
        waiting: Items drawn beyond these, and results that the caller has not taken yet.

    Yields:
        The results.

    Example:
        >>> list(map_ahead(str.upper, "abc"))
        ['A', 'B', 'C']
    """
    run = _Run(func, max_concurrency)
    source = iter(items)
    failure: Exception | None = None
    more = True
    try:
        while True:
            # with another call begun, a result that is there does not wait until further items are drawn
            while (
                more
                and len(run.calls) < max_concurrency + waiting
                and not (len(run.calls) > 1 and run.calls[0].done)
            ):
                try:
                    run.add(next(source))
                except StopIteration:
                    more = False
                except Exception as error:  # noqa: BLE001 - raised when its turn comes
                    failure, more = error, False
            if not run.calls:
                break
            yield run.take_oldest()
    finally:
        run.stop()
    if failure is not None:
        raise failure


def draw_ahead(items: Iterable[T], *, waiting: int = 1) -> Generator[T]:
    """Draw items on threads, one after the other, while the caller uses those before; as `map_ahead`.

    Example:
        >>> list(draw_ahead(iter("abc")))
        ['a', 'b', 'c']
    """
    source = iter(items)
    with closing(map_ahead(lambda _: next(source, _END), repeat(None), waiting=waiting)) as drawn:
        for item in drawn:
            if item is _END:
                return
            yield item


class _Call(Generic[S, T]):
    """One item with its thread while the function runs, and its result or error afterwards."""

    __slots__ = ("done", "error", "item", "result", "thread")

    def __init__(self, item: S) -> None:
        self.item: S | None = item
        self.result: T | None = None
        self.error: BaseException | None = None
        self.done = False
        self.thread: threading.Thread | None = None


class _Run(Generic[S, T]):
    """The queue and the threads of one `map_ahead`; `calls` are those without a taken result, oldest first."""

    def __init__(self, func: Callable[[S], T], max_concurrency: int) -> None:
        self._func = func
        self._max_concurrency = max_concurrency
        self._pool = shared_pool()
        self._pool.check_room()
        self._branch = Branch(current_branch.get())
        self._context = copy_context()
        self._condition = threading.Condition()
        self._queue: deque[_Call[S, T]] = deque()
        self._threads = 0
        self.calls: deque[_Call[S, T]] = deque()

    def add(self, item: S) -> None:
        """Queue an item; a new thread serves the queue, unless as many as allowed do."""
        call: _Call[S, T] = _Call(item)
        with self._condition:
            self._queue.append(call)
            needs_thread = self._threads < self._max_concurrency
            self._threads += needs_thread
        if needs_thread:
            self._pool.submit(self._serve, self._branch.depth)
        self.calls.append(call)

    def take_oldest(self) -> T:
        """Wait for the oldest call and remove it; returns its result or raises its error."""
        call = self.calls[0]
        with self._pool.waiting(), self._condition:
            while not call.done:
                self._condition.wait()
        self.calls.popleft()
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[return-value]

    def stop(self) -> None:
        """Drop the queued items and abandon the running calls, without waiting for them."""
        with self._condition:
            self._branch.abandon()
            self._queue.clear()
            for call in self.calls:
                if call.thread is not None and not call.done:
                    self._pool.abandon(call.thread)

    def _serve(self) -> None:
        """Make queued calls on this thread until the queue is empty."""
        while True:
            with self._condition:
                if not self._queue:
                    self._threads -= 1
                    return
                call = self._queue.popleft()
                call.thread = threading.current_thread()
            try:
                call.result = self._branch.context(self._context).run(self._func, call.item)  # type: ignore[arg-type]
            except BaseException as error:  # noqa: BLE001 - raised for the caller
                call.error = error
            call.item = None
            with self._condition:
                call.done = True
                self._condition.notify_all()
