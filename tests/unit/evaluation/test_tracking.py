"""Results written to trackers: arguments, LangSmith's client against a server on loopback, what goes wrong."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.tracked_results import KEY, changed, entries, scores, some_results
from support.trackers import LangSmithServer

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.errors import InvalidInputError, MissingExtraError, TrackingError
from rag_kit.evaluation import Example, Results, log_results, tracking


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LANGSMITH_ENDPOINT", "PHOENIX_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[LangSmithServer]:
    with LangSmithServer(key=KEY) as running:
        yield running


def _write(server: LangSmithServer, results: Results, **options: Any) -> Any:
    return log_results(results, "langsmith", url=server.url, api_key=KEY, **options)


def test_importing_it_imports_no_client() -> None:
    """The function is there without the client of a tracker being imported."""
    program = (
        "import sys; from rag_kit.evaluation import log_results;"
        "print([n for n in ('langsmith', 'mlflow', 'phoenix', 'httpx', 'requests') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


def test_everything_arrives_as_it_is_in_the_results(server: LangSmithServer) -> None:
    """Examples with gold, runs with answer, passages and error, in both languages; what stores refuse is replaced."""
    results = some_results()
    tracked = _write(server, results)
    (dataset,), (session,) = server.datasets.values(), server.sessions.values()
    assert tracked.written == entries(results) and tracked.run_id == session["id"]
    assert dataset["name"] == "tides 潮汐" and session["reference_dataset_id"] == dataset["id"]
    assert session["name"].startswith("hybrid 混合-") and session["end_time"]
    metadata = session["extra"]["metadata"]
    assert metadata["summary"]["faithfulness"]["coverage"] == 0.75 and "secret" not in str(metadata)
    examples = {each["metadata"]["id"]: each for each in server.examples.values()}
    assert examples["en-1"]["outputs"] == {"reference": "The moon pulls it.", "answers": ["moon"]}
    assert examples["en-1"]["metadata"] == {
        "id": "en-1",
        "tags": {"language": "en"},
        "metadata": {"level": 2},
    }
    assert examples["en-2"]["inputs"]["history"] == [{"question": "Hi", "answer": "Hello"}]
    runs = {
        server.examples[each["reference_example_id"]]["metadata"]["id"]: each for each in server.runs.values()
    }
    assert runs["zh-1"]["inputs"] == {"question": "海水为什么会涨？"}
    assert runs["zh-1"]["outputs"]["passages"] == [{"id": "文档1", "text": "月球吸引海水。"}]
    assert (
        not runs["en-1"]["error"]
        and "TimeoutError" in runs["en-2"]["error"]
        and "sk-" not in str(server.runs)
    )
    assert runs["odd \ufffd\ufffd"]["outputs"] == {"passages": []}


def test_only_cells_with_a_value_have_a_score(server: LangSmithServer) -> None:
    """The others hold their status; a score of 0 is one; the reason is the comment, the exact value in the source."""
    results = some_results()
    _write(server, results)
    names = {
        run["id"]: server.examples[run["reference_example_id"]]["metadata"]["id"]
        for run in server.runs.values()
    }
    found = {(names[each["run_id"]], each["key"]): each for each in server.feedback.values()}
    with_score = {key: each["score"] for key, each in found.items() if each.get("score") is not None}
    expected = {
        (key.replace("\ud800\x00", "\ufffd\ufffd"), name): v for (key, name), v in scores(results).items()
    }
    assert with_score == {key: round(value, 4) for key, value in expected.items()}
    assert found["en-1", "faithfulness"]["feedback_source"]["metadata"]["value"] == 1 / 3
    assert found["en-1", "faithfulness"]["comment"] == "one of three holds"
    without = {key: (each["value"], each["comment"]) for key, each in found.items() if key not in with_score}
    assert without == {
        ("zh-1", "答案正确"): ("undefined", "没有可核对的陈述"),
        ("en-2", "faithfulness"): ("error", "the judge did not answer"),
        ("en-2", "答案正确"): ("not_applicable", "there is no reference"),
    }


async def test_written_twice_is_written_once(server: LangSmithServer, tmp_path: Path) -> None:
    """Also from async code, and loaded from the folder: the second time only reads, even with more than a page."""
    results = some_results(110)
    first = await run_in_thread(lambda: _write(server, results))
    sent = len(server.writes)
    again = await asyncio.to_thread(_write, server, Results.load(results.save(tmp_path / "run")))
    assert (again.run_id, again.written, len(server.writes)) == (first.run_id, 0, sent)
    assert len(server.runs) == len(server.examples) == len(results)


def test_other_results_of_the_set_are_another_experiment(server: LangSmithServer) -> None:
    """Over the same examples; an example whose gold was corrected is corrected there."""
    first = some_results().rows[0]
    corrected = replace(first, example=replace(first.example, reference="Moon and sun pull it."))
    other = Results(
        "later", [corrected, *some_results().rows[1:]], some_results().metrics, some_results().manifest
    )
    ids = {
        _write(server, each).run_id
        for each in (some_results(), some_results(name="bm25"), changed(some_results()))
    }
    assert _write(server, other).written == entries(other) - 3 and len(ids) == 3
    assert len(server.datasets) == 1 and len(server.examples) == 4 and len(server.runs) == 16
    assert "Moon and sun pull it." in {each["outputs"].get("reference") for each in server.examples.values()}


def test_a_set_without_a_name_gets_one_of_its_content(server: LangSmithServer) -> None:
    """Pipelines that were asked the same share it; ids that look the same once they can be stored stay two."""
    rows = [
        replace(some_results().rows[0], example=Example(name, "Q?"))
        for name in ("a\ud800", "a\ufffd", "a\x00")
    ]
    for name in ("one", "two"):
        _write(server, Results(name, rows, some_results().metrics))
    assert len(server.datasets) == 1 and len(server.examples) == 3 and len(server.runs) == 6


def test_a_name_that_is_taken_is_not_written_to(server: LangSmithServer) -> None:
    """An experiment of that name with other results, or a project of traces, stays as it is."""
    _write(server, some_results(), experiment="release 1")
    with pytest.raises(InvalidInputError, match="release 1"):
        _write(server, changed(some_results()), experiment="release 1")
    session = next(iter(server.sessions.values()))
    server.sessions["x"] = {**session, "name": "traces", "extra": None, "reference_dataset_id": None}
    with pytest.raises(InvalidInputError, match="traces"):
        _write(server, some_results(), experiment="traces")
    assert len(server.runs) == 4


@pytest.mark.parametrize("request_", ["POST /examples", "POST /runs", "POST /feedback", "PATCH /sessions"])
def test_after_a_break_off_only_the_rest_is_written(server: LangSmithServer, request_: str) -> None:
    """A refusal in the middle is an error with the counts until then; the second call adds what is missing."""
    results = some_results(20)
    server.fail(request_, status=400, after=5 if request_ in ("POST /runs", "POST /feedback") else 0, times=1)
    with pytest.raises(TrackingError, match="400") as caught:
        _write(server, results)
    assert caught.value.tracked.written < entries(results) or request_ == "PATCH /sessions"
    runs = {key: (each["start_time"], each["end_time"]) for key, each in server.runs.items()}
    _write(server, results)
    assert len(server.runs) == 24 and len(server.feedback) == 47 and len(server.examples) == 24
    assert {key: (server.runs[key]["start_time"], server.runs[key]["end_time"]) for key in runs} == runs
    assert _write(server, results).written == 0


def test_lost_answers_double_nothing(server: LangSmithServer) -> None:
    """A run and a score were kept, but the answer was a 502: the client tries again; or that it is there already."""
    server.fail("POST /runs", status=502, times=1, late=True)
    server.fail("POST /feedback", status=409, times=1, late=True)
    server.fail("GET /datasets", status=503, times=1)
    _write(server, some_results())
    assert (len(server.runs), len(server.feedback)) == (4, 7)


def test_what_is_accepted_and_lost_is_an_error(
    server: LangSmithServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 202 is no success before the score can be read; the next call writes it."""
    monkeypatch.setattr(tracking, "_ARRIVAL_SECONDS", 0.2)
    server.fail("POST /feedback", lost=True, times=2)
    with pytest.raises(TrackingError, match="2 scores are not there"):
        _write(server, some_results())
    assert _write(server, some_results()).written >= 2 and len(server.feedback) == 7


@pytest.mark.slow
def test_a_client_of_the_user_is_used(server: LangSmithServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its time-out and key; one that batches loses nothing, one that samples is an error and not a silent loss."""
    from langsmith import Client

    monkeypatch.setattr(tracking, "_ARRIVAL_SECONDS", 0.2)
    batching = Client(server.url, api_key=KEY)
    assert log_results(some_results(), "langsmith", client=batching).written == 15
    batching.close()
    sampling = Client(server.url, api_key=KEY, tracing_sampling_rate=0.0, auto_batch_tracing=False)
    with pytest.raises(TrackingError, match="samples"):
        log_results(some_results(name="other"), "langsmith", client=sampling)
    with pytest.raises(InvalidInputError, match=r"langsmith\.Client"):
        log_results(some_results(), "langsmith", client=object())
    with pytest.raises(InvalidInputError, match="no url"):
        log_results(some_results(), "langsmith", client=sampling, url=server.url)
    hurried = Client(server.url, api_key=KEY, timeout_ms=200, auto_batch_tracing=False, retry_config=0)
    server.fail(wait=30.0)
    with pytest.raises(TrackingError, match=r"127.*ReadTimeout"):
        log_results(some_results(), "langsmith", client=hurried)


def test_no_key_is_in_what_goes_wrong(server: LangSmithServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key appears in the error of a refusal that is sent back, of a dead address, or of a broken request."""
    server.fail("POST /datasets", status=403, times=1)
    with pytest.raises(TrackingError, match="403") as refused:
        _write(server, some_results())
    with pytest.raises(TrackingError, match="LANGSMITH_API_KEY") as unknown:
        log_results(some_results(), "langsmith", url=server.url, api_key="x" + KEY)
    with pytest.raises(TrackingError, match=r"http://\*\*\*@127.0.0.1:9 failed") as down:
        log_results(some_results(), "langsmith", url="http://me:pw12345@127.0.0.1:9", api_key=KEY)
    monkeypatch.setenv("LANGSMITH_API_KEY", f"{KEY}\nX-Other: 1")
    with pytest.raises(TrackingError) as broken:
        log_results(some_results(), "langsmith", url=server.url)
    for caught in (refused, unknown, down, broken):
        text = str(caught.value) + repr(caught.value.tracked)
        assert KEY not in text and "pw12345" not in text
        assert caught.value.__suppress_context__ and not server.examples


@pytest.mark.parametrize("to", ["langsmith", "phoenix", "mlflow"])
def test_wrong_arguments_are_refused_before_anything_is_sent(to: Any) -> None:
    """The message names the argument and what is allowed."""
    for options, named in (
        ({"experiment": " "}, "experiment"), ({"experiment": "a "}, "experiment"),
        ({"dataset": "a\nb"}, "dataset"), ({"dataset": 5}, "dataset"), ({"url": ""}, "url"),
        ({"api_key": 5}, "api_key"), ({"api_key": "库"}, "api_key"),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match=named):
            log_results(some_results(), to, **options)
    for nothing in (["no results"], Results("empty", [])):
        with pytest.raises(InvalidInputError, match="evaluate"):
            log_results(nothing, to)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="'langsmith', 'mlflow' and 'phoenix'"):
        log_results(some_results(), to.upper())


@pytest.mark.parametrize(("to", "module"), [("mlflow", "mlflow"), ("phoenix", "phoenix.client")])
def test_a_missing_client_names_the_extra(to: Any, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow's own reporting is switched off before it is imported."""
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    with pytest.raises(MissingExtraError, match=rf"rag-kit\[{to}\]"):
        log_results(some_results(), to, url="http://127.0.0.1:9")
    import os

    assert to != "mlflow" or os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


@pytest.mark.slow
def test_a_server_that_never_answers_is_an_error_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the connection and nothing more."""
    monkeypatch.setattr(tracking, "_TIMEOUT_MS", (200, 200))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(TrackingError, match="what is there is not written twice"):
            log_results(
                some_results(), "langsmith", url=f"http://127.0.0.1:{silent.getsockname()[1]}", api_key=KEY
            )
