"""Results as one run of MLflow: params, metrics, files."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_kit.evaluation.tracking.content import FINGERPRINT, STATE, Tracked, Upload

_SETTINGS = ("dataset", "pipeline", "judge", "versions", "commit", "prices", "settings", "started", "ended")
#: What names of params and metrics may not have; letters are those of any script.
_REFUSED = re.compile(r"[^\w.\- ]")
_MAX_KEY, _MAX_VALUE, _MAX_PARAMS = 200, 500, 100
#: MLflow's client reads its limits from the environment alone; without them a server that is down takes four minutes.
_LIMITS = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
           "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false"}  # fmt: skip


def write_mlflow(client: Any, upload: Upload, tracked: Tracked) -> None:
    """Write results as a run, found again by its fingerprint; a run that is complete stays as it is."""
    tracked.url, fingerprint = str(client.tracking_uri), upload.fingerprint
    with _limits(), tempfile.TemporaryDirectory() as folder:
        name = upload.chosen or upload.dataset
        experiment = client.get_experiment_by_name(name)
        experiment_id = experiment.experiment_id if experiment else client.create_experiment(name)
        found = client.search_runs([experiment_id], f"tags.`{FINGERPRINT}` = '{fingerprint}'", max_results=1)
        tags = {FINGERPRINT: fingerprint}
        run = found[0] if found else client.create_run(experiment_id, None, tags, upload.pipeline)
        tracked.run_id = run_id = run.info.run_id
        if tracked.url.startswith("http"):
            tracked.url += f"/#/experiments/{experiment_id}/runs/{run_id}"
        if run.data.tags.get(STATE) == "complete":
            return
        _log(client, run, upload, tracked)
        files = _write_files(upload, Path(folder))
        client.log_artifacts(run_id, folder)
        tracked.written += files
        table = json.dumps([{"path": "rows.json", "type": "table"}])  # by this tag MLflow's pages find it
        client.set_tag(run_id, "mlflow.loggedArtifacts", table, synchronous=True)
        client.set_terminated(run_id, "FINISHED")
        client.set_tag(run_id, STATE, "complete", synchronous=True)


def _log(client: Any, run: Any, upload: Upload, tracked: Tracked) -> None:
    """Log settings and the summary of each metric; what has no value (a mean of nothing) is left out."""
    from mlflow.entities import Metric, Param

    texts, values = {"name": upload.pipeline}, dict[str, float]()
    for part in _SETTINGS:
        value = upload.metadata.get(part) or {}
        for name, item in (value if isinstance(value, dict) else {"": value}).items():
            text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            texts[_REFUSED.sub("_", f"{part}.{name}".rstrip("."))[:_MAX_KEY]] = text[:_MAX_VALUE]
    for name, summary in upload.metadata["summary"].items():
        key = _REFUSED.sub("_", name)[:_MAX_KEY]
        values |= {f"{key}/{part}": float(each) for part, each in summary.items() if each is not None}
    for part in ("seconds", "calls", "tokens"):
        values[f"pipeline/{part}"] = float(sum(record["usage"][part] for record in upload.rows))
    params = [Param(*each) for each in list(texts.items())[:_MAX_PARAMS] if each[0] not in run.data.params]
    start = run.info.start_time
    metrics = [Metric(*each, start, 0) for each in values.items() if each[0] not in run.data.metrics]
    client.log_batch(run.info.run_id, metrics, params, synchronous=True)
    tracked.written += len(metrics) + len(params)


def _write_files(upload: Upload, folder: Path) -> int:
    """Write the folder of the results and a table of the rows; returns how many files these are."""
    upload.results.save(folder / "results")
    (folder / "results" / ".lock").unlink(missing_ok=True)
    lines = []
    for record in upload.rows:
        passages = [each["id"] for each in record["output"].get("passages", ())]
        line = {"id": record["key"], **record["asked"], **record["output"], "passages": passages}
        for name, score in record["scores"].items():
            line |= {f"{name}.{part}": value for part, value in score.items()}
        lines.append({**line, "error": record["error"]})
    columns = list(dict.fromkeys(name for line in lines for name in line))
    table = {"columns": columns, "data": [[line.get(name) for name in columns] for line in lines]}
    (folder / "rows.json").write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")
    return sum(each.is_file() for each in folder.rglob("*"))


@contextmanager
def _limits() -> Iterator[None]:
    """Limits for MLflow's client where the environment names none."""
    added = {name: value for name, value in _LIMITS.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
