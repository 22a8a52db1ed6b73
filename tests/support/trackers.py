"""LangSmith on loopback: a small HTTP server that keeps what its client sends.

    with LangSmithServer(key="lsv2_pt_secret") as server:
        log_results(results, "langsmith", url=server.url, api_key="lsv2_pt_secret")
        assert len(server.runs) == len(results)

``server.requests`` is everything that came in. ``server.fail(...)`` makes requests go wrong: by status, by waiting, by
breaking the connection off, or by keeping nothing of them.
"""

from __future__ import annotations

import json
import threading
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Fault:
    """A fault of requests with this method and path prefix, after the first few of them."""

    request: str = ""
    status: int = 0
    wait: float = 0.0
    after: int = 0
    times: int = 1_000_000
    lost: bool = False
    """Whether the answer is that of a success, and nothing is kept."""
    late: bool = False
    """Whether the request is carried out all the same."""


class LangSmithServer:
    """The server; a context manager. Names are unique, ids as well; feedback needs its run."""

    def __init__(self, *, key: str | None = None) -> None:
        self.key = key
        self.requests: list[str] = []
        self.datasets: dict[str, dict[str, Any]] = {}
        self.examples: dict[str, dict[str, Any]] = {}
        self.sessions: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.feedback: dict[str, dict[str, Any]] = {}
        self.faults: list[Fault] = []
        self.closing = threading.Event()
        self.lock = threading.RLock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"owner": self}))
        self._http.daemon_threads, self._http.block_on_close = True, False
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def fail(self, request: str = "", **how: Any) -> None:
        """Let requests go wrong from now on."""
        self.faults.append(Fault(request, **how))

    def __enter__(self) -> LangSmithServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    @property
    def writes(self) -> list[str]:
        """Requests that are meant to change something."""
        return [each for each in self.requests if not each.startswith("GET")]

    def fault(self, request: str) -> Fault | None:
        """Return the fault of this request."""
        for each in self.faults:
            if request.startswith(each.request) and each.times > 0:
                if each.after > 0:
                    each.after -= 1
                else:
                    each.times -= 1
                    return each
        return None

    def answer(self, request: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        """The parts of its API that are used."""
        method, _, path = request.partition(" /")
        kind, _, last = path.partition("/")
        if request == "GET /info":
            return 200, {"version": "0.16.0"}
        if request == "PATCH /examples/bulk":
            for each in body:
                self.examples[each["id"]] |= each
            return 200, {"count": len(body)}
        if method == "PATCH":
            changed = getattr(self, kind)[last]
            changed |= {name: value for name, value in body.items() if value is not None}
            return 200, changed
        kept: dict[str, dict[str, Any]] | None = getattr(self, kind, None)
        if kept is None:
            return 404, {"detail": f"no path {path}"}
        if method == "GET":
            return 200, self._find(kind, kept, query)
        for each in body if isinstance(body, list) else [body]:
            each.setdefault("id", str(uuid.uuid4()))
            if each["id"] in kept or ("name" in each and self._find(kind, kept, {"name": [each["name"]]})):
                return 409, {"detail": "it is there"}
            if kind == "feedback" and each["run_id"] not in self.runs:
                return 404, {"detail": "run not found"}
            now, trace = datetime.now(UTC).isoformat(), each.get("run_id")
            more = {
                "created_at": now,
                "modified_at": now,
                "start_time": now,
                "tenant_id": str(uuid.UUID(int=0)),
            }
            kept[each["id"]] = {**more, "trace_id": trace, **each}
        return 200, [kept[each["id"]] for each in body] if isinstance(body, list) else kept[body["id"]]

    def _find(self, kind: str, kept: dict[str, Any], query: dict[str, list[str]]) -> list[dict[str, Any]]:
        if kind == "runs":
            return []
        fields = {"name": "name", "dataset": "dataset_id", "run": "run_id"}
        items = [each for each in kept.values()
                 if all(each[fields[name]] in query[name] for name in query if name in fields)]  # fmt: skip
        offset = int(query.get("offset", ["0"])[0])
        return items[offset : offset + min(int(query.get("limit", ["100"])[0]), 100)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet: else each answer waits for an acknowledgement
    owner: LangSmithServer

    def log_message(self, *args: Any) -> None:
        pass

    def _any(self) -> None:
        owner, parts = self.owner, urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request, given = f"{self.command} {parts.path}", self.headers.get("x-api-key", "")
        with owner.lock:
            owner.requests.append(request)
            fault = owner.fault(request)
        if owner.key is not None and given != owner.key:
            return self._send(401, {"detail": f"Invalid token {given}"})
        answer: tuple[int, Any] = (202, {})
        if fault is None or fault.late:
            with owner.lock:
                answer = owner.answer(request, parse_qs(parts.query), json.loads(raw) if raw else None)
        if fault is not None and fault.wait:
            owner.closing.wait(fault.wait)
        if fault is not None and not (fault.status or fault.lost):
            self.close_connection = True
            return self.connection.close()
        if fault is not None and fault.status:
            answer = (fault.status, {"detail": f"scripted, you sent {given}"})
        return self._send(*answer)

    do_GET = do_POST = do_PATCH = _any

    def _send(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
