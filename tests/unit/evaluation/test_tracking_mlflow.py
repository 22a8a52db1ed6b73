"""Results in a real MLflow: a database of its own, without a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.later import later
from support.tracked_results import changed, some_results

from rag_kit.errors import InvalidInputError, TrackingError
from rag_kit.evaluation import Results, log_results

mlflow = later("mlflow")
later("sqlalchemy")  # a database needs the whole mlflow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database; its files lie beside it."""
    folder = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield f"sqlite:///{folder}/m.db"


def _read(url: str, run_id: str) -> Any:
    return mlflow.MlflowClient(tracking_uri=url).get_run(run_id)


def test_params_metrics_and_files_are_those_of_the_results(url: str, tmp_path: Path) -> None:
    """Mean, interval, coverage and counts; what has no value is not there; no key; the folder loads again."""
    results = some_results(3)
    results.manifest["settings"]["many"] = {f"k{number}": number for number in range(1000)}
    tracked = log_results(results, "mlflow", url=url)
    run, summary = _read(url, tracked.run_id), results.summary()
    assert run.info.status == "FINISHED" and run.info.run_name == "hybrid 混合"
    metrics, params = run.data.metrics, run.data.params
    assert metrics["faithfulness/mean"] == summary["faithfulness"].mean
    assert metrics["faithfulness/low"] == summary["faithfulness"].low and metrics["faithfulness/errors"] == 1
    assert metrics["答案正确/undefined"] == 1 and metrics["答案正确/coverage"] == summary["答案正确"].coverage
    assert params["settings.timeout"] == "5.0" and params["judge.model"] == "openai:gpt-5.5"
    assert "secret" not in json.dumps(params) and "abcdef1234567890" not in json.dumps(params)
    folder = Path(mlflow.artifacts.download_artifacts(
        run_id=tracked.run_id, tracking_uri=url, dst_path=str(tmp_path)))  # fmt: skip
    assert [row.example.id for row in Results.load(folder / "results")] == [row.example.id for row in results]
    assert tracked.written == len(metrics) + len(params) + 2


def test_a_metric_without_any_value_has_no_mean(url: str) -> None:
    """A mean of nothing is not 0."""
    only_failed = Results("x", [some_results().rows[2]], ("faithfulness",))
    metrics = _read(url, log_results(only_failed, "mlflow", url=url).run_id).data.metrics
    assert metrics["faithfulness/errors"] == 1 and not {"faithfulness/mean", "faithfulness/low"} & set(
        metrics
    )


def test_written_twice_is_one_run(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where times and versions differ and the client is handed in; other results are another run."""
    results = some_results(name="twice")
    first = log_results(results, "mlflow", url=url, experiment="实验 1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    again = log_results(results, "mlflow", experiment="实验 1")
    later = Results(
        results.name, results.rows, results.metrics, {**results.manifest, "versions": {"python": "3.12.1"}}
    )
    third = log_results(later, "mlflow", client=mlflow.MlflowClient(tracking_uri=url), experiment="实验 1")
    assert (again.written, third.written) == (0, 0) and again.run_id == third.run_id == first.run_id
    other = log_results(changed(results), "mlflow", url=url, experiment="实验 1")
    client = mlflow.MlflowClient(tracking_uri=url)
    (experiment,) = (each for each in client.search_experiments() if each.name == "实验 1")
    assert {each.info.run_id for each in client.search_runs([experiment.experiment_id])} == {
        first.run_id,
        other.run_id,
    }


def test_after_a_break_off_the_rest_is_added(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files could not be written the first time: the run stays open, and the second call finishes it."""
    results = some_results(name="broken")

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no room on the disk")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "log_artifacts", refuse)
        with pytest.raises(TrackingError, match="no room") as caught:
            log_results(results, "mlflow", url=url)
    assert _read(url, caught.value.tracked.run_id).info.status == "RUNNING"
    rest = log_results(results, "mlflow", url=url)
    assert rest.run_id == caught.value.tracked.run_id and rest.written == 2
    assert _read(url, rest.run_id).info.status == "FINISHED"
    history = mlflow.MlflowClient(tracking_uri=url).get_metric_history(rest.run_id, "faithfulness/mean")
    assert len(history) == 1


def test_what_mlflow_refuses_is_one_clear_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deleted experiment, an unknown address without its password, a server that is down; arguments it has not."""
    client = mlflow.MlflowClient(tracking_uri=url)
    client.delete_experiment(client.create_experiment("gone"))
    with pytest.raises(TrackingError, match="active"):
        log_results(some_results(), "mlflow", url=url, experiment="gone")
    with pytest.raises(TrackingError, match="MLflow at nosuch") as caught:
        log_results(some_results(), "mlflow", url="nosuch://me:pw12345@host/x")
    assert "pw12345" not in str(caught.value)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "plain7secret8without9pattern")
    with pytest.raises(TrackingError, match=r"127\.0\.0\.1:9 failed: .*MLFLOW_TRACKING_TOKEN") as caught:
        log_results(some_results(), "mlflow", url="http://127.0.0.1:9")
    assert "plain7secret" not in str(caught.value)
    for options in ({"dataset": "d"}, {"api_key": "k"}):
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            log_results(some_results(), "mlflow", url=url, **options)
