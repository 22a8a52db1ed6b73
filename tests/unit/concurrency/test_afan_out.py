from __future__ import annotations

import asyncio
import gc
import threading
import time
from contextlib import suppress
from contextvars import ContextVar

import pytest

from rag_kit.concurrency import Budget, afan_out, afan_out_map, fan_out, use_budget
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.budget import charge_call
from rag_kit.errors import BranchError, BranchTimeoutError, BudgetExceededError, InvalidInputError

colour: ContextVar[str] = ContextVar("colour", default="none")


async def wait(seconds: float, value: object = None) -> object:
    await asyncio.sleep(seconds)
    return value


async def test_results_are_in_order_and_side_by_side() -> None:
    """Values come in the order of the tasks; all run at once."""
    running: list[int] = []

    async def task(n: int) -> object:
        running.append(n)
        while len(running) < 8:  # passed only when all eight run
            await asyncio.sleep(0.01)
        return await wait(0.3 - 0.03 * n, n)

    result = await asyncio.wait_for(afan_out([lambda n=n: task(n) for n in range(8)]), 30)
    assert result.values == list(range(8))
    assert (await afan_out_map(wait, [0, 0])).values == [None, None]
    assert (await afan_out([])).outcomes == []


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("timeout", [None, 30])
async def test_max_concurrency_is_never_exceeded(limit: int, timeout: float | None) -> None:
    """At no moment do more branches run than allowed, and as many as allowed do."""
    now = most = 0

    async def task() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1

    await afan_out([task] * 15, max_concurrency=limit, timeout=timeout)
    assert most == limit


@pytest.mark.parametrize("timeout", [None, 30])
async def test_context_variables_arrive_and_do_not_leak(timeout: float | None) -> None:
    """A branch sees the caller's context variables; what it sets stays in it."""
    colour.set("red")

    async def task() -> str:
        seen = colour.get()
        colour.set("blue")
        return seen

    assert (await afan_out([task] * 4, max_concurrency=1, timeout=timeout)).values == ["red"] * 4
    assert colour.get() == "red"


async def test_raise_cancels_the_others() -> None:
    """The first failure ends the call; the other branches are cancelled and have cleaned up when it returns."""
    cleaned = []

    async def other() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(0.05)
            cleaned.append(1)

    async def bad() -> None:
        await asyncio.sleep(0.05)
        raise KeyError("lost")

    begun = time.monotonic()
    with pytest.raises(BranchError, match="'b' failed: KeyError") as caught:
        await afan_out([other, bad, other], names=["a", "b", "c"])
    assert isinstance(caught.value.__cause__, KeyError)
    assert cleaned == [1, 1] and time.monotonic() - begun < 3
    assert len(asyncio.all_tasks()) == 1


def test_no_lost_errors_are_reported(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio has nothing to say about errors that nobody fetched."""

    async def bad() -> None:
        raise KeyError("lost")

    async def main() -> None:
        for timeout in (None, 5):
            with pytest.raises(BranchError):
                await afan_out([bad, bad, lambda: wait(0.1)], timeout=timeout)
            await afan_out([bad, bad], timeout=timeout, on_error="skip")

    asyncio.run(main())
    gc.collect()
    assert "never retrieved" not in capfd.readouterr().err + caplog.text


@pytest.mark.parametrize("timeout", [None, 5])
async def test_cancelling_the_caller_cancels_the_branches(timeout: float | None) -> None:
    """Nothing outlives a cancelled call."""
    cancelled = []

    async def branch() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    call = asyncio.create_task(afan_out([branch] * 3, timeout=timeout, on_error="skip"))
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert cancelled == [1, 1, 1] and len(asyncio.all_tasks()) == 1


async def test_timeouts() -> None:
    """A slow branch is cancelled at its time-out, counted from its own start."""
    result = await afan_out(
        [lambda: wait(0.1, 1), lambda: wait(9), lambda: wait(0.1, 3)],
        timeout=0.3,
        on_error="skip",
        max_concurrency=1,
    )
    assert result.values == [1, 3]
    assert isinstance(result.outcomes[1].error, BranchTimeoutError)
    with pytest.raises(BranchTimeoutError, match=r"timeout=0\.1"):
        await afan_out([lambda: wait(9), lambda: wait(0.01)], timeout=0.1)


async def test_a_branch_that_refuses_to_end_is_left() -> None:
    """A branch that swallows its cancellation delays the call by a second at most."""
    stop = asyncio.Event()

    async def stubborn() -> None:
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), 30)
            except asyncio.CancelledError:
                continue

    begun = time.monotonic()
    result = await afan_out([stubborn, lambda: wait(0, 1)], timeout=0.1, on_error="skip")
    assert result.values == [1] and time.monotonic() - begun < 4
    stop.set()
    await asyncio.sleep(0.05)


async def test_a_branch_that_cancels_itself_is_a_failure() -> None:
    """A CancelledError that nobody outside asked for follows on_error."""

    async def odd() -> None:
        raise asyncio.CancelledError

    result = await afan_out([odd, lambda: wait(0, 1)], on_error="skip")
    assert result.values == [1] and not result.outcomes[0].ok


async def test_deadlines() -> None:
    """The deadline of an active budget ends the call."""
    begun = time.monotonic()
    with use_budget(Budget(deadline=0.2)):
        result = await afan_out([lambda: wait(0, 1), lambda: wait(9)], on_error="skip")
    assert result.values == [1] and isinstance(result.outcomes[1].error, BudgetExceededError)
    with use_budget(Budget(deadline=0.2)):
        with pytest.raises(BudgetExceededError):
            await afan_out([lambda: wait(9)])
        with pytest.raises(BudgetExceededError):
            await afan_out([lambda: wait(0)])
    assert time.monotonic() - begun < 3


async def test_budgets_are_charged_from_branches() -> None:
    """Branches charge the caller's budget."""

    async def task() -> int:
        charge_call()
        return 1

    with use_budget(Budget(max_calls=3)) as budget:
        assert len((await afan_out([task] * 9, on_error="skip")).values) == 3
        assert budget.calls == 3


async def test_nested() -> None:
    """Fan-outs nest, also async in async with limits."""

    async def level(depth: int) -> int:
        if not depth:
            return 1
        return sum((await afan_out([lambda: level(depth - 1)] * 4, max_concurrency=2)).values)

    assert await level(4) == 4**4


async def test_wrong_arguments() -> None:
    """The arguments are checked as in fan_out."""
    with pytest.raises(InvalidInputError, match="max_concurrency"):
        await afan_out([lambda: wait(0)], max_concurrency=0)
    for timeout in (1e300, -1):
        with pytest.raises(InvalidInputError, match="timeout"):
            await afan_out([lambda: wait(0)], timeout=timeout)
    with pytest.raises(InvalidInputError, match="tasks"):
        await afan_out([None], on_error="skip")  # type: ignore[list-item]
    coroutine = wait(0)
    with pytest.raises(InvalidInputError, match="give the function"):
        await afan_out([coroutine])  # type: ignore[list-item]
    coroutine.close()
    assert (await afan_out([lambda: wait(0, 1)], timeout=1e9)).values == [1]


async def test_run_in_thread_carries_context_and_errors() -> None:
    """Blocking code runs elsewhere, with the caller's context, and its errors come back."""
    colour.set("green")
    assert await run_in_thread(lambda: (colour.get(), threading.current_thread().name[:7])) == (
        "green",
        "rag_kit",
    )
    with pytest.raises(KeyError):
        await run_in_thread({}.__getitem__, "x")
    with pytest.raises(RuntimeError, match="StopIteration"):
        await run_in_thread(next, iter([]))


async def test_run_in_thread_is_wide() -> None:
    """Many more blocking calls than asyncio's default pool has threads run side by side."""
    together = threading.Barrier(40)
    result = await afan_out([lambda: run_in_thread(together.wait, 30.0)] * 40)
    assert sorted(result.values) == list(range(40))


async def test_cancelled_thread_is_abandoned() -> None:
    """A time-out does not wait for the blocking call."""
    begun = time.monotonic()
    result = await afan_out([lambda: run_in_thread(time.sleep, 3)], timeout=0.1, on_error="skip")
    assert not result.outcomes[0].ok and time.monotonic() - begun < 2


def test_sync_in_async_in_sync_does_not_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait for an event loop that waits for threads do not block a small pool."""
    monkeypatch.setattr("rag_kit.concurrency.pool.MAX_THREADS", 2)

    async def inner() -> int:
        return len((await afan_out([lambda: run_in_thread(time.sleep, 0.01)] * 3)).values)

    assert fan_out([lambda: asyncio.run(inner())] * 6, timeout=30).values == [3] * 6


async def test_cancelling_the_caller_of_one_branch() -> None:
    """The caller's cancellation reaches a single branch, and is not lost if the branch swallows it."""
    seen: list[str] = []

    async def polite() -> None:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            seen.append("told")
            raise

    async def greedy() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(9)
        return "done all the same"

    for branch in (polite, greedy):
        caller = asyncio.create_task(afan_out([branch], on_error="skip"))
        await asyncio.sleep(0.02)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
    assert seen == ["told"]


async def test_all_run_at_once_and_are_cancelled_with_the_caller() -> None:
    """If the caller is cancelled, all branches that run are."""
    running: list[int] = []
    cancelled: list[int] = []

    async def task(n: int) -> int:
        running.append(n)
        try:
            while len(running) < 3:  # passed only when all three run
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01 if n == 2 else 9)
        except asyncio.CancelledError:
            cancelled.append(n)
            raise
        return n

    caller = asyncio.create_task(afan_out_map(task, [0, 1, 2], on_error="skip"))
    await asyncio.sleep(0.3)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert sorted(running) == [0, 1, 2] and sorted(cancelled) == [0, 1]

    async def odd(n: int) -> int:
        if n == 2:
            raise ValueError("the last one")
        return n

    result = await afan_out_map(odd, [0, 1, 2], on_error="skip")
    assert result.values == [0, 1] and "the last one" in result.degradations[0]
