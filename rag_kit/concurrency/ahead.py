"""Work on later items on the shared pool while earlier ones are used."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from contextvars import copy_context
from itertools import repeat
from typing import Any, Generic, TypeVar

from rag_kit.concurrency.branch import Branch, current_branch
from rag_kit.concurrency.pool import shared_pool
from rag_kit.concurrency.threaded import branch_context

S = TypeVar("S")
T = TypeVar("T")
_END: Any = object()


def map_ahead(
    func: Callable[[S], T], items: Iterable[S], *, max_concurrency: int = 1, waiting: int = 1
) -> Generator[T]:
    """Apply a function to items on threads while the caller uses the results before; results come in order.

    Items are drawn on the caller's thread, no more of them than are under way or wait. The first error, of the
    function or of drawing, is raised when all results before it have been given. Close the generator
    (``contextlib.closing``) to abandon the rest: an item that is under way ends at its next model call or fan-out.

    Args:
        func: Applied to each item, in a copy of the caller's context.
        items: May be endless.
        max_concurrency: Most calls at a time.
        waiting: Results and items that may wait besides.

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
            while more and len(run.cells) < max_concurrency + waiting:
                try:
                    run.add(next(source))
                except StopIteration:
                    more = False
                except Exception as error:  # noqa: BLE001 - raised when its turn comes
                    failure, more = error, False
            if not run.cells:
                break
            yield run.first()
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


class _Cell(Generic[S, T]):
    """An item on its way; once done, its result or error."""

    __slots__ = ("done", "error", "item", "result", "thread")

    def __init__(self, item: S) -> None:
        self.item: S | None = item
        self.result: T | None = None
        self.error: BaseException | None = None
        self.done = False
        self.thread: threading.Thread | None = None


class _Run(Generic[S, T]):
    """The calls of one `map_ahead`."""

    def __init__(self, func: Callable[[S], T], max_concurrency: int) -> None:
        self._func = func
        self._most = max_concurrency
        self._pool = shared_pool()
        self._pool.check_room()
        self._branch = Branch(current_branch.get())
        self._context = copy_context()
        self._condition = threading.Condition()
        self._todo: deque[_Cell[S, T]] = deque()
        self._runners = 0
        self.cells: deque[_Cell[S, T]] = deque()

    def add(self, item: S) -> None:
        """Begin with an item, at once or when a call before it has ended."""
        cell: _Cell[S, T] = _Cell(item)
        with self._condition:
            self._todo.append(cell)
            start = self._runners < self._most
            self._runners += start
        if start:
            self._pool.submit(self._work, self._branch.depth)
        self.cells.append(cell)

    def first(self) -> T:
        """Wait for the oldest item; returns its result or raises its error."""
        cell = self.cells[0]
        with self._pool.waiting(), self._condition:
            while not cell.done:
                self._condition.wait()
        self.cells.popleft()
        if cell.error is not None:
            raise cell.error
        return cell.result  # type: ignore[return-value]

    def stop(self) -> None:
        """Begin with nothing more, and wait for nothing."""
        with self._condition:
            self._branch.abandon()
            self._todo.clear()
            for cell in self.cells:
                if cell.thread is not None and not cell.done:
                    self._pool.abandon(cell.thread)

    def _work(self) -> None:
        while True:
            with self._condition:
                if not self._todo:
                    self._runners -= 1
                    return
                cell = self._todo.popleft()
                cell.thread = threading.current_thread()
            try:
                cell.result = branch_context(self._context, self._branch).run(self._func, cell.item)  # type: ignore[arg-type]
            except BaseException as error:  # noqa: BLE001 - raised for the caller
                cell.error = error
            cell.item = None
            with self._condition:
                cell.done = True
                self._condition.notify_all()
