"""Results as a run of MLflow: params, metrics, files."""

from __future__ import annotations

import json
import os
import tempfile
import time
from base64 import b64encode
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.tracking import content
from rag_kit.evaluation.tracking.http import Server
from rag_kit.evaluation.tracking.mlflow_client import ClientStore
from rag_kit.evaluation.tracking.mlflow_entries import TABLE, metrics_of, params_of, write_files
from rag_kit.evaluation.tracking.mlflow_rest import RestStore
from rag_kit.evaluation.tracking.mlflow_store import COMPLETE, FILES, STATE, MlflowRun, Store
from rag_kit.evaluation.tracking.options import check_limits, check_text
from rag_kit.evaluation.tracking.tracked import Tally, Tracked
from rag_kit.evaluation.tracking.writing import track

_ADVICE = (
    "Give api_key=, or set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
)


def log_to_mlflow(
    results: Results,
    *,
    experiment: str | None = None,
    run_name: str | None = None,
    url: str | None = None,
    api_key: str | None = None,
    files: bool = True,
    timeout: float = 30.0,
    max_retries: int = 2,
    deadline: float | None = None,
) -> Tracked:
    """Write results to MLflow as one run.

    Its params are the settings of the manifest, flattened; its metrics are mean, interval, coverage and counts of each
    metric (``faithfulness/mean``), where what has no value is left out; its files are the folder of the results and a
    table of the rows. A tag holds the fingerprint of the results: written again, they are found by it and only what is
    missing is added.

    Args:
        results: What ``evaluate`` or ``Results.load`` gave.
        experiment: Its name; default: that of the set, so that pipelines asked the same stand side by side.
        run_name: Default: the pipeline's name.
        url: A server, asked by its REST API, or any tracking URI (``sqlite:///mlflow.db``, ``databricks``), for which
            MLflow must be installed; default: ``MLFLOW_TRACKING_URI``.
        api_key: A token; default: ``MLFLOW_TRACKING_TOKEN``, or user name and password likewise.
        files: Whether files are written.
        timeout: Seconds that one request may take, its retries included.
        max_retries: Most retries of a request.
        deadline: Seconds for everything, with a server.

    Returns:
        Counts of params, metrics and files.

    Raises:
        TrackingError: If MLflow refuses, or does not answer in time; written again, it goes on.
        ConfigurationError: If no address is known, or the experiment is deleted.
        MissingExtraError: If MLflow must be installed and is not.
        InvalidInputError: If an argument is not allowed.
    """
    content.check_results(results)
    check_limits(timeout, max_retries, deadline)
    experiment, run_name = check_text("experiment", experiment), check_text("run_name", run_name)
    address = url or os.environ.get("MLFLOW_TRACKING_URI")
    if not address:
        raise ConfigurationError(
            "it is not known where MLflow is; give url=, or set MLFLOW_TRACKING_URI, to a server such as "
            "http://localhost:5000 or to a file such as sqlite:///mlflow.db"
        )
    if not isinstance(address, str):
        raise InvalidInputError(f"url is a {type(address).__name__}; give a text")
    store: Store
    if urlsplit(address).scheme in ("http", "https"):
        store = RestStore(_server(address, api_key, timeout, max_retries, deadline))
    elif api_key is not None:
        raise InvalidInputError("api_key is for servers with an http address; leave it out")
    else:
        store = ClientStore(address, timeout, max_retries)

    def write(tally: Tally) -> None:
        _write(store, tally, results, experiment or content.dataset_name(results), run_name, files)

    return track("mlflow", store, write)


async def alog_to_mlflow(results: Results, **options: Any) -> Tracked:
    """As `log_to_mlflow`, on a thread.

    Args:
        results: As there.
        **options: As there.
    """
    return await run_in_thread(partial(log_to_mlflow, results, **options))


def _write(
    store: Store, tally: Tally, results: Results, experiment: str, run_name: str | None, files: bool
) -> None:
    mark = content.fingerprint(results)
    metrics, params = metrics_of(results), params_of(results)
    place = store.experiment(experiment)
    run = store.find(place, mark)
    start = _milliseconds(results.manifest.get("started"))
    if run is None:
        tags = {
            content.FINGERPRINT: mark,
            STATE: "writing",
            "rag_kit.pipeline": content.clean_text(results.name)[:500],
        }
        run = store.create(place, run_name or content.clean_text(results.name)[:250], start, tags)
    tally.run_id = run.id
    if store.url.startswith("http"):
        tally.url = f"{store.url}/#/experiments/{place}/runs/{run.id}"
    new_metrics = {key: value for key, value in metrics.items() if key not in run.metrics}
    new_params = {key: value for key, value in params.items() if key not in run.params}
    if run.complete:
        # settings may read otherwise after a run that computed nothing anew; those of the first time stay
        tally.skip(len(metrics) + len(params))
    else:
        tally.skip(len(metrics) - len(new_metrics) + len(params) - len(new_params))
        store.log(run.id, start, new_metrics, new_params, {})
        tally.wrote(len(new_metrics) + len(new_params))
    if files:
        _files(store, tally, results, run, start)
    if not run.complete:
        store.finish(run.id, _milliseconds(results.manifest.get("ended")))
        store.log(run.id, start, {}, {}, {STATE: COMPLETE})


def _files(store: Store, tally: Tally, results: Results, run: MlflowRun, start: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = write_files(results, Path(folder))
        if run.files:
            tally.skip(len(names))
            return
        store.upload(run, Path(folder), names)
    table = json.dumps([{"path": TABLE, "type": "table"}])
    store.log(run.id, start, {}, {}, {"mlflow.loggedArtifacts": table, FILES: str(len(names))})
    tally.wrote(len(names))


def _server(
    address: str, api_key: str | None, timeout: float, retries: int, deadline: float | None
) -> Server:
    token = api_key or os.environ.get("MLFLOW_TRACKING_TOKEN") or None
    user, password = (os.environ.get(f"MLFLOW_TRACKING_{name}") for name in ("USERNAME", "PASSWORD"))
    headers, encoded = {}, None
    if token:
        headers = {"Authorization": f"Bearer {token}"}
    elif user and password:
        encoded = b64encode(f"{user}:{password}".encode()).decode("ascii")
        headers = {"Authorization": f"Basic {encoded}"}
    return Server(
        "MLflow", address, headers=headers, secrets=[token, None if token else password, encoded], advice=_ADVICE,
        timeout=timeout, max_retries=retries, deadline=deadline,
    )  # fmt: skip


def _milliseconds(stamp: Any) -> int:
    try:
        return int(datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return int(time.time() * 1000)
