"""map_ahead and draw_ahead: results in order, work bounded, errors in their turn, nothing left running."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from contextvars import ContextVar
from itertools import islice

import pytest

from rag_kit.concurrency.pool import check_abandoned, draw_ahead, map_ahead
from rag_kit.errors import BranchTimeoutError

WAIT = 20.0


def test_later_items_are_worked_on_while_earlier_ones_are_used() -> None:
    """Item 2 is done before the caller takes item 1 away, and results keep their order whichever ends first."""
    second = threading.Event()

    def work(number: int) -> int:
        if number == 1:
            assert second.wait(WAIT)  # the first call ends after the second
        if number == 2:
            second.set()
        return number

    with closing(map_ahead(work, range(1, 6), max_concurrency=2)) as made:
        assert list(made) == [1, 2, 3, 4, 5]


def test_no_more_is_drawn_than_is_under_way_or_waits() -> None:
    """However slow the caller is, three items at most are ahead of it."""
    drawn = []

    def items() -> Iterator[int]:
        for number in range(100):
            drawn.append(number)
            yield number

    with closing(map_ahead(abs, items(), max_concurrency=2)) as made:
        assert [next(made), next(made)] == [0, 1]
        assert len(drawn) <= 2 + 3


def test_an_error_comes_after_the_results_before_it() -> None:
    """Results come in order, and an error of the source is raised after those before it."""

    def items() -> Iterator[int]:
        yield from (4, 2, 1)
        raise KeyError("drawing")

    with closing(map_ahead(lambda number: 8 // (number - 1), [4, 2, 1, 0], max_concurrency=4)) as made:
        assert list(islice(made, 2)) == [2, 8]
        with pytest.raises(ZeroDivisionError):
            next(made)
    with pytest.raises(KeyError, match="drawing"):
        list(map_ahead(abs, items()))


def test_a_closed_one_abandons_what_runs() -> None:
    """Closing waits for nothing; the call that runs is told at its next check, and nothing more is begun."""
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()
    calls = []

    def work(number: int) -> int:
        calls.append(number)
        if number == 1:
            begun.set()
            assert go.wait(WAIT)
            with pytest.raises(BranchTimeoutError):
                check_abandoned()
            ended.set()
        return number

    with closing(map_ahead(work, range(9))) as made:
        assert next(made) == 0 and begun.wait(WAIT)
    go.set()
    assert ended.wait(WAIT) and calls == [0, 1]


def test_context_and_stages() -> None:
    """Calls see the caller's context variables; stages may draw from one another, and end together."""
    name: ContextVar[str] = ContextVar("name")
    name.set("caller")
    read = (number for number in range(50))
    with (
        closing(draw_ahead(read)) as first,
        closing(map_ahead(lambda number: (number, name.get()), first, max_concurrency=3)) as second,
    ):
        assert list(second) == [(number, "caller") for number in range(50)]
    assert list(draw_ahead([])) == []
