"""One question to a model, with bounded retries, charged to every active budget.

Exceptions of the model come back as values: nothing that holds a request with its headers ever becomes the context
of an exception of ours.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from rag_kit.concurrency import fan_out
from rag_kit.concurrency.budget import charge_call, charge_tokens, check_budget, remaining_seconds
from rag_kit.concurrency.steps import Step
from rag_kit.errors import BranchTimeoutError, BudgetExceededError, ModelRateLimitedError

from .calls import ModelCall
from .clients import acall_runnable
from .failures import RETRYABLE, Failure, classify, map_model_error, retry_after
from .tokens import used_tokens

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
_GRACE = 0.05


@dataclass(frozen=True)
class Reply:
    """A value, or the failure that is left after the retries."""

    value: Any = None
    error: Exception | None = None
    kind: Failure | None = None


async def ask(call: ModelCall, runnable: Runnable[Any, Any], messages: list[BaseMessage]) -> Reply:
    """Ask, and ask again after a rate limit, a server error, a time-out or a broken connection.

    Returns:
        The value, or a failure that retrying cannot mend: refused, final, a bad answer.

    Raises:
        BudgetExceededError: A cap is reached.
        ModelError: Unauthorised, still failing after the retries, or unknown.
    """
    wait = FIRST_PAUSE
    while True:
        if call.slot is not None:
            await Step("slot", _nothing, lambda call: call.slot.take())
        charge_call()
        reply = await Step(
            "model", lambda call: _ask(call, runnable, messages), lambda call: _aask(call, runnable, messages)
        )
        if reply.error is None:
            charge_tokens(used_tokens(reply.value, messages))
            if call.slot is not None:
                await Step("slot", _nothing, lambda call: call.slot.give_back())
            return reply
        kind = classify(reply.error)
        if kind in (Failure.REFUSED, Failure.FINAL, Failure.OUTPUT):
            return Reply(error=reply.error, kind=kind)
        left = remaining_seconds()
        if left is not None and left <= _GRACE and kind is not Failure.RATE_LIMITED:
            await _pause(left)
            check_budget()
        mapped = map_model_error(reply.error, model=call.model)
        if kind not in RETRYABLE or call.retries_left < 1 or call.tokens.started:
            raise mapped
        asked = retry_after(reply.error) if kind in (Failure.RATE_LIMITED, Failure.SERVER) else None
        # Jitter, so that branches that failed together don't come back together.
        seconds = asked if asked is not None else wait * random.uniform(0.75, 1.25)
        if seconds > LONGEST_PAUSE or (left is not None and seconds >= left):
            if not isinstance(mapped, ModelRateLimitedError):
                raise mapped
            allowed = LONGEST_PAUSE if left is None else min(left, LONGEST_PAUSE)
            raise ModelRateLimitedError(
                f"{mapped} The server asks to wait {seconds:.1f} s; {allowed:.1f} s are allowed."
            )
        call.retries_left -= 1
        wait *= 2
        await _pause(seconds)


def _nothing(call: ModelCall) -> None:
    """Blocking calls wait for no slot."""


def _pause(seconds: float) -> Step[None]:
    return Step("pause", lambda call: time.sleep(seconds), lambda call: asyncio.sleep(seconds))


def _limit(call: ModelCall) -> float | None:
    known = [seconds for seconds in (call.timeout, remaining_seconds()) if seconds is not None]
    return min(known) if known else None


def _ask(call: ModelCall, runnable: Runnable[Any, Any], messages: list[BaseMessage]) -> Reply:
    limit = _limit(call)

    def invoke() -> Reply:
        try:
            return Reply(runnable.invoke(messages, call.config))
        except BudgetExceededError:
            raise
        except Exception as error:  # noqa: BLE001 - handed on as a value, see the module's docstring
            return Reply(error=error)

    if limit is None:
        return invoke()
    # A client's own time-out is for each read; only a branch that is given up ends on time.
    (outcome,) = fan_out([invoke], timeout=limit, on_error="skip", names=["model"]).outcomes
    if outcome.ok and outcome.value is not None:
        return outcome.value
    if isinstance(outcome.error, BranchTimeoutError):
        return Reply(error=TimeoutError(f"no answer within {limit:g} s"))
    raise outcome.error or TimeoutError(f"no answer within {limit:g} s")


async def _aask(call: ModelCall, runnable: Runnable[Any, Any], messages: list[BaseMessage]) -> Reply:
    try:
        async with asyncio.timeout(_limit(call)):
            return Reply(await acall_runnable(runnable, messages, call.config))
    except BudgetExceededError:
        raise
    except Exception as error:  # noqa: BLE001 - handed on as a value, see the module's docstring
        return Reply(error=error)
