"""What Phoenix gets is what is in the results."""

from __future__ import annotations

from typing import Any

import pytest
from support.tracked_results import changed, entries, scores, some_results
from support.trackers import FakePhoenix

from rag_kit.errors import InvalidInputError, TrackingError
from rag_kit.evaluation import log_to_phoenix


def _by_example(server: FakePhoenix) -> dict[str, dict[str, Any]]:
    names = {
        e["node_id"]: e["metadata"]["id"] for d in server.datasets.values() for e in d["examples"].values()
    }
    return {names[run["dataset_example_id"]]: run for run in server.runs}


def test_everything_arrives_as_it_is_in_the_results() -> None:
    """Examples with their ids, runs with answer, passages and error; in both languages."""
    results = some_results()
    with FakePhoenix() as server:
        tracked = log_to_phoenix(results, url=server.url)
    assert (tracked.written, tracked.skipped, tracked.failed) == (entries(results), 0, 0)
    (dataset,) = server.datasets.values()
    (experiment,) = server.experiments.values()
    assert dataset["name"] == "tides 潮汐" and {"en-1", "zh-1", "en-2"} < set(dataset["examples"])
    assert experiment["name"].startswith("hybrid 混合-") and tracked.run_id in tracked.url
    assert experiment["metadata"]["summary"]["faithfulness"]["mean"] == results.summary()["faithfulness"].mean
    assert dataset["examples"]["zh-1"]["output"] == {"reference": "月球的引力。"}
    runs = _by_example(server)
    assert runs["zh-1"]["output"] == {
        "answer": "因为月球的引力。", "passages": [{"id": "文档1", "text": "月球吸引海水。"}]
    }  # fmt: skip
    assert runs["zh-1"]["error"] is None and "TimeoutError" in runs["en-2"]["error"]


def test_only_cells_with_a_value_have_a_score() -> None:
    """The others have their status as label, and the reason."""
    results = some_results()
    with FakePhoenix() as server:
        log_to_phoenix(results, url=server.url)
    found = {
        (name, key): each
        for name, run in _by_example(server).items()
        for key, each in run["annotations"].items()
    }
    with_score = {key: each["score"] for key, each in found.items() if each["score"] is not None}
    assert with_score == {
        (k.replace("\ud800\x00", "\ufffd\ufffd"), m): v for (k, m), v in scores(results).items()
    }
    without = {
        key: (each["label"], each["explanation"]) for key, each in found.items() if each["score"] is None
    }
    assert without == {
        ("zh-1", "答案正确"): ("undefined", "没有可核对的陈述"),
        ("en-2", "faithfulness"): ("error", "the judge did not answer"),
        ("en-2", "答案正确"): ("not_applicable", "there is no reference"),
    }
    assert found["zh-1", "faithfulness"]["annotator_kind"] == "LLM"
    assert found["zh-1", "答案正确"]["annotator_kind"] == "CODE"


def test_written_twice_nothing_is_doubled() -> None:
    """The second time changes nothing; more rows than a page are found again."""
    results = some_results(110)
    with FakePhoenix() as server:
        first = log_to_phoenix(results, url=server.url)
        again = log_to_phoenix(results, url=server.url)
    assert (again.written, again.skipped) == (0, first.written) and again.run_id == first.run_id
    assert len(server.runs) == 114 and len(server.experiments) == 1


def test_other_results_are_another_experiment_of_the_same_dataset() -> None:
    """A name that is taken by other results is refused."""
    with FakePhoenix() as server:
        log_to_phoenix(some_results(), url=server.url, experiment="release 1")
        log_to_phoenix(some_results(name="bm25"), url=server.url)
        with pytest.raises(InvalidInputError, match="release 1"):
            log_to_phoenix(changed(some_results()), url=server.url, experiment="release 1")
    assert len(server.datasets) == 1 and len(server.experiments) == 2


def test_examples_of_others_stay() -> None:
    """A smaller set under the same name takes nothing away."""
    with FakePhoenix() as server:
        log_to_phoenix(some_results(5), url=server.url)
        log_to_phoenix(some_results(), url=server.url)
    (dataset,) = server.datasets.values()
    assert len(dataset["examples"]) == 9


def test_an_old_server_is_refused_before_anything_is_written() -> None:
    """Its datasets keep no ids of examples, so that each writing would double them."""
    with FakePhoenix(version="14.9.1") as server:
        with pytest.raises(TrackingError, match="version 15"):
            log_to_phoenix(some_results(), url=server.url)
        assert not server.writes


def test_a_lost_answer_doubles_nothing() -> None:
    """Runs whose answer got lost are found again; an experiment is never asked for twice by itself."""
    results = some_results()
    with FakePhoenix() as server:
        server.answer_with(502, path="/upload", times=1, after=True)
        server.answer_with(502, path="/runs", method="POST", times=2, after=True)
        tracked = log_to_phoenix(results, url=server.url)
        assert tracked.failed == 0 and len(server.runs) == 4
    with FakePhoenix() as server:
        server.answer_with(502, path="/experiments", method="POST", times=1, after=True)
        with pytest.raises(TrackingError, match="502"):
            log_to_phoenix(results, url=server.url)
        log_to_phoenix(results, url=server.url)
        assert len(server.experiments) == 1


def test_one_refused_entry_is_an_error_or_is_counted() -> None:
    """By default it ends the writing; with on_error="skip" the others are written, and the count tells."""
    with FakePhoenix() as server:
        server.answer_with(
            422, path="/runs", method="POST", when=lambda asked: "月球" in str(asked.body["output"])
        )
        with pytest.raises(TrackingError, match="422"):
            log_to_phoenix(some_results(), url=server.url)
        tracked = log_to_phoenix(some_results(), url=server.url, on_error="skip")
    assert tracked.failed == 3 and "422" in tracked.problems[0]
    assert len(server.runs) == 3
