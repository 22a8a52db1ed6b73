"""Blocking code below an event loop, coroutines below blocking code, and which side of a client is called."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rag_kit.concurrency import fan_out
from rag_kit.concurrency.bridge import (
    BridgeLoop,
    acall_function,
    blocking,
    call_client,
    call_function,
    run_coroutine,
    run_in_thread,
)
from rag_kit.errors import ModelError
from rag_kit.models.failures import map_model_error

WHO: ContextVar[str] = ContextVar("who", default="nobody")


class Client:
    """A client with both sides, whose connections are of the loop that opened them."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.sides: list[str] = []

    async def native(self) -> str:
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            self.sides.append("failed")
            raise ConnectionError("Connection error.") from RuntimeError("Event loop is closed")
        self.sides.append("async")
        return "async"

    def blocking(self) -> str:
        self.sides.append("blocking")
        return "blocking"


async def test_a_blocking_call_uses_the_blocking_side_of_a_client() -> None:
    """On the loop of a blocking call its async side is never touched; on the user's own loop it is what is called."""
    client = Client()

    async def called() -> str:
        return await call_client(client.native, client.blocking, [client])

    assert run_coroutine(called()) == "blocking"
    assert await called() == "async"
    assert run_coroutine(called()) == "blocking"
    assert client.sides == ["blocking", "async", "blocking"]


def test_a_client_belongs_to_the_first_loop_that_called_it() -> None:
    """Another loop uses the blocking side from the start; where that loop was not seen, after one failure."""
    first = asyncio.new_event_loop()
    for seen, wanted in (
        (True, ["async", "blocking", "blocking"]),
        (False, ["failed", "blocking", "blocking"]),
    ):
        client = Client()

        async def called(client: Client = client) -> str:
            return await call_client(client.native, client.blocking, [client])

        if seen:
            first.run_until_complete(called())
        else:
            client.loop = asyncio.new_event_loop()
            client.loop.close()
        assert {asyncio.run(called()) for _ in range(2)} == {"blocking"}
        assert client.sides == wanted
    first.close()


def test_a_loop_that_ends_gives_its_clients_back() -> None:
    """``asyncio.run`` closes the pool of connections before its loop is gone: the next one is native again."""

    class Pool:
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    client = Client()
    client._transport = pool = Pool()  # type: ignore[attr-defined]
    for number in range(1, 3):
        client.loop = None
        assert asyncio.run(call_client(client.native, client.blocking, [client])) == "async"
        assert pool.closed == number


def test_a_client_without_a_blocking_side_is_awaited() -> None:
    """Whether it says so beforehand or by NotImplementedError."""

    async def native() -> str:
        return "async"

    def refuses() -> str:
        raise NotImplementedError

    assert run_coroutine(call_client(native, None)) == "async"
    assert run_coroutine(call_client(native, refuses)) == "async"


def test_a_closed_loop_is_not_an_unreachable_endpoint() -> None:
    """The message says what it is, and nothing tells the user to look at the server."""
    error = ConnectionError("Connection error.")
    error.__cause__ = RuntimeError("Event loop is closed")
    mapped = map_model_error(error)
    assert type(mapped) is ModelError
    assert "another event loop" in str(mapped)
    assert "reached" not in str(mapped)


async def test_connections_are_closed_before_their_loop_ends() -> None:
    """A resource that a user's coroutine function kept from an ended loop is seen as closed by the next call."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    kept: list[asyncio.StreamWriter] = []

    async def opens() -> None:
        kept.append((await asyncio.open_connection("127.0.0.1", port))[1])

    await asyncio.to_thread(run_coroutine, opens())
    assert kept[0].transport.is_closing()
    assert kept[0].get_extra_info("socket").fileno() == -1
    server.close()


async def test_context_variables_are_visible_inside() -> None:
    """From a script and from a running loop, in coroutines and in blocking functions below them."""

    async def seen() -> list[str]:
        return [WHO.get(), await run_in_thread(WHO.get), await acall_function(WHO.get)]

    WHO.set("Ada")
    assert run_coroutine(seen()) == ["Ada"] * 3
    assert await asyncio.to_thread(run_coroutine, seen()) == ["Ada"] * 3


async def test_blocking_calls_nest_and_run_side_by_side() -> None:
    """A blocking call below another, and many from threads, on the thread of a running loop and off it."""

    async def leaf(number: int) -> int:
        await asyncio.sleep(0.001)
        assert isinstance(asyncio.get_running_loop(), BridgeLoop)
        return number

    async def nested(number: int) -> int:
        below: int = await run_in_thread(run_coroutine, leaf(number))
        return below + run_coroutine(leaf(1))

    assert fan_out([partial(run_coroutine, nested(n)) for n in range(20)]).values == list(range(1, 21))
    assert run_coroutine(nested(1)) == 2


def test_a_blocking_form_has_a_name_of_its_own() -> None:
    """Arguments and documentation are those of the coroutine function."""

    async def adouble(number: int) -> int:
        """Twice the number."""
        return 2 * number

    double = blocking(adouble, "double")
    assert double(number=2) == 4
    assert (double.__name__, double.__doc__) == ("double", "Twice the number.")


def test_a_function_may_be_of_either_kind() -> None:
    """A plain function, a coroutine function, one behind ``partial``, an object, a function that gives a coroutine."""

    async def double(x: int) -> int:
        return 2 * x

    class Doubler:
        async def __call__(self, x: int) -> int:
            return 2 * x

    kinds: list[Callable[[int], Any]] = [
        lambda x: 2 * x,
        double,
        partial(double),
        Doubler(),
        lambda x: double(x),
    ]
    for kind in kinds:
        assert call_function(kind, 2) == 4
        assert asyncio.run(acall_function(kind, 2)) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_calls_as_its_parent_does() -> None:
    """Also one that was made while a blocking call was running."""
    script = """
import os
from rag_kit.concurrency.bridge import run_coroutine, run_in_thread

async def three():
    return await run_in_thread(sum, [1, 2])

def forked():
    child = os.fork()
    if not child:
        os._exit(0 if run_coroutine(three()) == 3 else 1)
    return os.waitpid(child, 0)[1]

async def inside():
    return forked()

assert run_coroutine(three()) == 3
assert forked() == 0
assert run_coroutine(inside()) == 0
assert run_coroutine(three()) == 3
print("done")
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


@pytest.mark.parametrize("where", ["script", "notebook"])
def test_ctrl_c_ends_a_blocking_call_that_waits_for_a_client(where: str, tmp_path: Path) -> None:
    """KeyboardInterrupt reaches the user; coroutines clean up, and nobody waits for the client's thread."""
    script = f"""
import asyncio, threading, sys
from rag_kit.concurrency.bridge import run_coroutine
from rag_kit.concurrency.bridge import call_client

async def waits():
    print("waiting", flush=True)
    try:
        await call_client(asyncio.Event().wait, threading.Event().wait)
    finally:
        print("cleaned", flush=True)

def call():
    try:
        run_coroutine(waits())
    except KeyboardInterrupt:
        print("interrupted", flush=True)

async def notebook():
    call()

if {where!r} == "script":
    call()
else:
    loop = asyncio.new_event_loop()  # as ipykernel has it: Ctrl-C is raised in what runs there
    loop.run_until_complete(notebook())
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[0] == "cleaned\ninterrupted\n"
    finally:
        process.kill()
    assert process.returncode == 0
