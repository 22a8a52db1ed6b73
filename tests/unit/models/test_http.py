"""The HTTP clients of endpoints: bounds on a reply as a whole."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rag_kit.errors import ConfigurationError, ModelUnreachableError
from rag_kit.models import chat_model, embedding_model, http
from rag_kit.models.clients import aembed_documents, embed_documents


class Endpoint(BaseHTTPRequestHandler):
    """Answers by a blank each tenth of a second, or by a small reply that unpacks to a large one."""

    trickles = True
    packed = b""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        if not self.trickles:
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        try:
            for _ in range(100 if self.trickles else 0):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.1)
            self.wfile.write(self.packed)
        except OSError:
            pass  # the client has gone, as it shall


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of such an endpoint."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_reply_that_trickles_ends_with_the_time_out(
    url: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seconds are those of the whole reply; the message names what can be set."""
    monkeypatch.setattr(Endpoint, "trickles", True)
    monkeypatch.setenv("RAG_KIT_TIMEOUT", "0.5")
    model = embedding_model("openai:test", base_url=url, max_retries=0)
    assert model is not None
    began = time.monotonic()
    with pytest.raises(
        ModelUnreachableError, match=r"whole reply took over 0\.5 s.*RAG_KIT_TIMEOUT"
    ) as caught:
        embed_documents(model, ["a"]) if how == "sync" else asyncio.run(aembed_documents(model, ["a"]))
    assert time.monotonic() - began < 5 and "RAG_KIT_EMBEDDING_BATCH" in str(caught.value)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_reply_has_a_bound_in_unpacked_bytes(url: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed reply is not unpacked beyond it."""
    monkeypatch.setattr(Endpoint, "trickles", False)
    monkeypatch.setattr(Endpoint, "packed", gzip.compress(bytes(20 << 20)))
    monkeypatch.setattr(http, "MAX_REPLY", 2 << 20)
    model = embedding_model("openai:test", base_url=url, max_retries=0)
    assert model is not None
    with pytest.raises(ModelUnreachableError, match="more than 2 MiB, unpacked"):
        embed_documents(model, ["a"]) if how == "sync" else asyncio.run(aembed_documents(model, ["a"]))


def test_requests_hold_32_texts_and_take_60_seconds_unless_a_variable_says_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Embeddings and chat models keep to it; what is no number is refused by name."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    model = embedding_model("openai:test")
    assert (model.chunk_size, model.request_timeout) == (32, 60.0)  # type: ignore[union-attr]
    monkeypatch.setenv("RAG_KIT_EMBEDDING_BATCH", "5")
    monkeypatch.setenv("RAG_KIT_TIMEOUT", "300")
    model = embedding_model("openai:test")
    assert (model.chunk_size, model.request_timeout) == (5, 300.0)  # type: ignore[union-attr]
    assert chat_model("openai:test").request_timeout == 300.0  # type: ignore[attr-defined]
    assert embedding_model("openai:test", timeout=9).request_timeout == 9  # type: ignore[union-attr]
    for wrong in ("soon", "0", "-1", "nan"):
        monkeypatch.setenv("RAG_KIT_TIMEOUT", wrong)
        with pytest.raises(ConfigurationError, match="RAG_KIT_TIMEOUT"):
            chat_model("openai:test")
