"""Results written to LangSmith, MLflow or Phoenix by their own clients, and only where `log_results` is called.

Importing this module imports none of the clients.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from rag_kit._redact import redact
from rag_kit.documents import clean_text
from rag_kit.errors import BranchError, InvalidInputError, RagKitError, TrackingError
from rag_kit.evaluation._files import import_extra
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import digest
from rag_kit.evaluation.tracked import FINGERPRINT, STATE, Tracked, Upload, write_mlflow

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


#: Title, class of the client, what writes with it, and variables with keys: the first is named in messages.
_TRACKERS: dict[str, tuple[str, str, Any, tuple[str, ...]]] = {
    "langsmith": ("LangSmith", "langsmith.Client", write_langsmith, ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")),
    "mlflow": ("MLflow", "mlflow.MlflowClient", write_mlflow, ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD")),
    "phoenix": ("Phoenix", "phoenix.client.Client", write_phoenix, ("PHOENIX_API_KEY",)),
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
    _, _, write, _ = _TRACKERS[to]
    try:
        write(_make_client(to, url, api_key, client), upload, tracked)
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
    title, path, *_ = _TRACKERS[to]
    if to == "mlflow":
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
    module, _, name = path.rpartition(".")
    cls = getattr(import_extra(module, f"writing to {title}", to), name)
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
    title, _, _, variables = _TRACKERS[to]
    # LangSmith's client prints parts of the key
    text = f"{type(error).__name__}: {error}".partition("API Key:")[0]
    for key in filter(None, (*keys, *map(os.environ.get, variables))):
        text = text.replace(key, "***").replace(repr(key)[1:-1], "***")  # also with its escapes
    text = clean_text(" ".join(redact(text).split()))[:400]
    return TrackingError(
        f"{title} at {redact(tracked.url)} failed: {text}; see that it runs, that the address is that of its API and "
        f"the key ({variables[0]}) right, then write again: what is there is not written twice"
    )
