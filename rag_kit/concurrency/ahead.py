"""Work on later items on the shared pool while earlier ones are used."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, wait
from contextlib import closing
from contextvars import copy_context
from functools import partial
from itertools import repeat
from typing import Any, Generic, TypeVar

from rag_kit.concurrency.budget import current_branch
from rag_kit.concurrency.pool import Call, settle_future, shared_pool
from rag_kit.errors import BranchError

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
    run = _Ahead(func, max_concurrency)
    source = iter(items)
    failure: Exception | None = None
    more = True
    try:
        while True:
            # with another call begun, a result that is there does not wait until further items are drawn
            while (
                more
                and len(run.results) < max_concurrency + waiting
                and not (len(run.results) > 1 and run.results[0].done())
            ):
                try:
                    run.add(next(source))
                except StopIteration:
                    more = False
                except Exception as error:  # noqa: BLE001 - raised when its turn comes
                    failure, more = error, False
            if not run.results:
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


class _Ahead(Generic[S, T]):
    """The calls of one `map_ahead`; `results` are those that were not taken yet, oldest first."""

    def __init__(self, func: Callable[[S], T], max_concurrency: int) -> None:
        self._func = func
        self._free = max_concurrency
        self._pool = shared_pool()
        self._pool.check_room()
        self._parent, self._base = current_branch.get(), copy_context()
        self._lock = threading.Lock()
        self._queue: deque[tuple[Future[T], S]] = deque()
        self._calls: dict[Future[T], Call[T]] = {}
        self.results: deque[Future[T]] = deque()

    def add(self, item: S) -> None:
        """Queue an item."""
        result: Future[T] = Future()
        self.results.append(result)
        with self._lock:
            self._queue.append((result, item))
            self._start()

    def take_oldest(self) -> T:
        """Wait for the oldest call and remove it; returns its result or raises its error."""
        with self._pool.waiting():
            wait([self.results[0]])
        return self.results.popleft().result()

    def stop(self) -> None:
        """Drop the queued items and give up the calls that run, without waiting for them."""
        with self._lock:
            self._queue.clear()
            for call in self._calls.values():
                call.give_up()

    def _start(self) -> None:
        """Begin as many calls as are allowed; holds the lock."""
        while self._free and self._queue:
            result, item = self._queue.popleft()
            try:
                done = partial(self._done, result)
                call = Call(partial(self._func, item), done, self._base, self._parent).start()
            except BranchError as error:  # raised when its turn comes
                result.set_exception(error)
            else:
                self._calls[result] = call
                self._free -= 1

    def _done(self, result: Future[T], value: T | None, error: BaseException | None) -> None:
        settle_future(result, value, error)
        with self._lock:
            del self._calls[result]
            self._free += 1
            self._start()
