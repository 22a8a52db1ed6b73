"""MLflow's runs in a database, a folder or a hosted place, by MLflow's own client."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_kit._redact import redact
from rag_kit.documents import clean_text
from rag_kit.errors import InvalidInputError, MissingExtraError, TrackingError
from rag_kit.evaluation.tracking.content import batches
from rag_kit.evaluation.tracking.http import shown_url
from rag_kit.evaluation.tracking.mlflow_store import (
    AT_ONCE,
    COMPLETE,
    FILES,
    STATE,
    MlflowRun,
    deleted,
    run_filter,
)

_environment = threading.Lock()


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
            raise deleted(name)
        return str(found.experiment_id)

    def find(self, experiment: str, mark: str) -> MlflowRun | None:
        """See `Store`."""
        with self._asking():
            runs = self._client.search_runs([experiment], run_filter(mark), max_results=1)
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
            for batch in batches(metrics.items(), AT_ONCE):
                self._client.log_batch(run, metrics=[Metric(key, value, start, 0) for key, value in batch])
            for batch in batches(params.items(), AT_ONCE):
                self._client.log_batch(run, params=[Param(key, value) for key, value in batch])
            for batch in batches(tags.items(), AT_ONCE):
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


def upload_by_client(artifact_uri: str, folder: Path) -> None:
    """Put files where no server takes them.

    Raises:
        MissingExtraError: If MLflow is not installed.
        TrackingError: If the place refuses them.
    """
    _client_class()
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    try:
        repository: Any = get_artifact_repository(artifact_uri)
        repository.log_artifacts(str(folder))
    except Exception as error:  # noqa: BLE001 - of any store
        raise _failed(shown_url(artifact_uri), error) from None


def _client_class() -> Any:
    # MLflow reports its use unless this is set before it is imported
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise MissingExtraError("mlflow", "writing to MLflow without a server, or files past it,") from None
    return MlflowClient


def _of_client(run: Any) -> MlflowRun:
    return MlflowRun(
        run.info.run_id,
        run.info.artifact_uri or "",
        frozenset(run.data.params),
        frozenset(run.data.metrics),
        run.data.tags.get(STATE) == COMPLETE,
        FILES in run.data.tags,
    )


def _failed(place: str, error: Exception) -> TrackingError:
    said = clean_text(redact(f"{type(error).__name__}: {error}")).replace("\n", " ")[:300]
    return TrackingError(
        f"MLflow at {place} failed: {said}; see that the address is right, then write again: what is there is not "
        "written twice"
    )
