"""Calls that may hang are left at their time-out, or at the deadline of the active budgets."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from rag_kit.concurrency import Budget, use_budget
from rag_kit.concurrency.steps import acall_in_time, call_in_time
from rag_kit.errors import BranchTimeoutError, BudgetExceededError


async def in_time(native: bool, hangs: bool, timeout: float | None = None) -> Any:
    """Call something that returns its thread, or never ends, in one form or the other."""
    ends = threading.Event()

    def blocking() -> Any:
        return ends.wait(30) if hangs else threading.current_thread()

    async def waiting() -> Any:
        return await asyncio.sleep(30) if hangs else threading.current_thread()

    try:
        return await acall_in_time(waiting, timeout) if native else call_in_time(blocking, timeout)
    finally:
        ends.set()


@pytest.mark.parametrize("native", [False, True], ids=["sync", "async"])
async def test_what_hangs_is_left(native: bool) -> None:
    """The error says which limit came first; without any the caller's own thread does the work."""
    assert await in_time(native, False) is threading.current_thread()
    assert await in_time(native, False, 5.0)
    with pytest.raises(BranchTimeoutError, match=r"longer than timeout=0\.05 s"):
        await in_time(native, True, 0.05)
    with use_budget(Budget(deadline=0.05)), pytest.raises(BudgetExceededError, match="deadline"):
        await in_time(native, True, 5.0)


@pytest.mark.parametrize("native", [False, True], ids=["sync", "async"])
async def test_an_error_is_raised_as_it_is(native: bool) -> None:
    """Also a time-out of the function's own, which is not mistaken for ours."""

    def broken() -> Any:
        raise TimeoutError("mine")

    async def abroken() -> Any:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await acall_in_time(abroken, 5.0) if native else call_in_time(broken, 5.0)
