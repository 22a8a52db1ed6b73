"""Results written to a real MLflow and a real Phoenix, started here, and read back through their own interfaces."""

from __future__ import annotations

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
from typing import Any

import httpx
import pytest
from support.tracked_results import changed, entries, scores, some_results

from rag_kit.errors import TrackingError
from rag_kit.evaluation import Results, log_to_mlflow, log_to_phoenix

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


def _read_mlflow(uri: str, run_id: str, folder: Path) -> dict[str, Any]:
    """What MLflow's own client reads, in a process of its own: it changes the process that imports it."""
    program = (
        "import json, sys; from mlflow import MlflowClient;"
        "c = MlflowClient(tracking_uri=sys.argv[1]); r = c.get_run(sys.argv[2]);"
        "p = c.download_artifacts(r.info.run_id, '', sys.argv[3]);"
        "h = {k: len(c.get_metric_history(r.info.run_id, k)) for k in r.data.metrics};"
        "n = len(c.search_runs([r.info.experiment_id]));"
        "print('\\n' + json.dumps({'params': r.data.params, 'metrics': r.data.metrics, 'tags': r.data.tags,"
        " 'status': r.info.status, 'name': r.info.run_name, 'path': p, 'history': h, 'runs': n,"
        " 'experiment': c.get_experiment(r.info.experiment_id).name}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, uri, run_id, str(folder)], capture_output=True, text=True, timeout=300,
        env={**os.environ, **_QUIET}, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def _check_mlflow(found: dict[str, Any], results: Results) -> None:
    summary = results.summary()
    assert (
        found["experiment"] == "tides 潮汐"
        and found["name"] == "hybrid 混合"
        and found["status"] == "FINISHED"
    )
    assert found["metrics"]["faithfulness/mean"] == summary["faithfulness"].mean
    assert found["metrics"]["faithfulness/low"] == summary["faithfulness"].low
    assert found["metrics"]["答案正确/coverage"] == summary["答案正确"].coverage
    assert found["params"]["settings.timeout"] == "5.0" and "secret" not in json.dumps(found)
    assert set(found["history"].values()) == {1}
    folder = Path(found["path"])
    loaded = Results.load(folder / "results")
    answers = [row.output.answer or None for row in results.rows]  # a folder keeps no empty answer
    assert [row.output.answer for row in loaded.rows] == answers
    table = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    assert len(table["data"]) == len(results)


def test_a_real_mlflow_server_holds_what_is_in_the_results(mlflow_url: str, tmp_path: Path) -> None:
    """Its client reads params, metrics and files back; written again it is the same run, with one value a metric."""
    results = some_results(20)
    first = log_to_mlflow(results, url=mlflow_url)
    again = log_to_mlflow(results, url=mlflow_url)
    assert (again.run_id, again.written, again.skipped) == (first.run_id, 0, first.written)
    other = log_to_mlflow(changed(results), url=mlflow_url)
    found = _read_mlflow(mlflow_url, first.run_id, tmp_path)
    _check_mlflow(found, results)
    assert found["runs"] == 2 and other.run_id != first.run_id


def test_a_database_of_mlflow_is_written_without_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By MLflow's client; a broken address is one clear error, without its password."""
    if find_spec("mlflow") is None:
        pytest.skip("mlflow is not installed")
    monkeypatch.chdir(tmp_path)
    results = some_results(5)
    uri = f"sqlite:///{tmp_path}/m.db"
    first = log_to_mlflow(results, url=uri)
    again = log_to_mlflow(results, url=uri)
    assert (again.run_id, again.written, again.skipped) == (first.run_id, 0, first.written)
    _check_mlflow(_read_mlflow(uri, first.run_id, tmp_path), results)
    with pytest.raises(TrackingError, match="MLflow at nosuch://host/x failed") as caught:
        log_to_mlflow(results, url="nosuch://me:pw12345@host/x")
    assert "pw12345" not in str(caught.value)


def test_a_real_phoenix_server_holds_what_is_in_the_results(phoenix_url: str) -> None:
    """Its REST API gives examples, runs and scores back; a failed cell is no number; written again nothing doubles."""
    results = some_results(20, name="hybrid")  # its export of runs fails for names that are not Latin
    first = log_to_phoenix(results, url=phoenix_url)
    again = log_to_phoenix(results, url=phoenix_url)
    assert first.written == entries(results) and first.failed == 0
    assert (again.run_id, again.written, again.skipped) == (first.run_id, 0, first.written)
    chinese = log_to_phoenix(some_results(20), url=phoenix_url)
    twice = log_to_phoenix(some_results(20), url=phoenix_url)
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
    """Cut off by a deadline in the middle, the second attempt writes the rest."""
    results = some_results(400, name="cut", dataset="cut")
    with pytest.raises(TrackingError) as caught:
        log_to_phoenix(results, url=phoenix_url, deadline=1.5)
    assert "in time" in str(caught.value) or "deadline" in str(caught.value)
    rest = log_to_phoenix(results, url=phoenix_url)
    assert rest.written > 0 and rest.written + rest.skipped == entries(results)
    assert log_to_phoenix(results, url=phoenix_url).written == 0
    with httpx.Client(base_url=phoenix_url, timeout=60) as ask:
        (dataset,) = ask.get("/v1/datasets", params={"name": "cut"}).json()["data"]
        (experiment,) = ask.get(f"/v1/datasets/{dataset['id']}/experiments").json()["data"]
    assert dataset["example_count"] == len(results)
    assert (experiment["failed_run_count"], experiment["missing_run_count"]) == (1, 0)
