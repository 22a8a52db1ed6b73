"""Exceptions of providers become errors of the kit, and no key leaves with them."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import pickle
import traceback
import urllib.parse
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError, ModelTimeoutError
from langchain_core.outputs import Generation, LLMResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from support.openai_server import Entry, OpenAIServer, Reply, cut, error, hang, refusal, reset

from rag_kit.errors import ModelError, ModelUnauthorizedError, ModelUnreachableError, RagKitError
from rag_kit.indexing import DocumentIndex, ingest
from rag_kit.models import atext_call, chat_model, structured_call, text_call
from rag_kit.models.failures import Failure, classify, map_model_error, mask_error, retry_after
from rag_kit.models.redact import redact, redact_inside
from rag_kit.prompts import load_prompt
from rag_kit.prompts.schemas import Queries
from rag_kit.retrieval import ExactVectorRetriever

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
    mapped = map_model_error(exception)
    assert type(mapped) is cls and map_model_error(mapped) is mapped


def test_overflow_is_final_and_causes_are_looked_through() -> None:
    """A context overflow is final; a wrapped exception is classified by its cause."""
    assert classify(ContextOverflowError("long")) is Failure.REFUSED_FOR_GOOD
    wrapper = RuntimeError("wrapped")
    wrapper.__cause__ = Carrier(429)
    assert classify(wrapper) is Failure.RATE_LIMITED


def test_retry_after_is_seconds_or_a_date() -> None:
    """As seconds from now; a date that is over is no wait, what cannot be read leads to the usual pause."""

    def seconds(value: str) -> float | None:
        return retry_after(Carrier(429, {"retry-after": value}))

    assert (seconds("2"), seconds("0.5")) == (2.0, 0.5)
    soon = datetime.now(UTC) + timedelta(seconds=20)
    assert 18 < (seconds(format_datetime(soon, usegmt=True)) or 0) <= 20
    assert seconds(format_datetime(soon - timedelta(hours=1), usegmt=True)) == 0
    dates = ["Sat, 99 Nov 2026 10:00:00 GMT", f"Mon, 01 Jan 2024 00:00:00 +{10**14}"]
    for broken in ("soon", "", "nan?", *dates):
        assert seconds(broken) is None


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {CANARY}.",
        f"Authorization: Bearer {CANARY}",
        f"headers={{'api-key': '{CANARY}'}}",
        f"http://user:{CANARY}@proxy:8080/v1",
        "Bearer abcdefgh.ijklmnop",
        "api_key=abcdefghijk123",
        f'{{"api_key": "{CANARY}"}}',
        "OPENAI_API_KEY=abcdefgh",
        "x-" * 100_000 + " api_key=abcdefgh",  # read once, not once for each of its parts
    ],
)
def test_redaction_knows_the_usual_shapes(text: str) -> None:
    """Keys are masked by their shape even when nobody told them."""
    found = redact(text)
    assert "canary" not in found and "abcdefgh" not in found and "***" in found


def test_a_known_key_is_masked_in_base64_and_as_a_part_of_an_address() -> None:
    """As a server may echo it."""
    secret = "öd/d+key=of nobody"
    for form in (secret, base64.b64encode(secret.encode()).decode(), urllib.parse.quote(secret, safe="")):
        assert redact(f"the key {form} is wrong", [secret]).startswith("the key ***")


def test_redaction_leaves_ordinary_text_alone() -> None:
    """Words like token, key or task stay."""
    text = "the token limit of task-oriented models is a key problem: max_tokens=5, monkey=abcdefgh, id_key='isbn'"
    assert redact(text) == text


def test_a_field_with_a_secret_name_is_masked_whatever_it_holds() -> None:
    """A list, a number and an object as well as a text; nothing and a flag stay."""
    body = {
        "api_key": ["abcd1234"],
        "password": 123456,
        "token": {"value": "abcd1234"},
        "secret": None,
        "key": True,
    }
    masked = {"api_key": "***", "password": "***", "token": "***", "secret": None, "key": True}
    assert redact_inside({"detail": [body]}) == {"detail": [masked]}


def test_masking_reaches_quoted_words_and_every_cause() -> None:
    """A key in quotes, in a list, as a name, in a note, and in errors that were handled beside the cause."""
    quoted = f'unknown header "x-key: {ODD_CANARY}"'
    found = Carrier(
        400, body={"error": {"message": quoted, "seen": [ODD_CANARY, 4], ODD_CANARY: "api_key=abcd1234"}}
    )
    found.add_note(ODD_CANARY)
    found.__cause__, found.__context__ = Carrier(400, message=ODD_CANARY), ValueError(quoted)
    found.__context__.__context__ = RuntimeError(("odd", ODD_CANARY))
    # a language model without messages gives no message, either
    made = LLMResult(generations=[[Generation(text="")]])
    mask_error(found, SimpleNamespace(default_headers={"x-key": ODD_CANARY}), made)
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


def test_stream_cut_after_first_token_is_not_said_twice() -> None:
    """Once a listener got a token, a broken stream is an error, not a second start."""
    got: list[str] = []

    class Listener(BaseCallbackHandler):
        def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
            got.append(token)

    with OpenAIServer([cut("one two three four five six seven eight"), "whole"]) as server:
        model = ChatOpenAI(model="t", base_url=server.url, api_key="sk-x", streaming=True)
        with pytest.raises(ModelUnreachableError):
            text_call(model, PROMPT, {"q": "x"}, config={"callbacks": [Listener()]})
        assert len(server.chats) == 1
    assert "".join(got).startswith("one") and "whole" not in "".join(got)


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
    garbage = json.JSONDecodeError("Unterminated string", '"', 0)
    for failure in (garbage, IndexError("list index out of range")):
        message = str(map_model_error(failure, model=Model()))
        assert " at http://127.0.0.1:8124 " in message and "check RAG_KIT_BASE_URL" in message
    assert "RAG_KIT_BASE_URL" not in str(map_model_error(IndexError("out"), model=object()))


@pytest.mark.parametrize(
    ("said", "param", "name"),
    [
        ("Unsupported value: 'temperature' does not support 0 with this model", "temperature", "temperature"),
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead",
            "max_tokens",
            "max_tokens",
        ),
        ("This value is not allowed", "top_p", "top_p"),
        ("logprobs are not supported", None, "logprobs"),
    ],
)
async def test_a_setting_that_a_model_refuses_is_named(said: str, param: str | None, name: str) -> None:
    """The advice names the setting, and where to change it, by the endpoint's field for it or by its words."""
    body = {"error": {"message": said, "type": "invalid_request_error", "param": param}}
    with OpenAIServer([Reply(status=400, body=body)]) as server:
        model = chat_model("openai:m", base_url=server.url, api_key="none", temperature=0)
        advice = rf"Check {name} \(leave it out where the model is made"
        with pytest.raises(ModelError, match=advice):
            text_call(model, PROMPT, {"q": "Hi"})
        with pytest.raises(ModelError, match=advice):
            await atext_call(model, PROMPT, {"q": "Hi"})


KEY = "zq81kxplain7731"  # of no known shape
VALUES = {"question": "Who?", "count": 2}
DOUBT = {"question": "Who?", "passages": "Nobody."}


@pytest.fixture(params=[400, 401, 429, 500])
def server(request: pytest.FixtureRequest) -> Iterator[OpenAIServer]:
    echoing = error(request.param, f"Not with the key {KEY} of yours")
    with OpenAIServer([echoing], embeddings=[echoing]) as running:
        yield running


def whole(raised: BaseException) -> str:
    """All that a traceback shows, causes included."""
    return "".join(traceback.format_exception(raised))


async def test_chat_models_in_wrappers(server: OpenAIServer) -> None:
    """A model behind ``bind``, ``with_config``, ``with_retry``, keyed by a header or by a function."""
    plain = ChatOpenAI(model="m", base_url=server.url, api_key=KEY, max_retries=0)  # type: ignore[arg-type]
    headers = {"Authorization": f"Bearer {KEY}", "X-Gateway-Key": KEY}
    by_header = ChatOpenAI(
        model="m", base_url=server.url, api_key="none", default_headers=headers, max_retries=0
    )  # type: ignore[arg-type]
    by_function = ChatOpenAI(model="m", base_url=server.url, api_key=lambda: KEY, max_retries=0)
    models: list[Any] = [
        by_function,
        plain.bind(stop=["."]),
        plain.with_config(tags=["a"]),
        plain.bind(stop=["."]).with_retry(stop_after_attempt=1),
        by_header,
        by_header.with_config(tags=["a"]),
    ]
    answer, queries = load_prompt("answer_or_doubt"), load_prompt("multi_query")
    for model in models:
        for call in (
            lambda model: asyncio.to_thread(text_call, model, answer, DOUBT, max_retries=0),
            lambda model: atext_call(model, answer, DOUBT, max_retries=0),
            lambda model: asyncio.to_thread(structured_call, model, queries, VALUES, max_retries=0),
        ):
            with pytest.raises(ModelError) as raised:
                await call(model)
            assert KEY not in whole(raised.value)


def test_embedding_models(server: OpenAIServer, tmp_path: Path) -> None:
    """Writing to an index, reading files into one, searching one and a retriever over vectors."""
    embeddings = OpenAIEmbeddings(  # type: ignore[call-arg]
        model="e", base_url=server.url, api_key=KEY, check_embedding_ctx_length=False, max_retries=0
    )
    document = Document("The pump hums.", id="1")
    (tmp_path / "pump.txt").write_text("The pump hums.", encoding="utf-8")

    def upsert() -> None:
        with DocumentIndex.create(tmp_path / "index", embeddings=embeddings) as index:
            index.upsert([document])

    made = ExactVectorRetriever.from_documents([document], embeddings, vectors=np.ones((1, 2)))
    attempts: list[Callable[[], Any]] = [
        upsert,
        lambda: ingest([tmp_path / "pump.txt"], tmp_path / "other", embeddings=embeddings),
        lambda: ExactVectorRetriever.from_documents([document], embeddings),
        lambda: made.invoke("pump"),
        lambda: asyncio.run(made.ainvoke("pump")),
    ]
    for attempt in attempts:
        with pytest.raises(ModelError) as raised:
            attempt()
        assert KEY not in whole(raised.value)
