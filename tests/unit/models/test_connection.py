"""Connections that fail, against real servers on loopback: the message says why, and what to do."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from support.openai_server import OpenAIServer, error

from rag_kit.concurrency import Budget, use_budget
from rag_kit.errors import ModelError, ModelUnreachableError
from rag_kit.models import atext_call, chat_model, embedding_model, http, text_call
from rag_kit.models.clients import embed_query
from rag_kit.models.failures import Failure, classify

PROMPT = ChatPromptTemplate([("user", "{q}")])
SECRET = "hunter2-canary-0123"


class Page(BaseHTTPRequestHandler):
    """Answers everything with a web page, as a reverse proxy or a wrong path does."""

    status = 200
    asked = 0

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer."""
        type(self).asked += 1
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.status)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><html><title>Welcome</title></html>")


def serve(handler: type[BaseHTTPRequestHandler], certificate: Path | None = None) -> ThreadingHTTPServer:
    """A server on a free port, with TLS if there is a certificate."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    """A plain server of web pages; clients are made anew, for they read proxies and certificates once."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-canary-000111")
    for name in http._PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    http._clients.cache_clear()
    server = serve(type("Own", (Page,), {"asked": 0}))
    yield server
    http._clients.cache_clear()
    server.shutdown()
    server.server_close()


@pytest.fixture
def secure(tmp_path: Path, page: ThreadingHTTPServer) -> Iterator[tuple[str, Path]]:
    """Port and certificate of a server that signed its own, for the name localhost."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    certificate = tmp_path / "own.pem"
    key = certificate.with_suffix(".key")
    command = (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run(
        ["openssl", *command.split(), "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    server = serve(Page, certificate)
    yield str(server.server_port), certificate
    server.shutdown()
    server.server_close()


def closed_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def failures(url: str, **limits: Any) -> list[ModelError]:
    """The errors of a call in both faces."""
    model = chat_model("openai:test", base_url=url, timeout=10)
    found = []
    for run in (
        lambda: text_call(model, PROMPT, {"q": "x"}, **{"max_retries": 0, **limits}),
        lambda: asyncio.run(atext_call(model, PROMPT, {"q": "x"}, **{"max_retries": 0, **limits})),
    ):
        with pytest.raises(ModelError) as caught:
            run()
        found.append(caught.value)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.usefixtures("page")
def test_a_reset_connection_to_plain_http_may_want_tls(scheme: str) -> None:
    """An address that says https already gets no such advice."""

    def reset(server: socket.socket) -> None:
        with suppress(OSError):  # the end of the test
            while True:
                connection, _ = server.accept()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=reset, args=(server,), daemon=True).start()
        for failure in failures(f"{scheme}://127.0.0.1:{server.getsockname()[1]}/v1"):
            assert ("write https:// for http://" in str(failure)) == (scheme == "http"), str(failure)
        server.shutdown(socket.SHUT_RDWR)


def test_a_certificate_of_ones_own_is_named_and_not_retried(
    secure: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names SSL_CERT_FILE, and that mends it."""
    port, certificate = secure
    with use_budget(Budget()) as budget:
        for failure in failures(f"https://localhost:{port}/v1", max_retries=5):
            assert "certificate is not trusted: self-signed certificate" in str(failure)
            assert "SSL_CERT_FILE" in str(failure) and f"at https://localhost:{port}" in str(failure)
    assert budget.calls == 2
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    for failure in failures(f"https://localhost:{port}/v1"):
        assert "web page" in str(failure)  # it was reached


def test_a_certificate_for_another_name_is_named(
    secure: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address is asked by number, the certificate is for a name."""
    port, certificate = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    for failure in failures(f"https://127.0.0.1:{port}/v1"):
        assert "Use the host name that the certificate is made for" in str(failure)


def test_https_to_a_plain_port_is_named(page: ThreadingHTTPServer) -> None:
    """The server speaks no TLS."""
    for failure in failures(f"https://127.0.0.1:{page.server_port}/v1", max_retries=5):
        assert "no TLS connection came about" in str(failure) and "write http:// for https://" in str(failure)


def test_a_handshake_that_is_broken_off_is_retried(page: ThreadingHTTPServer) -> None:
    """The other side closes the connection before there is TLS; its other errors stay final."""
    taken: list[int] = []

    def close_each(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            taken.append(len(connection.recv(10_000)))
            connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=close_each, args=(listener,), daemon=True).start()
        for failure in failures(f"https://127.0.0.1:{listener.getsockname()[1]}/v1", max_retries=1):
            assert "the connection was closed during the TLS handshake" in str(failure)
        listener.shutdown(socket.SHUT_RDWR)
    assert len(taken) == 4


def test_an_unknown_host_and_a_refused_port_are_told_apart(page: ThreadingHTTPServer) -> None:
    """The name is not known; or the machine is there, and nothing listens."""
    for failure in failures("http://no-such-host.invalid/v1"):
        assert "its host name is not known" in str(failure)
    for failure in failures(f"http://127.0.0.1:{closed_port()}/v1"):
        assert "nothing listens there: connection refused" in str(failure)
        assert "proxy" not in str(failure)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "all_proxy", "OPENAI_PROXY"])
def test_a_dead_proxy_is_named_with_its_variable(
    variable: str, page: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the proxy's address, not its password."""
    port = closed_port()
    monkeypatch.setenv(variable, f"http://me:{SECRET}@127.0.0.1:{port}")
    for failure in failures("http://example.org/v1"):
        assert f"went through the proxy http://127.0.0.1:{port} ({variable}" in str(failure)
        assert SECRET not in str(failure)


def test_a_host_that_the_proxy_is_not_for_is_not_blamed_on_it(
    page: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_PROXY holds."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for failure in failures(f"http://127.0.0.1:{closed_port()}/v1"):
        assert "nothing listens there" in str(failure) and "proxy" not in str(failure)


@pytest.mark.parametrize("status", [200, 404])
def test_a_web_page_is_a_wrong_address(page: ThreadingHTTPServer, status: int) -> None:
    """One request; the message names the setting. The same for a client that is not the kit's, and embeddings."""
    handler: Any = page.RequestHandlerClass
    handler.status = status
    url = f"http://127.0.0.1:{page.server_port}"
    for failure in failures(url, max_retries=5):
        assert isinstance(failure, ModelUnreachableError)
        assert "answers with a web page (HTML), not with JSON" in str(failure)
        assert "RAG_KIT_BASE_URL" in str(failure)
    assert handler.asked == 2
    if status == 200:  # by their own retries, too
        with pytest.raises(Exception, match="web page"):
            chat_model("openai:m", base_url=url).invoke("x")
        with pytest.raises(ModelUnreachableError, match="web page"):
            InMemoryVectorStore(embedding_model("openai:e", base_url=url)).similarity_search("x")
        assert handler.asked == 4
    with pytest.raises(ModelError, match="web page"):
        text_call(ChatOpenAI(model="m", base_url=url, max_retries=0), PROMPT, {"q": "x"})
    with pytest.raises(ModelError, match="RAG_KIT_EMBEDDING_BASE_URL"):
        embed_query(embedding_model("openai:e", base_url=url, max_retries=0), "x")


def test_a_page_of_a_server_that_failed_is_a_failure() -> None:
    """The 502 of a gateway is waited out, whatever its form."""

    class Gateway(Exception):
        status_code = 502

    assert classify(Gateway("<html>Bad gateway</html>")) is Failure.SERVER


@pytest.mark.parametrize("asynchronous", [False, True])
def test_callbacks_see_no_key_that_a_server_echoed(asynchronous: bool) -> None:
    """The exception itself is masked before a handler that was there first writes it down."""
    seen: list[str] = []

    class Tracer(BaseCallbackHandler):
        def on_llm_error(self, error: BaseException, *, response: Any = None, **_: Any) -> None:
            seen.append(f"{error!r} {error} {vars(error).get('body')} {response}")

    key = "odd-canary-key-4711"
    with OpenAIServer([error(401, f'unknown header "x-key: {key}"')]) as server:
        model = ChatOpenAI(model="m", base_url=server.url, api_key=key, max_retries=0)
        config: Any = {"callbacks": [Tracer()]}

        def call() -> object:
            if asynchronous:
                return asyncio.run(atext_call(model, PROMPT, {"q": "x"}, config=config))
            return text_call(model, PROMPT, {"q": "x"}, config=config)

        with pytest.raises(ModelError):
            call()
    assert seen and all(key not in text and "***" in text for text in seen)
