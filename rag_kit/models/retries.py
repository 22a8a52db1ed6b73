"""Pauses between the tries of a request: as long as the server says, or ever longer, within what time is left."""

from __future__ import annotations

import asyncio
import random
import time

from rag_kit.concurrency.budget import remaining_seconds
from rag_kit.concurrency.steps import Step
from rag_kit.errors import ModelError, ModelUnreachableError

from .failures import RETRYABLE, Failure, classify, retry_after

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0


def seconds_before_retry(error: Exception, mapped: ModelError, attempt: int, *, may_retry: bool) -> float:
    """Return the seconds to wait after an attempt (the first is 0); raise the ``mapped`` error if that is of no use."""
    kind = classify(error)
    if kind not in RETRYABLE or not may_retry:
        raise mapped
    seconds = retry_after(error) if kind in (Failure.RATE_LIMITED, Failure.SERVER) else None
    if seconds is None:  # jitter, so that branches that failed together don't come back together
        seconds = FIRST_PAUSE * 2**attempt * random.uniform(0.75, 1.25)
    left = remaining_seconds()
    allowed = LONGEST_PAUSE if left is None else min(left, LONGEST_PAUSE)
    if seconds > allowed:
        if kind is not Failure.RATE_LIMITED:
            raise mapped
        raise ModelUnreachableError(
            f"{mapped} The server asks to wait {seconds:.1f} s; {allowed:.1f} s are allowed."
        )
    return seconds


def wait(seconds: float) -> Step[None]:
    """Make a step that waits."""
    return Step("wait", lambda _: time.sleep(seconds), lambda _: asyncio.sleep(seconds))
