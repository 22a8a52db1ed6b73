"""Where MLflow's runs are kept: a server by its REST API, anything else by its client."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from rag_kit._redact import redact
from rag_kit.documents import clean_text
from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError, TrackingError
from rag_kit.evaluation.tracking.content import FINGERPRINT, batches
from rag_kit.evaluation.tracking.http import Server, shown_url

STATE = "rag_kit.state"
COMPLETE = "complete"
FILES = "rag_kit.files"
_AT_ONCE = 100
_PROXIED = "mlflow-artifacts:/"
_environment = threading.Lock()


@dataclass(frozen=True)
class MlflowRun:
    """A run as the store knows it."""

    id: str
    artifact_uri: str
    params: frozenset[str] = frozenset()
    metrics: frozenset[str] = frozenset()
    complete: bool = False
    files: bool = False


class Store(Protocol):
    """What is needed of one."""

    url: str

    def experiment(self, name: str) -> str:
        """Id of the experiment, which is made if it is not there."""

    def find(self, experiment: str, mark: str) -> MlflowRun | None:
        """The run of results with this fingerprint."""

    def create(self, experiment: str, name: str, start: int, tags: Mapping[str, str]) -> MlflowRun:
        """A new run."""

    def log(
        self,
        run: str,
        start: int,
        metrics: Mapping[str, float],
        params: Mapping[str, str],
        tags: Mapping[str, str],
    ) -> None:
        """Add entries."""

    def upload(self, run: MlflowRun, folder: Path, files: list[str]) -> None:
        """Add the files of a folder."""

    def finish(self, run: str, end: int) -> None:
        """Mark the run as finished."""

    def close(self) -> None:
        """Let go of connections."""


class RestStore:
    """An MLflow server, asked by HTTP; MLflow need not be installed, unless files go to a place of their own."""

    def __init__(self, server: Server) -> None:
        self.url = server.url
        self._server = server

    def experiment(self, name: str) -> str:
        """See `Store`."""
        for _ in range(2):
            params = {"experiment_name": name}
            answer = self._server.ask("GET", _api("experiments/get-by-name"), params=params, allow=(404,))
            if answer.status == 404 and not _code(answer.value):
                raise self._server.wrong("answers 404 without saying that an experiment is missing")
            if answer.status != 404:
                found = self._part(answer.value, "experiment")
                if found.get("lifecycle_stage") == "deleted":
                    raise _deleted(name)
                return str(found["experiment_id"])
            made = self._server.ask("POST", _api("experiments/create"), {"name": name}, allow=(400,))
            if made.status != 400:
                return str(self._part({"made": made.value}, "made")["experiment_id"])
            if _code(made.value) != "RESOURCE_ALREADY_EXISTS":
                said = self._server.hide(str(made.value))
                raise TrackingError(f"MLflow at {self.url} takes no experiment {name!r:.80}: {said}", 400)
        raise self._server.wrong(f"neither has nor makes the experiment {name!r:.80}")

    def find(self, experiment: str, mark: str) -> MlflowRun | None:
        """See `Store`."""
        body = {"experiment_ids": [experiment], "filter": _filter(mark), "max_results": 1}
        value = self._server.ask("POST", _api("runs/search"), body).value
        runs = (value if isinstance(value, dict) else {}).get("runs") or []
        return self._run(runs[0]) if runs else None

    def create(self, experiment: str, name: str, start: int, tags: Mapping[str, str]) -> MlflowRun:
        """See `Store`."""
        body = {"experiment_id": experiment, "run_name": name, "start_time": start, "tags": _pairs(tags)}
        answer = self._server.ask("POST", _api("runs/create"), body, again=False)
        return self._run(self._part(answer.value, "run"))

    def log(
        self,
        run: str,
        start: int,
        metrics: Mapping[str, float],
        params: Mapping[str, str],
        tags: Mapping[str, str],
    ) -> None:
        """See `Store`."""
        entries: list[tuple[str, Any]] = [("metrics", {"key": key, "value": value, "timestamp": start, "step": 0})
                   for key, value in metrics.items()]  # fmt: skip
        entries += [("params", each) for each in _pairs(params)] + [("tags", each) for each in _pairs(tags)]
        for batch in batches(entries, _AT_ONCE):
            body: dict[str, Any] = {"run_id": run, "metrics": [], "params": [], "tags": []}
            for kind, each in batch:
                body[kind].append(each)
            self._server.ask("POST", _api("runs/log-batch"), body)

    def upload(self, run: MlflowRun, folder: Path, files: list[str]) -> None:
        """See `Store`."""
        if not run.artifact_uri.startswith(_PROXIED) or run.artifact_uri.startswith(_PROXIED + "/"):
            _upload_by_client(run.artifact_uri, folder)
            return
        place = quote(run.artifact_uri.removeprefix(_PROXIED).strip("/"))
        for name in files:
            path = f"/api/2.0/mlflow-artifacts/artifacts/{place}/{quote(name)}"
            self._server.ask("PUT", path, content=(folder / name).read_bytes())

    def finish(self, run: str, end: int) -> None:
        """See `Store`."""
        self._server.ask("POST", _api("runs/update"), {"run_id": run, "status": "FINISHED", "end_time": end})

    def close(self) -> None:
        """See `Store`."""
        self._server.close()

    def _run(self, value: Any) -> MlflowRun:
        info, data = self._part(value, "info"), value.get("data") or {}
        tags = {each.get("key"): each.get("value") for each in data.get("tags", [])}
        return MlflowRun(
            str(info.get("run_id") or info.get("run_uuid")),
            str(info.get("artifact_uri", "")),
            frozenset(each["key"] for each in data.get("params", [])),
            frozenset(each["key"] for each in data.get("metrics", [])),
            tags.get(STATE) == COMPLETE,
            FILES in tags,
        )

    def _part(self, value: Any, name: str) -> dict[str, Any]:
        part = value.get(name) if isinstance(value, dict) else None
        if not isinstance(part, dict):
            raise self._server.wrong("answers with something else than was asked for")
        return part


class ClientStore:
    """A database, a folder or a hosted MLflow, by MLflow's own client.

    Args:
        uri: Such as ``sqlite:///mlflow.db``.
        timeout: Seconds of a request, where the client makes any.
        max_retries: Its retries.

    Raises:
        MissingExtraError: If MLflow is not installed.
    """

    def __init__(self, uri: str, timeout: float, max_retries: int) -> None:
        client = _client_class()
        self.url = shown_url(uri) if "://" in uri else uri
        self._limits = {
            "MLFLOW_HTTP_REQUEST_TIMEOUT": str(max(1, int(timeout))),
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": str(max_retries),
        }
        with self._asking():
            self._client = client(tracking_uri=uri)

    def experiment(self, name: str) -> str:
        """See `Store`."""
        with self._asking():
            found = self._client.get_experiment_by_name(name)
            if found is None:
                return str(self._client.create_experiment(name))
        if found.lifecycle_stage == "deleted":
            raise _deleted(name)
        return str(found.experiment_id)

    def find(self, experiment: str, mark: str) -> MlflowRun | None:
        """See `Store`."""
        with self._asking():
            runs = self._client.search_runs([experiment], _filter(mark), max_results=1)
        return _of_client(runs[0]) if runs else None

    def create(self, experiment: str, name: str, start: int, tags: Mapping[str, str]) -> MlflowRun:
        """See `Store`."""
        with self._asking():
            return _of_client(
                self._client.create_run(experiment, start_time=start, tags=dict(tags), run_name=name)
            )

    def log(
        self,
        run: str,
        start: int,
        metrics: Mapping[str, float],
        params: Mapping[str, str],
        tags: Mapping[str, str],
    ) -> None:
        """See `Store`."""
        from mlflow.entities import Metric, Param, RunTag

        with self._asking():
            for batch in batches(metrics.items(), _AT_ONCE):
                self._client.log_batch(run, metrics=[Metric(key, value, start, 0) for key, value in batch])
            for batch in batches(params.items(), _AT_ONCE):
                self._client.log_batch(run, params=[Param(key, value) for key, value in batch])
            for batch in batches(tags.items(), _AT_ONCE):
                self._client.log_batch(run, tags=[RunTag(key, value) for key, value in batch])

    def upload(self, run: MlflowRun, folder: Path, files: list[str]) -> None:
        """See `Store`."""
        with self._asking():
            self._client.log_artifacts(run.id, str(folder))

    def finish(self, run: str, end: int) -> None:
        """See `Store`."""
        with self._asking():
            self._client.set_terminated(run, status="FINISHED", end_time=end)

    def close(self) -> None:
        """See `Store`."""

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """The client reads its limits from the environment alone."""
        with _environment:
            before = {name: os.environ.get(name) for name in self._limits}
            os.environ.update(self._limits)
            try:
                yield
            except (TrackingError, InvalidInputError):
                raise
            except Exception as error:  # noqa: BLE001 - of any database or store
                raise _failed(self.url, error) from None
            finally:
                for name, value in before.items():
                    if value is None:
                        del os.environ[name]
                    else:
                        os.environ[name] = value


def _client_class() -> Any:
    # MLflow reports its use unless this is set before it is imported
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise MissingExtraError("mlflow", "writing to MLflow without a server, or files past it,") from None
    return MlflowClient


def _upload_by_client(artifact_uri: str, folder: Path) -> None:
    _client_class()
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    try:
        repository: Any = get_artifact_repository(artifact_uri)
        repository.log_artifacts(str(folder))
    except Exception as error:  # noqa: BLE001 - of any store
        raise _failed(shown_url(artifact_uri), error) from None


def _failed(place: str, error: Exception) -> TrackingError:
    said = clean_text(redact(f"{type(error).__name__}: {error}")).replace("\n", " ")[:300]
    return TrackingError(
        f"MLflow at {place} failed: {said}; see that the address is right, then write again: what is there is not "
        "written twice"
    )


def _deleted(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"MLflow's experiment {name!r:.80} is deleted; restore it there, or give experiment= another name"
    )


def _of_client(run: Any) -> MlflowRun:
    return MlflowRun(
        run.info.run_id,
        run.info.artifact_uri or "",
        frozenset(run.data.params),
        frozenset(run.data.metrics),
        run.data.tags.get(STATE) == COMPLETE,
        FILES in run.data.tags,
    )


def _api(path: str) -> str:
    return f"/api/2.0/mlflow/{path}"


def _code(value: Any) -> str:
    return str(value.get("error_code") or "") if isinstance(value, dict) else ""


def _filter(mark: str) -> str:
    return f"tags.`{FINGERPRINT}` = '{mark}'"


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]
