"""The HTTP clients of endpoints: bounds on a reply as a whole, vectors in the order of their texts."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from support.openai_server import OpenAIServer, Recorded, Reply, error, hang, redirect, short, text

from rag_kit.concurrency.steps import arun
from rag_kit.errors import ConfigurationError, ModelError, ModelOutputError, ModelUnreachableError
from rag_kit.graphs import build_plain_rag
from rag_kit.models import atext_call, chat_model, embedding_model, http, structured_call, text_call
from rag_kit.models.clients import embed_documents, embed_logic
from rag_kit.models.failures import map_model_error
from rag_kit.prompts import load_prompt
from rag_kit.retrieval import BM25Retriever, VectorRetriever

KEY = "zq81kxplain7731"  # of no known shape


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


@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_DIR"])
def test_models_share_clients_until_the_environment_changes(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Proxies and certificates are read when clients are made."""
    settings = {"base_url": "http://127.0.0.1:9/v1"}
    before = http.with_http_clients(settings)
    assert http.with_http_clients(settings) == before
    monkeypatch.setenv(name, str(tmp_path) if name == "SSL_CERT_DIR" else "http://127.0.0.1:9")
    assert http.with_http_clients(settings)["http_client"] is not before["http_client"]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_reply_that_trickles_ends_with_the_time_out(
    url: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seconds are those of the whole reply; the message names what can be set."""
    monkeypatch.setattr(Endpoint, "trickles", True)
    monkeypatch.setenv("RAG_KIT_TIMEOUT", "0.5")
    model: Any = embedding_model("openai:test", base_url=url, max_retries=0)
    began = time.monotonic()
    with pytest.raises(
        ModelUnreachableError, match=r"took (over |longer than timeout=)0\.5 s.*RAG_KIT_TIMEOUT"
    ) as caught:
        embed_documents(model, ["a"]) if how == "sync" else asyncio.run(aembed_documents(model, ["a"]))
    assert time.monotonic() - began < 5 and "RAG_KIT_EMBEDDING_BATCH" in str(caught.value)


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(("variable", "texts", "seconds"), [(None, 1, 0.3), ("0.6", 1, 0.6), ("0.6", 2, 0.6)])
def test_an_endpoint_that_hangs_costs_its_time_out_once(
    variable: str | None, texts: int, seconds: float, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One text has a shorter bound unless one is set; the error names it, and the variable; nothing is asked again."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr("rag_kit.models.embedding._ONE_TEXT", 0.3)
    monkeypatch.delenv("RAG_KIT_TIMEOUT", raising=False)
    if variable:
        monkeypatch.setenv("RAG_KIT_TIMEOUT", variable)
    with OpenAIServer(embeddings=[hang()]) as server:
        model: Any = embedding_model("openai:test", base_url=server.url)
        given = ["a"] * texts
        with pytest.raises(ModelUnreachableError, match=rf"timeout={seconds} s.*RAG_KIT_TIMEOUT"):
            embed_documents(model, given) if how == "sync" else asyncio.run(aembed_documents(model, given))
        assert len(server.requests) == 1


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"error": {"message": "quota used up"}}, "quota used up"),
        ({"choices": [], "data": []}, "not the JSON asked for"),
        ({"choices": [{"message": None}], "data": None}, "not the JSON asked for"),
        ("sorry", "not the JSON asked for: .sorry"),
        ([], r"not the JSON asked for: \[\]"),
        ("<html>Sign in</html>", "web page"),
        ("x" * 140 + f" {KEY}", r"x{140} \*\*\*"),
        ("x" * 390 + f" {KEY}", "x{300}"),
    ],
)
def test_a_reply_of_another_form_is_shown(
    reply: Any, said: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error with status 200, an empty list, null: the error has address and beginning, without a key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    odd = Reply(body=reply)
    with OpenAIServer([odd], embeddings=[odd]) as server:
        vectors: Any = embedding_model("openai:e", base_url=server.url)
        chat = model(server)
        port = server.url.split(":")[2].removesuffix("/v1")
        calls: list[Any] = [lambda: embed_documents(vectors, ["a"]), lambda: text_call(chat, PROMPT, DOUBT)]
        if how == "async":
            calls = [
                lambda: asyncio.run(aembed_documents(vectors, ["a"])),
                lambda: asyncio.run(atext_call(chat, PROMPT, DOUBT)),
            ]
        for call in calls:
            with pytest.raises(ModelError, match=rf"{port}.*{said}") as caught:
                call()
            assert KEY[:8] not in str(caught.value)
        assert len(server.requests) == 2


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_reply_has_a_bound_in_unpacked_bytes(url: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed reply is not unpacked beyond it."""
    monkeypatch.setattr(Endpoint, "trickles", False)
    monkeypatch.setattr(Endpoint, "packed", gzip.compress(bytes(20 << 20)))
    monkeypatch.setattr(http, "MAX_REPLY", 2 << 20)
    model: Any = embedding_model("openai:test", base_url=url, max_retries=0)
    with pytest.raises(ModelUnreachableError, match="more than 2 MiB, unpacked"):
        embed_documents(model, ["a"]) if how == "sync" else asyncio.run(aembed_documents(model, ["a"]))


def test_requests_hold_32_texts_and_take_60_seconds_unless_a_variable_says_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Embeddings and chat models keep to it; what is no number is refused by name."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    model: Any = embedding_model("openai:test")
    assert (model.chunk_size, model.request_timeout) == (32, 60.0)
    monkeypatch.setenv("RAG_KIT_EMBEDDING_BATCH", "5")
    monkeypatch.setenv("RAG_KIT_TIMEOUT", "300")
    model = embedding_model("openai:test")
    assert (model.chunk_size, model.request_timeout) == (5, 300.0)
    assert chat_model("openai:test").request_timeout == 300.0  # type: ignore[attr-defined]
    assert embedding_model("openai:test", timeout=9).request_timeout == 9  # type: ignore[union-attr]
    for wrong in ("soon", "0", "-1", "nan"):
        monkeypatch.setenv("RAG_KIT_TIMEOUT", wrong)
        with pytest.raises(ConfigurationError, match="RAG_KIT_TIMEOUT"):
            chat_model("openai:test")


async def aembed_documents(model: Any, texts: list[str]) -> Any:
    """The asynchronous form of `embed_documents`."""
    return await arun(embed_logic(model, "documents", texts))


PROMPT = load_prompt("answer_or_doubt")
DOUBT = {"question": "When does the pump start?", "passages": "[1] The pump starts at 40 degrees."}
ANSWER = "The pump starts at 40 degrees [1]."


def model(server: OpenAIServer, **settings: Any) -> Any:
    return chat_model("openai:m", base_url=server.url, api_key="sk-test-12345", max_retries=0, **settings)


async def stream_of(given: Any) -> str:
    return "".join([chunk.text async for chunk in given.astream("Hi")])


@pytest.mark.parametrize("status", [301, 307, 308])
async def test_a_redirect_to_another_host_is_not_followed(status: int) -> None:
    """No question, passage or key goes to the other host; the error names both addresses, and nothing is retried."""
    with OpenAIServer() as other:
        elsewhere = redirect(status, f"{other.url}/chat/completions")
        with OpenAIServer([elsewhere], embeddings=[redirect(status, f"{other.url}/embeddings")]) as server:
            chat = chat_model("openai:m", base_url=server.url, api_key="sk-test-12345")
            vectors: Any = embedding_model("openai:e", base_url=server.url, api_key="sk-test-12345")
            both = (server.url.removesuffix("/v1"), other.url.removesuffix("/v1"), "RAG_KIT_BASE_URL")

            def check(error: BaseException) -> None:
                mapped = map_model_error(error)
                assert "redirects to" in str(mapped) and all(part in str(mapped) for part in both), mapped

            blocking: list[Callable[[], Any]] = [
                lambda: chat.invoke("Hi"),
                lambda: list(chat.stream("Hi")),
                lambda: vectors.embed_query("Hi"),
                lambda: text_call(chat, PROMPT, DOUBT),
                lambda: structured_call(chat, load_prompt("multi_query"), {"question": "Who?", "count": 2}),
                lambda: embed_documents(vectors, ["Hi"]),
            ]
            for call in blocking:
                with pytest.raises(Exception) as raised:
                    call()
                check(raised.value)
            for make in (
                lambda: chat.ainvoke("Hi"),
                lambda: stream_of(chat),
                lambda: atext_call(chat, PROMPT, DOUBT),
                lambda: aembed_documents(vectors, ["Hi"]),
            ):
                with pytest.raises(Exception) as raised:
                    await make()
                check(raised.value)
            assert isinstance(raised.value, ModelError)
            assert not other.requests and len(server.requests) == 10


async def test_a_redirect_on_the_same_host_is_not_followed() -> None:
    """The error names the address to set, and a query is left out."""
    with OpenAIServer([redirect(307, "/v2/chat/completions?key=sk-canary")]) as server:
        with pytest.raises(ModelError, match="redirects to /v2/chat/completions, which") as raised:
            await atext_call(model(server), PROMPT, DOUBT)
        assert "canary" not in str(raised.value) and len(server.requests) == 1


async def test_a_stream_without_its_end_mark_is_no_answer() -> None:
    """It is asked for again; where a listener has read the beginning, or it stays so, it is an error."""
    with OpenAIServer([short(ANSWER), text(ANSWER)]) as server:
        assert text_call(model(server, streaming=True), PROMPT, DOUBT) == ANSWER
        assert len(server.chats) == 2
        server._next = 0
        assert await atext_call(model(server, streaming=True), PROMPT, DOUBT) == ANSWER
    with OpenAIServer([short(ANSWER)]) as server:
        with pytest.raises(ModelUnreachableError, match="broke off"):
            text_call(model(server, streaming=True), PROMPT, DOUBT, max_retries=0)
        with pytest.raises(Exception, match="broke off"):
            list(model(server).stream("Hi"))
        with pytest.raises(Exception, match="broke off"):
            await stream_of(model(server))
        retriever = BM25Retriever.from_texts(["The pump starts at 40 degrees."])
        graph = build_plain_rag(retriever, model(server))
        question = {"question": DOUBT["question"]}
        with pytest.raises(ModelUnreachableError, match="broke off"):
            for _ in graph.stream(question, stream_mode="messages"):
                pass
        with pytest.raises(ModelUnreachableError, match="broke off"):
            async for _ in graph.astream(question, stream_mode="messages"):
                pass
    with OpenAIServer([short("A stream ends with data: [DONE] on a line. " * 3)]) as server:
        with pytest.raises(Exception, match="broke off"):  # an answer that names the mark has not ended by it
            list(model(server).stream("Hi"))
        with pytest.raises(Exception, match="broke off"):
            await stream_of(model(server))


TEXTS = ["one", "two", "three"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the endpoints."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def entry(index: Any, vector: Any) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": vector}


def vectors_by_length(*numbers: Any) -> Callable[[Recorded], Reply]:
    """Make answers whose vectors hold the lengths of the texts, in the order of these numbers of them."""

    def answer(request: Recorded) -> Reply:
        texts = request.body["input"]
        data = [entry(n, [float(len(texts[at if n is None else n])), 1.0]) for at, n in enumerate(numbers)]
        return Reply(body={"object": "list", "model": "m", "data": data})

    return answer


async def embedded(model: Any) -> list[list[float]]:
    """The vectors of the texts, the same without and with an event loop."""
    vectors = model.embed_documents(TEXTS)
    assert vectors == await model.aembed_documents(TEXTS)
    return vectors  # type: ignore[no-any-return]


@pytest.mark.parametrize("numbers", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (None, None, None)])
async def test_vectors_come_in_the_order_of_their_texts(numbers: Any) -> None:
    """By the numbers that the endpoint gives them; without numbers in its order."""
    with OpenAIServer(embeddings=[vectors_by_length(*numbers)]) as server:
        model = embedding_model("openai:m", base_url=server.url)
        assert await embedded(model) == [[3.0, 1.0], [3.0, 1.0], [5.0, 1.0]]


BODIES = {
    "a number twice": {"data": [entry(0, [1.0]), entry(0, [2.0]), entry(1, [3.0])]},
    "one too few": {"data": [entry(0, [1.0]), entry(1, [2.0])]},
    "numbers from 1": {"data": [entry(n, [1.0]) for n in (1, 2, 3)]},
    "the key as a vector": {"data": [entry(n, [KEY]) for n in (0, 1, 2)]},
    "the key as a number": {"data": [entry(KEY, [1.0])]},
    "no finite number": {"data": [entry(n, [1.0, float("nan")]) for n in (0, 1, 2)]},
    "vectors of two lengths": {"data": [entry(n, [1.0] * (n + 1)) for n in (0, 1, 2)]},
    "no number": {"data": [entry(n, []) for n in (0, 1, 2)]},
    "no vectors": {"data": []},
    "another object": {"hello": KEY},
    "a list": [],
    "a text": KEY,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_what_is_not_one_vector_a_text_is_refused(body: Any) -> None:
    """The error names the endpoint and what to check, and holds no text of the endpoint's that is the key."""
    with OpenAIServer(embeddings=[Reply(body=body)]) as server:
        model: Any = embedding_model("openai:m", base_url=server.url)
        for native in (False, True):
            with pytest.raises(ModelOutputError) as raised:
                await model.aembed_documents(TEXTS) if native else model.embed_documents(TEXTS)
            told = "".join(traceback.format_exception(raised.value))
            assert KEY not in told and server.url.removesuffix("/v1") in told
            assert "RAG_KIT_EMBEDDING_BASE_URL" in told and "embedding endpoint" in told


async def test_a_failure_through_a_vector_store_is_one_of_the_kit() -> None:
    """It says where and what to check, is asked for two times again and not by the node too, and holds no key."""
    with OpenAIServer(embeddings=[error(500, f"no {KEY}", retry_after="0.01")]) as server:
        store = InMemoryVectorStore(embedding_model("openai:m", base_url=server.url))  # type: ignore[arg-type]
        for ask in (
            lambda: store.similarity_search("pump"),
            lambda: build_plain_rag(VectorRetriever(vectorstore=store), chat_model("extractive")).invoke(
                {"question": "Which pump?"}
            ),
        ):
            before = len(server.requests)
            with pytest.raises(
                ModelUnreachableError, match=r"embedding endpoint at http.*HTTP 500.*no \*\*\*"
            ) as raised:
                ask()
            assert KEY not in "".join(traceback.format_exception(raised.value))
            assert len(server.requests) - before == 3
        with pytest.raises(ModelUnreachableError):
            await store.asimilarity_search("pump")
        with pytest.raises(ModelError):
            store.add_documents([Document("pump")])


def test_one_embedding_model_serves_one_loop_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection of a closed loop is opened anew."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with OpenAIServer() as server:
        model: Any = embedding_model("openai:e", base_url=server.url)
        for _ in range(3):
            assert len(asyncio.run(model.aembed_query("fan"))) == 16
