"""MLflow's runs on a server, asked by its REST API."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rag_kit.errors import TrackingError
from rag_kit.evaluation.tracking.answers import Part
from rag_kit.evaluation.tracking.content import batches
from rag_kit.evaluation.tracking.http import Server
from rag_kit.evaluation.tracking.mlflow_client import upload_by_client
from rag_kit.evaluation.tracking.mlflow_store import (
    AT_ONCE,
    COMPLETE,
    FILES,
    STATE,
    MlflowRun,
    deleted,
    run_filter,
)

_PROXIED = "mlflow-artifacts:/"


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
                raise answer.complain("it does not say that an experiment is missing")
            if answer.status != 404:
                found = answer.whole.part("experiment")
                if found.fields().get("lifecycle_stage") == "deleted":
                    raise deleted(name)
                return found.part("experiment_id").id()
            made = self._server.ask("POST", _api("experiments/create"), {"name": name}, allow=(400,))
            if made.status != 400:
                return made.whole.part("experiment_id").id()
            if _code(made.value) != "RESOURCE_ALREADY_EXISTS":
                said = self._server.hide(str(made.value))
                raise TrackingError(f"MLflow at {self.url} takes no experiment {name!r:.80}: {said}", 400)
        raise made.complain(f"the experiment {name!r:.80} that it says is there cannot be found by its name")

    def find(self, experiment: str, mark: str) -> MlflowRun | None:
        """See `Store`."""
        body = {"experiment_ids": [experiment], "filter": run_filter(mark), "max_results": 1}
        runs = self._server.ask("POST", _api("runs/search"), body).whole.find("runs")
        found = runs.items() if runs else []
        return _run(found[0]) if found else None

    def create(self, experiment: str, name: str, start: int, tags: Mapping[str, str]) -> MlflowRun:
        """See `Store`."""
        body = {"experiment_id": experiment, "run_name": name, "start_time": start, "tags": _pairs(tags)}
        answer = self._server.ask("POST", _api("runs/create"), body, again=False)
        return _run(answer.whole.part("run"))

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
        for batch in batches(entries, AT_ONCE):
            body: dict[str, Any] = {"run_id": run, "metrics": [], "params": [], "tags": []}
            for kind, each in batch:
                body[kind].append(each)
            self._server.ask("POST", _api("runs/log-batch"), body)

    def upload(self, run: MlflowRun, folder: Path, files: list[str]) -> None:
        """See `Store`."""
        if not run.artifact_uri.startswith(_PROXIED) or run.artifact_uri.startswith(_PROXIED + "/"):
            upload_by_client(run.artifact_uri, folder)
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


def _run(found: Part) -> MlflowRun:
    info, data = found.part("info"), found.find("data")
    entries = {}
    for kind in ("tags", "params", "metrics"):
        listed = data.find(kind) if data else None
        entries[kind] = {
            each.part("key").text(): each.fields().get("value") for each in (listed.items() if listed else ())
        }
    uri = info.find("artifact_uri")
    return MlflowRun(
        (info.find("run_id") or info.part("run_uuid")).id(),
        uri.text() if uri else "",
        frozenset(entries["params"]),
        frozenset(entries["metrics"]),
        entries["tags"].get(STATE) == COMPLETE,
        FILES in entries["tags"],
    )


def _api(path: str) -> str:
    return f"/api/2.0/mlflow/{path}"


def _code(value: Any) -> str:
    return str(value.get("error_code") or "") if isinstance(value, dict) else ""


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]
