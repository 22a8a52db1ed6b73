"""The questions of one cell: each through a prompt file, repetitions told apart, some asked ahead of their turn."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency import afan_out
from rag_kit.errors import BranchError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rag_kit.evaluation.judge.judge import Judge, Language


@dataclass(frozen=True)
class Call:
    """One question to the judge.

    Args:
        prompt: Name of the prompt file.
        values: What it is filled in with.
        schema: Class of the answer; default: what the prompt file says.
        finish: Sees the reply, may ask again through the same `Calls`, and gives the reply that counts.
        keep: Whether the reply may be kept in the cache.
        known: The reply itself, where nothing needs to be asked: an empty passage supports nothing.
    """

    prompt: str
    values: Mapping[str, Any]
    schema: type[BaseModel] | None = None
    finish: Callable[[Calls, Any], Awaitable[Any]] | None = None
    keep: Callable[[Any], bool] | None = None
    known: Any = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """What makes two calls of a cell the same question."""
        return (self.prompt, tuple(sorted((name, str(value)) for name, value in self.values.items())))


class Calls:
    """What one cell asks of the judge.

    The first time that something is asked has ``repeat=0``, the second time ``repeat=1`` and so on. What was asked
    ahead with `beside` is handed out when its turn comes, so that Ragas, which asks one after the other, does not wait.

    Args:
        judge: The judge.
        language: Language of the prompts.
    """

    def __init__(self, judge: Judge, language: Language) -> None:
        self.judge = judge
        self.language = language
        self.replies: list[tuple[Call, Any]] = []
        self._begun: defaultdict[tuple[Any, ...], int] = defaultdict(int)
        self._handed: defaultdict[tuple[Any, ...], int] = defaultdict(int)
        self._ready: dict[tuple[Any, ...], Any] = {}
        self.vectors: dict[str, list[float]] = {}

    async def take(self, call: Call) -> Any:
        """The reply whose turn it is: one that was asked ahead, else asked now."""
        turn = (call.identity, self._handed[call.identity])
        self._handed[call.identity] += 1
        if turn not in self._ready:
            await self.ahead(call)
        reply = self._ready.pop(turn)
        self.replies.append((call, reply))
        return reply

    async def ahead(self, call: Call) -> Any:
        """Ask now, and keep the reply until its turn comes."""
        repeat = self._begun[call.identity]
        self._begun[call.identity] += 1
        reply = call.known
        if reply is None:
            reply = await self.judge.ask(
                call.prompt, call.values, call.schema, language=self.language, repeat=repeat, keep=call.keep
            )
        if call.finish is not None:
            reply = await call.finish(self, reply)
        self._ready[call.identity, repeat] = reply
        return reply

    async def beside(self, chains: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        """Run chains of calls side by side, begun in their order; the first error is raised as it is."""
        *others, last = chains

        async def behind() -> Any:
            await asyncio.sleep(0)  # the last runs in this very task, so it would begin before the others
            return await last()

        try:
            return (await afan_out([*others, behind])).values
        except BranchError as error:
            if error.__cause__ is None:
                raise
            cause = error.__cause__
        raise cause

    async def all_ahead(self, calls: Sequence[Call]) -> list[Any]:
        """Ask several at once."""
        for name in {
            call.prompt for call in calls
        }:  # else each would wait for a file, and their order be lost
            await self.judge.prepare(name, self.language)

        def chain(call: Call) -> Callable[[], Awaitable[Any]]:
            return lambda: self.ahead(call)

        return await self.beside([chain(call) for call in calls])

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of texts; those that this cell has asked for before are at hand."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if missing:
            self.vectors |= dict(zip(missing, await self.judge.embed(missing), strict=True))
        return [self.vectors[text] for text in texts]

    def seen(self, prompt: str) -> list[Any]:
        """The replies to a prompt that were handed out, in order."""
        return [reply for call, reply in self.replies if call.prompt == prompt]
