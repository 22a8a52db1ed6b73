"""Fakes of LangSmith, Phoenix and MLflow on loopback: small HTTP servers that keep what they are given.

    with FakeLangSmith(key="lsv2_pt_secret") as server:
        log_to_langsmith(results, url=server.url, api_key="lsv2_pt_secret")
        assert len(server.runs) == len(results)

``server.requests`` is everything that came in. ``server.answer_with(...)`` makes the next requests, or those to a path,
fail: by status, by waiting, by breaking the connection off, or with ``change=`` by answering something else than it
would; a body of bytes goes out as it is.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any
    raw: bytes


@dataclass
class Fault:
    """What goes wrong, where, and how often."""

    status: int = 0
    body: Any = None
    wait: float = 0.0
    path: str = ""
    method: str = ""
    times: int = 1_000_000
    when: Callable[[Asked], bool] = field(default=lambda asked: True)
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    """Whether the request is carried out before it goes wrong: the answer is lost."""
    change: Callable[[Any], Any] | None = None
    """The request is carried out, and this is made of the answer's value."""


Reply = tuple[int, Any]


class FakeTracker:
    """The server; a context manager. Subclasses answer ``handle``."""

    key_header = "authorization"

    def __init__(self, *, key: str | None = None) -> None:
        self.key = key
        self.requests: list[Asked] = []
        self.faults: list[Fault] = []
        self.closing = threading.Event()
        self.lock = threading.RLock()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Base address."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def writes(self) -> list[Asked]:
        """Requests that are meant to change something."""
        return [
            asked
            for asked in self.requests
            if asked.method != "GET" and not asked.path.endswith(("/query", "/search"))
        ]

    def answer_with(self, status: int = 0, **more: Any) -> None:
        """Let requests go wrong from now on."""
        self.faults.append(Fault(status, **more))

    def handle(self, asked: Asked) -> Reply:
        """Answer one request."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    owner: FakeTracker

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet: else each answer waits for an acknowledgement
    server: _Server

    def log_message(self, *args: Any) -> None:
        pass

    def _any(self) -> None:
        owner = self.server.owner
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        is_json = "json" in (self.headers.get("Content-Type") or "")
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, unquote(parts.path), parse_qs(parts.query), headers,
                      json.loads(raw) if raw and is_json else None, raw)  # fmt: skip
        with owner.lock:
            owner.requests.append(asked)
            fault = next((each for each in owner.faults if _meets(each, asked)), None)
            if fault is not None:
                fault.times -= 1
        given = headers.get(owner.key_header, "").removeprefix("Bearer ")
        if owner.key is not None and given != owner.key:
            return self._send(401, {"detail": f"Invalid token {given}; Bearer {given}"}, {})
        if fault is not None and fault.change is None:
            if fault.after:
                with owner.lock:
                    owner.handle(asked)
            if fault.wait:
                owner.closing.wait(fault.wait)
            if fault.status:
                return self._send(
                    fault.status, fault.body or {"detail": f"scripted, you sent {given}"}, fault.headers
                )
            if not fault.wait:
                self.connection.close()
                self.close_connection = True
                return None
        with owner.lock:
            status, value = owner.handle(asked)
            if fault is not None and fault.change is not None and status < 300:
                value = fault.change(json.loads(json.dumps(value)))
        return self._send(status, value, getattr(owner, "headers", {}))

    do_GET = do_POST = do_PUT = do_PATCH = _any

    def _send(self, status: int, value: Any, headers: dict[str, str]) -> None:
        data = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **headers,
        }.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def _meets(fault: Fault, asked: Asked) -> bool:
    return (
        fault.times > 0
        and fault.path in asked.path
        and fault.method in ("", asked.method)
        and fault.when(asked)
    )


def _now() -> str:
    return datetime.now(UTC).isoformat()


class FakeLangSmith(FakeTracker):
    """LangSmith: names are unique, ids as well, runs show up late, runs of yesterday are refused."""

    key_header = "x-api-key"

    def __init__(self, *, key: str | None = None, late: int = 0) -> None:
        super().__init__(key=key)
        self.datasets: dict[str, dict[str, Any]] = {}
        self.examples: dict[str, dict[str, Any]] = {}
        self.sessions: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.feedback: dict[str, dict[str, Any]] = {}
        self.late = late
        """How many queries for runs do not show them yet."""

    def handle(self, asked: Asked) -> Reply:
        """The parts of its API that are used."""
        name = asked.path.strip("/").replace("/", "_")
        head, _, last = asked.path.strip("/").rpartition("/")
        if asked.method == "PATCH":
            kept = {"examples": self.examples, "sessions": self.sessions}[head]
            if last not in kept:
                return 404, {"detail": "not found"}
            kept[last] |= asked.body
            return 200, kept[last]
        handler = getattr(self, f"_{asked.method.lower()}_{name}", None)
        return handler(asked) if handler else (404, {"detail": f"no path {asked.path}"})

    def _get_datasets(self, asked: Asked) -> Reply:
        return 200, [each for each in self.datasets.values() if each["name"] == asked.query["name"][0]]

    def _post_datasets(self, asked: Asked) -> Reply:
        if any(each["name"] == asked.body["name"] for each in self.datasets.values()):
            return 409, {"detail": "Dataset with this name already exists."}
        made = {"id": str(uuid.uuid4()), "created_at": _now(), **asked.body}
        self.datasets[made["id"]] = made
        return 200, made

    def _get_examples(self, asked: Asked) -> Reply:
        return self._page(
            asked, [e for e in self.examples.values() if e["dataset_id"] in asked.query["dataset"]]
        )

    def _post_examples_bulk(self, asked: Asked) -> Reply:
        if any(body["id"] in self.examples for body in asked.body):
            return 409, {"detail": "an example with this id exists"}
        for body in asked.body:
            uuid.UUID(body["id"])
            self.examples[body["id"]] = {"created_at": _now(), **body}
        return 200, asked.body

    def _get_sessions(self, asked: Asked) -> Reply:
        name = asked.query.get("name", [None])[0]
        return 200, [each for each in self.sessions.values() if name in (None, each["name"])]

    def _post_sessions(self, asked: Asked) -> Reply:
        if any(each["name"] == asked.body["name"] for each in self.sessions.values()):
            return 409, {"detail": "Project with this name already exists."}
        made = {"tenant_id": str(uuid.uuid4()), **asked.body}
        self.sessions[made["id"]] = made
        return 200, made

    def _post_runs_batch(self, asked: Asked) -> Reply:
        for run in asked.body["post"]:
            uuid.UUID(run["id"])
            old = datetime.now(UTC) - datetime.fromisoformat(run["start_time"]) > timedelta(hours=24)
            if old or not run["dotted_order"].endswith(run["id"]):
                return 422, {"detail": "start_time must be within 24 hours"}
        for run in asked.body["post"]:
            self.runs.setdefault(run["id"], run)
        return 202, {}

    def _post_runs_query(self, asked: Asked) -> Reply:
        body = asked.body
        if self.runs and self.late:
            self.late -= 1
            return 200, {"runs": [], "cursors": {}}
        found = [
            {"id": run["id"]}
            for run in self.runs.values()
            if run["session_id"] in body["session"] and run["id"] in body["id"]
        ]
        return 200, {"runs": found[: body["limit"]], "cursors": {"next": None}}

    def _get_feedback(self, asked: Asked) -> Reply:
        return self._page(
            asked, [each for each in self.feedback.values() if each["run_id"] in asked.query["run"]]
        )

    def _post_feedback(self, asked: Asked) -> Reply:
        body = asked.body
        if body["run_id"] not in self.runs:
            return 404, {"detail": "run not found"}
        if body["id"] in self.feedback:
            return 409, {"detail": "doubled"}
        if body.get("score") is not None and round(body["score"], 4) != body["score"]:
            return 422, {"detail": "score has more than 4 decimal places"}
        self.feedback[body["id"]] = {"created_at": _now(), "modified_at": _now(), **body}
        return 200, body

    def _get_info(self, asked: Asked) -> Reply:
        return 200, {"version": "0.7.0"}

    def _page(self, asked: Asked, items: list[dict[str, Any]]) -> Reply:
        offset, limit = int(asked.query["offset"][0]), int(asked.query["limit"][0])
        return 200, items[offset : offset + min(limit, 100)]


class FakePhoenix(FakeTracker):
    """Phoenix: examples by their ids, runs that are there are not replaced, evaluations are."""

    def __init__(self, *, key: str | None = None, version: str = "20.19.0") -> None:
        super().__init__(key=key)
        self.headers = {"x-phoenix-server-version": version}
        self.datasets: dict[str, dict[str, Any]] = {}
        self.experiments: dict[str, dict[str, Any]] = {}
        self._numbers = itertools.count(1)

    @property
    def runs(self) -> list[dict[str, Any]]:
        """Runs of all experiments."""
        return [run for experiment in self.experiments.values() for run in experiment["runs"].values()]

    def handle(self, asked: Asked) -> Reply:
        """The parts of its API that are used."""
        for method, pattern, handler in (
            ("GET", r"/v1/datasets", self._list), ("POST", r"/v1/datasets/upload", self._upload),
            ("GET", r"/v1/datasets/([^/]+)/examples", self._examples),
            ("GET", r"/v1/datasets/([^/]+)/experiments", self._experiments),
            ("POST", r"/v1/datasets/([^/]+)/experiments", self._create),
            ("GET", r"/v1/experiments/([^/]+)/runs", self._runs), ("POST", r"/v1/experiments/([^/]+)/runs", self._run),
            ("GET", r"/v1/experiments/([^/]+)/incomplete-evaluations", self._incomplete),
            ("POST", r"/v1/experiment_evaluations", self._evaluate),
        ):  # fmt: skip
            match = re.fullmatch(pattern, asked.path)
            if match and method == asked.method:
                return handler(asked, *match.groups())
        return 404, "Not Found"

    def _id(self, kind: str) -> str:
        return base64.b64encode(f"{kind}:{next(self._numbers)}".encode()).decode()

    def _list(self, asked: Asked) -> Reply:
        return 200, {
            "data": [{"id": e["id"]} for e in self.datasets.values() if e["name"] in asked.query["name"]]
        }

    def _upload(self, asked: Asked) -> Reply:
        body = asked.body
        found = next((each for each in self.datasets.values() if each["name"] == body["name"]), None)
        if found is None:
            found = {
                "id": self._id("Dataset"),
                "name": body["name"],
                "examples": {},
                "version": self._id("DatasetVersion"),
            }
            self.datasets[found["id"]] = found
        created = updated = 0
        for number, key in enumerate(body["example_ids"]):
            content = {"input": body["inputs"][number], "output": body["outputs"][number],
                       "metadata": body["metadata"][number]}  # fmt: skip
            before = found["examples"].get(key)
            if before is None:
                created += 1
                found["examples"][key] = {"id": key, "node_id": self._id("DatasetExample"), **content}
            elif {name: before[name] for name in content} != content:
                updated += 1
                before |= content
        counts = {"num_created_examples": created, "num_updated_examples": updated, "num_deleted_examples": 0}
        return 200, {"data": {"dataset_id": found["id"], "version_id": found["version"], **counts}}

    def _examples(self, asked: Asked, dataset: str) -> Reply:
        return 200, {"data": {"examples": list(self.datasets[dataset]["examples"].values())}}

    def _experiments(self, asked: Asked, dataset: str) -> Reply:
        found = [{k: v for k, v in each.items() if k != "runs"} for each in self.experiments.values()
                 if each["dataset_id"] == dataset]  # fmt: skip
        return 200, {"data": found, "next_cursor": None}

    def _create(self, asked: Asked, dataset: str) -> Reply:
        made = {"id": self._id("Experiment"), "dataset_id": dataset, "runs": {}, **asked.body}
        self.experiments[made["id"]] = made
        return 200, {"data": {key: value for key, value in made.items() if key != "runs"}}

    def _runs(self, asked: Asked, experiment: str) -> Reply:
        found = list(self.experiments[experiment]["runs"].values())
        start, limit = int(asked.query.get("cursor", ["0"])[0]), int(asked.query["limit"][0])
        more = start + limit if len(found) > start + limit else None
        return 200, {"data": found[start : start + limit], "next_cursor": more and str(more)}

    def _run(self, asked: Asked, experiment: str) -> Reply:
        runs = self.experiments[experiment]["runs"]
        node = asked.body["dataset_example_id"]
        if node in runs and runs[node]["error"] is None:
            return 409, {"detail": "exists"}
        made = {"id": self._id("ExperimentRun"), "annotations": {}, **asked.body}
        runs[node] = made
        return 200, {"data": {"id": made["id"]}}

    def _incomplete(self, asked: Asked, experiment: str) -> Reply:
        names = asked.query["evaluation_name"]
        found = [
            {"experiment_run": {"id": run["id"]}, "evaluation_names": lacking}
            for run in self.experiments[experiment]["runs"].values()
            if (lacking := [name for name in names if name not in run["annotations"]])
        ]
        return 200, {"data": found, "next_cursor": None}

    def _evaluate(self, asked: Asked) -> Reply:
        body = asked.body
        if body.get("result") is None and body.get("error") is None:
            return 422, {"detail": "Either 'result' or 'error' must be provided"}
        run = next((each for each in self.runs if each["id"] == body["experiment_run_id"]), None)
        if run is None:
            return 404, {"detail": "run does not exist"}
        result = body.get("result") or {}
        run["annotations"][body["name"]] = {
            "name": body["name"], "annotator_kind": body["annotator_kind"], "error": body.get("error"),
            **{key: result.get(key) for key in ("label", "score", "explanation")},
        }  # fmt: skip
        return 200, {"data": {"id": self._id("ExperimentEvaluation")}}


class FakeMlflow(FakeTracker):
    """MLflow with proxied files: a param keeps its value, names are checked, batches are bounded."""

    def __init__(self, *, key: str | None = None, artifacts: str = "mlflow-artifacts:/") -> None:
        super().__init__(key=key)
        self.experiments: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self._artifacts = artifacts

    def handle(self, asked: Asked) -> Reply:
        """The parts of its API that are used."""
        if asked.path.startswith("/api/2.0/mlflow-artifacts/artifacts/") and asked.method == "PUT":
            self.files[asked.path.removeprefix("/api/2.0/mlflow-artifacts/artifacts/")] = asked.raw
            return 200, {}
        name = asked.path.removeprefix("/api/2.0/mlflow/").replace("/", "_").replace("-", "_")
        handler = getattr(self, f"_{name}", None)
        return handler(asked) if handler else (404, "Not Found")

    def _experiments_get_by_name(self, asked: Asked) -> Reply:
        found = self.experiments.get(asked.query["experiment_name"][0])
        if found is None:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"}
        return 200, {"experiment": found}

    def _experiments_create(self, asked: Asked) -> Reply:
        name = asked.body["name"]
        if name in self.experiments:
            return 400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "exists"}
        made = {"experiment_id": str(len(self.experiments) + 1), "name": name, "lifecycle_stage": "active"}
        self.experiments[name] = made
        return 200, {"experiment_id": made["experiment_id"]}

    def _runs_search(self, asked: Asked) -> Reply:
        mark = re.search(r"'(\w+)'", asked.body["filter"])
        assert mark is not None
        found = [run for run in self.runs.values() if run["info"]["experiment_id"] in asked.body["experiment_ids"]
                 and run["tags"].get("rag_kit.fingerprint") == mark[1]]  # fmt: skip
        return 200, {"runs": [self._shown(run) for run in found]}

    def _runs_create(self, asked: Asked) -> Reply:
        body, key = asked.body, uuid.uuid4().hex
        info = {"run_id": key, "run_name": body["run_name"], "experiment_id": body["experiment_id"],
                "status": "RUNNING",
                "artifact_uri": f"{self._artifacts}{body['experiment_id']}/{key}/artifacts"}  # fmt: skip
        self.runs[key] = {
            "info": info,
            "params": {},
            "metrics": [],
            "tags": {t["key"]: t["value"] for t in body["tags"]},
        }
        return 200, {"run": self._shown(self.runs[key])}

    def _runs_log_batch(self, asked: Asked) -> Reply:
        body = asked.body
        run = self.runs[body["run_id"]]
        if max(len(body["params"]), len(body["tags"])) > 100 or len(body["metrics"]) > 1000:
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "too many"}
        for each in [*body["params"], *body["metrics"]]:
            if not re.fullmatch(r"[/\w.\- :]{1,250}", each["key"]):
                return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": f"bad name {each['key']!r}"}
        for each in body["params"]:
            if (
                len(each["value"]) > 500
                or run["params"].setdefault(each["key"], each["value"]) != each["value"]
            ):
                return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": f"param {each['key']}"}
        run["metrics"] += body["metrics"]
        run["tags"] |= {each["key"]: each["value"] for each in body["tags"]}
        return 200, {}

    def _runs_update(self, asked: Asked) -> Reply:
        run = self.runs[asked.body["run_id"]]
        run["info"] |= {key: value for key, value in asked.body.items() if key != "run_id"}
        return 200, {"run_info": run["info"]}

    def _shown(self, run: dict[str, Any]) -> dict[str, Any]:
        def pairs(values: dict[str, str]) -> list[dict[str, str]]:
            return [{"key": key, "value": value} for key, value in values.items()]

        data = {"params": pairs(run["params"]), "tags": pairs(run["tags"]), "metrics": run["metrics"]}
        return {"info": run["info"], "data": data}
