"""A semaphore for requests to a model: taken when one is sent, released when its answer is there."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from rag_kit.concurrency.budget import remaining_seconds

_ROUNDS = 4
"""Rounds of the event loop from being woken to a request on its way, in LangChain and an HTTP client. Answers come in
swarms; a reader that went on at once would keep the requests behind it waiting."""


class Slot:
    """One slot of a semaphore, for the requests of one call to a model.

    It is taken when a request is about to be sent, kept over the pauses between repetitions, and given back when the
    answer is there: prompts are filled in before, and answers read after, while other requests are under way.

    Args:
        slots: The semaphore; at most so many requests are under way as it has slots.

    Attributes:
        seconds: How long the slot was taken.

    Example:
        >>> async def main():
        ...     slots = asyncio.Semaphore(1)
        ...     slot = Slot(slots)
        ...     await slot.take()
        ...     taken = slots.locked()
        ...     await slot.give_back()
        ...     return taken, slots.locked()
        >>> asyncio.run(main())
        (True, False)
    """

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._since: float | None = None
        self.seconds = 0.0

    async def take(self) -> None:
        """Wait for a slot, no longer than the active budgets allow; nothing happens where it is taken already."""
        while self._since is None and ((left := remaining_seconds()) is None or left > 0):
            with suppress(TimeoutError):  # the request that would come next is refused by the budget
                async with asyncio.timeout(left):
                    await self._slots.acquire()
                    self._since = time.perf_counter()

    async def give_back(self) -> None:
        """Give the slot back, and let those who waited for one send their requests before this task goes on."""
        if self._since is not None:
            self.drop()
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)

    def drop(self) -> None:
        """Give the slot back, if it is taken."""
        if self._since is not None:
            self.seconds += time.perf_counter() - self._since
            self._since = None
            self._slots.release()
