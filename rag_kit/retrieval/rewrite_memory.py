"""What one call takes from the cache of answers, and what it adds to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ValidationError

from rag_kit.concurrency.outcome import Outcome, describe_failure
from rag_kit.models import RewriteCache
from rag_kit.models.json_schema import SchemaMismatchError
from rag_kit.models.rewrite_cache.identity import call_key
from rag_kit.models.schema import Target
from rag_kit.retrieval.rewrite_steps import in_thread, side_by_side

MISSING: Any = object()
"""Stands for an answer that is not in the cache."""


class Memory:
    """The cache as one call sees it; without a cache it holds nothing.

    New answers are written at the end, and only if the call could use what the model wrote: a useless answer
    is to be asked for again.

    Args:
        cache: The cache, or ``None``.
        note: Tells the results something.

    Attributes:
        served: Answers that came from the cache.
    """

    def __init__(self, cache: RewriteCache | None, note: Callable[[str], None]) -> None:
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
        if self._cache is None or not known:
            return [MISSING] * len(keys)
        outcome = await self._do(partial(self._cache.get, known))
        found = outcome.value or {}
        answers = [_read(found[key], schema) if key is not None and key in found else MISSING for key in keys]
        self.served += sum(answer is not MISSING for answer in answers)
        return answers

    def add(self, key: str | None, answer: Any) -> None:
        """Note an answer that the model gave."""
        if key is not None:
            self._new[key] = answer.model_dump(mode="json") if isinstance(answer, BaseModel) else answer

    async def store(self) -> None:
        """Write the new answers."""
        if self._cache is not None and self._new:
            await self._do(partial(self._cache.put, self._new))
            self._new = {}

    async def _do(self, work: Callable[[], Any]) -> Outcome[Any]:
        result = await side_by_side([in_thread("rewrite cache", work)], "skip", None, None, None)
        (outcome,) = result.outcomes
        if not outcome.ok:
            # The answer is the same without a cache, so that is no reason to raise.
            self._note(f"degraded: {describe_failure(outcome.name, outcome.error)}")
        return outcome


def _read(value: Any, schema: Any) -> Any:
    """A stored answer in the form that is asked for; what does not fit is asked for anew."""
    if schema is str:
        return value if isinstance(value, str) and value else MISSING
    try:
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            return schema.model_validate(value)
        return Target(schema).accept(value)
    except (ValidationError, SchemaMismatchError):
        return MISSING
