"""Results as a dataset, an experiment, its runs and their scores, in LangSmith and in Arize Phoenix."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from rag_kit.errors import TrackingError
from rag_kit.evaluation.runs.rows import digest
from rag_kit.evaluation.tracking.content import FINGERPRINT, STATE, Tracked, Upload

#: Seconds until the scores that LangSmith has taken must be there.
_ARRIVAL_SECONDS = 30.0
_RUNS_IN_QUERY = 20


def write_langsmith(client: Any, upload: Upload, tracked: Tracked) -> None:
    """Write what LangSmith lacks; ids are derived from the dataset, the question and the metric."""
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
    runs, end = {record["key"]: _id(project.id, record["key"]) for record in upload.rows}, project.start_time
    expected = {_id(runs[record["key"]], name) for record in upload.rows for name in record["scores"]}
    known = _scores(client, list(runs.values()))

    def write(record: dict[str, Any]) -> int:
        run = runs[record["key"]]
        missing = {name: score for name, score in record["scores"].items() if _id(run, name) not in known}
        has_run = len(missing) < len(record["scores"])
        if not has_run:
            # Without trace_id and dotted_order it is sent at once: of a batch in the background a refusal is only
            # logged. With the time of the first attempt a run that is sent twice is the same and not another one.
            client.create_run(
                "rag-kit", record["asked"], "chain", id=run, session_id=project.id, outputs=record["output"],
                reference_example_id=_id(data.id, record["key"]), error=record["error"], end_time=end,
                start_time=end - timedelta(seconds=record["usage"]["seconds"]), extra={"metadata": record["usage"]},
            )  # fmt: skip
        for name, score in missing.items():
            client.create_feedback(
                run, name, score=score["value"], value=score["status"] if score["value"] is None else None,
                comment=score["reason"], error=score["status"] == "error", source_info=score, session_id=project.id,
                feedback_id=_id(run, name), stop_after_attempt=5,  # a new run may be unknown for a moment
            )  # fmt: skip
        return len(missing) + (not has_run)

    upload.write_rows(write, tracked)
    ends = time.monotonic() + _ARRIVAL_SECONDS
    while lost := expected - _scores(client, list(runs.values())):
        if time.monotonic() > ends:
            raise TrackingError(f"LangSmith took everything, but {len(lost)} scores are not there; write again later, "
                                "and not with a client that samples or buffers runs")  # fmt: skip
        time.sleep(0.5)
    metadata = {**upload.metadata, STATE: "complete"}
    client.update_project(project.id, metadata=metadata, end_time=datetime.now(UTC))


def _write_examples(client: Any, dataset: uuid.UUID, upload: Upload, tracked: Tracked) -> None:
    """Create the examples that the dataset lacks, and update those that differ."""
    known = {each.id: (each.inputs, each.outputs or {}) for each in client.list_examples(dataset_id=dataset)}
    new, changed = [], []
    for record in upload.rows:
        example_id, asked, gold = _id(dataset, record["key"]), record["asked"], record["gold"]
        if example_id not in known:
            new.append(
                {"id": example_id, "inputs": asked, "reference_outputs": gold, "metadata": record["about"]}
            )
        elif known[example_id] != (asked, gold):
            changed.append({"id": example_id, "inputs": asked, "outputs": gold})
    if new:
        client.create_examples(dataset_id=dataset, examples=new)
    if changed:
        client.update_examples(dataset_id=dataset, updates=changed)
    tracked.written += len(new) + len(changed)


def _scores(client: Any, runs: list[uuid.UUID]) -> set[uuid.UUID]:
    """Ids of the scores that runs have."""
    parts = [runs[start : start + _RUNS_IN_QUERY] for start in range(0, len(runs), _RUNS_IN_QUERY)]
    return {each.id for part in parts for each in client.list_feedback(run_ids=part)}


def _id(parent: uuid.UUID, name: str) -> uuid.UUID:
    return uuid.uuid5(parent, digest(name))


def write_phoenix(client: Any, upload: Upload, tracked: Tracked) -> None:
    """Write what Phoenix lacks, found by names and by the ids of examples."""
    http = client._client
    tracked.url = str(http.base_url)
    limit = {"timeout": http.timeout}  # else its methods use a time-out of their own
    named = {"name": upload.dataset}
    exists = any(each["name"] == upload.dataset for each in client.datasets.list(**limit))
    data: Any = client.datasets.get_dataset(dataset=named, **limit) if exists else ()
    parts = {"id": "key", "input": "asked", "output": "gold", "metadata": "about"}
    known = {each["id"]: {part: each[part] for part in parts} for each in data}
    examples = [{part: record[name] for part, name in parts.items()} for record in upload.rows]
    if new := [each for each in examples if known.get(each["id"]) != each]:
        data = client.datasets.add_examples_to_dataset(dataset=named, examples=new, **limit)
        tracked.written += len(new)
    nodes = {each["id"]: each["node_id"] for each in data}
    listed = client.experiments.list(dataset_id=data.id, **limit)
    found = next((each for each in listed if each["name"] == upload.experiment), None)
    found = found or client.experiments.create(
        dataset_id=data.id, dataset_version_id=data.version_id, experiment_name=upload.experiment,
        experiment_metadata=upload.metadata, **limit,
    )  # fmt: skip
    upload.check_owner((found["metadata"] or {}).get(FINGERPRINT))
    tracked.run_id, tracked.url = found["id"], client.experiments.get_experiment_url(data.id, found["id"])

    def read(what: str, **params: Any) -> list[Any]:  # the client has no public call for these two lists
        answer = http.get(
            f"v1/experiments/{found['id']}/{what}", params={**params, "limit": len(upload.rows)}
        )
        return list(answer.raise_for_status().json()["data"])

    runs = {each["dataset_example_id"]: each["id"] for each in read("runs")}
    names = sorted({name for record in upload.rows for name in record["scores"]})
    lacking = read("incomplete-evaluations", evaluation_name=names) if names else []
    incomplete = {each["experiment_run"]["id"]: each["evaluation_names"] for each in lacking}

    def write(record: dict[str, Any]) -> int:
        node, end, scores = nodes[record["key"]], datetime.now(UTC), record["scores"]
        if node in runs:
            scores = {name: score for name, score in scores.items() if name in incomplete.get(runs[node], ())}
        run = runs.get(node) or client.experiments.log_run(
            experiment_id=found["id"], dataset_example_id=node, output=record["output"], error=record["error"],
            start_time=end - timedelta(seconds=record["usage"]["seconds"]), end_time=end, **limit,
        )["id"]  # fmt: skip
        for name, score in scores.items():
            # a label, for an evaluation with an error counts as missing
            label = score["status"] if score["value"] is None else None
            kind = "LLM" if name in upload.judged else "CODE"
            client.experiments.log_evaluation(
                experiment_run_id=run, name=name, score=score["value"], label=label, explanation=score["reason"],
                annotator_kind=kind, metadata={"status": score["status"]}, **limit,
            )  # fmt: skip
        return len(scores) + (node not in runs)

    upload.write_rows(write, tracked)
