"""What an MLflow server gets is what is in the results; its client is not needed for that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.tracked_results import changed, some_results
from support.trackers import FakeMlflow

from rag_kit.errors import ConfigurationError, MissingExtraError
from rag_kit.evaluation import Results, log_to_mlflow


def test_everything_arrives_without_mlflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Params, metrics, tags and files; the files load as results again."""
    monkeypatch.setitem(sys.modules, "mlflow", None)
    results = some_results()
    with FakeMlflow() as server:
        tracked = log_to_mlflow(results, url=server.url)
    (run,) = server.runs.values()
    (experiment,) = server.experiments
    assert experiment == "tides 潮汐" and run["info"]["run_name"] == "hybrid 混合"
    assert run["info"]["status"] == "FINISHED" and run["tags"]["rag_kit.state"] == "complete"
    metrics = {each["key"]: each["value"] for each in run["metrics"]}
    summary = results.summary()["答案正确"]
    assert metrics["答案正确/mean"] == summary.mean == 0.0 and "答案正确/low" not in metrics
    assert metrics["答案正确/coverage"] == summary.coverage and metrics["答案正确/not_applicable"] == 1
    assert run["params"]["settings.timeout"] == "5.0" and run["params"]["judge.model"] == "openai:gpt-5.5"
    assert tracked.written == len(metrics) + len(run["params"]) + 3
    folder = tmp_path / "results"
    folder.mkdir()
    for name, data in server.files.items():
        if "/results/" in name:
            (folder / name.rpartition("/")[2]).write_bytes(data)
    loaded = Results.load(folder)
    assert [row.example.id for row in loaded.rows] == [row.example.id for row in results.rows]
    table = json.loads(
        next(data for name, data in server.files.items() if name.endswith("artifacts/rows.json"))
    )
    assert (
        len(table["data"]) == 4
        and json.loads(run["tags"]["mlflow.loggedArtifacts"])[0]["path"] == "rows.json"
    )


def test_written_twice_is_one_run() -> None:
    """The second time nothing is sent; other results are another run of the same experiment."""
    results = some_results()
    with FakeMlflow() as server:
        first = log_to_mlflow(results, url=server.url)
        sent = len(server.writes)
        again = log_to_mlflow(results, url=server.url)
        assert len(server.writes) == sent and (again.written, again.skipped) == (0, first.written)
        other = log_to_mlflow(changed(results), url=server.url)
    assert again.run_id == first.run_id != other.run_id
    assert len(server.runs) == 2 and len(server.experiments) == 1


def test_results_computed_again_without_a_change_are_the_same_run() -> None:
    """Times and versions of the manifest differ; the run stays, and a param keeps its first value."""
    results = some_results()
    manifest = {**results.manifest, "started": "2027-01-01T00:00:00Z", "versions": {"python": "3.12.1"}}
    later = Results(results.name, results.rows, results.metrics, manifest)
    with FakeMlflow() as server:
        log_to_mlflow(results, url=server.url)
        again = log_to_mlflow(later, url=server.url)
    assert again.written == 0 and len(server.runs) == 1


def test_files_can_be_left_out_and_added_later() -> None:
    """With files=False none is sent; the next time they are added to the same run."""
    with FakeMlflow() as server:
        first = log_to_mlflow(some_results(), url=server.url, files=False)
        assert not server.files
        second = log_to_mlflow(some_results(), url=server.url)
    assert second.written == 3 and second.run_id == first.run_id and len(server.files) == 3


def test_files_that_go_past_the_server_need_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose files lie in a store of their own says where; without MLflow the extra is named."""
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with FakeMlflow(artifacts="s3://bucket/") as server:
        with pytest.raises(MissingExtraError, match=r"rag-kit\[mlflow\]"):
            log_to_mlflow(some_results(), url=server.url)
        assert log_to_mlflow(some_results(), url=server.url, files=False).failed == 0
    assert len(server.runs) == 1


def test_a_deleted_experiment_is_told() -> None:
    """Its name is taken and nothing can be written to it."""
    with FakeMlflow() as server:
        log_to_mlflow(some_results(), url=server.url)
        server.experiments["tides 潮汐"]["lifecycle_stage"] = "deleted"
        with pytest.raises(ConfigurationError, match="deleted"):
            log_to_mlflow(some_results(), url=server.url)


def test_user_and_password_of_the_environment_are_used_and_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Basic authentication, as MLflow's own client does it; the password shows nowhere."""
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "pass1word2")
    with FakeMlflow() as server:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
        tracked = log_to_mlflow(some_results())
        assert {asked.headers["authorization"] for asked in server.requests} == {"Basic YWRhOnBhc3Mxd29yZDI="}
        server.answer_with(403, body={"message": "no: ada pass1word2 YWRhOnBhc3Mxd29yZDI="})
        with pytest.raises(Exception, match="403") as caught:
            log_to_mlflow(some_results())
    assert "pass1word2" not in str(caught.value) + repr(tracked) and "YWRhOnBh" not in str(caught.value)
