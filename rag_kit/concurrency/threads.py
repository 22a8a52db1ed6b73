"""Blocking third-party code inside async code, and the other way round."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

from rag_kit.concurrency.branch import Branch, current_branch
from rag_kit.concurrency.pool import shared_pool
from rag_kit.concurrency.threaded import branch_context

T = TypeVar("T")


async def run_in_thread(func: Callable[..., T], *args: object) -> T:
    """Run a blocking function on the shared pool, in a copy of the caller's context.

    asyncio's own default pool has few threads (six on two cores), so fan-outs through it queue up. If the
    caller is cancelled, the thread is abandoned.

    Args:
        func: The function.
        *args: Its arguments.

    Returns:
        What the function returns.

    Raises:
        BranchError: If too many abandoned threads hang already.
        Exception: What the function raises.

    Example:
        >>> import asyncio
        >>> asyncio.run(run_in_thread(sorted, [3, 1, 2]))
        [1, 2, 3]
    """
    pool = shared_pool()
    pool.check_room()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    parent = current_branch.get()
    branch = Branch(parent)
    context = branch_context(copy_context(), branch)
    lock = threading.Lock()
    thread: list[threading.Thread] = []

    def job() -> None:
        with lock:
            if branch.abandoned:
                return
            thread.append(threading.current_thread())
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(func, *args)
        except StopIteration as raised:
            error = RuntimeError("The function raised StopIteration, which cannot pass through await.")
            error.__cause__ = raised
        except BaseException as raised:  # noqa: BLE001 - handed to the waiting coroutine
            error = raised
        with lock:
            thread.clear()
            if not branch.abandoned and not loop.is_closed():
                loop.call_soon_threadsafe(_settle, future, value, error)

    pool.submit(job, branch.depth)
    try:
        with pool.waiting():
            return await future
    except asyncio.CancelledError:
        with lock:
            branch.abandon()
            if thread:
                pool.abandon(thread[0])
        raise


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from blocking code, also where an event loop already runs in this thread (Jupyter).

    Args:
        coroutine: What an ``async def`` function returned.

    Returns:
        What the coroutine returns.

    Raises:
        Exception: What the coroutine raises.

    Example:
        >>> async def double(x):
        ...     return 2 * x
        >>> run_coroutine(double(2))
        4
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    pool = shared_pool()
    branch = Branch(current_branch.get())
    context = branch_context(copy_context(), branch)
    done: Future[T] = Future()

    def job() -> None:
        try:
            done.set_result(context.run(asyncio.run, coroutine))
        except BaseException as raised:  # noqa: BLE001 - handed to the waiting caller
            done.set_exception(raised)

    pool.submit(job, branch.depth)
    with pool.waiting():
        return done.result()


def _settle(future: asyncio.Future[T], value: T | None, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)  # type: ignore[arg-type]
