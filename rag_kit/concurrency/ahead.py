"""Work on later items on threads while earlier ones are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from functools import partial
from itertools import islice, repeat, takewhile
from typing import Any, TypeVar

from rag_kit.concurrency.pool import Call

S = TypeVar("S")
T = TypeVar("T")
_END: Any = object()


def map_ahead(func: Callable[[S], T], items: Iterable[S], *, max_concurrency: int = 1) -> Generator[T]:
    """Apply a function to items on threads while the caller uses the results before; results come in order.

    Items are drawn on the caller's thread, at most ``max_concurrency`` ahead of the caller. An error of the function
    is raised after all results before it. Close the generator (``contextlib.closing``) to abandon the rest: a call
    that is running ends at its next model call or fan-out.

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
    calls = (Call(partial(func, item)) for item in items)
    running = deque(islice(calls, max_concurrency))
    try:
        while running:
            result = running[0].future.result()
            running.popleft()
            running.extend(islice(calls, 1))
            yield result
    finally:
        for call in running:
            call.give_up()


def draw_ahead(items: Iterable[T]) -> Generator[T]:
    """Draw items on threads, one after the other, while the caller uses those before; as `map_ahead`.

    Example:
        >>> list(draw_ahead(iter("abc")))
        ['a', 'b', 'c']
    """
    source = iter(items)
    with closing(map_ahead(lambda _: next(source, _END), repeat(None))) as results:
        yield from takewhile(lambda item: item is not _END, results)
