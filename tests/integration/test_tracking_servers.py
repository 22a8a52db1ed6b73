"""Results written to a real MLflow and a real Phoenix, started here, and read back through their own interfaces."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from support.tracked_results import changed, entries, scores, some_results

from rag_kit.errors import TrackingError
from rag_kit.evaluation import Results, log_results

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
_START_SECONDS = 400.0  # both take their time on a busy machine
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "PHOENIX_TELEMETRY_ENABLED": "false",
    "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
}  # fmt: skip


def _port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _serve(command: list[str], url: str, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Start a server in a group of its own, wait until it answers, end the whole group."""
    log = folder / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **_QUIET, **environment}, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        ends = time.monotonic() + _START_SECONDS
        while True:
            try:
                if httpx.get(url, timeout=5).status_code < 500:
                    break
            except httpx.HTTPError:
                pass
            alive = process.poll() is None and time.monotonic() < ends
            assert alive, log.read_text(encoding="utf-8", errors="replace")[-3000:]
            time.sleep(0.5)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


@pytest.fixture(scope="module")
def mlflow_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of MLflow over SQLite, whose files go through it."""
    if find_spec("mlflow") is None:
        pytest.skip("mlflow is not installed")
    folder, port = tmp_path_factory.mktemp("mlflow"), _port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/m.db"]
    command += ["--artifacts-destination", f"{folder}/files"]
    yield from _serve(command, f"http://127.0.0.1:{port}", folder, {})


@pytest.fixture(scope="module")
def phoenix_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of Phoenix over SQLite."""
    if find_spec("phoenix.server") is None:
        pytest.skip("arize-phoenix is not installed")
    folder, port = tmp_path_factory.mktemp("phoenix"), _port()
    environment = {"PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(_port()),
                   "PHOENIX_WORKING_DIR": str(folder)}  # fmt: skip
    command = [sys.executable, "-m", "phoenix.server.main", "serve"]
    yield from _serve(command, f"http://127.0.0.1:{port}", folder, environment)


def test_a_real_mlflow_server_holds_what_is_in_the_results(
    mlflow_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow's client reads params, metrics and files back; a second write keeps the run and one value a metric."""
    results = some_results(20)
    first = log_results(results, "mlflow", url=mlflow_url)
    assert log_results(results, "mlflow", url=mlflow_url).written == 0
    assert log_results(changed(results), "mlflow", url=mlflow_url).run_id != first.run_id
    import mlflow

    client, summary = mlflow.MlflowClient(tracking_uri=mlflow_url), results.summary()
    run = client.get_run(first.run_id)
    assert first.url == f"{mlflow_url}/#/experiments/{run.info.experiment_id}/runs/{first.run_id}"
    assert (
        client.get_experiment(run.info.experiment_id).name == "tides 潮汐" and run.info.status == "FINISHED"
    )
    assert run.data.metrics["faithfulness/mean"] == summary["faithfulness"].mean
    assert run.data.metrics["答案正确/coverage"] == summary["答案正确"].coverage
    assert run.data.params["settings.timeout"] == "5.0" and "secret" not in json.dumps(run.data.params)
    assert {len(client.get_metric_history(first.run_id, name)) for name in run.data.metrics} == {1}
    assert len(client.search_runs([run.info.experiment_id])) == 2
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_url)
    folder = Path(client.download_artifacts(first.run_id, "", str(tmp_path)))
    answers = [row.output.answer or None for row in results.rows]  # a folder keeps no empty answer
    assert [row.output.answer for row in Results.load(folder / "results").rows] == answers


def test_a_real_phoenix_server_holds_what_is_in_the_results(phoenix_url: str) -> None:
    """Phoenix gives examples, runs and scores back, a failed cell is no number, a second write adds nothing."""
    results = some_results(20, name="hybrid")  # its export of runs fails for names that are not Latin
    first = log_results(results, "phoenix", url=phoenix_url)
    again = log_results(results, "phoenix", url=phoenix_url)
    assert first.written == entries(results)
    assert (again.run_id, again.written) == (first.run_id, 0)
    chinese = log_results(some_results(20), "phoenix", url=phoenix_url)
    twice = log_results(some_results(20), "phoenix", url=phoenix_url)
    assert chinese.run_id != first.run_id and twice.written == 0
    ask = httpx.Client(base_url=phoenix_url, timeout=60)
    (dataset,) = ask.get("/v1/datasets").json()["data"]
    assert dataset["name"] == "tides 潮汐" and dataset["example_count"] == len(results)
    experiments = ask.get(f"/v1/datasets/{dataset['id']}/experiments").json()["data"]
    assert sorted(each["name"].rpartition("-")[0] for each in experiments) == ["hybrid", "hybrid 混合"]
    assert {each["failed_run_count"] for each in experiments} == {1}
    examples = ask.get(f"/v1/datasets/{dataset['id']}/examples").json()["data"]["examples"]
    names = {each["node_id"]: each["metadata"]["id"] for each in examples}
    runs = {
        names[each["example_id"]]: each for each in ask.get(f"/v1/experiments/{first.run_id}/json").json()
    }
    assert runs["zh-1"]["output"]["passages"] == [{"id": "文档1", "text": "月球吸引海水。"}]
    assert runs["en-2"]["error"].startswith("TimeoutError") and "sk-abcdef" not in json.dumps(runs)
    found = {(name, each["name"]): each for name, run in runs.items() for each in run["annotations"]}
    with_score = {key: each["score"] for key, each in found.items() if each["score"] is not None}
    assert with_score == {
        (k.replace("\ud800\x00", "\ufffd\ufffd"), m): v for (k, m), v in scores(results).items()
    }
    labels = {key: each["label"] for key, each in found.items() if each["score"] is None}
    assert labels == {("zh-1", "答案正确"): "undefined", ("en-2", "faithfulness"): "error",
                      ("en-2", "答案正确"): "not_applicable"}  # fmt: skip
    ask.close()


def test_a_real_phoenix_keeps_what_a_first_attempt_wrote(phoenix_url: str) -> None:
    """The connection of a client that is handed in breaks in the middle; the second attempt writes the rest."""
    from phoenix.client import Client

    results = some_results(400, name="cut", dataset="cut")
    requests = itertools.count()

    def break_off(request: httpx.Request) -> None:
        if next(requests) > 300:
            raise httpx.ConnectError("the cable is out", request=request)

    http = httpx.Client(base_url=phoenix_url, timeout=60, event_hooks={"request": [break_off]})
    with pytest.raises(TrackingError, match="the cable is out") as caught:
        log_results(results, "phoenix", client=Client(http_client=http))
    assert 0 < caught.value.tracked.written < entries(results)
    rest = log_results(results, "phoenix", url=phoenix_url)
    assert 0 < rest.written <= entries(results) - caught.value.tracked.written
    assert log_results(results, "phoenix", url=phoenix_url).written == 0
    with httpx.Client(base_url=phoenix_url, timeout=60) as ask:
        (dataset,) = ask.get("/v1/datasets", params={"name": "cut"}).json()["data"]
        (experiment,) = ask.get(f"/v1/datasets/{dataset['id']}/experiments").json()["data"]
    assert dataset["example_count"] == len(results)
    assert (experiment["failed_run_count"], experiment["missing_run_count"]) == (1, 0)
