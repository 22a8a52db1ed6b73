"""Logic written once, as a coroutine that awaits steps, and carried out either blocking or on an event loop.

A step is one action in two forms. The logic awaits nothing but steps and other logic, so whoever carries it out
chooses the form: `run` calls the blocking one of each step, on no event loop at all; `arun` awaits the other. A call
within a time-out has the same two forms: `call_in_time` and `acall_in_time`.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeGuard, TypeVar

from rag_kit.concurrency.budget import active_budgets
from rag_kit.concurrency.pool import PooledCall, check_abandoned
from rag_kit.errors import BranchTimeoutError, BudgetExceededError, InvalidInputError

T = TypeVar("T")

Logic = Coroutine[Any, Any, T]
"""What an ``async def`` function returns that awaits steps and other logic only."""

#: Seconds that a cancelled task gets to clean up; one that refuses to end is then left to itself.
_GRACE_SECONDS = 1.0


class TimeLimit(NamedTuple):
    """The seconds that a call may take (``None``: any time), and what makes the error for one that takes longer."""

    seconds: float | None
    make_error: Callable[[], Exception]


@dataclass(slots=True, eq=False)
class Step(Generic[T]):
    """One action in two forms, blocking (`sync`) and asynchronous (`native`); awaiting it gives its result.

    Either function takes the context that `run` or `arun` was given; the name is for messages about a failure.
    """

    name: str
    sync: Callable[[Any], T]
    native: Callable[[Any], Awaitable[T]]

    def __await__(self) -> Generator[Step[T], T, T]:
        return (yield self)


def call_step(name: str, sync: Callable[[], T], native: Callable[[], Awaitable[T]]) -> Step[T]:
    """Make a step of two functions that take no context."""
    return Step(name, lambda _: sync(), lambda _: native())


def run(logic: Logic[T], context: Any = None) -> T:
    """Carry out the logic, blocking; each step is given the context, such as a config or a budget.

    Example:
        >>> async def logic():
        ...     answer = await Step("ask", lambda name: f"question to {name}", None)
        ...     return answer + "!"
        >>> run(logic(), "Ada")
        'question to Ada!'
    """

    async def act(step: Step[Any]) -> Any:
        return step.sync(context)

    driver = _carry_out(logic, act)
    try:
        driver.send(None)  # starts it; blocking steps never suspend, so it runs to its end
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("a blocking step was suspended")


def arun(logic: Logic[T], context: Any = None) -> Awaitable[T]:
    """Return an awaitable that carries out the logic on the event loop, by the asynchronous form of each step."""
    return _carry_out(logic, lambda step: step.native(context))


def both_forms(
    logic: Callable[..., Logic[T]], *arguments: Any
) -> tuple[Callable[[], T], Callable[[], Awaitable[T]]]:
    """Return a blocking function and an asynchronous one, each of which carries out the logic anew."""
    return (lambda: run(logic(*arguments))), (lambda: arun(logic(*arguments)))


@types.coroutine
def _carry_out(logic: Logic[T], act: Callable[[Step[Any]], Awaitable[Any]]) -> Generator[Any, Any, T]:
    """Drive the logic as an event loop drives a coroutine: await ``act(step)`` for each step, send back its result."""
    resume: Callable[[Any], Any] = logic.send  # or `logic.throw`, which raises a step's error there
    value: Any = None
    while True:
        try:
            step = resume(value)
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            if not isinstance(step, Step):
                raise InvalidInputError(
                    f"a coroutine that also runs without an event loop awaited {step!r:.80}; it may await steps only "
                    "(rag_kit.concurrency.steps.Step)"
                )
            value = yield from act(step)  # type: ignore[misc] # a coroutine or a future
            resume = logic.send
        except BaseException as error:  # noqa: BLE001 - raised inside the logic, which may handle it
            value, resume = error, logic.throw


def is_control_flow(error: object) -> bool:
    """Tell whether an exception is LangGraph's signal to a running graph, such as a pause (``interrupt``): no failure.

    Whatever skips, retries or replaces failures must let it pass, up to the graph. Nothing below the graphs imports
    LangGraph, so it is recognised by the name of its class.
    """
    return any(
        f"{cls.__module__}.{cls.__name__}" == "langgraph.errors.GraphBubbleUp" for cls in type(error).__mro__
    )


def ends_run(error: object) -> TypeGuard[Exception]:
    """Tell whether no other attempt and no fallback may mend an exception: a used-up budget, or control flow."""
    return isinstance(error, BudgetExceededError) or is_control_flow(error)


def time_limit(timeout: float | None = None, name: str = "It") -> TimeLimit:
    """Return the seconds that a call may take, and a function that makes the error for a call that takes longer.

    It is the time-out or, if that is nearer, the deadline of an active budget; ``name`` names the call in the error.
    Raises BudgetExceededError after the deadline of an active budget, BranchTimeoutError in an abandoned branch.
    """
    check_abandoned()
    first_to_end = min(active_budgets.get(), key=attrgetter("ends"), default=None)
    seconds_left = first_to_end.remaining_seconds() if first_to_end else None
    if first_to_end and seconds_left is not None and (timeout is None or seconds_left < timeout):
        make_error = partial(BudgetExceededError, "deadline", first_to_end.deadline or 0)
        if seconds_left == 0:
            raise make_error()
        return TimeLimit(seconds_left, make_error)
    return TimeLimit(timeout, lambda: BranchTimeoutError(f"{name} took longer than timeout={timeout:g} s."))


def call_in_time(func: Callable[[], T], timeout: float | None, name: str = "It") -> T:
    """Call a function on a thread that is abandoned when it is late; without a time limit, on the caller's thread.

    Raises BranchTimeoutError after ``timeout`` seconds, BudgetExceededError if an active budget's deadline is first.
    """
    seconds, make_error = time_limit(timeout, name)
    if seconds is None:
        return func()
    call = PooledCall(func)
    try:
        call.future.exception(seconds)  # waits until it has ended, with a result or an error
    except TimeoutError:
        raise make_error() from None
    finally:  # if it is late or this thread interrupted; to a call that has ended it does nothing
        call.give_up()
    return call.future.result()


async def acall_in_time(func: Callable[[], Awaitable[T]], timeout: float | None, name: str = "It") -> T:
    """Await a call with a time limit; a late call is cancelled and gets one second to end.

    The clock runs outside the task, so that one which swallows cancellation cannot stop it.
    """
    seconds, make_error = time_limit(timeout, name)
    if seconds is None:
        return await func()
    task = asyncio.ensure_future(func())
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        await cancel_tasks({task})
    if not done:
        raise make_error()
    return task.result()


def timed_step(
    name: str, sync: Callable[[], T], native: Callable[[], Awaitable[T]], timeout: float | None
) -> Step[T]:
    """Make a step of two functions that have ``timeout`` seconds; ``name`` names it in the error of a late one."""
    return call_step(
        name, partial(call_in_time, sync, timeout, name), partial(acall_in_time, native, timeout, name)
    )


async def cancel_tasks(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel tasks and give them a second to end."""
    running = [task for task in tasks if not task.done()]
    for task in tasks:
        task.cancel()
        # its error is read, or asyncio reports it as lost
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
    if running:
        await asyncio.wait(running, timeout=_GRACE_SECONDS)
