"""What exceptions of providers become, and that no key leaves with them."""

from __future__ import annotations

import asyncio
import logging
import pickle
import traceback
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from langchain_core.exceptions import ContextOverflowError, ModelTimeoutError
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from support.openai_server import Entry, OpenAIServer, cut, error, hang, refusal, reset

from rag_kit.errors import (
    ModelError,
    ModelOutputError,
    ModelUnauthorizedError,
    ModelUnreachableError,
    RagKitError,
)
from rag_kit.models import atext_call, chat_model, structured_call, text_call
from rag_kit.models.failures import Failure, classify, map_model_error, mask_error, retry_after
from rag_kit.models.redact import redact
from rag_kit.prompts.schemas import Queries

CANARY = "sk-canary-7f3a9b2c4d5e6f70"
ODD_CANARY = "plainpassphrase0042"
PROMPT = ChatPromptTemplate([("user", "{q}")])


class Carrier(Exception):
    """An exception with a status and headers, as SDKs have them."""

    def __init__(
        self, status: int | None = None, headers: dict[str, str] | None = None, **extra: Any
    ) -> None:
        super().__init__("carried")
        self.status_code = status
        self.response = type("R", (), {"status_code": status, "headers": headers or {}})()
        vars(self).update(extra)


@pytest.mark.parametrize(
    ("exception", "cls"),
    [
        (Carrier(401), ModelUnauthorizedError),
        (Carrier(403), ModelUnauthorizedError),
        (Carrier(429), ModelUnreachableError),
        (Carrier(500), ModelUnreachableError),
        (Carrier(529), ModelUnreachableError),
        (ConnectionResetError("reset"), ModelUnreachableError),
        (TimeoutError("slow"), ModelUnreachableError),
        (ModelTimeoutError("slow"), ModelUnreachableError),
        (Carrier(400), ModelError),
        (RuntimeError("odd"), ModelError),
    ],
)
def test_each_kind_has_its_class(exception: Exception, cls: type[ModelError]) -> None:
    """Status codes, OS errors and LangChain's own tree are told apart."""
    assert type(map_model_error(exception)) is cls


def test_own_errors_come_back_as_they_are() -> None:
    """Mapping twice changes nothing."""
    mapped = map_model_error(Carrier(401))
    assert map_model_error(mapped) is mapped


def test_overflow_is_final_and_causes_are_looked_through() -> None:
    """A context overflow is final; a wrapped exception is classified by its cause."""
    assert classify(ContextOverflowError("long")) is Failure.REFUSED_FOR_GOOD
    wrapper = RuntimeError("wrapped")
    wrapper.__cause__ = Carrier(429)
    assert classify(wrapper) is Failure.RATE_LIMITED


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after": "2"}, 2, 2),
        ({"retry-after": "0.5"}, 0.5, 0.5),
    ],
)
def test_retry_after_takes_seconds(headers: dict[str, str], low: float, high: float) -> None:
    """Whole seconds and parts of them are read."""
    seconds = retry_after(Carrier(429, headers))
    assert seconds is not None and low <= seconds <= high


@pytest.mark.parametrize("value", ["soon", "", "nan?"])
def test_a_broken_retry_after_is_ignored(value: str) -> None:
    """An unreadable header leads to the usual pause."""
    assert retry_after(Carrier(429, {"retry-after": value})) is None


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {CANARY}.",
        f"Authorization: Bearer {CANARY}",
        f"headers={{'api-key': '{CANARY}'}}",
        f"http://user:{CANARY}@proxy:8080/v1",
        "Bearer abcdefgh.ijklmnop",
        "api_key=abcdefghijk123",
    ],
)
def test_redaction_knows_the_usual_shapes(text: str) -> None:
    """Keys are masked by their shape even when nobody told them."""
    found = redact(text)
    assert "canary" not in found and "abcdefgh" not in found and "***" in found


def test_redaction_leaves_ordinary_text_alone() -> None:
    """Words like token, key or task stay."""
    text = "the token limit of task-oriented models is a key problem: max_tokens=5"
    assert redact(text) == text


def test_masking_reaches_quoted_words_and_every_cause() -> None:
    """A key in quotes, in a list, as a name, in a note, and in errors that were handled beside the cause."""
    quoted = f'unknown header "x-key: {ODD_CANARY}"'
    found = Carrier(
        400, body={"error": {"message": quoted, "seen": [ODD_CANARY, 4], ODD_CANARY: "api_key=abcd1234"}}
    )
    found.add_note(ODD_CANARY)
    found.__cause__, found.__context__ = Carrier(400, message=ODD_CANARY), ValueError(quoted)
    found.__context__.__context__ = RuntimeError(("odd", ODD_CANARY))
    mask_error(found, SimpleNamespace(default_headers={"x-key": ODD_CANARY}))
    assert found.body == {  # type: ignore[attr-defined]
        "error": {"message": 'unknown header "x-key: ***"', "seen": ["***", 4], "***": "api_key=***"}
    }
    assert ODD_CANARY not in everything_about(found)


def everything_about(failure: BaseException) -> str:
    """All texts under which an exception can show up, its chain included."""
    texts = [str(failure), repr(failure), "".join(traceback.format_exception(failure))]
    seen: set[int] = set()
    queue: list[BaseException | None] = [failure]
    while queue:
        each = queue.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        texts += [repr(each), repr(vars(each))]
        queue += [each.__cause__, each.__context__]
        request = getattr(each, "request", None)
        texts.append(repr(getattr(request, "headers", "")) + repr(dict(getattr(request, "headers", {}))))
    return "\n".join(texts)


SCRIPTS: list[tuple[str, Entry]] = [
    ("unauthorized", error(401, f"Incorrect API key provided: {CANARY} or {ODD_CANARY}")),
    ("refused", error(400, f"bad key {CANARY} {ODD_CANARY}")),
    ("rate", error(429, f"key {CANARY} {ODD_CANARY}", retry_after="99")),
    ("server", error(500, f"Authorization: Bearer {CANARY} {ODD_CANARY}")),
    ("reset", reset()),
    ("cut", cut(f"{CANARY} {ODD_CANARY} and so on")),
    ("hang", hang(20)),
    ("prose", f"my key is {CANARY} {ODD_CANARY}"),
    ("refusal", refusal(f"not with {CANARY} {ODD_CANARY}")),
]


@pytest.mark.parametrize("key", [CANARY, ODD_CANARY])
@pytest.mark.parametrize(("name", "entry"), SCRIPTS, ids=[name for name, _ in SCRIPTS])
def test_no_key_in_errors_tracebacks_and_logs(
    name: str, entry: Entry, key: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the server does, the key is in no message, chain, repr or log; also one of an odd shape."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    caplog.set_level(logging.DEBUG, logger="rag_kit")
    with OpenAIServer([entry]) as server:
        model = chat_model("openai:test", base_url=server.url)
        for run in (
            lambda: structured_call(model, PROMPT, {"q": "x"}, Queries, timeout=0.5, max_retries=0),
            lambda: text_call(model, PROMPT, {"q": "x"}, timeout=0.5, max_retries=0),
            lambda: asyncio.run(atext_call(model, PROMPT, {"q": "x"}, timeout=0.5, max_retries=0)),
            lambda: structured_call(
                model, PROMPT, {"q": "x"}, Queries, timeout=0.5, max_retries=0, fallback=None
            ),
        ):
            told = ""
            try:
                run()
            except RagKitError as failure:
                told = everything_about(failure)
            assert key not in told
        assert key not in repr(model) and key not in str(model)
    assert key not in caplog.text


def test_mapped_errors_can_be_pickled_and_hold_no_request() -> None:
    """An error crosses process borders, without request, response or headers."""
    with OpenAIServer([error(401, "no")]) as server:
        model = ChatOpenAI(model="t", base_url=server.url, api_key=CANARY)
        with pytest.raises(ModelUnauthorizedError) as caught:
            text_call(model, PROMPT, {"q": "x"})
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_embedding_failures_are_mapped_too() -> None:
    """Embedding models raise the same SDK exceptions."""
    with OpenAIServer(key="right") as server:
        embeddings = OpenAIEmbeddings(
            model="e", base_url=server.url, api_key=CANARY, check_embedding_ctx_length=False, max_retries=0
        )
        with pytest.raises(Exception) as caught:
            embeddings.embed_query("x")
    mapped = map_model_error(caught.value, model=embeddings)
    assert isinstance(mapped, ModelUnauthorizedError) and CANARY not in str(mapped)


def test_stream_cut_after_first_token_is_not_said_twice() -> None:
    """Once a listener got a token, a broken stream is an error, not a second start."""
    got: list[str] = []

    def listen(chunk: Any) -> None:
        got.append(chunk)

    from langchain_core.callbacks import BaseCallbackHandler

    class Listener(BaseCallbackHandler):
        def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
            listen(token)

    with OpenAIServer([cut("one two three four five six seven eight"), "whole"]) as server:
        model = ChatOpenAI(model="t", base_url=server.url, api_key="sk-x", streaming=True)
        with pytest.raises(ModelUnreachableError):
            text_call(model, PROMPT, {"q": "x"}, config={"callbacks": [Listener()]})
        assert len(server.chats) == 1
    assert "".join(got).startswith("one") and "whole" not in "".join(got)


def test_text_call_drops_thinking_and_refuses_emptiness() -> None:
    """A text answer comes without reasoning; nothing but reasoning is an error."""
    with OpenAIServer(["<think>hm</think> Paris [1].\n"]) as server:
        assert text_call(chat_of(server), PROMPT, {"q": "x"}) == "Paris [1]."
    with OpenAIServer(["<think>hm</think>"]) as server, pytest.raises(ModelOutputError, match="empty"):
        text_call(chat_of(server), PROMPT, {"q": "x"})
    with OpenAIServer([refusal("no")]) as server, pytest.raises(ModelOutputError, match="refused"):
        text_call(chat_of(server), PROMPT, {"q": "x"})


def chat_of(server: OpenAIServer) -> ChatOpenAI:
    """A client for the server."""
    return ChatOpenAI(model="t", base_url=server.url, api_key="sk-x")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8123/v1/chat?key=sk-canary-123456", "http://127.0.0.1:8123"),
        ("https://me:canary@api.example.org/v1", "https://api.example.org"),
        ("http://[::1]:9/v1", "http://[::1]:9"),
    ],
)
def test_the_endpoint_is_named_with_its_port(url: str, shown: str) -> None:
    """Scheme, host and port tell which server is meant; user, password, path and query are left out."""
    error = httpx.ConnectError("refused", request=httpx.Request("POST", url))
    message = str(map_model_error(error))
    assert f" at {shown} could not be reached" in message
    assert "canary" not in message and "/v1" not in message


def test_the_endpoint_is_known_from_the_model() -> None:
    """An error that does not say where it went is placed by the model's own address."""

    class Model:
        base_url = "http://me:canary@127.0.0.1:8124/v1"

    message = str(map_model_error(ConnectionRefusedError("refused"), model=Model()))
    assert " at http://127.0.0.1:8124 could" in message and "canary" not in message
