"""One question to the model, with bounded retries, charged to every active budget."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from rag_kit.concurrency.budget import charge_call, charge_tokens, check_budget, remaining_seconds
from rag_kit.errors import ModelRateLimitedError

from .failures import RETRYABLE, Failure, classify, map_model_error, retry_after
from .steps import give_back_place, pause, request, take_place
from .tokens import text_of, used_tokens

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
_GRACE = 0.05


@dataclass
class Tally:
    """What a whole call has used so far, over all its questions, and how many retries are left."""

    retries: int
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    places: bool = False  # whether requests wait for a place, which is given back once the answer is charged
    tokens_seen: StreamWatch = field(default_factory=lambda: StreamWatch())

    def charge(self, value: Any, sent: list[BaseMessage]) -> None:
        """Count the tokens of an answer."""
        message = value.get("raw", value) if isinstance(value, dict) else value
        # The arguments of tool calls are output as well.
        written = text_of(message) + "".join(
            str(call.get("args")) for call in getattr(message, "tool_calls", [])
        )
        tokens_in, tokens_out, estimated = used_tokens(message, sent, written)
        self.input_tokens += tokens_in
        self.output_tokens += tokens_out
        self.estimated = self.estimated or estimated
        charge_tokens(tokens_in + tokens_out)


class StreamWatch(BaseCallbackHandler):
    """Notes whether a token went out to a listener: then a retry would say everything twice."""

    run_inline = True  # on the event loop itself: a thread for each token would cost more than this does

    def __init__(self) -> None:
        self.started = False

    @property
    def ignore_chain(self) -> bool:
        """Only tokens matter here."""
        return True

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do."""

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        """Called by a model that streams."""
        self.started = self.started or bool(token)


@dataclass(frozen=True)
class Reply:
    """A value, or the failure that is left after the retries."""

    value: Any = None
    error: Exception | None = None
    kind: Failure | None = None


async def ask(
    runnable: Runnable[Any, Any],
    messages: list[BaseMessage],
    tally: Tally,
    *,
    model: Any,
    timeout: float | None,
) -> Reply:
    """Ask, and ask again after a rate limit, a server error, a time-out or a broken connection.

    Returns:
        The value, or a failure that retrying cannot mend: refused, final, a bad answer.

    Raises:
        BudgetExceededError: A cap is reached.
        ModelError: Unauthorised, still failing after the retries, or unknown.
    """
    wait_next = FIRST_PAUSE
    while True:
        if tally.places:
            await take_place()
        charge_call()
        tally.calls += 1
        answer = await request(runnable, messages, timeout)
        if answer.error is None:
            tally.charge(answer.value, messages)
            if tally.places:
                await give_back_place()
            return Reply(answer.value)
        kind = classify(answer.error)
        if kind in (Failure.REFUSED, Failure.FINAL, Failure.OUTPUT):
            return Reply(error=answer.error, kind=kind)
        left = remaining_seconds()
        if left is not None and left <= _GRACE and kind is not Failure.RATE_LIMITED:
            await pause(left)
            check_budget()
        mapped = map_model_error(answer.error, model=model)
        if kind not in RETRYABLE or tally.retries < 1 or tally.tokens_seen.started:
            raise mapped
        wished = retry_after(answer.error) if kind in (Failure.RATE_LIMITED, Failure.SERVER) else None
        # Jitter, so that branches that failed together don't come back together.
        wait = wished if wished is not None else wait_next * random.uniform(0.75, 1.25)
        if wait > LONGEST_PAUSE or (left is not None and wait >= left):
            allowed = LONGEST_PAUSE if left is None else min(left, LONGEST_PAUSE)
            if isinstance(mapped, ModelRateLimitedError):
                raise ModelRateLimitedError(
                    f"{mapped} The server asks to wait {wait:.1f} s; {allowed:.1f} s are allowed."
                )
            raise mapped
        tally.retries -= 1
        wait_next *= 2
        await pause(wait)
