"""fan_out and afan_out: branches side by side, and what came out of them."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from support.rewriters import pause

from rag_kit.concurrency import Budget, afan_out, afan_out_map, fan_out, fan_out_map, pool, use_budget
from rag_kit.concurrency.branches import FanOut
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.budget import charge_call
from rag_kit.concurrency.steps import arun, run
from rag_kit.errors import BranchError, BranchTimeoutError, BudgetExceededError, InvalidInputError

colour: ContextVar[str] = ContextVar("colour", default="none")
Task = Callable[
    [], Any
]  # a coroutine function that awaits steps alone, so that it runs on threads and on a loop
each_way = pytest.mark.parametrize("way", ["threads", "event loop"])


def fan(way: str, tasks: Iterable[Task], **options: Any) -> FanOut[Any]:
    """Run the tasks side by side, on threads or on an event loop."""
    if way == "threads":
        return fan_out([partial(lambda task: run(task()), task) for task in tasks], **options)

    async def main() -> FanOut[Any]:
        return await afan_out([partial(lambda task: arun(task()), task) for task in tasks], **options)

    return asyncio.run(main())


def wait(seconds: float, value: object = None) -> object:
    time.sleep(seconds)
    return value


def waiting(seconds: float, value: object = None) -> Task:
    """A task that waits, and returns the value."""

    async def task() -> object:
        await pause(seconds)
        return value

    return task


def until(event: threading.Event) -> Task:
    """A task that waits for an event."""

    async def task() -> None:
        while not event.is_set():
            await pause(0.01)

    return task


@each_way
def test_results_are_in_order_and_side_by_side(way: str) -> None:
    """Values come in the order of the tasks, whichever ends first; all run at once."""
    running: list[int] = []

    async def task(n: int) -> int:
        running.append(n)
        while len(running) < 8:  # passed only when all eight run
            await pause(0.01)
        await pause(0.3 - 0.03 * n)
        return n

    result = fan(way, [partial(task, n) for n in range(8)])
    assert result.values == list(range(8)) and all(outcome.ok for outcome in result.outcomes)
    assert fan(way, []).outcomes == []


async def test_maps() -> None:
    """Each item is bound to a call."""
    assert fan_out_map(lambda n: n * 2, range(5)).values == [0, 2, 4, 6, 8]
    assert (await afan_out_map(asyncio.sleep, [0, 0])).values == [None, None]


@each_way
@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("timeout", [None, 30])
def test_max_concurrency_is_never_exceeded(way: str, limit: int, timeout: float | None) -> None:
    """At no moment do more branches run than allowed, and as many as allowed do."""
    lock, now, most = threading.Lock(), 0, 0

    async def task() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        await pause(0.02)
        with lock:
            now -= 1

    fan(way, [task] * 15, max_concurrency=limit, timeout=timeout)
    assert most == limit


@each_way
@pytest.mark.parametrize("options", [{}, {"max_concurrency": 1}, {"max_concurrency": 1, "timeout": 30}])
def test_context_variables_arrive_and_do_not_leak(way: str, options: dict[str, Any]) -> None:
    """A branch sees the caller's context variables; what it sets stays in it."""
    colour.set("red")

    async def task() -> str:
        seen = colour.get()
        colour.set("blue")
        return seen

    assert fan(way, [task] * 4, **options).values == ["red"] * 4
    assert colour.get() == "red"


def test_langchain_config_arrives() -> None:
    """A runnable called in a branch without a config becomes a child run of the runnable around the fan-out."""
    from langchain_core.callbacks import BaseCallbackHandler

    parents = []

    class Recorder(BaseCallbackHandler):
        def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):  # type: ignore[no-untyped-def]
            parents.append(parent_run_id)

    inner = RunnableLambda(lambda x: x)
    outer = RunnableLambda(lambda x: fan_out([lambda: inner.invoke(1), lambda: inner.invoke(2)]).values)
    outer.invoke(0, {"callbacks": [Recorder()]})
    assert len(parents) == 3 and parents[0] is None
    assert parents[1] is not None and parents[1] == parents[2]


def test_raise_stops_at_once_and_names_the_branch() -> None:
    """With on_error="raise" the first failure ends the call, and what has not started never does."""
    started_tasks = []

    def bad() -> None:
        raise KeyError("lost")

    def slow(n: int) -> None:
        started_tasks.append(n)
        time.sleep(2)

    begun = time.monotonic()
    with pytest.raises(BranchError, match="'second' failed: KeyError") as caught:
        fan_out(
            [lambda: slow(0), bad, *[lambda n=n: slow(n) for n in range(1, 20)]],
            max_concurrency=2,
            names=["first", "second", *map(str, range(19))],
        )
    assert isinstance(caught.value.__cause__, KeyError)
    assert time.monotonic() - begun < 1.8
    time.sleep(2.2)
    assert len(started_tasks) <= 3


async def test_raise_cancels_the_others() -> None:
    """On an event loop the other branches are cancelled and have cleaned up when the call returns."""
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


@each_way
def test_skip_reports_what_failed(way: str) -> None:
    """With on_error="skip" the others' values come, and each failure is one line without keys."""

    async def bad() -> None:
        raise ValueError("no\nluck with api_key=sk-canary123456")

    tasks = [waiting(0, 1), bad, waiting(0, 3)]
    result = fan(way, tasks, on_error="skip", names=["a", "b", "c"])
    assert result.values == [1, 3]
    assert [outcome.ok for outcome in result.outcomes] == [True, False, True]
    assert len(result.degradations) == 1
    assert result.degradations[0].startswith("b failed: ValueError: no luck")
    assert "canary" not in result.degradations[0] and "\n" not in result.degradations[0]


@each_way
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_hanging_branch_is_given_up(way: str, on_error: str) -> None:
    """A branch that hangs costs its time-out, not more; time-outs count from the branch's own start."""
    release = threading.Event()
    tasks = [waiting(0.15, "slow but fine"), until(release), waiting(0.15, "last")]
    begun = time.monotonic()
    try:
        if on_error == "raise":
            with pytest.raises(BranchTimeoutError, match=r"timeout=0\.4"):
                fan(way, tasks, timeout=0.4)
        else:
            result = fan(way, tasks, timeout=0.4, on_error="skip", max_concurrency=1)
            assert result.values == ["slow but fine", "last"]
            assert isinstance(result.outcomes[1].error, BranchTimeoutError)
        assert time.monotonic() - begun < 3
    finally:
        release.set()


@each_way
def test_deadlines(way: str) -> None:
    """The deadline of an active budget ends the wait; a budget that is over lets nothing start."""
    release, ran = threading.Event(), list[int]()

    async def task() -> None:
        ran.append(1)

    begun = time.monotonic()
    try:
        with use_budget(Budget(deadline=0.3)):
            result = fan(way, [waiting(0, 1), until(release)], on_error="skip", max_concurrency=2)
        assert result.values == [1] and isinstance(result.outcomes[1].error, BudgetExceededError)
        with use_budget(Budget(deadline=0.3)):
            with pytest.raises(BudgetExceededError, match="deadline"):
                fan(way, [until(release), waiting(0)])
            assert time.monotonic() - begun < 3
            with pytest.raises(BudgetExceededError, match="deadline"):
                fan(way, [task])
        assert ran == []
    finally:
        release.set()


def test_many_quick_branches_do_not_outrun_the_deadline() -> None:
    """The clock is watched between them too."""
    with use_budget(Budget(deadline=0.5)):
        result = fan_out([lambda: wait(0.001, 1)] * 5000, on_error="skip", max_concurrency=2)
    assert 0 < len(result.values) < 2500


@each_way
def test_budgets_are_charged_from_branches(way: str) -> None:
    """Branches charge the caller's budget together, exactly to its cap."""

    async def task() -> int:
        charge_call()
        return 1

    with use_budget(Budget(max_calls=5)) as budget:
        result = fan(way, [task] * 20, on_error="skip")
        assert len(result.values) == 5 and budget.calls == 5
        with pytest.raises(BudgetExceededError):
            fan(way, [task] * 2)


def test_no_lost_errors_are_reported(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio has nothing to say about errors that nobody fetched."""

    async def bad() -> None:
        raise KeyError("lost")

    async def main() -> None:
        for timeout in (None, 5):
            with pytest.raises(BranchError):
                await afan_out([bad, bad, lambda: asyncio.sleep(0.1)], timeout=timeout)
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
    result = await afan_out([stubborn, lambda: asyncio.sleep(0, 1)], timeout=0.1, on_error="skip")
    assert result.values == [1] and time.monotonic() - begun < 4
    stop.set()
    await asyncio.sleep(0.05)


async def test_a_branch_that_cancels_itself_is_a_failure() -> None:
    """A CancelledError that nobody outside asked for follows on_error."""

    async def odd() -> None:
        raise asyncio.CancelledError

    result = await afan_out([odd, lambda: asyncio.sleep(0, 1)], on_error="skip")
    assert result.values == [1] and not result.outcomes[0].ok


def all_ended() -> bool:
    """Whether all calls that were given up end within ten seconds."""
    limit = time.monotonic() + 10
    while pool.count_abandoned() and time.monotonic() < limit:
        time.sleep(0.02)
    return not pool.count_abandoned()


def test_hung_threads_do_not_starve_the_pool() -> None:
    """Beside many hung branches the next fan-out still runs at once."""
    release = threading.Event()
    try:
        for _ in range(3):
            fan_out([lambda: release.wait(60)] * 60, timeout=0.05, on_error="skip")
        assert pool.count_abandoned() >= 150  # those that had begun within the time-out
        begun = time.monotonic()
        assert fan_out([lambda n=n: wait(0.05, n) for n in range(100)]).values == list(range(100))
        assert time.monotonic() - begun < 3
    finally:
        release.set()
    assert all_ended()


def test_too_many_hung_threads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of abandoned threads is bounded: beyond it new work is refused by an error that says why."""
    monkeypatch.setattr(pool, "MAX_ABANDONED", 3)
    release = threading.Event()
    try:
        fan_out([lambda: release.wait(30)] * 3, timeout=0.05, on_error="skip")
        with pytest.raises(BranchError, match="still hang"):
            fan_out([lambda: 1, lambda: 2])
    finally:
        release.set()
    assert all_ended()
    assert fan_out([lambda: 1, lambda: 2]).values == [1, 2]


def nested(levels: int, width: int, leaf: Callable[[], int] = lambda: 1, **options: float) -> int:
    if not levels:
        return leaf()
    tasks = [lambda: nested(levels - 1, width, leaf, **options)] * width
    return sum(fan_out(tasks, **options).values)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"timeout": 60}, {"max_concurrency": 2}])
def test_nested_fan_outs_do_not_deadlock(monkeypatch: pytest.MonkeyPatch, options: dict[str, float]) -> None:
    """Four levels of fan-outs end where far fewer threads are allowed than there are branches."""
    most = 0

    def count() -> int:
        nonlocal most
        most = max(most, len(pool._running))
        return 1

    monkeypatch.setattr(pool, "MAX_THREADS", 4)
    assert nested(4, 4, count, **options) == 4**4
    assert most <= 4 * 5 + 1


def test_an_abandoned_branch_ends_at_its_next_call() -> None:
    """An abandoned branch makes no further model call and starts no nested fan-out."""
    after: list[str] = []

    def branch() -> None:
        time.sleep(0.3)
        try:
            charge_call()
            after.append("called")
        except BranchTimeoutError:
            after.append("stopped")
        try:
            fan_out([lambda: after.append("nested"), lambda: None])
        except BranchTimeoutError:
            after.append("no nesting")

    fan_out([branch, lambda: None], timeout=0.1, on_error="skip")
    time.sleep(0.8)
    assert after == ["stopped", "no nesting"]


def test_keyboard_interrupt_propagates() -> None:
    """Ctrl-C in the waiting caller ends the call at once, also when a branch hangs."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")
    # a job that a shell started in the background ignores SIGINT until it says otherwise
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            fan_out([lambda: wait(5), lambda: wait(5)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_exits_inside_a_branch_propagate(on_error: str) -> None:
    """SystemExit and the like are no failures to skip: they leave the fan-out as they are."""

    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        fan_out([leave, lambda: wait(0.01)], on_error=on_error)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork() -> None:
    """A forked child has a pool that works."""
    fan_out([lambda: 1] * 4)
    child = os.fork()
    if child == 0:
        ok = fan_out([lambda: 1] * 4, timeout=5).values == [1] * 4
        os._exit(0 if ok else 1)
    limit = time.monotonic() + 15
    while time.monotonic() < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hung")


def test_the_interpreter_exits_with_a_hung_thread() -> None:
    """An abandoned thread does not keep Python from ending, nor does it print anything."""
    code = (
        "import time\nfrom rag_kit.concurrency import fan_out\n"
        "print(fan_out([lambda: time.sleep(60), lambda: 1], timeout=.1, on_error='skip').values)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[1]", "")


async def test_nested() -> None:
    """Fan-outs nest, also async in async with limits."""

    async def level(depth: int) -> int:
        if not depth:
            return 1
        return sum((await afan_out([lambda: level(depth - 1)] * 4, max_concurrency=2)).values)

    assert await level(4) == 4**4


@pytest.mark.parametrize(
    "options",
    [
        {"max_concurrency": 0},
        {"max_concurrency": True},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": 1e300},
        {"on_error": "ignore"},
        {"names": ["only one"]},
    ],
)
def test_wrong_arguments(options: dict[str, object]) -> None:
    """An argument that is not allowed is refused by name."""
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        fan_out([lambda: 1, lambda: 2], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("tasks", ["ab", [None], [lambda: 1, 5]])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_wrong_tasks(tasks: object, on_error: str) -> None:
    """A value that is no list of functions is refused at once, not reported as failed branches."""
    with pytest.raises(InvalidInputError, match="tasks"):
        fan_out(tasks, on_error=on_error)  # type: ignore[arg-type]


def test_the_longest_time_that_is_allowed_can_be_waited_for() -> None:
    """The upper bound of a time-out does not overflow the clock."""
    assert fan_out([lambda: 1, lambda: 2], timeout=1e9).values == [1, 2]
    with use_budget(Budget(deadline=1e9)):
        assert fan_out([lambda: 1, lambda: 2]).values == [1, 2]


async def test_a_coroutine_is_no_task() -> None:
    """The message says to give the function; so it does in the asynchronous form, which checks as the other one."""
    coroutine = asyncio.sleep(0)
    with pytest.raises(InvalidInputError, match="give the function"):
        await afan_out([coroutine])  # type: ignore[list-item]
    coroutine.close()


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that have nothing to do go away."""
    monkeypatch.setattr(pool, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(pool, "_idle", deque())
    gate = threading.Barrier(5)
    names = fan_out([lambda: (gate.wait(5), threading.current_thread())[1]] * 5, max_concurrency=5).values
    limit = time.monotonic() + 10
    while any(thread.is_alive() for thread in names) and time.monotonic() < limit:
        time.sleep(0.02)
    assert len(set(names)) == 5 and not any(thread.is_alive() for thread in names)


def test_a_system_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the system starts no thread there is an error, not a wait for ever."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool, "_idle", deque())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(BranchError, match="no thread"):
        fan_out([lambda: 1, lambda: 2])


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
