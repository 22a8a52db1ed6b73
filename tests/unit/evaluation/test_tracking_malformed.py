"""An answer that is not what a tracker's API gives becomes one clear error: the same for all three."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.tracked_results import KEY, TRACKERS, some_results
from support.trackers import Asked, FakeLangSmith, FakeMlflow, FakePhoenix, FakeTracker

from rag_kit.errors import InvalidInputError, TrackingError
from rag_kit.evaluation import Results

#: What is read of the answer to each of these.
READ = {
    FakeLangSmith: [("GET", "/datasets"), ("POST", "/datasets"), ("GET", "/examples"), ("GET", "/sessions"),
                    ("POST", "/sessions"), ("POST", "/runs/query"), ("GET", "/feedback")],
    FakeMlflow: [("GET", "/experiments/get-by-name"), ("POST", "/experiments/create"), ("POST", "/runs/search"),
                 ("POST", "/runs/create")],
    FakePhoenix: [("POST", "/upload"), ("GET", "/examples"), ("GET", "/experiments"), ("POST", "/experiments"),
                  ("GET", "/runs"), ("POST", "/runs"), ("GET", "/incomplete-evaluations")],
}  # fmt: skip
#: Those that come, or have something to say, only where something is there already.
READ_LATER = ("/feedback", "/incomplete-evaluations", "/experiments/get-by-name")
Write = Callable[..., Any]


def _results() -> Results:
    results = some_results()
    return Results(results.name, results.rows[:2], results.metrics, results.manifest)


def _ends(path: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.path.endswith(path)


def _broken(value: Any) -> Iterator[Any]:
    """The value with one thing wrong: an entry missing, null, or of another kind; of a list its first entry."""
    yield from (None, [], {}, 7, "text", [7], {"detail": [1]}, [[]], [{}], [None])
    if isinstance(value, dict):
        for key, entry in value.items():
            yield {name: each for name, each in value.items() if name != key}
            yield from ({**value, key: each} for each in _inner(entry))
    elif isinstance(value, list) and value:
        yield from ([each, *value[1:]] for each in _inner(value[0]))


def _inner(value: Any, depth: int = 0) -> Iterator[Any]:
    yield from (None, [], {}, True, -1.5, "", "a\nb")
    if isinstance(value, dict) and depth < 3:
        for key, entry in value.items():
            yield {name: each for name, each in value.items() if name != key}
            if key not in ("inputs", "outputs", "input", "output", "metadata") or depth < 1:
                yield from ({**value, key: each} for each in _inner(entry, depth + 1))
    elif isinstance(value, list) and value and depth < 3:
        yield from ([each, *value[1:]] for each in _inner(value[0], depth + 1))


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
@pytest.mark.parametrize(
    "body",
    [
        b"<!doctype html><title>Log in</title>" + b"x" * 5000 + KEY.encode(),
        b'{"data": [{"id": "1", "na',
        b"[" * 100_000,
        b'{"runs": 5, "secret": "' + KEY.encode() + b'"}',
        b"[7]",
        b"null",
    ],
)
def test_what_is_no_answer_is_told_with_the_request(
    fake: type[FakeTracker], write: Write, body: bytes
) -> None:
    """HTML, half a JSON, another kind of value: what was asked of whom, what came (short, no key), what to do."""
    for method, path in READ[fake]:
        with fake() as server:
            if path in READ_LATER:
                write(_results(), url=server.url)
            server.answer_with(change=lambda value: body, method=method, when=_ends(path))
            with pytest.raises(TrackingError) as caught:
                write(_results(), url=server.url, api_key=KEY, timeout=5.0)
            text = str(caught.value)
            assert server.url in text and f"answered 200 to {method} " in text and path in text, text
            assert "see that the address" in text and KEY not in text and len(text) < 900, text
            assert caught.value.tracked is not None


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
def test_a_page_instead_of_an_answer_to_a_write_is_not_taken_for_success(
    fake: type[FakeTracker], write: Write
) -> None:
    """A proxy that answers 200 with a login page to whatever is sent: nothing counts as written."""
    path = {FakeLangSmith: "/feedback", FakeMlflow: "/runs/log-batch", FakePhoenix: "/experiment_evaluations"}
    with fake() as server:
        server.answer_with(200, body=b"<html>log in", method="POST", path=path[fake])
        with pytest.raises(TrackingError, match=r"no JSON: .*log in"):
            write(_results(), url=server.url)


@pytest.mark.parametrize(("fake", "write"), TRACKERS)
@pytest.mark.parametrize("place", range(7))
def test_no_malformed_answer_is_a_bug(fake: type[FakeTracker], write: Write, place: int) -> None:
    """Every entry missing, null or of another kind: it does not matter, or it is the kit's own error."""
    if place >= len(READ[fake]):
        return
    method, path = READ[fake][place]
    with fake() as server:
        answers: list[Any] = []
        server.answer_with(
            change=lambda value: answers.append(value) or value, method=method, when=_ends(path)
        )
        write(_results(), url=server.url)
        write(_results(), url=server.url)
        broken = {json.dumps(each): each for answer in (answers[0], answers[-1]) for each in _broken(answer)}
        refused, all_of_them = 0, list(broken.values())
        for each in all_of_them[:: -(-len(all_of_them) // 8)]:  # evenly, for time
            if method == "POST":  # on a second writing most are not sent
                for kept in ("datasets", "examples", "sessions", "experiments", "runs", "feedback"):
                    if isinstance(getattr(server, kept, None), dict):
                        getattr(server, kept).clear()
            server.faults.clear()
            server.answer_with(change=lambda value, each=each: each, method=method, when=_ends(path))
            try:
                write(_results(), url=server.url, timeout=0.3, max_retries=0)
            except (TrackingError, InvalidInputError):
                refused += 1
    assert refused >= 2


@pytest.mark.parametrize(("fake", "write"), [TRACKERS[0], TRACKERS[2]])
def test_pages_that_do_not_end_are_left(fake: type[FakeTracker], write: Write) -> None:
    """A server that gives the same page for ever is told, not read for ever."""
    results = some_results(120)
    with fake() as server:
        write(results, url=server.url)
        pages: list[Any] = []
        path = "/examples" if fake is FakeLangSmith else "/runs"

        def same(value: Any) -> Any:
            pages.append(value)
            assert len(pages) < 20
            return pages[0]

        server.answer_with(change=same, method="GET", when=_ends(path))
        with pytest.raises(TrackingError, match="page"):
            write(results, url=server.url, timeout=5.0)
