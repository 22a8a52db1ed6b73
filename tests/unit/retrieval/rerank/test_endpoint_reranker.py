"""Reranking by a model behind HTTP, against a real server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from support.rewriters import both, ids, notes

from rag_kit.documents import get_provenance
from rag_kit.errors import BranchError, ConfigurationError, InvalidInputError, RagKitError
from rag_kit.retrieval import RerankRetriever
from rag_kit.retrieval.rerank.endpoint import EndpointReranker

KEY = "canary-0123456789abcdef"
DOCS = [
    Document("The fan is blue.", id="a"),
    Document("Dust makes the fan loud.", id="b"),
    Document("风扇积灰会很吵。", id="c"),
    Document("Tea is hot.", id="d"),
]
SCORES = {
    "The fan is blue.": 0.2,
    "Dust makes the fan loud.": 0.9,
    "风扇积灰会很吵。": 0.7,
    "Tea is hot.": 0.1,
}


class Server(ThreadingHTTPServer):
    """Answers each request with what ``reply`` makes of its body: JSON, text, or a status and text."""

    daemon_threads = True

    def __init__(self, reply: Callable[[dict[str, Any]], Any]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.requests = reply, list[tuple[str, dict[str, str], dict[str, Any]]]()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *args: Any) -> None:
        """A client that went away is part of the test."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        given = self.server.reply(body)
        status, text = given if isinstance(given, tuple) else (200, given)
        data = (text if isinstance(text, str) else json.dumps(text)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def serving(reply: Callable[[dict[str, Any]], Any]) -> Iterator[Server]:
    server = Server(reply)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def rows(body: dict[str, Any], field: str = "relevance_score") -> list[dict[str, Any]]:
    """Reply as a right server does: a row a text, best first."""
    texts = body.get("documents") or body["texts"]
    made = [{"index": at, field: SCORES[text]} for at, text in enumerate(texts)]
    return sorted(made, key=lambda row: -row[field])


def made(url: str, *, on_error: str = "skip", **more: Any) -> RerankRetriever:
    reranker = EndpointReranker(url, model="bge", api_key=KEY, **more)
    return RerankRetriever(retriever=RunnableLambda(lambda query: DOCS), reranker=reranker, on_error=on_error)


DIALECTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "jina": lambda body: {
        "model": "jina-reranker-v2-base-multilingual",
        "usage": {"total_tokens": 31},
        "results": [{**row, "document": {"text": body["documents"][row["index"]]}} for row in rows(body)],
    },
    "cohere": lambda body: {
        "id": "07734bd2",
        "results": rows(body),
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    },
    "vllm": lambda body: {
        "id": "rerank-1",
        "model": "bge",
        "usage": {"total_tokens": 56},
        "results": [{**row, "document": {"text": "...", "multi_modal": None}} for row in rows(body)],
    },
    "xinference": lambda body: {
        "id": "480dca92",
        "results": [{**row, "document": None} for row in rows(body)],
        "meta": None,
    },
    "tei": lambda body: rows(body, "score"),
}


@pytest.mark.parametrize("server", DIALECTS)
async def test_reply_of_each_server(server: str) -> None:
    """The reply of each server gives the order and the scores; the key goes as a bearer token."""
    with serving(DIALECTS[server]) as running:
        dialect = "tei" if server == "tei" else "common"
        found = await both(made(running.url, dialect=dialect), "Why is the fan loud?")
        assert ids(found) == ["b", "c", "a", "d"]
        assert [get_provenance(doc)["score"] for doc in found] == [0.9, 0.7, 0.2, 0.1]
        path, headers, body = running.requests[0]
    assert path == "/v1/rerank" and headers["Authorization"] == f"Bearer {KEY}" and body["model"] == "bge"
    assert body["texts" if server == "tei" else "documents"] == [doc.page_content for doc in DOCS]


async def test_batches_and_caps() -> None:
    """Many passages go in several requests that count as model calls; what a cap refuses stays in its place."""
    with serving(DIALECTS["cohere"]) as running:
        found = await both(made(running.url, batch_size=2), "风扇为什么吵？")
        assert ids(found) == ["b", "c", "a", "d"] and len(running.requests) == 4
        assert any(note.startswith("model: 2 calls, ") for note in notes(found))
        capped = made(running.url, batch_size=2).model_copy(update={"max_calls": 1, "max_concurrency": 1})
        found = await both(capped, "loud")
    assert ids(found) == ["b", "a", "c", "d"]
    assert any("2 of 4 passages got no score and stay in their place" in note for note in notes(found))


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], Any], list[str], str]] = {
    "numbered from 1": (
        lambda body: {"results": [{**row, "index": row["index"] + 1} for row in rows(body)]},
        ["a", "b", "c", "d"],
        "numbers a passage 4",
    ),
    "the same twice": (
        lambda body: {"results": [*rows(body), rows(body)[0]]},
        ["a", "b", "c", "d"],
        "numbers a passage 1",
    ),
    "rows missing": (
        lambda body: {"results": rows(body)[:2]},
        ["a", "b", "c", "d"],
        "2 of 4 passages got no",
    ),
    "not a number": (
        lambda body: {"results": [{**row, "relevance_score": float("nan")} for row in rows(body)[:1]]},
        ["a", "b", "c", "d"],
        "no usable score",
    ),
    "one not a number": (
        lambda body: {"results": [*rows(body)[:3], {"index": 3, "relevance_score": "high"}]},
        ["b", "c", "a", "d"],
        "1 of 4 passages got no score",
    ),
    "no rows": (lambda body: {"data": []}, ["a", "b", "c", "d"], "no list of results"),
    "no JSON": (lambda body: "<html>", ["a", "b", "c", "d"], "could not be used"),
    "refused": (lambda body: (401, f"no such key: {KEY}"), ["a", "b", "c", "d"], "refused the key"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_faults_are_survived_or_raised(fault: str) -> None:
    """No passage is lost to a bad endpoint, the notes say what happened, and on_error="raise" raises it."""
    reply, order, said = FAULTS[fault]
    with serving(reply) as running:
        found = await both(made(running.url), "loud")
        assert ids(found) == order
        assert any(note.startswith("degraded") and said in note for note in notes(found)), notes(found)
        assert KEY not in str(notes(found))
        with pytest.raises(RagKitError) as caught:
            await made(running.url, on_error="raise").ainvoke("loud")
        assert KEY not in str(caught.value) + str(caught.value.__cause__)


async def test_a_server_error_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A 500 is asked again; one that lasts leaves the order as it was."""
    monkeypatch.setattr("rag_kit.models.calls.FIRST_PAUSE", 0.001)
    replies: list[Any] = [(500, "out of memory")]
    with serving(lambda body: replies.pop() if replies else DIALECTS["cohere"](body)) as running:
        assert ids(made(running.url).invoke("loud")) == ["b", "c", "a", "d"] and len(running.requests) == 2
    with serving(lambda body: (500, "out of memory")) as running:
        found = await both(made(running.url), "loud")
        assert ids(found) == ["a", "b", "c", "d"] and "out of memory" in " ".join(notes(found))
        assert len(running.requests) == 6


async def test_a_silent_endpoint() -> None:
    """One that does not answer in time leaves the order as it was."""
    done = threading.Event()
    with serving(lambda body: [done.wait(20)]) as running:
        retriever = made(running.url).model_copy(update={"timeout": 0.2})
        found = await both(retriever, "loud")
        with pytest.raises(BranchError):
            await retriever.model_copy(update={"on_error": "raise"}).ainvoke("loud")
        done.set()
    assert ids(found) == ["a", "b", "c", "d"] and "degraded" in " ".join(notes(found))


def test_arguments() -> None:
    """A wrong address or dialect is named, a key is never printed."""
    for address in ("127.0.0.1:8080", "", None):
        with pytest.raises(ConfigurationError, match="is no address; it must start with http"):
            EndpointReranker(address)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="'common', 'tei'"):
        EndpointReranker("http://127.0.0.1:1", dialect="cohere")
    assert KEY not in repr(EndpointReranker("http://127.0.0.1:1", api_key=KEY))
