"""What a tracker does wrong becomes one clear error, in time, without a key: the same for all three."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.tracked_results import KEY, TRACKERS, entries, some_results
from support.trackers import FakeLangSmith, FakeMlflow, FakePhoenix, FakeTracker

from rag_kit.errors import TrackingError
from rag_kit.evaluation import (
    alog_to_langsmith,
    alog_to_mlflow,
    alog_to_phoenix,
)

Write = Callable[..., Any]


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
def test_a_server_that_is_down_is_named(fake: type[FakeTracker], write: Write) -> None:
    """Nobody listens: the error names the address and what to do, within the time-out."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(TrackingError, match="cannot be reached") as caught:
            write(some_results(), url=url, api_key=KEY, timeout=5.0, max_retries=1)
    assert time.monotonic() - started < 5
    assert url in str(caught.value) and KEY not in str(caught.value) and caught.value.status is None


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_told_and_not_shown(
    fake: type[FakeTracker], write: Write, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The server quotes the key that it was given; neither the error nor a log repeats it. It is asked once."""
    caplog.set_level(logging.DEBUG)
    with fake(key="another" if status == 401 else None) as server:
        if status == 403:
            server.answer_with(403)
        with pytest.raises(TrackingError, match="api_key") as caught:
            write(some_results(), url=server.url, api_key=KEY)
        assert len(server.requests) == 1
    assert caught.value.status == status and str(status) in str(caught.value)
    assert KEY not in str(caught.value) and KEY not in repr(caught.value) and KEY not in caplog.text


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
def test_a_server_that_fails_is_asked_again_and_then_given_up(fake: type[FakeTracker], write: Write) -> None:
    """500 on every request: as many attempts as are allowed, then the error with its status."""
    with fake() as server:
        server.answer_with(500)
        with pytest.raises(TrackingError, match="500") as caught:
            write(some_results(), url=server.url, max_retries=1)
        assert len(server.requests) == 2
    assert caught.value.status == 500


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
def test_a_server_that_says_nothing_is_left_in_time(fake: type[FakeTracker], write: Write) -> None:
    """It holds the connection open; the error comes when the time-out is over, not once for each retry."""
    with fake() as server:
        server.answer_with(wait=30.0)
        started = time.monotonic()
        with pytest.raises(TrackingError, match="did not answer"):
            write(some_results(), url=server.url, timeout=0.5, max_retries=5)
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
def test_a_deadline_holds_for_everything(fake: type[FakeTracker], write: Write) -> None:
    """Each request is quick enough for its time-out, all together are not."""
    with fake() as server:
        server.answer_with(429, headers={"Retry-After": "0.2"})
        started = time.monotonic()
        with pytest.raises(TrackingError):
            write(some_results(), url=server.url, timeout=30.0, max_retries=10, deadline=0.7)
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
def test_what_passes_by_is_waited_for(fake: type[FakeTracker], write: Write) -> None:
    """Once too many requests, once an answer from a proxy, once a broken connection: everything arrives, once."""
    results = some_results()
    with fake() as server:
        server.answer_with(429, times=1, headers={"Retry-After": "0"})
        server.answer_with(503, times=1)
        server.answer_with(times=1, method="GET")
        tracked = write(results, url=server.url, max_retries=3)
        again = write(results, url=server.url)
    assert tracked.failed == 0 and again.written == 0 and again.skipped == tracked.written
    if fake is not FakeMlflow:
        assert tracked.written == entries(results)


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
def test_an_answer_of_something_else_is_told(fake: type[FakeTracker], write: Write) -> None:
    """A page of HTML, a login page behind a redirect, an empty object: an error that says so, no AttributeError."""
    for status, body in (
        (200, "<html>hello</html>"),
        (200, {"unexpected": 1}),
        (302, "moved"),
        (404, "Not Found"),
    ):
        with fake() as server:
            server.answer_with(status, body=body, headers={"Location": "https://me:pw@login.example/x?key=1"})
            with pytest.raises(TrackingError) as caught:
                write(some_results(), url=server.url)
            assert "pw" not in str(caught.value)


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
def test_an_error_in_the_middle_says_how_far_it_came_and_goes_on(
    fake: type[FakeTracker], write: Write
) -> None:
    """The error holds the counts; written again, only the rest is written, and nothing is there twice."""
    results = some_results(10)
    path = {FakeLangSmith: "/feedback", FakePhoenix: "/experiment_evaluations", FakeMlflow: "rows.json"}[fake]
    method = "PUT" if fake is FakeMlflow else "POST"
    with fake() as server:
        server.answer_with(500, path=path, method=method)
        with pytest.raises(TrackingError) as caught:
            write(results, url=server.url, max_retries=0)
        before = caught.value.tracked
        server.faults.clear()
        rest = write(results, url=server.url)
        again = write(results, url=server.url)
    assert before is not None and before.written > 0 and before.run_id == rest.run_id == again.run_id
    assert rest.written > 0 and rest.skipped >= before.written
    assert again.written == 0 and again.skipped == rest.written + rest.skipped


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
def test_keys_are_in_no_body_and_no_log(
    fake: type[FakeTracker], write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the tracker's key nor those that stand in settings or in errors of the pipeline are sent or logged."""
    caplog.set_level(logging.DEBUG)
    with fake(key=KEY) as server:
        tracked = write(some_results(), url=server.url, api_key=KEY)
        sent = b"\n".join(asked.raw for asked in server.requests).decode("utf-8")
        paths = "\n".join(asked.path for asked in server.requests)
    for secret in (KEY, "sk-abcdef123456", "sk-settings-secret-1", "abcdef1234567890"):
        assert secret not in sent
        assert secret not in paths + caplog.text + repr(tracked)


@pytest.mark.parametrize(
    ("fake", "write"),
    [(FakeLangSmith, alog_to_langsmith), (FakeMlflow, alog_to_mlflow), (FakePhoenix, alog_to_phoenix)],
)
async def test_async_code_is_not_held_up(fake: type[FakeTracker], write: Write) -> None:
    """The event loop goes on while a slow server is written to; counts and errors are the same."""
    with fake() as server:
        server.answer_with(429, times=1, headers={"Retry-After": "0.3"})
        turns = 0
        task = asyncio.ensure_future(write(some_results(), url=server.url))
        while not task.done():
            turns += 1
            await asyncio.sleep(0.01)
        tracked = task.result()
        assert turns > 5 and tracked.written > 0
        server.answer_with(500)
        with pytest.raises(TrackingError):
            await write(some_results(), url=server.url, max_retries=0)
