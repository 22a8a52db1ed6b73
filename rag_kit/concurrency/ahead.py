"""Work on later items on the shared pool while earlier ones are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, wait
from contextlib import closing
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

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
        waiting: Results beyond these that the caller has not taken yet.

    Yields:
        The results.

    Example:
        >>> list(map_ahead(str.upper, "abc"))
        ['A', 'B', 'C']
    """
    pool, source = shared_pool(), iter(items)
    pool.check_room()
    begun: deque[tuple[Future[T], Call[T] | None]] = deque()
    more = True
    try:
        while True:
            # with another call begun, a result that is there does not wait until further items are drawn
            while (
                more
                and len(begun) < max_concurrency + waiting
                and sum(not future.done() for future, _ in begun) < max_concurrency
                and not (len(begun) > 1 and begun[0][0].done())
            ):
                try:
                    begun.append(_begin(partial(func, next(source))))
                except StopIteration:
                    more = False
                except Exception as error:  # noqa: BLE001 - raised when its turn comes
                    begun.append((Future(), None))
                    begun[-1][0].set_exception(error)
                    more = False
            if not begun:
                return
            if not begun[0][0].done():
                with pool.waiting():
                    wait([begun[0][0]])
                continue
            yield begun.popleft()[0].result()
    finally:
        for _, call in begun:
            if call is not None:
                call.give_up()


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


def _begin(func: Callable[[], T]) -> tuple[Future[T], Call[T] | None]:
    """Start a call on the pool."""
    future: Future[T] = Future()
    call = Call(func, partial(settle_future, future))
    try:
        return future, call.start()
    except BranchError as error:  # raised when its turn comes
        future.set_exception(error)
        return future, None
