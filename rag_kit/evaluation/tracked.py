"""Records of results for trackers, as plain JSON that any store takes; and MLflow's run of them."""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag_kit._redact import redact
from rag_kit.concurrency import fan_out_map
from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row, clean, digest

#: Metadata by which results are found again, and known to be complete.
FINGERPRINT, STATE = "rag_kit.fingerprint", "rag_kit.state"
_MAX_NAME = 200
_MAX_CONCURRENCY = 8  # rows written at a time
_counting = threading.Lock()
_SETTINGS = ("dataset", "pipeline", "judge", "versions", "commit", "prices", "settings", "started", "ended")
#: Characters that MLflow refuses in names of params and metrics; letters of any script are allowed.
_REFUSED = re.compile(r"[^\w.\- ]")
_MAX_KEY, _MAX_VALUE, _MAX_PARAMS = 200, 500, 100
#: MLflow's client reads its limits from the environment alone; without them a server that is down takes four minutes.
_LIMITS = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
           "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false"}  # fmt: skip


@dataclass
class Tracked:
    """A report of writing to a tracker: its name, where people find it, the id of the experiment or run.

    ``written`` counts what was missing or other: examples, runs and scores; with MLflow params, metrics, files.
    """

    tool: str
    url: str
    run_id: str = ""
    written: int = 0


class Upload:
    """Results made ready for a tracker: names, a fingerprint, metadata without keys, rows as plain JSON."""

    def __init__(self, results: Results, dataset: str | None, experiment: str | None) -> None:
        manifest, summary = storable(clean(results.manifest)), results.summary()
        self.results, self.rows = results, [_row_record(row) for row in results.rows]
        entry = manifest.get("dataset") or {}
        questions_hash = entry.get("fingerprint") or digest([row.example.to_json() for row in results.rows])
        set_name = entry.get("name") or f"rag-kit-{str(questions_hash)[:8]}"
        self.dataset = dataset or str(set_name)[:_MAX_NAME].strip()
        self.pipeline = storable(results.name)[:_MAX_NAME].strip()
        metrics = manifest.get("metrics") or ()
        self.judged = {metric["name"] for metric in metrics if metric.get("asks_judge")}
        # times and costs are no part of the fingerprint
        content = [{name: value for name, value in record.items() if name != "usage"} for record in self.rows]
        self.fingerprint = digest([results.name, list(results.metrics), content])
        self.chosen = experiment  # the name that the user gave
        self.experiment = experiment or f"{self.pipeline}-{self.fingerprint[:8]}"
        numbers = {storable(k): {**asdict(means), "coverage": means.coverage} for k, means in summary.items()}
        self.metadata = {**manifest, "summary": numbers, FINGERPRINT: self.fingerprint}

    def write_rows(self, write: Callable[[dict[str, Any]], int], tracked: Tracked) -> None:
        """Write rows side by side, and count the calls; ``write`` returns how many calls a row took."""

        def write_and_count(record: dict[str, Any]) -> None:
            calls = write(record)
            with _counting:
                tracked.written += calls

        fan_out_map(write_and_count, self.rows, max_concurrency=_MAX_CONCURRENCY)

    def check_owner(self, fingerprint: Any) -> None:
        """Raise InvalidInputError if the tracker's experiment of this name has the fingerprint of other results."""
        if fingerprint != self.fingerprint:
            raise InvalidInputError(
                f"{self.experiment!r:.120} has other results; give experiment= another name"
            )


def _row_record(row: Row) -> dict[str, Any]:
    """Make plain JSON of a row; its key is the example's id, with a hash if that cannot be stored unchanged."""
    example, output, key = row.example.to_json(), row.output.to_json(), storable(row.example.id)
    for passage in output.get("passages", ()):
        del passage["metadata"], passage["provenance"]
    fields = ("answer", "passages", "status", "citations", "queries", "notes")
    return dict(storable({
        "key": key if key == row.example.id else f"{key}-{digest(row.example.id)[:8]}",
        "asked": {name: example.pop(name) for name in ("question", "history") if name in example},
        "about": {name: example.pop(name) for name in ("id", "tags", "metadata") if name in example},
        "gold": example,
        "output": {name: output[name] for name in fields if name in output},
        "error": redact(row.output.error or "") or None,
        "scores": {name: {"value": cell.value, "status": cell.status, "reason": redact(cell.reason) or None}
                   for name, cell in row.cells.items()},
        "usage": {name: getattr(row.output, name) for name in ("seconds", "calls", "tokens")},
    }))  # fmt: skip


def storable(value: Any) -> Any:
    """Replace in plain JSON what databases refuse: NUL, and halves of surrogate pairs."""
    value = to_plain(value)
    if isinstance(value, str):  # by UTF-16, two halves become one character, a single half U+FFFD
        return value.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [storable(item) for item in value]
    return {storable(k): storable(v) for k, v in value.items()} if isinstance(value, dict) else value


def write_mlflow(client: Any, upload: Upload, tracked: Tracked) -> None:
    """Write results as a run of MLflow; one with the same fingerprint is completed, or left as it is if complete."""
    tracked.url, fingerprint = str(client.tracking_uri), upload.fingerprint
    with _default_limits(), tempfile.TemporaryDirectory() as folder:
        name = upload.chosen or upload.dataset
        experiment = client.get_experiment_by_name(name)
        experiment_id = experiment.experiment_id if experiment else client.create_experiment(name)
        runs = client.search_runs([experiment_id], f"tags.`{FINGERPRINT}` = '{fingerprint}'", max_results=1)
        tags = {FINGERPRINT: fingerprint}
        run = runs[0] if runs else client.create_run(experiment_id, tags=tags, run_name=upload.pipeline)
        tracked.run_id = run_id = run.info.run_id
        if tracked.url.startswith("http"):
            tracked.url += f"/#/experiments/{experiment_id}/runs/{run_id}"
        if run.data.tags.get(STATE) == "complete":
            return
        _log_summary(client, run, upload, tracked)
        upload.results.save(Path(folder) / "results")
        (Path(folder) / "results" / ".lock").unlink(missing_ok=True)  # of saving them, no result
        client.log_artifacts(run_id, folder)
        tracked.written += sum(file.is_file() for file in Path(folder).rglob("*"))
        client.set_terminated(run_id, "FINISHED")
        client.set_tag(run_id, STATE, "complete", synchronous=True)


def _log_summary(client: Any, run: Any, upload: Upload, tracked: Tracked) -> None:
    """Log settings as params and the numbers of each metric as metrics; those that the run has are left out."""
    from mlflow.entities import Metric, Param

    texts, numbers = {"name": upload.pipeline}, dict[str, float]()  # params and metrics by their MLflow names
    for setting in _SETTINGS:
        value = upload.metadata.get(setting) or {}
        items = value if isinstance(value, dict) else {"": value}
        for name, item in items.items():
            key = _REFUSED.sub("_", f"{setting}.{name}".rstrip("."))[:_MAX_KEY]  # "judge.model"; "commit"
            text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            texts[key] = text[:_MAX_VALUE]
    for name, summary in upload.metadata["summary"].items():
        key = _REFUSED.sub("_", name)[:_MAX_KEY]
        numbers |= {f"{key}/{figure}": float(value) for figure, value in summary.items() if value is not None}
    for name in ("seconds", "calls", "tokens"):
        numbers[f"pipeline/{name}"] = float(sum(record["usage"][name] for record in upload.rows))
    stored, start = run.data, run.info.start_time
    allowed = list(texts.items())[:_MAX_PARAMS]
    params = [Param(key, text) for key, text in allowed if key not in stored.params]
    metrics = [Metric(key, number, start, 0) for key, number in numbers.items() if key not in stored.metrics]
    client.log_batch(run.info.run_id, metrics, params, synchronous=True)
    tracked.written += len(metrics) + len(params)


@contextmanager
def _default_limits() -> Iterator[None]:
    """Set limits for MLflow's client in the block, where the environment has none."""
    added = {name: value for name, value in _LIMITS.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
