"""Cancel a task at several points of its work, and see that it leaves no task behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sized
from typing import Any

import pytest


async def cancel_at(
    points: Iterable[int], done: Sized, begin: Callable[[], Coroutine[Any, Any, Any]], pause: float
) -> None:
    """Begin and cancel once a point: before the first step (-1), or when so much is done; look each ``pause`` / 10."""
    for wanted in points:
        before = asyncio.all_tasks()
        task = asyncio.ensure_future(begin())
        while len(done) < wanted and not task.done():
            await asyncio.sleep(pause / 10)
        await asyncio.sleep(0 if wanted else pause)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() <= before
