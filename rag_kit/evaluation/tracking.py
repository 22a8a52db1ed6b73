"""Results written to LangSmith, MLflow or Phoenix by their own clients, which are imported when they are used."""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rag_kit._redact import redact
from rag_kit.concurrency import fan_out_map
from rag_kit.documents import clean_text
from rag_kit.documents.identity import to_plain
from rag_kit.errors import BranchError, InvalidInputError, RagKitError, TrackingError
from rag_kit.evaluation._files import import_extra
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
        described = manifest["dataset"] if isinstance(manifest.get("dataset"), dict) else {}
        questions = [row.example.to_json() for row in results.rows]
        questions_hash = described.get("fingerprint") or digest(questions)
        set_name = described.get("name") or f"rag-kit-{str(questions_hash)[:8]}"
        self.dataset = dataset or str(set_name)[:_MAX_NAME].strip()
        self.pipeline = storable(results.name)[:_MAX_NAME].strip()
        metrics = [metric for metric in manifest.get("metrics") or () if isinstance(metric, dict)]
        self.judged = {metric.get("name") for metric in metrics if metric.get("asks_judge")}
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
        for name, item in (value if isinstance(value, dict) else {"": value}).items():
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


_TIMEOUT_MS = (5_000, 15_000)  # of LangSmith: to connect, to answer
_ARRIVAL_SECONDS = 30.0  # until the scores that LangSmith has taken must be there


def write_langsmith(client: Any, upload: Upload, tracked: Tracked) -> None:
    """Write to LangSmith what it lacks; ids are derived from the dataset, the question and the metric."""
    tracked.url, name = client.api_url, upload.dataset
    data = next(client.list_datasets(dataset_name=name), None) or client.create_dataset(name)
    _write_examples(client, data.id, upload, tracked)
    if not client.has_project(upload.experiment):
        client.create_project(upload.experiment, reference_dataset_id=data.id, metadata=upload.metadata)
    project = client.read_project(project_name=upload.experiment)
    upload.check_owner(project.metadata.get(FINGERPRINT) if project.reference_dataset_id == data.id else None)
    tracked.run_id, tracked.url = str(project.id), str(project.url)
    if project.metadata.get(STATE) == "complete":
        return
    runs = {record["key"]: _uuid(project.id, record["key"]) for record in upload.rows}
    expected = {_uuid(runs[record["key"]], name) for record in upload.rows for name in record["scores"]}

    def write(record: dict[str, Any]) -> int:
        """Write the run and the scores of a record; return the number of those that were not there."""
        run = runs[record["key"]]
        # Without trace_id and dotted_order the client sends at once and raises; in background batches a refusal
        # is only logged. The end time is the first attempt's, so that a retry gives the same run.
        added = _add(
            client.create_run, "rag-kit", record["asked"], "chain", id=run, session_id=project.id,
            outputs=record["output"], reference_example_id=_uuid(data.id, record["key"]), error=record["error"],
            end_time=project.start_time, start_time=project.start_time - timedelta(seconds=record["usage"]["seconds"]),
            extra={"metadata": record["usage"]},
        )  # fmt: skip
        for name, score in record["scores"].items():
            added += _add(
                client.create_feedback, run, name, score=score["value"], comment=score["reason"], source_info=score,
                value=score["status"] if score["value"] is None else None, error=score["status"] == "error",
                session_id=project.id, feedback_id=_uuid(run, name),
                stop_after_attempt=5,  # a new run may be unknown for a moment
            )  # fmt: skip
        return added

    upload.write_rows(write, tracked)
    deadline = time.monotonic() + _ARRIVAL_SECONDS
    while missing_ids := expected - _score_ids(client, list(runs.values())):
        if time.monotonic() > deadline:
            raise TrackingError(f"LangSmith took everything, but {len(missing_ids)} scores are not there; write again "
                                "later, and not with a client that samples or buffers runs")  # fmt: skip
        time.sleep(0.5)
    metadata = {**upload.metadata, STATE: "complete"}
    client.update_project(project.id, metadata=metadata, end_time=datetime.now(UTC))


def _write_examples(client: Any, dataset: uuid.UUID, upload: Upload, tracked: Tracked) -> None:
    """Create the examples that the dataset lacks, and update those that differ."""
    listed = client.list_examples(dataset_id=dataset)
    stored = {example.id: (example.inputs, example.outputs or {}) for example in listed}
    new, changed = [], []
    for record in upload.rows:
        key, inputs, gold = _uuid(dataset, record["key"]), record["asked"], record["gold"]
        if key not in stored:
            new.append({"id": key, "inputs": inputs, "reference_outputs": gold, "metadata": record["about"]})
        elif stored[key] != (inputs, gold):
            changed.append({"id": key, "inputs": inputs, "outputs": gold})
    if new:
        client.create_examples(dataset_id=dataset, examples=new)
    if changed:
        client.update_examples(dataset_id=dataset, updates=changed)
    tracked.written += len(new) + len(changed)


def _add(create: Callable[..., object], *args: Any, **fields: Any) -> int:
    """Create what may be there from an attempt that broke off, or still goes on; return 1, or 0 if it was there."""
    from langsmith.utils import LangSmithConflictError

    try:
        create(*args, **fields)
    except LangSmithConflictError:
        return 0
    return 1


def _score_ids(client: Any, runs: list[uuid.UUID]) -> set[uuid.UUID]:
    """Return the ids of the scores of some runs, requested for 20 runs at a time."""
    pages = [client.list_feedback(run_ids=runs[start : start + 20]) for start in range(0, len(runs), 20)]
    return {score.id for page in pages for score in page}


def _uuid(parent: uuid.UUID, name: str) -> uuid.UUID:
    """Derive an id from parent and name, so that nothing is written twice."""
    return uuid.uuid5(parent, digest(name))


def write_phoenix(client: Any, upload: Upload, tracked: Tracked) -> None:
    """Write what Phoenix lacks, found by names and by the ids of examples."""
    http = client._client
    tracked.url = str(http.base_url)
    timeout = {"timeout": http.timeout}  # else its methods use a time-out of their own
    data = _write_phoenix_examples(client, upload, tracked, timeout)
    nodes = {item["id"]: item["node_id"] for item in data}
    listed = client.experiments.list(dataset_id=data.id, **timeout)
    experiment = next((item for item in listed if item["name"] == upload.experiment), None)
    experiment = experiment or client.experiments.create(
        dataset_id=data.id, dataset_version_id=data.version_id, experiment_name=upload.experiment,
        experiment_metadata=upload.metadata, **timeout,
    )  # fmt: skip
    upload.check_owner((experiment["metadata"] or {}).get(FINGERPRINT))
    experiment_id = tracked.run_id = experiment["id"]
    tracked.url = client.experiments.get_experiment_url(data.id, experiment_id)

    def read(resource: str, **params: Any) -> list[Any]:  # the client has no public call for these two lists
        params["limit"] = len(upload.rows)
        reply = http.get(f"v1/experiments/{experiment_id}/{resource}", params=params)
        return list(reply.raise_for_status().json()["data"])

    runs = {item["dataset_example_id"]: item["id"] for item in read("runs")}
    names = sorted({name for record in upload.rows for name in record["scores"]})
    incomplete = read("incomplete-evaluations", evaluation_name=names) if names else []
    lacking = {item["experiment_run"]["id"]: item["evaluation_names"] for item in incomplete}

    def write(record: dict[str, Any]) -> int:
        """Write the run and the scores of a record that are missing; return the number of calls."""
        node, end, scores = nodes[record["key"]], datetime.now(UTC), record["scores"]
        if node in runs:
            scores = {name: score for name, score in scores.items() if name in lacking.get(runs[node], ())}
        run = runs.get(node) or client.experiments.log_run(
            experiment_id=experiment_id, dataset_example_id=node, output=record["output"], error=record["error"],
            start_time=end - timedelta(seconds=record["usage"]["seconds"]), end_time=end, **timeout,
        )["id"]  # fmt: skip
        for name, score in scores.items():
            # no error is sent, only a label: Phoenix takes an evaluation with an error for a missing one
            label = score["status"] if score["value"] is None else None
            kind = "LLM" if name in upload.judged else "CODE"
            client.experiments.log_evaluation(
                experiment_run_id=run, name=name, score=score["value"], label=label, explanation=score["reason"],
                annotator_kind=kind, metadata={"status": score["status"]}, **timeout,
            )  # fmt: skip
        return len(scores) + (0 if node in runs else 1)

    upload.write_rows(write, tracked)


def _write_phoenix_examples(client: Any, upload: Upload, tracked: Tracked, timeout: dict[str, Any]) -> Any:
    """Add the examples that the dataset lacks, or has otherwise; return the dataset, which may be created."""
    dataset = {"name": upload.dataset}
    exists = any(item["name"] == upload.dataset for item in client.datasets.list(**timeout))
    data: Any = client.datasets.get_dataset(dataset=dataset, **timeout) if exists else ()
    fields = {"id": "key", "input": "asked", "output": "gold", "metadata": "about"}  # Phoenix's -> a record's
    stored = {item["id"]: {field: item[field] for field in fields} for item in data}
    examples = [{field: record[name] for field, name in fields.items()} for record in upload.rows]
    if new := [item for item in examples if stored.get(item["id"]) != item]:
        data = client.datasets.add_examples_to_dataset(dataset=dataset, examples=new, **timeout)
        tracked.written += len(new)
    return data


class _Tracker(NamedTuple):
    title: str
    client: str  # module and class of the client
    write: Callable[[Any, Upload, Tracked], None]
    variables: tuple[str, ...]  # of the environment, with keys: the first is named in messages


_TRACKERS = {
    "langsmith": _Tracker(
        "LangSmith", "langsmith.Client", write_langsmith, ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")),
    "mlflow": _Tracker(
        "MLflow", "mlflow.MlflowClient", write_mlflow, ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD")),
    "phoenix": _Tracker("Phoenix", "phoenix.client.Client", write_phoenix, ("PHOENIX_API_KEY",)),
}  # fmt: skip


def log_results(
    results: Results,
    to: Literal["langsmith", "mlflow", "phoenix"],
    *,
    dataset: str | None = None,
    experiment: str | None = None,
    url: str | None = None,
    api_key: str | None = None,
    client: Any = None,
) -> Tracked:
    """Write results to a tracker of experiments; written again, only what is missing is added (``written`` is 0).

    LangSmith and Phoenix get a dataset of the questions and an experiment with a run for each row and a score for
    each cell (its status where it has no value). MLflow gets a run: settings, the summary of each metric, files.

    Args:
        results: What ``evaluate`` or ``Results.load`` gave.
        to: The tracker. MLflow needs the extra ``mlflow``, Phoenix the extra ``phoenix``.
        dataset: Name of the dataset; default: that of the set. MLflow has none.
        experiment: Its name; default: the pipeline's with a mark of the content; with MLflow the set's.
        url: Address of the tracker; default: what its client reads from the environment.
        api_key: Key, likewise. MLflow's client takes it from the environment only.
        client: A client of your own, with its address, key, time-outs and retries.

    Raises:
        TrackingError: If the tracker is down, too slow, or refuses; its ``tracked`` has the counts until then.
        InvalidInputError: If an argument is not allowed, or the experiment's name belongs to other results.
        MissingExtraError: If the tracker's client is not installed.
    """
    if not isinstance(results, Results) or not results.rows:
        raise InvalidInputError(f"results is {results!r:.60}; give what evaluate returned, with rows")
    if not isinstance(to, str) or to not in _TRACKERS:
        raise InvalidInputError(f"to is {to!r:.60}; allowed are 'langsmith', 'mlflow' and 'phoenix'")
    for name, value in (("dataset", dataset), ("experiment", experiment), ("url", url), ("api_key", api_key)):
        is_line = isinstance(value, str) and value.isprintable() and value.strip() == value != ""
        if value is not None and not (is_line and (name != "api_key" or value.isascii())):
            raise InvalidInputError(f"{name} is no line of printable characters without blanks around it")
    if to == "mlflow" and (dataset or api_key):
        raise InvalidInputError("leave dataset and api_key out: MLflow's client reads MLFLOW_TRACKING_TOKEN")
    upload, tracked = Upload(results, dataset, experiment), Tracked(to, url or "its address")
    try:
        _TRACKERS[to].write(_make_client(to, url, api_key, client), upload, tracked)
    except Exception as error:  # noqa: BLE001 - a client raises classes of its own and those of all it stands on
        cause = error.__cause__ if isinstance(error, BranchError) and error.__cause__ else error
        if not isinstance(cause, RagKitError):
            cause = _tracking_error(to, cause, tracked, api_key, getattr(client, "api_key", None))
        if isinstance(cause, TrackingError):
            cause.tracked = tracked
        raise cause from None
    finally:
        tracked.url = redact(tracked.url)
    return tracked


def _make_client(to: str, url: str | None, api_key: str | None, client: Any) -> Any:
    """Return the given client, or make one; refuse a client of another class, or one with url or key."""
    path = _TRACKERS[to].client
    if to == "mlflow":
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
    module, _, name = path.rpartition(".")
    cls = getattr(import_extra(module, f"writing to {_TRACKERS[to].title}", to), name)
    if client is not None:
        if not isinstance(client, cls) or url is not None or api_key is not None:
            raise InvalidInputError(f"client is a {type(client).__name__}; give a {path} and no url, api_key")
        return client
    if to == "mlflow":
        return cls(tracking_uri=url)
    if to == "phoenix":
        return cls(base_url=url, api_key=api_key)
    return cls(url, api_key=api_key, timeout_ms=_TIMEOUT_MS, auto_batch_tracing=False, tracing_mode="langsmith",
               tracing_sampling_rate=1.0, omit_traced_runtime_info=True)  # fmt: skip


def _tracking_error(to: str, error: BaseException, tracked: Tracked, *keys: str | None) -> TrackingError:
    """Make a `TrackingError` from a client's error: its text with keys masked, and what to do."""
    title, variables = _TRACKERS[to].title, _TRACKERS[to].variables
    # LangSmith's client prints parts of the key
    text = f"{type(error).__name__}: {error}".partition("API Key:")[0]
    for key in filter(None, (*keys, *map(os.environ.get, variables))):
        text = text.replace(key, "***").replace(repr(key)[1:-1], "***")  # also with its escapes
    text = clean_text(" ".join(redact(text).split()))[:400]
    return TrackingError(
        f"{title} at {redact(tracked.url)} failed: {text}; see that it runs, that the address is that of its API and "
        f"the key ({variables[0]}) right, then write again: what is there is not written twice"
    )
