"""What one call takes from the cache of answers, and what it adds to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from rag_kit.concurrency.outcome import describe_failure
from rag_kit.models import JsonCache
from rag_kit.models.identity import call_key
from rag_kit.models.json_schema import SchemaMismatchError
from rag_kit.models.schema import target_of
from rag_kit.retrieval.rewrite_steps import in_thread, side_by_side

MISSING: Any = object()
"""Stands for an answer that is not in the cache."""


class Memory:
    """The cache as one call sees it; without a cache it holds nothing.

    New answers are written at the end, and only if the call could use what the model wrote: a useless answer
    is to be asked for again.

    Attributes:
        served: Answers that came from the cache.
    """

    def __init__(self, cache: JsonCache | None, note: Callable[[str], None]) -> None:
        self._cache = cache
        self._note = note
        self._new: dict[str, Any] = {}
        self.served = 0

    def keys(
        self,
        model: Any,
        prompt: Any,
        values: Sequence[Mapping[str, Any]],
        schema: Any,
        config: RunnableConfig,
    ) -> list[str | None]:
        """The key of each call, ``None`` for what is not cached."""
        if self._cache is None:
            return [None] * len(values)
        return [call_key(model, prompt, each, schema, config) for each in values]

    async def recall(self, keys: Sequence[str | None], schema: Any) -> list[Any]:
        """The answer to each key, or ``MISSING``."""
        known = [key for key in keys if key is not None]
        found = await self._do(lambda cache: cache.get(known)) if known else None
        answers = [_read((found or {}).get(key), schema) for key in keys]
        self.served += sum(answer is not MISSING for answer in answers)
        return answers

    def add(self, key: str | None, answer: Any) -> None:
        """Note an answer that the model gave."""
        if key is not None:
            self._new[key] = answer.model_dump(mode="json") if isinstance(answer, BaseModel) else answer

    async def store(self) -> None:
        """Write the new answers."""
        if new := self._new:
            self._new = {}
            await self._do(lambda cache: cache.put(new))

    async def _do(self, work: Callable[[JsonCache], Any]) -> Any:
        assert self._cache is not None, "without a cache there are no keys"
        call = in_thread("cache", partial(work, self._cache))
        (outcome,) = (await side_by_side([call], "skip", None, None, None)).outcomes
        if not outcome.ok:
            # The answer is the same without a cache, so that is no reason to raise.
            self._note(f"degraded: {describe_failure(outcome.name, outcome.error)}")
        return outcome.value


def _read(value: Any, schema: Any) -> Any:
    """A stored answer in the form that is asked for; what does not fit is asked for anew."""
    if schema is str:
        return value if isinstance(value, str) and value else MISSING
    try:
        return MISSING if value is None else target_of(schema).accept(value)
    except SchemaMismatchError:
        return MISSING
