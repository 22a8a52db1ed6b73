"""The judge's limits over a real client: ChatOpenAI and OpenAIEmbeddings against a server on loopback.

Along the text path; the other ways of asking are tested with the structured call.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from support.by_task import ByTask, ragas_task
from support.judging import PROMPTS, row, served, split, verdicts
from support.openai_server import OpenAIServer, Recorded, error, hang, reset, text, tool

from rag_kit.concurrency import Budget, use_budget
from rag_kit.errors import BudgetExceededError, ModelOutputError, ModelUnreachableError
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.scorers import get_metric
from rag_kit.models import runnables
from rag_kit.models.embedding import sending_text

REFUSED = {"json_schema", "tools", "json_object"}
ASKED = {"question": "Who?", "answer": "Ada did it."}
ANSWERS = {
    "judge_statements": split(2), "StatementGeneratorOutput": split(2), "NLIStatementOutput": verdicts(1, 0),
    "ContextPrecisionOutput": {"reason": "r", "verdict": 1},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what an earlier server on the same port could not do, and use prompt files of the tests."""
    monkeypatch.setenv("RAG_KIT_PROMPTS", str(PROMPTS))
    runnables._endpoints.clear()
    yield
    runnables._endpoints.clear()


def chat(server: OpenAIServer, **settings: Any) -> ChatOpenAI:
    """A client of the server."""
    return ChatOpenAI(**{"model": "judge", "base_url": server.url, "api_key": "sk-test", **settings})


def vectors(server: OpenAIServer, **settings: Any) -> OpenAIEmbeddings:
    """The same for embeddings."""
    known = {"model": "small", "base_url": server.url, "api_key": "sk-test"}
    return OpenAIEmbeddings(**{**known, "check_embedding_ctx_length": False, **settings})


def usable(server: OpenAIServer) -> list[Recorded]:
    """The requests that the server did not refuse for their form."""
    return [each for each in server.chats if each.asks == "text"]


class Crowd:
    """Counts how many requests are under way at once, and answers each."""

    def __init__(self, answers: dict[str, Any] | None = None, seconds: float = 0.05) -> None:
        self.reply = None if answers is None else served(answers)
        self.seconds = seconds
        self.now = self.most = self.all = 0
        self.lock = threading.Lock()

    def __call__(self, request: Recorded) -> Any:
        with self.lock:
            self.all += 1
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return None if self.reply is None else self.reply(request)


async def known_path(judge: Judge) -> None:
    """One question first, so that the client knows what the server can do."""
    await judge.ask("judge_statements", {"question": "First?", "answer": "First."})


async def test_at_most_so_many_requests_at_once() -> None:
    """The server never sees more than the limit, and sees that many."""
    crowd = Crowd(ANSWERS)
    with OpenAIServer([crowd], refuse=REFUSED) as server:
        judge = Judge(chat(server), "none", max_concurrency=3)
        await known_path(judge)
        contexts = [f"P{n}." for n in range(5)]
        metric = get_metric("context_precision")
        cells = await asyncio.gather(*(metric.measure(*row(contexts=contexts), judge) for _ in range(3)))
    assert {cell.status for cell in cells} == {"ok"}
    assert crowd.most == 3 and crowd.all == 16


async def test_a_server_that_hangs_costs_so_many_requests() -> None:
    """max_retries + 1, each cut at the time-out; the cell is an error and no number."""
    script: list[Any] = [served(ANSWERS), hang(9)]
    with OpenAIServer(script, refuse=REFUSED) as server:
        judge = Judge(chat(server), "none", timeout=0.3, max_retries=1)
        await known_path(judge)
        before, started = len(usable(server)), time.monotonic()
        cell = await get_metric("faithfulness").measure(*row(), judge)
        assert (cell.status, cell.value, cell.calls) == ("error", None, 2)
        assert len(usable(server)) - before == 2
        assert time.monotonic() - started < 30


async def test_what_passes_is_tried_again_and_counted() -> None:
    """A rate limit, a server error and a broken connection: right in the end; what lasts is an error of its kind."""
    script: list[Any] = [served(ANSWERS), error(429, retry_after="0"), error(503), reset(), served(ANSWERS)]
    with OpenAIServer(script, refuse=REFUSED) as server:
        judge = Judge(chat(server), "none", max_retries=3)
        await known_path(judge)
        before = judge.usage["calls"]
        assert await judge.ask("judge_statements", ASKED) == split(2)
        assert judge.usage["calls"] - before == 4
        strict = Judge(chat(server), "none", max_retries=0)
        server.script.append(error(429, retry_after="0"))
        with pytest.raises(ModelUnreachableError):
            await strict.ask("judge_statements", ASKED)


async def test_calls_and_tokens_are_those_of_the_server() -> None:
    """Every request counts, a refused one too; tokens are what the server says it used, in cell and judge alike."""
    with OpenAIServer([served(ANSWERS)], refuse=REFUSED) as server:
        judge = Judge(chat(server), "none")
        cell = await get_metric("faithfulness").measure(*row(), judge)
        assert cell.value == 0.5
        assert cell.calls == judge.usage["calls"] == len(server.chats)
        used = 0
        for each in usable(server):
            task = ragas_task(each.prompt)
            used += len(each.prompt) // 4 + 1 + len(json.dumps(ANSWERS[task])) // 4 + 1
        assert cell.tokens == judge.usage["tokens"] == used


@pytest.mark.parametrize("cap", ["max_calls", "max_tokens", "deadline"])
async def test_a_cap_is_kept_to_the_request(cap: str) -> None:
    """The server sees no request beyond it, also when many are asked at once; the cap names itself."""
    with OpenAIServer([served(ANSWERS)], refuse=REFUSED) as server:
        await known_path(Judge(chat(server), "none"))
        before = len(server.chats)
        caps: Any = {cap: {"max_calls": 3, "max_tokens": 1, "deadline": 0.0}[cap]}
        judge = Judge(chat(server), "none", max_concurrency=2, **caps)
        asked = [judge.ask("judge_statements", {**ASKED, "answer": f"A{n}."}) for n in range(8)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        refused = [each for each in found if isinstance(each, BudgetExceededError)]
        made = len(server.chats) - before
        assert made == judge.usage["calls"] == 8 - len(refused)
        assert made == {"max_calls": 3, "deadline": 0}.get(cap, made) and made <= 3
        assert cap.removeprefix("max_") in str(refused[0])
        with pytest.raises(BudgetExceededError):
            await get_metric("faithfulness").measure(*row(), judge)


async def test_the_cache_asks_once_and_tells_judges_apart(tmp_path: Path) -> None:
    """A second run asks nothing; another model, endpoint or repetition does. JSON is all it holds."""
    cache = tmp_path / "judge.sqlite"
    kinder = {**ANSWERS, "NLIStatementOutput": verdicts(1, 1)}
    with (
        OpenAIServer([served(ANSWERS)], refuse=REFUSED) as server,
        OpenAIServer([served(kinder)], refuse=REFUSED) as other,
    ):
        for made, value, kept, settings in (
            (chat(server), 0.5, False, {}), (chat(server), 0.5, True, {}), (chat(server, model="b"), 0.5, False, {}),
            (chat(other), 1.0, False, {}),
        ):  # fmt: skip
            before = len(server.chats) + len(other.chats)
            judge = Judge(made, "none", cache=cache, **settings)
            cell = await get_metric("faithfulness").measure(*row(), judge)
            asked = len(server.chats) + len(other.chats) - before
            assert cell.value == value
            assert (asked == 0, cell.calls == 0) == (kept, kept)
        judge = Judge(chat(server), "none", cache=cache)
        for repeat, calls in ((0, 1), (0, 1), (1, 2), (1, 2)):
            await judge.ask("judge_statements", ASKED, repeat=repeat)
            assert judge.usage["calls"] == calls
    with sqlite3.connect(cache) as connection:
        for key, answer in connection.execute("SELECT key, answer FROM answers"):
            assert len(key) == 64 and isinstance(json.loads(answer), dict)


async def test_what_fails_is_not_kept(tmp_path: Path) -> None:
    """An error of the server and a reply of the wrong form are asked for again by the next judge."""
    cache = tmp_path / "judge.sqlite"
    script: list[Any] = [served(ANSWERS), error(500), {"statements": 5}, text("no"), served(ANSWERS)]
    with OpenAIServer(script, refuse=REFUSED) as server:
        await known_path(Judge(chat(server), "none"))
        for _ in range(2):
            cell = await get_metric("faithfulness").measure(
                *row(), Judge(chat(server), "none", cache=cache, max_retries=0)
            )
            assert (cell.status, cell.value) == ("error", None)
        cell = await get_metric("faithfulness").measure(*row(), Judge(chat(server), "none", cache=cache))
        assert (cell.value, cell.calls) == (0.5, 2)


async def test_embeddings_keep_the_limit_of_requests() -> None:
    """They share it with the chat model; caps of a budget around them hold too."""
    crowd = Crowd()
    with OpenAIServer(embeddings=[crowd]) as server:
        judge = Judge(ByTask(answers={}), vectors(server), max_concurrency=2)
        found = await asyncio.gather(*(judge.embed([f"text {n}"]) for n in range(8)))
        with use_budget(Budget(deadline=0.0)), pytest.raises(BudgetExceededError):
            await judge.embed(["a"])
    assert all(len(each) == 1 and len(each[0]) == 16 for each in found)
    assert crowd.most == 2 and crowd.all == 8
    assert judge.usage["embedded"] == 8


async def test_embeddings_that_waited_past_the_deadline_are_not_sent() -> None:
    """The time left is counted when a request may begin, not when it began to wait."""
    crowd = Crowd(seconds=0.8)
    with OpenAIServer(embeddings=[crowd]) as server:
        judge = Judge(ByTask(answers={}), vectors(server), max_concurrency=1, max_retries=0)
        with use_budget(Budget(deadline=0.4)):
            found = await asyncio.gather(judge.embed(["a"]), judge.embed(["b"]), return_exceptions=True)
    assert isinstance(found[1], BudgetExceededError) and crowd.all == 1


@pytest.mark.slow
async def test_embeddings_are_tried_again_and_cut_at_the_time_out() -> None:
    """A rate limit, a broken connection: right in the end. What hangs costs max_retries + 1 requests."""
    with OpenAIServer(embeddings=[error(429, retry_after="0"), reset(), None, hang(9)]) as server:
        judge = Judge(ByTask(answers={}), vectors(server), timeout=0.3, max_retries=2)
        assert len(await judge.embed(["a"])) == 1
        assert len(server.requests) == 3
        with pytest.raises(ModelUnreachableError):
            await judge.embed(["b"])
        assert len(server.requests) == 6
        cell = await get_metric("semantic_similarity").measure(*row(), judge)
        assert (cell.status, cell.value) == ("error", None)


async def test_embeddings_are_sent_once(tmp_path: Path) -> None:
    """In batches, each text once; what is in the cache is not sent; another model or endpoint is another vector."""
    cache = tmp_path / "judge.sqlite"
    with OpenAIServer() as server, OpenAIServer() as other:
        judge = Judge(ByTask(answers={}), vectors(server), cache=cache)
        texts = [f"text {n}" for n in range(100)]
        first = await judge.embed([*texts, *texts])
        assert [len(each.body["input"]) for each in server.requests] == [64, 36]
        assert first[:100] == first[100:]
        again = Judge(ByTask(answers={}), vectors(server), cache=cache)
        assert await again.embed(texts) == first[:100]
        assert (len(server.requests), again.usage["embedded"]) == (2, 0)
        await Judge(ByTask(answers={}), vectors(server, model="large"), cache=cache).embed(["text 1"])
        await Judge(ByTask(answers={}), vectors(other), cache=cache).embed(["text 1"])
        assert (len(server.requests), len(other.requests)) == (3, 1)


async def test_embeddings_made_with_langchains_defaults_download_no_tokenizer() -> None:
    """On a compatible server they are sent as texts; the user's object, and OpenAI's own endpoint, are left alone."""
    with OpenAIServer() as server:
        made = vectors(server, check_embedding_ctx_length=True)
        assert len(await Judge(ByTask(answers={}), made, max_retries=0).embed(["a b"])) == 1
        (request,) = server.requests
        assert request.body["input"] == ["a b"]
        assert made.check_embedding_ctx_length
    for address in ("https://api.openai.com/v1", "https://name.openai.azure.com/openai/v1"):
        kept = sending_text(OpenAIEmbeddings(model="small", base_url=address, api_key="sk-test"))
        assert kept.check_embedding_ctx_length


SIZE = 1_100_000
ENDLESS = {
    "brackets": "[" * SIZE,
    "extra key": '{"statements": ["a"], "more": "' + "y" * SIZE + '"}',
    "one string": '{"statements": ["' + "y" * SIZE + '"]}',
}


async def ask(reply: Any, refuse: set[str]) -> tuple[Any, int]:
    """Return the outcome of asking, and how many requests it took."""
    with OpenAIServer([reply], refuse=refuse) as server:
        try:
            judge = Judge(chat(server, max_retries=0), "none", max_retries=0)
            found = await judge.ask("judge_statements", ASKED)
        except ModelOutputError as error:
            found = error
        return found, len([each for each in server.chats if each.asks not in refuse])


@pytest.mark.parametrize("make", [text, tool])
@pytest.mark.parametrize("name", ENDLESS)
async def test_endless_replies_are_refused_at_once(name: str, make: Any) -> None:
    """Megabytes of any kind end with one request and an error that names size and limit, on both paths."""
    found, requests = await ask(make(ENDLESS[name]), set() if make is text else {"json_schema"})
    assert isinstance(found, ModelOutputError) and requests == 1
    assert "at most 1,000,000 are read" in str(found) and "answer has " in str(found)


@pytest.mark.parametrize("depth", [300, 20_000])
@pytest.mark.parametrize("make", [text, tool])
async def test_deep_nesting_is_an_unreadable_answer(depth: int, make: Any) -> None:
    """However deep, also where a client's own parser gives up: an error of ours, or the value beside it."""
    deep = '{"statements": ["a"], "more": ' + "[" * depth + "]" * depth + "}"
    found, _ = await ask(make(deep), set() if make is text else {"json_schema"})
    assert isinstance(found, ModelOutputError) or "a" in str(found)
