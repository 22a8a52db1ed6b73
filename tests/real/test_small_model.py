"""The kit with a real language model on loopback: the form of what comes back, never the sense of an answer.

The structured call, sync, async and four at once; a streamed answer; ``doctor``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel
from support.graphs import BUILDERS
from support.small_model import SLOTS, serve, weights

import rag_kit.retrieval as kit
from rag_kit.cli.main import main
from rag_kit.models import astructured_call, chat_model, structured_call

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

#: Most tokens of a reply, where the prompt does not say otherwise.
BOUND = 48
DOCS = [
    Document("The pump starts at 40 degrees.", id="pump", metadata={"year": 2020}),
    Document("The warranty lasts two years. 保修期为两年。", id="warranty", metadata={"year": 2024}),
]
QUESTION = "When does the pump start?"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of the running endpoint."""
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: pip install 'rag-kit[slow]'")
    with serve(weights()) as url:
        yield url


@pytest.fixture(scope="module")
def llm(endpoint: str) -> Any:
    """The model, bounded and without chance."""
    settings: dict[str, Any] = {"max_tokens": BOUND, "temperature": 0.0, "timeout": 300.0, "max_retries": 0}
    return chat_model("openai:smollm2", base_url=endpoint, api_key="none", **settings)


def words() -> kit.BM25Retriever:
    """A keyword retriever over two passages."""
    return kit.BM25Retriever.from_documents(DOCS, k=2)


class Pump(BaseModel):
    """A pump."""

    loud: bool


def test_structured_calls_sync_async_and_at_once(llm: Any) -> None:
    """An object of the class each time; where the endpoint has JSON schema a small form is always filled in."""
    prompt, values = ChatPromptTemplate([("user", "Is the pump loud? {form}")]), {"form": "Answer as JSON."}
    assert isinstance(structured_call(llm, prompt, values, Pump), Pump)

    async def together() -> list[Any]:
        return await asyncio.gather(*(astructured_call(llm, prompt, values, Pump) for _ in range(SLOTS)))

    assert all(isinstance(value, Pump) for value in asyncio.run(together()))


def test_an_answer_is_streamed_in_pieces(llm: Any) -> None:
    """The answer's tokens come one after the other, and nothing else is streamed."""
    graph = BUILDERS["plain"](words(), llm)
    asked = {"question": QUESTION}
    pieces = [piece for piece, _ in graph.stream(asked, context={"max_calls": 4}, stream_mode="messages")]
    assert len(pieces) > 1 and "".join(piece.text for piece in pieces)


def test_doctor_examines_the_endpoint(
    llm: Any, endpoint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ability is found or not, and none of them stops the examination."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    main(["doctor", "--model", "openai:smollm2", "--base-url", endpoint, "--json"])
    findings = {row["name"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert findings["text"] == "ok" and set(findings.values()) <= {"ok", "off"}
    assert {"JSON schema", "streaming", "log-probabilities"} <= findings.keys()
