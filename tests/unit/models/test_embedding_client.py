"""Answers of an embedding endpoint, and how its failures are told wherever the model is asked."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from support.openai_server import OpenAIServer, Recorded, Reply, error

from rag_kit.errors import ModelError, ModelOutputError, ModelUnreachableError
from rag_kit.graphs import build_plain_rag
from rag_kit.models import chat_model, embedding_model
from rag_kit.retrieval import VectorRetriever

KEY = "zq81kxplain7731"  # of no known shape
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
