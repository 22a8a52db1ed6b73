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


async def _ask(model: Model, name: str, places: asyncio.Semaphore) -> None:
    reply = await astructured_call(model, ASK, {"q": name}, SCHEMA, slot=Slot(places))
    model.log.append(f"read {reply['word']} for {name}")


async def test_the_next_request_goes_out_before_an_answer_is_read() -> None:
    """With one place the second request is sent as soon as the first is answered; reading comes after."""
    model = Model(log=[])
    places = asyncio.Semaphore(1)
    await asyncio.gather(_ask(model, "a", places), _ask(model, "b", places))
    assert model.log[:3] == ["asked a", "answered a", "asked b"]
    assert model.log.index("asked b") < model.log.index("read yes for a")


async def test_a_swarm_of_answers_lets_all_waiting_requests_go_first() -> None:
    """Three answers at once: three requests go out before the first of the answers is read."""
    model = Model(log=[])
    places = asyncio.Semaphore(3)
    await asyncio.gather(*(_ask(model, name, places) for name in "abcdef"))
    first_read = next(n for n, entry in enumerate(model.log) if entry.startswith("read"))
    assert {f"asked {name}" for name in "def"} <= set(model.log[:first_read])


async def test_what_an_answer_took_is_charged_before_the_next_request() -> None:
    """A cap on tokens refuses the very next request, though it waited before the cap was reached."""
    model = Model(log=[])
    places = asyncio.Semaphore(1)
    with use_budget(Budget(max_tokens=10)):
        done = await asyncio.gather(*(_ask(model, name, places) for name in "abc"), return_exceptions=True)
    assert done[0] is None
    assert [type(each) for each in done[1:]] == [BudgetExceededError] * 2
    assert [entry for entry in model.log if entry.startswith("asked")] == ["asked a"]


async def test_who_waits_for_a_place_is_not_charged() -> None:
    """A call that is given up while it waits has used up nothing of a cap."""
    model = Model(log=[])
    places = asyncio.Semaphore(0)
    budget = Budget(max_calls=1)
    with use_budget(budget):
        waiting = asyncio.create_task(_ask(model, "a", places))
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
    places = asyncio.Semaphore(1)
    await asyncio.gather(_ask(model, "a", places), _ask(model, "b", places))
    asked = [entry for entry in model.log if entry.startswith("asked")]
    assert asked == ["asked a", "asked a", "asked b"]


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
