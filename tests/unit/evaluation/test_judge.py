"""The judge by itself: limits, caps, counts, cache, keys, loops, cancelling."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel
from support.blocking import blockbuster_ctx
from support.by_task import ByTask
from support.judging import PROMPTS, FixedVectors, row, served, split, verdicts
from support.openai_server import OpenAIServer

from rag_kit.concurrency import Budget, use_budget
from rag_kit.errors import (
    ConfigurationError,
    InvalidInputError,
    ModelError,
)
from rag_kit.evaluation import Judge
from rag_kit.evaluation.judge.adapter import ragas_llm
from rag_kit.evaluation.scorers import get_metric

ASKED = {"question": "Who?", "answer": "Ada did it."}
ANSWERS = {
    "judge_statements": split(1), "StatementGeneratorOutput": split(1), "NLIStatementOutput": verdicts(1)
}  # fmt: skip


@pytest.fixture(autouse=True)
def _prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompt files of the tests' own, beside the packaged ones."""
    monkeypatch.setenv("RAG_KIT_PROMPTS", str(PROMPTS))


class Counting(ByTask):
    """Knows how many of its replies are under way at once, over all event loops."""

    now: int = 0
    most: int = 0

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.02)
        self.now -= 1
        return self._reply(messages)


def test_works_from_one_event_loop_after_another() -> None:
    """Slots and questions under way belong to a loop; a judge outlives it, also over HTTP with a kept connection."""
    with OpenAIServer([served(ANSWERS)]) as server:
        llm = ChatOpenAI(model="m", base_url=server.url, api_key="sk-1")
        embeddings = OpenAIEmbeddings(  # type: ignore[call-arg]
            model="e", base_url=server.url, api_key="sk-1", check_embedding_ctx_length=False
        )
        judge = Judge(llm, embeddings, max_concurrency=1, max_retries=0)

        async def twice() -> list[Any]:
            vectors = judge.embed(["a"])
            asked = judge.ask("judge_statements", ASKED), judge.ask("judge_statements", ASKED)
            return list(await asyncio.gather(*asked, vectors))

        for _ in range(3):
            first, second, vectors = asyncio.run(twice())
            assert first == second == split(1)
            assert len(vectors) == 1
    assert len(judge.slots._by_loop) == 1


async def test_budgets_around_it_are_charged_for_requests_only(tmp_path: Path) -> None:
    """A reply from the cache costs no call."""
    judge = Judge(ByTask(answers=ANSWERS), "none", cache=tmp_path / "c.sqlite")
    for expected in (1, 0):
        with use_budget(Budget()) as budget:
            await judge.ask("judge_statements", ASKED)
        assert (budget or Budget()).calls == expected
    counts = {name: count for name, count in judge.usage.items() if name != "seconds"}
    assert counts == {"calls": 1, "cached": 1, "tokens": 15, "embedded": 0}


async def test_the_same_question_at_the_same_time_is_asked_once(tmp_path: Path) -> None:
    """With a cache; several metrics take the same answer apart."""
    llm = Counting(answers=ANSWERS)
    judge = Judge(llm, "none", cache=tmp_path / "c.sqlite")
    replies = await asyncio.gather(*(judge.ask("judge_statements", ASKED) for _ in range(10)))
    assert replies == [split(1)] * 10
    assert len(llm.asked) == 1
    assert judge.usage["cached"] == 9


async def test_another_text_is_another_question(tmp_path: Path) -> None:
    """Each value that a prompt is filled in with is a part of the key."""
    llm = ByTask(answers={"judge_statements": [split(1), split(2), split(3)]})
    judge = Judge(llm, "none", cache=tmp_path / "c.sqlite")
    asked = [ASKED, {**ASKED, "answer": "Bob did it."}, {**ASKED, "question": "Who else?"}]
    for _ in range(2):
        assert [await judge.ask("judge_statements", each) for each in asked] == [split(1), split(2), split(3)]
    assert judge.usage["calls"] == 3


async def test_who_waits_for_one_that_fails_or_is_cancelled_asks_for_itself(tmp_path: Path) -> None:
    """A failure is handed to nobody else, and no question stays blocked."""
    llm = Counting(answers={"judge_statements": [RuntimeError("once"), split(1)]})
    judge = Judge(llm, "none", cache=tmp_path / "c.sqlite")
    both = await asyncio.gather(
        *(judge.ask("judge_statements", ASKED) for _ in range(2)), return_exceptions=True
    )
    (failed,) = [each for each in both if isinstance(each, BaseException)]
    assert isinstance(failed, ModelError)
    assert split(1) in both
    assert len(llm.asked) == 2

    class Slow(ByTask):
        async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            result = self._reply(messages)
            if len(self.asked) == 1:
                await asyncio.sleep(60)
            return result

    slow = Slow(answers=ANSWERS)
    judge = Judge(slow, "none", cache=tmp_path / "d.sqlite")
    leader = asyncio.create_task(judge.ask("judge_statements", ASKED))
    while not slow.asked:
        await asyncio.sleep(0.01)
    follower = asyncio.create_task(judge.ask("judge_statements", ASKED))
    await asyncio.sleep(0.05)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    assert await asyncio.wait_for(follower, 10) == split(1)


async def test_a_cancelled_measurement_leaves_no_task_and_no_slot() -> None:
    """The calls that were made ahead end with it."""

    class Stuck(ByTask):
        async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            self._reply(messages)
            await asyncio.sleep(60)

    llm = Stuck(answers={"ContextPrecisionOutput": {"reason": "r", "verdict": 1}})
    judge = Judge(llm, "none", max_concurrency=2)
    before = asyncio.all_tasks()
    contexts = [f"P{n}." for n in range(4)]
    task = asyncio.create_task(get_metric("context_precision").measure(*row(contexts=contexts), judge))
    while not llm.asked:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() <= before
    assert not judge.slots.for_running_loop().locked()


CANARY = "sk-canary-1234567890abcdef"


async def test_the_key_is_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not in cells, fingerprint, usage, repr, log or cache, also when the server quotes it."""
    cache = tmp_path / "c.sqlite"
    with (
        caplog.at_level(logging.DEBUG, logger="rag_kit"),
        OpenAIServer([served(ANSWERS)], key="sk-other") as server,
    ):
        url = server.url.replace("http://", f"http://user:{CANARY}@") + f"?api_key={CANARY}"
        llm = ChatOpenAI(model="m", base_url=server.url, api_key=CANARY)
        embeddings = OpenAIEmbeddings(  # type: ignore[call-arg]
            model="e", base_url=server.url, api_key=CANARY, check_embedding_ctx_length=False
        )
        judge = Judge(llm, embeddings, cache=cache, max_retries=0)
        cells = [
            await get_metric(name).measure(*row(), judge) for name in ("faithfulness", "semantic_similarity")
        ]
        server.key = CANARY
        cells.append(await get_metric("faithfulness").measure(*row(), judge))
        other = Judge(ChatOpenAI(model="m", base_url=url, api_key=CANARY), "none")
    assert [cell.status for cell in cells] == ["error", "error", "ok"]
    told = repr([cells, judge, judge.fingerprint(), judge.usage, other, other.fingerprint(), caplog.text])
    assert CANARY not in told and CANARY[4:14] not in told
    assert CANARY.encode() not in cache.read_bytes()


async def test_a_cache_that_fails_costs_requests_and_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once."""
    cache = tmp_path / "c.sqlite"
    judge = Judge(ByTask(answers=ANSWERS), "none", cache=cache)
    with sqlite3.connect(cache) as connection:
        connection.execute("DROP TABLE answers")
    for _ in range(2):
        assert await judge.ask("judge_statements", ASKED) == split(1)
    assert caplog.text.count("goes on without its cache") == 1


@pytest.mark.parametrize("llm", [None, "extractive"])
def test_the_embedded_model_is_no_judge(llm: str | None) -> None:
    """One line says what is needed; a judge without a chat model compares vectors alone."""
    with pytest.raises(ConfigurationError, match=r"needs a language model.*RAG_KIT_CHAT_MODEL") as refused:
        Judge(llm, "none")
    assert "\n" not in str(refused.value)
    same = FixedVectors({"It is so.": [1.0, 0.0]})
    cell = asyncio.run(get_metric("semantic_similarity").measure(*row(), Judge("none", same)))
    assert cell.value == 1.0
    for judge in (None, Judge("none", same)):
        cell = asyncio.run(get_metric("faithfulness").measure(*row(), judge))
        assert cell.status == "not_applicable" and "model" in cell.reason
    with pytest.raises(ConfigurationError, match="needs a language model"):
        asyncio.run(Judge("none", "none").ask("judge_statements", ASKED))
    with pytest.raises(ConfigurationError, match="no embedding model"):
        asyncio.run(Judge("none", "none").embed(["a"]))


def test_two_models_without_a_name_are_two_judges(tmp_path: Path) -> None:
    """A scripted model is told by its own texts; one and the same gets its replies back."""

    class Named(ByTask):
        mood: str = "kind"

    cache = tmp_path / "c.sqlite"
    kind, strict = Named(answers=ANSWERS), Named(answers=ANSWERS, mood="strict")
    for llm, calls in ((kind, 1), (strict, 1), (kind, 0)):
        judge = Judge(llm, "none", cache=cache)
        asyncio.run(judge.ask("judge_statements", ASKED))
        assert judge.usage["calls"] == calls


async def test_a_text_is_sent_as_it_is() -> None:
    """For an object of a class; a prompt that is unknown, or lacks a value, is refused by name."""

    class Found(BaseModel):
        statements: list[str]

    llm = ByTask(answers={**ANSWERS, "": split(1)}, asked=[])
    judge = Judge(llm, "none")
    assert await judge.complete("What {is} said?", Found) == Found(statements=["Statement a."])
    assert llm.asked[0][1].startswith("What {is} said?")
    with pytest.raises(InvalidInputError, match="judge_nothing"):
        await judge.ask("judge_nothing", {})
    with pytest.raises(InvalidInputError, match="answer"):
        await judge.ask("judge_statements", {"question": "Who?"})


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"language": "fr"}, "language"), ({"max_concurrency": 0}, "max_concurrency"), ({"timeout": -1}, "timeout"),
        ({"max_retries": 99}, "max_retries"), ({"max_calls": -1}, "max_calls"), ({"llm": 7}, "llm"),
        ({"embeddings": 7}, "embeddings"), ({"cache": ""}, "cannot be opened"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(given: dict[str, Any], named: str) -> None:
    """By name, when the judge is made."""
    settings: dict[str, Any] = {"llm": ByTask(answers={}), "embeddings": "none", **given}
    with pytest.raises(InvalidInputError, match=named):
        Judge(**settings)


@pytest.mark.parametrize(
    ("language", "question", "expected"),
    [("auto", "谁写的？", "zh"), ("auto", "Who?", "en"), ("en", "谁写的？", "en"), ("zh", "Who?", "zh")],
)
async def test_the_prompt_speaks_the_questions_language(language: Any, question: str, expected: str) -> None:
    """Unless the judge is told one."""
    judge = Judge(ByTask(answers=ANSWERS), "none", language=language)
    await judge.ask("judge_statements", {"question": question, "answer": "x"})
    assert list(judge._prompts) == [("judge_statements", expected)]
    assert {each.rpartition(".")[2] for each in judge.fingerprint()["prompts"]} == (
        {"en", "zh"} if language == "auto" else {language}
    )


def test_the_fingerprint_tells_judges_apart() -> None:
    """By model, endpoint, settings, embeddings, prompts; and it is plain JSON."""
    import json

    def of(**settings: Any) -> str:
        model = {"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": "sk-1", **settings}
        return json.dumps(Judge(ChatOpenAI(**model), "none").fingerprint())

    assert of() == of() == of(api_key="sk-2")
    assert len({of(), of(model="n"), of(base_url="http://127.0.0.1:2/v1"), of(temperature=1)}) == 4


def test_the_adapter_works_without_await() -> None:
    """Ragas's synchronous face works outside a loop and, unlike Ragas's own, inside one."""

    class Answer(BaseModel):
        verdict: int

    judge = Judge(ByTask(answers={"": {"verdict": 1}}), FixedVectors({"a": [1.0]}))
    llm, embeddings = ragas_llm(judge), ragas_llm(judge)

    async def inside() -> Any:
        return llm.generate("Is it so?", Answer), embeddings.embed_text("a")

    assert (llm.generate("Is it so?", Answer), embeddings.embed_texts(["a"])) == (Answer(verdict=1), [[1.0]])
    assert asyncio.run(inside()) == (Answer(verdict=1), [1.0])


async def test_nothing_blocks_the_event_loop(tmp_path: Path) -> None:
    """Prompt files, cache and models: all off the loop, or without waiting."""
    llm = ByTask(answers=ANSWERS)
    metric = get_metric("faithfulness")
    await metric.measure(*row(), Judge(llm, "none"))
    judge = Judge(llm, FixedVectors({"a": [1.0]}), cache=tmp_path / "c.sqlite")
    with blockbuster_ctx():
        cell = await metric.measure(*row(), judge)
        await judge.embed(["a"])
    assert cell.value == 1.0
