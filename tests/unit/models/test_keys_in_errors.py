"""No key that a server echoes reaches the caller, whichever way the model holds it and whatever is asked of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from support.openai_server import OpenAIServer, error

from rag_kit.errors import ModelError
from rag_kit.indexing import DocumentIndex, ingest
from rag_kit.models import atext_call, structured_call, text_call
from rag_kit.prompts import load_prompt
from rag_kit.retrieval import ExactVectorRetriever

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
    for model in models:
        with pytest.raises(ModelError) as raised:
            text_call(model, load_prompt("answer_or_doubt"), DOUBT, max_retries=0)
        assert KEY not in whole(raised.value)
        with pytest.raises(ModelError) as raised:
            await atext_call(model, load_prompt("answer_or_doubt"), DOUBT, max_retries=0)
        assert KEY not in whole(raised.value)
        with pytest.raises(ModelError) as raised:
            structured_call(model, load_prompt("multi_query"), VALUES, max_retries=0)
        assert KEY not in whole(raised.value)


async def test_embedding_models(server: OpenAIServer, tmp_path: Path) -> None:
    """Writing to an index, reading files into one, searching one and a retriever over vectors."""
    embeddings = OpenAIEmbeddings(  # type: ignore[call-arg]
        model="e", base_url=server.url, api_key=KEY, check_embedding_ctx_length=False, max_retries=0
    )
    document = Document("The pump hums.", id="1")
    (tmp_path / "pump.txt").write_text("The pump hums.", encoding="utf-8")

    def upsert() -> None:
        with DocumentIndex.create(tmp_path / "index", embeddings=embeddings) as index:
            index.upsert([document])

    attempts: list[Callable[[], Any]] = [
        upsert,
        lambda: ingest([tmp_path / "pump.txt"], tmp_path / "other", embeddings=embeddings),
        lambda: ExactVectorRetriever.from_documents([document], embeddings),
    ]
    for attempt in attempts:
        with pytest.raises(ModelError) as raised:
            attempt()
        assert KEY not in whole(raised.value)
    import numpy as np

    made = ExactVectorRetriever.from_documents([document], embeddings, vectors=np.ones((1, 2)))
    with pytest.raises(ModelError) as raised:
        made.invoke("pump")
    assert KEY not in whole(raised.value)
    with pytest.raises(ModelError) as raised:
        await made.ainvoke("pump")
    assert KEY not in whole(raised.value)
