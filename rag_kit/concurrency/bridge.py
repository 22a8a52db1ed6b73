"""Calls between blocking code and event loops, in both directions.

A client's pooled connections belong to the event loop that opened them. So a blocking call runs its coroutines on a
`BridgeLoop`, where clients are called by their blocking side and open no connection of a loop; of a user's loops, the
first that calls a client natively keeps that client's async side for itself.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, WeakSet, ref

from rag_kit.concurrency.pool import MAX_WIDTH, PooledCall

if sys.platform == "win32":
    from asyncio import ProactorEventLoop as _Loop
else:
    from asyncio import SelectorEventLoop as _Loop

T = TypeVar("T")
P = ParamSpec("P")

_CANCEL_SECONDS = 30.0  # that a coroutine gets to end after Ctrl-C
_LOOP_ERRORS = ("Event loop is closed", "attached to a different loop", "bound to a different event loop")

#: By client: the event loop that its connections belong to (None: unknown), and the generator that closes them.
_owners: WeakKeyDictionary[Any, tuple[ref[asyncio.AbstractEventLoop] | None, AsyncGenerator[None]]]
_owners = WeakKeyDictionary()
_thread_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class PoolExecutor(ThreadPoolExecutor):
    """The default executor of an event loop, on the kit's threads; closing the loop waits for none.

    asyncio looks host names up on its default executor and joins its threads when the loop closes: a name server that
    does not answer would keep a cancelled run from ending.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start the call at once."""
        return PooledCall(partial(fn, *args, **kwargs)).future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing."""


class BridgeLoop(_Loop):
    """The event loop of one blocking call; it closes the connections opened on it before it ends.

    The kit itself opens none on it, but a user's coroutine function may. A client that finds its connections closed
    opens new ones; with connections of a loop that is gone its next requests would fail.
    """

    def __init__(self) -> None:
        super().__init__()
        self._opened: WeakSet[Any] = WeakSet()
        self.set_default_executor(PoolExecutor())

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        """Open a connection as asyncio does, and record its transport for `close`."""
        transport, protocol = await super().create_connection(*args, **options)
        self._opened.add(transport)
        return transport, protocol

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing, where asyncio would start a thread to wait for the others."""

    def close(self) -> None:
        """Close the connections, then the loop."""
        _thread_slots.pop(self, None)  # a semaphore that was waited for keeps its loop alive
        if not self.is_closed() and self._opened:
            for transport in self._opened:
                transport.abort()
            self.call_soon(self.stop)  # one turn of the loop, in which the transports end
            self.run_forever()
        super().close()


async def run_in_thread(func: Callable[..., T], *args: object) -> T:
    """Run a blocking function on a thread, in a copy of the caller's context.

    An event loop uses at most 256 threads at a time (asyncio's own pool has six on two cores, so calls would queue up).
    If the caller is cancelled, the thread is abandoned. BranchError is raised while too many abandoned ones hang.
    """
    async with _thread_slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MAX_WIDTH)):
        call = PooledCall(partial(func, *args))
        try:
            return await asyncio.wrap_future(call.future)
        finally:  # if the caller is cancelled; to a call that has ended it does nothing
            call.give_up()


def run_coroutine(awaitable: Awaitable[T]) -> T:
    """Run a coroutine from blocking code, also inside a running event loop (Jupyter).

    Ctrl-C cancels it, and is raised when it has ended (after 30 seconds at the latest).
    """
    tasks: list[asyncio.Task[Any] | None] = []  # filled by `run_as_task`: the task that Ctrl-C cancels

    async def run_as_task() -> T:
        tasks.append(asyncio.current_task())
        return await awaitable

    def run() -> T:
        with asyncio.Runner(loop_factory=BridgeLoop) as runner:
            return runner.run(run_as_task())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    # The loop of this thread waits for us, so it cannot run the coroutine; a thread has to.
    call = PooledCall(run)
    try:
        return call.future.result()
    except KeyboardInterrupt:
        for task in tasks:
            if task is not None and not call.future.done():
                task.get_loop().call_soon_threadsafe(task.cancel)
                wait([call.future], _CANCEL_SECONDS)
        raise


def blocking(function: Callable[P, Coroutine[Any, Any, T]], name: str) -> Callable[P, T]:
    """Make the blocking form of a coroutine function; it has another name, the same arguments and documentation."""

    @wraps(function)
    def call(*args: P.args, **settings: P.kwargs) -> T:
        return run_coroutine(function(*args, **settings))

    call.__name__ = call.__qualname__ = name
    return call


async def call_client(
    native: Callable[[], Awaitable[T]], blocking: Callable[[], T] | None, connections: Sequence[object] = ()
) -> T:
    """Call a model, a retriever or a graph by its async function ``native``, or on a thread by the ``blocking`` one.

    The blocking function is called on a `BridgeLoop`, and also if one of the client's known ``connections`` belongs to
    another event loop. It is None, or raises NotImplementedError, for a client that has only the async function.
    """
    if blocking is None:
        return await native()
    loop = asyncio.get_running_loop()
    if isinstance(loop, BridgeLoop) or not await _claim_connections(loop, connections):
        with suppress(NotImplementedError):
            return await run_in_thread(blocking)
        return await native()
    try:
        return await native()
    except Exception as error:
        if not of_another_loop(error):
            raise
    # from now on the connections count as those of an unknown loop: later calls go to the blocking function at once
    for client in connections:
        if client in _owners:
            _, closer = _owners[client]
            _owners[client] = None, closer
    return await run_in_thread(blocking)


def linked_errors(error: BaseException) -> list[BaseException]:
    """List an exception, its causes, those that were being handled, and those of its group; each once, if in a ring."""
    linked = [error]
    for current in linked:  # the list grows while it is read
        members = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        for other in (current.__cause__, current.__context__, *members):
            if other is not None and not any(other is known for known in linked):
                linked.append(other)
    return linked


def of_another_loop(error: BaseException) -> bool:
    """Tell whether a call failed because a connection or lock belongs to another event loop, or a closed one."""
    problems = (str(cause) for cause in linked_errors(error) if isinstance(cause, RuntimeError))
    return any(text in problem for problem in problems for text in _LOOP_ERRORS)


def call_function(func: Callable[..., Any], *args: object) -> Any:
    """Call a user's function, which may be asynchronous, from blocking code."""
    result = func(*args)
    return run_coroutine(result) if inspect.isawaitable(result) else result


async def acall_function(func: Callable[..., Any], *args: object) -> Any:
    """Call a user's function, which may be asynchronous, from async code; a blocking function runs on a thread."""
    functions = (func, getattr(func, "__call__", None))  # noqa: B004 - an object may have a coroutine function
    is_async = any(map(inspect.iscoroutinefunction, functions))
    result = func(*args) if is_async else await run_in_thread(func, *args)
    return await result if inspect.isawaitable(result) else result


async def _claim_connections(loop: asyncio.AbstractEventLoop, connections: Sequence[object]) -> bool:
    """Make this loop the owner of the connections that have no owner; return False if another loop owns one of them."""
    for client in connections:
        try:
            owner, _ = _owners[client]
        except TypeError:
            continue  # a class without weak references: the owner cannot be recorded
        except KeyError:
            closer = _close_with_loop(ref(client))
            _owners[client] = ref(loop), closer
            await anext(closer)  # runs it up to its `yield`; the rest runs when the loop ends
        else:
            if owner is None or owner() is not loop:
                return False
    return True


async def _close_with_loop(reference: ref[Any]) -> AsyncGenerator[None]:
    """Wait until the loop ends, when ``asyncio.run`` closes its generators; then close an HTTP client's connections."""
    try:
        yield
    finally:
        client = reference()
        # only the pools of an httpx client are closed: they open new connections, but a closed client is of no more use
        for pool in [getattr(client, "_transport", None), *getattr(client, "_mounts", {}).values()]:
            if hasattr(pool, "aclose"):
                _owners.pop(client, None)
                with suppress(RuntimeError):  # connections of another loop are dropped without a farewell
                    await pool.aclose()
