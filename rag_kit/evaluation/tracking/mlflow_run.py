"""Results as one run of MLflow: params, metrics, files."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from rag_kit.evaluation.tracking.content import FINGERPRINT, STATE, Tracked, Upload, storable

_SETTINGS = ("dataset", "pipeline", "judge", "versions", "commit", "prices", "settings")
_MAX_KEY, _MAX_VALUE, _MAX_PARAMS = 250, 500, 100
#: MLflow's client reads its limits from the environment alone; without them a server that is down takes four minutes.
_LIMITS = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
           "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false"}  # fmt: skip


def write_mlflow(client: Any, upload: Upload, tracked: Tracked) -> None:
    """Write what MLflow lacks; a run that is complete stays as it is."""
    from mlflow.entities import Metric, Param

    tracked.url = str(client.tracking_uri)
    name, start = upload.chosen or upload.dataset, _milliseconds(upload.metadata.get("started"))
    with _limits(), tempfile.TemporaryDirectory() as folder:
        there = client.get_experiment_by_name(name)
        place = there.experiment_id if there else client.create_experiment(name)
        found = client.search_runs([place], f"tags.`{FINGERPRINT}` = '{upload.fingerprint}'", max_results=1)
        run = (
            found[0]
            if found
            else client.create_run(place, start, {FINGERPRINT: upload.fingerprint}, upload.pipeline)
        )
        tracked.run_id = run_id = run.info.run_id
        if tracked.url.startswith("http"):
            tracked.url += f"/#/experiments/{place}/runs/{run_id}"
        if run.data.tags.get(STATE) == "complete":
            return
        metrics = [
            Metric(k, v, start or 0, 0) for k, v in _metrics(upload).items() if k not in run.data.metrics
        ]
        params = [Param(k, v) for k, v in _params(upload).items() if k not in run.data.params]
        client.log_batch(run_id, metrics, params, synchronous=True)
        tracked.written += len(metrics) + len(params)
        files = _write_files(upload, Path(folder))
        client.log_artifacts(run_id, folder)
        tracked.written += files
        table = json.dumps([{"path": "rows.json", "type": "table"}])  # by this tag MLflow's pages find it
        client.set_tag(run_id, "mlflow.loggedArtifacts", table, synchronous=True)
        client.set_terminated(run_id, "FINISHED", _milliseconds(upload.metadata.get("ended")))
        client.set_tag(run_id, STATE, "complete", synchronous=True)


def _params(upload: Upload) -> dict[str, str]:
    """Settings from the manifest (``settings.timeout``)."""
    found = {"name": upload.pipeline}
    for part in _SETTINGS:
        value = upload.metadata.get(part) or {}
        for name, item in (value if isinstance(value, dict) else {"": value}).items():
            text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            found[_key(f"{part}.{name}".rstrip("."))] = text[:_MAX_VALUE]
    return dict(list(found.items())[:_MAX_PARAMS])


def _metrics(upload: Upload) -> dict[str, float]:
    """The summary of each metric; what has no value (a mean of nothing) is not there."""
    found = {f"pipeline/{part}": float(sum(record["usage"][part] for record in upload.rows))
             for part in ("seconds", "calls", "tokens")}  # fmt: skip
    for name, summary in upload.metadata["summary"].items():
        found |= {
            f"{_key(name)}/{part}": float(value) for part, value in summary.items() if value is not None
        }
    return found


def _write_files(upload: Upload, folder: Path) -> int:
    """Write the folder of the results and a table of the rows; how many files these are."""
    upload.results.save(folder / "results")
    (folder / "results" / ".lock").unlink(missing_ok=True)
    lines = []
    for record in upload.rows:
        passages = [each["id"] for each in record["output"].get("passages", ())]
        lines.append({"id": record["key"], **record["asked"], **record["output"], "passages": passages})
        lines[-1]["error"] = record["error"]
        for name, score in record["scores"].items():
            lines[-1] |= {f"{name}.{part}": value for part, value in score.items()}
    columns = list(dict.fromkeys(name for line in lines for name in line))
    table = {"columns": columns, "data": [[line.get(name) for name in columns] for line in lines]}
    (folder / "rows.json").write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")
    return sum(each.is_file() for each in folder.rglob("*"))


def _key(name: str) -> str:
    """A name that MLflow takes: letters of any script, digits, and ``_ - .`` and blanks."""
    key = re.sub(r"[^\w.\- ]", "_", storable(name))[:_MAX_KEY]
    return key if key.strip(". ") else f"_{key}"


def _milliseconds(stamp: Any) -> int | None:
    return int(datetime.fromisoformat(str(stamp)).timestamp() * 1000) if stamp else None


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
