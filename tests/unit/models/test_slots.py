"""A place for a request is held while the request is under way or waits to be repeated, and no longer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate

from rag_kit.concurrency import Budget, use_budget
from rag_kit.errors import BudgetExceededError, ModelError
from rag_kit.models import astructured_call, atext_call
from rag_kit.models.slots import Slot

SCHEMA = {
    "title": "Reply",
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
}
ASK = ChatPromptTemplate([("user", "{q}")])


class RateLimitError(Exception):
    """What a client raises when it is told to wait."""

    status_code = 429


class Model(BaseChatModel):
    """Writes down when it is asked; fails as often as it is told."""

    log: list[str]
    failures: int = 0

    @property
    def _llm_type(self) -> str:
        return "logging"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        name = str(messages[-1].content).split("\n")[0]
        self.log.append(f"asked {name}")
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise RateLimitError("Retry later.")
        self.log.append(f"answered {name}")
        usage = {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10}
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage('{"word": "yes"}', usage_metadata=usage))]
        )


class Places(asyncio.Semaphore):
    """Places that are opened once so and so many calls wait for one: prompts are read on a thread, in any order."""

    def __init__(self, count: int, waiting: int) -> None:
        super().__init__(0)
        self._left = waiting
        self._count = count
        self.asked = False

    async def acquire(self) -> Any:
        self._left -= 1
        self.asked = True
        if not self._left:
            for _ in range(self._count):
                self.release()
        return await super().acquire()


async def _ask(model: Model, name: str, places: asyncio.Semaphore) -> None:
    reply = await astructured_call(model, ASK, {"q": name}, SCHEMA, slot=Slot(places))
    model.log.append(f"read {reply['word']} for {name}")


async def test_the_next_request_goes_out_before_an_answer_is_read() -> None:
    """With one place the second request is sent as soon as the first is answered; reading comes after."""
    model = Model(log=[])
    places = Places(1, waiting=2)
    await asyncio.gather(_ask(model, "a", places), _ask(model, "b", places))
    first, second = (entry[-1] for entry in model.log if entry.startswith("asked"))
    assert model.log[:3] == [f"asked {first}", f"answered {first}", f"asked {second}"]
    assert f"read yes for {first}" in model.log[3:]


async def test_a_swarm_of_answers_lets_all_waiting_requests_go_first() -> None:
    """Three answers at once: three requests go out before the first of the answers is read."""
    model = Model(log=[])
    places = Places(3, waiting=6)
    await asyncio.gather(*(_ask(model, name, places) for name in "abcdef"))
    first_read = next(n for n, entry in enumerate(model.log) if entry.startswith("read"))
    assert sum(entry.startswith("asked") for entry in model.log[:first_read]) == 6


async def test_what_an_answer_took_is_charged_before_the_next_request() -> None:
    """A cap on tokens refuses the very next request, though it waited before the cap was reached."""
    model = Model(log=[])
    places = Places(1, waiting=3)
    with use_budget(Budget(max_tokens=10)):
        done = await asyncio.gather(*(_ask(model, name, places) for name in "abc"), return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["BudgetExceededError"] * 2 + ["NoneType"]
    assert len([entry for entry in model.log if entry.startswith("asked")]) == 1


async def test_who_waits_for_a_place_is_not_charged() -> None:
    """A call that is given up while it waits has used up nothing of a cap."""
    model = Model(log=[])
    places = Places(0, waiting=1)
    budget = Budget(max_calls=1)
    with use_budget(budget):
        waiting = asyncio.create_task(_ask(model, "a", places))
        while not places.asked:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert budget.calls == 0 and model.log == []


async def test_the_place_is_kept_while_a_request_waits_to_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a rate limit nobody else is let in: that would only bring the next rate limit."""
    monkeypatch.setattr("rag_kit.models.attempts.FIRST_PAUSE", 0.01)
    model = Model(log=[], failures=1)
    places = Places(1, waiting=2)
    await asyncio.gather(_ask(model, "a", places), _ask(model, "b", places))
    first, again, other = (entry for entry in model.log if entry.startswith("asked"))
    assert first == again != other


@pytest.mark.parametrize("structured", [True, False])
async def test_the_place_is_free_after_a_failure_and_after_a_cancellation(structured: bool) -> None:
    """Whatever ends a call, its place is given back, and the time it was held is told."""
    places = asyncio.Semaphore(1)

    def call(slot: Slot) -> Any:
        model, values = Model(log=[], failures=9), {"q": "a"}
        if structured:
            return astructured_call(model, ASK, values, SCHEMA, max_retries=0, slot=slot)
        return atext_call(model, ASK, values, max_retries=0, slot=slot)

    slot = Slot(places)
    with pytest.raises(ModelError):
        await call(slot)
    assert not places.locked() and slot.seconds > 0
    task = asyncio.create_task(call(Slot(places)))
    while not places.locked():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not places.locked()


async def test_the_wait_for_a_place_ends_at_the_deadline() -> None:
    """A call that waits behind others holds to its own deadline, makes no request and leaves the place free."""
    model = Model(log=[])
    places = asyncio.Semaphore(1)
    await places.acquire()
    async with asyncio.timeout(30):
        with pytest.raises(BudgetExceededError, match="deadline"):
            await astructured_call(model, ASK, {"q": "a"}, SCHEMA, slot=Slot(places), deadline=0.05)
        reply = await astructured_call(
            model, ASK, {"q": "a"}, SCHEMA, slot=Slot(places), deadline=0.05, fallback={"word": "none"}
        )
    assert reply == {"word": "none"}
    assert model.log == []
    places.release()
    await _ask(model, "b", places)
    assert not places.locked()
