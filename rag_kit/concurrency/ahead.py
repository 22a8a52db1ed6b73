"""Work on later items on the shared pool while earlier ones are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice, repeat
from typing import Any, TypeVar

from rag_kit.concurrency.pool import Call, shared_pool

S = TypeVar("S")
T = TypeVar("T")
_END: Any = object()


def map_ahead(func: Callable[[S], T], items: Iterable[S], *, max_concurrency: int = 1) -> Generator[T]:
    """Apply a function to items on threads while the caller uses the results before; results come in order.

    Items are drawn on the caller's thread, at most ``max_concurrency`` ahead of the caller. The first error, of the
    function or of drawing, is raised after all results before it. Close the generator (``contextlib.closing``) to
    abandon the rest: a call that is running ends at its next model call or fan-out.

    Args:
        func: Applied to each item, in a copy of the caller's context.
        items: May be endless.
        max_concurrency: Most calls at a time.

    Yields:
        The results.

    Example:
        >>> list(map_ahead(str.upper, "abc"))
        ['A', 'B', 'C']
    """
    pool, work = shared_pool(), _bound(func, items)
    begun: deque[Call[T]] = deque(map(pool.start, islice(work, max_concurrency)))
    try:
        while begun:
            begun[0].wait()
            result = begun.popleft().future.result()
            begun.extend(map(pool.start, islice(work, 1)))
            yield result
    finally:
        for call in begun:
            call.give_up()


def _bound(func: Callable[[S], T], items: Iterable[S]) -> Iterator[Callable[[], T]]:
    """A task for each item; where drawing fails, one that raises why, so that its turn comes last."""
    try:
        for item in items:
            yield partial(func, item)
    except Exception as error:  # noqa: BLE001 - raised by the task
        yield partial(_raise, error)


def _raise(error: Exception) -> Any:
    raise error


def draw_ahead(items: Iterable[T]) -> Generator[T]:
    """Draw items on threads, one after the other, while the caller uses those before; as `map_ahead`.

    Example:
        >>> list(draw_ahead(iter("abc")))
        ['a', 'b', 'c']
    """
    source = iter(items)
    with closing(map_ahead(lambda _: next(source, _END), repeat(None))) as drawn:
        for item in drawn:
            if item is _END:
                return
            yield item
