"""What LangSmith gets is what is in the results, as its own client reads it."""

from __future__ import annotations

import uuid

import pytest
from support.tracked_results import changed, entries, scores, some_results
from support.trackers import FakeLangSmith

from rag_kit.errors import InvalidInputError, TrackingError
from rag_kit.evaluation import Tracked, log_to_langsmith


def _by_example(server: FakeLangSmith) -> dict[str, dict]:
    names = {key: each["metadata"]["id"] for key, each in server.examples.items()}
    return {names[run["reference_example_id"]]: run for run in server.runs.values()}


def test_everything_arrives_as_it_is_in_the_results() -> None:
    """Examples with gold, runs with answer, passages and error, feedback with score and reason; in both languages."""
    results = some_results()
    with FakeLangSmith() as server:
        tracked = log_to_langsmith(results, url=server.url)
    assert isinstance(tracked, Tracked)
    assert (tracked.written, tracked.skipped, tracked.failed) == (entries(results), 0, 0)
    (dataset,) = server.datasets.values()
    (session,) = server.sessions.values()
    assert dataset["name"] == "tides 潮汐" and session["reference_dataset_id"] == dataset["id"]
    assert (
        session["name"].startswith("hybrid 混合-") and session["id"] == tracked.run_id and session["end_time"]
    )
    assert session["extra"]["metadata"]["summary"]["faithfulness"]["coverage"] == 0.75
    examples = {each["metadata"]["id"]: each for each in server.examples.values()}
    assert examples["en-1"]["outputs"] == {"reference": "The moon pulls it.", "answers": ["moon"]}
    assert examples["en-1"]["metadata"] == {
        "id": "en-1",
        "tags": {"language": "en"},
        "metadata": {"level": 2},
    }
    assert examples["en-2"]["inputs"] == {
        "question": "Who was first?", "history": [{"question": "Hi", "answer": "Hello"}]
    }  # fmt: skip
    runs = _by_example(server)
    assert runs["zh-1"]["inputs"] == {"question": "海水为什么会涨？"}
    assert runs["zh-1"]["outputs"] == {
        "answer": "因为月球的引力。", "passages": [{"id": "文档1", "text": "月球吸引海水。"}]
    }  # fmt: skip
    assert [each["id"] for each in runs["en-1"]["outputs"]["passages"]] == ["d1", "d2"]
    assert "error" not in runs["en-1"] and "TimeoutError" in runs["en-2"]["error"]
    assert runs["odd \ufffd\ufffd"]["outputs"] == {"answer": "", "passages": []}


def test_only_cells_with_a_value_have_a_score() -> None:
    """The others hold their status as value and comment; a score of 0 is one."""
    results = some_results()
    with FakeLangSmith() as server:
        log_to_langsmith(results, url=server.url)
    runs = {run["id"]: name for name, run in _by_example(server).items()}
    found = {(runs[each["run_id"]], each["key"]): each for each in server.feedback.values()}
    with_score = {key: each["score"] for key, each in found.items() if "score" in each}
    expected = {
        (key.replace("\ud800\x00", "\ufffd\ufffd"), name): v for (key, name), v in scores(results).items()
    }
    assert with_score == {key: round(value, 4) for key, value in expected.items()}
    assert found["en-1", "faithfulness"]["feedback_source"]["metadata"]["value"] == 1 / 3
    assert found["en-1", "faithfulness"]["comment"] == "one of three holds"
    assert found["en-1", "答案正确"]["score"] == 0.0
    without = {key: (each["value"], each["comment"]) for key, each in found.items() if "score" not in each}
    assert without == {
        ("zh-1", "答案正确"): ("undefined", "undefined: 没有可核对的陈述"),
        ("en-2", "faithfulness"): ("error", "error: the judge did not answer"),
        ("en-2", "答案正确"): ("not_applicable", "not_applicable: there is no reference"),
    }


def test_written_twice_nothing_is_doubled_or_sent() -> None:
    """The second time only reads."""
    results = some_results(110)
    with FakeLangSmith() as server:
        first = log_to_langsmith(results, url=server.url)
        sent = len(server.writes)
        again = log_to_langsmith(results, url=server.url)
        assert len(server.writes) == sent
    assert (again.written, again.skipped) == (0, first.written) and again.run_id == first.run_id
    assert len(server.runs) == len(server.examples) == len(results)


def test_other_results_of_the_same_set_share_the_dataset() -> None:
    """Another pipeline is another experiment over the same examples."""
    with FakeLangSmith() as server:
        first = log_to_langsmith(some_results(), url=server.url)
        second = log_to_langsmith(some_results(name="bm25"), url=server.url)
        third = log_to_langsmith(changed(some_results()), url=server.url)
    assert len({first.run_id, second.run_id, third.run_id}) == 3
    assert len(server.datasets) == 1 and len(server.examples) == 4 and len(server.runs) == 12
    assert second.skipped == 4


def test_a_changed_example_is_changed_there() -> None:
    """Its id stays; the dataset does not grow."""
    from dataclasses import replace

    from rag_kit.evaluation import Results

    results = some_results()
    first = results.rows[0]
    other = replace(first, example=replace(first.example, reference="Moon and sun pull it."))
    with FakeLangSmith() as server:
        log_to_langsmith(results, url=server.url)
        changed_one = Results("later", [other, *results.rows[1:]], results.metrics, results.manifest)
        log_to_langsmith(changed_one, url=server.url)
    assert len(server.examples) == 4
    references = {each["outputs"].get("reference") for each in server.examples.values()}
    assert "Moon and sun pull it." in references and "The moon pulls it." not in references


def test_a_name_that_is_taken_is_not_written_to() -> None:
    """An experiment of that name with other results, or a project of traces, stays as it is."""
    with FakeLangSmith() as server:
        log_to_langsmith(some_results(), url=server.url, experiment="release 1")
        with pytest.raises(InvalidInputError, match="release 1"):
            log_to_langsmith(changed(some_results()), url=server.url, experiment="release 1")
        server.sessions["x"] = {"id": str(uuid.uuid4()), "name": "traces", "extra": None}
        with pytest.raises(InvalidInputError, match="traces"):
            log_to_langsmith(some_results(), url=server.url, experiment="traces")
    assert len(server.runs) == 4


def test_runs_that_show_up_late_are_waited_for() -> None:
    """LangSmith stores after it has answered; feedback comes when the runs are there."""
    with FakeLangSmith(late=3) as server:
        tracked = log_to_langsmith(some_results(), url=server.url)
    assert tracked.written == entries(some_results()) and len(server.feedback) == 7


def test_runs_that_never_show_up_are_an_error() -> None:
    """They were taken with 202; that is no success."""
    with FakeLangSmith(late=1_000_000) as server:
        with pytest.raises(TrackingError, match="not there after") as caught:
            log_to_langsmith(some_results(), url=server.url, timeout=0.6)
    assert caught.value.tracked.written == 4 and not server.feedback


def test_a_lost_answer_doubles_nothing() -> None:
    """The dataset, the experiment, runs and feedback were made, but the connection broke before the answer."""
    results = some_results()
    with FakeLangSmith() as server:
        for path in ("/datasets", "/examples/bulk", "/sessions", "/runs/batch"):
            server.answer_with(502, path=path, method="POST", times=1, after=True)
        log_to_langsmith(results, url=server.url)
    counts = [
        len(each)
        for each in (server.datasets, server.examples, server.sessions, server.runs, server.feedback)
    ]
    assert counts == [1, 4, 1, 4, 7]


def test_one_refused_entry_is_an_error_or_is_counted() -> None:
    """By default it ends the writing; with on_error="skip" the others are written, and the count tells."""
    with FakeLangSmith() as server:
        server.answer_with(
            422,
            path="/runs/batch",
            when=lambda asked: any("zh" in str(run["extra"]) for run in asked.body["post"]),
        )
        with pytest.raises(TrackingError, match="422"):
            log_to_langsmith(some_results(), url=server.url)
        tracked = log_to_langsmith(some_results(), url=server.url, on_error="skip")
    assert tracked.failed == 3 and "422" in tracked.problems[0]  # the run and its two scores
    assert len(server.runs) == 3 and len(server.feedback) == 5


def test_the_langsmith_client_reads_what_was_written() -> None:
    """Its models take every record: dataset, examples, project, feedback."""
    from langsmith import Client
    from langsmith.schemas import Run

    with FakeLangSmith() as server:
        tracked = log_to_langsmith(some_results(), url=server.url)
        client = Client(api_url=server.url, api_key="k", auto_batch_tracing=False, info={})
        dataset = client.read_dataset(dataset_name="tides 潮汐")
        examples = list(client.list_examples(dataset_id=dataset.id))
        project = client.read_project(project_name=next(iter(server.sessions.values()))["name"])
        feedback = list(client.list_feedback(run_ids=list(server.runs)))
        client.close()
    runs = [Run(**run) for run in server.runs.values()]
    assert str(project.id) == tracked.run_id and project.reference_dataset_id == dataset.id
    assert len(examples) == len(runs) == 4 and len(feedback) == 7
    assert {run.trace_id for run in runs} == {run.id for run in runs}
    assert sum(each.score is None for each in feedback) == 3


def test_what_is_sent_has_the_form_that_the_client_sends() -> None:
    """The paths and the names of the fields are those of LangSmith's own client."""
    from datetime import UTC, datetime

    from langsmith import Client

    def fields(server: FakeLangSmith) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for asked in server.requests:
            body = asked.body if asked.method == "POST" and asked.path != "/runs/query" else None
            if isinstance(body, dict) and "post" in body:
                body = body["post"][0]
            if isinstance(body, list):
                body = body[0]
            if body is not None:
                found[asked.path] = found.get(asked.path, set()) | set(body)
        return found

    now = datetime.now(UTC)
    with FakeLangSmith() as server:
        client = Client(api_url=server.url, api_key="k", auto_batch_tracing=False, info={})
        dataset = client.create_dataset("d", description="x")
        client.create_examples(dataset_id=dataset.id, examples=[{
            "id": uuid.uuid4(), "inputs": {"a": 1}, "reference_outputs": {"b": 2}, "metadata": {"c": 3},
        }])  # fmt: skip
        project = client.create_project("p", reference_dataset_id=dataset.id)
        run = uuid.uuid4()
        client.batch_ingest_runs(create=[{
            "id": run, "trace_id": run, "dotted_order": f"{now:%Y%m%dT%H%M%S%f}Z{run}", "name": "n",
            "run_type": "chain", "inputs": {}, "outputs": {}, "start_time": now, "end_time": now,
                "session_id": project.id, "error": "e",
            "reference_example_id": uuid.uuid4(), "extra": {},
        }])  # fmt: skip
        client.create_feedback(
            run_id=run, trace_id=run, session_id=project.id, key="k", score=1.0, value="v", comment="c", error=False,
            stop_after_attempt=1,
        )  # fmt: skip
        client.close()
        theirs = fields(server)
    with FakeLangSmith() as server:
        log_to_langsmith(some_results(), url=server.url)
        ours = fields(server)
    assert set(ours) <= set(theirs), set(ours) - set(theirs)
    for path, names in ours.items():
        assert names <= theirs[path] | {"start_time"}, (path, names - theirs[path])
