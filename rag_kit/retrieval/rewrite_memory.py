"""What one call takes from the cache of answers, and what it adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from rag_kit.models import JsonCache
from rag_kit.models.identity import call_key
from rag_kit.models.json_schema import SchemaMismatchError
from rag_kit.models.schema import target_of

MISSING: Any = object()
"""Stands for an answer that is not in the cache."""


class Memory:
    """The cache as one call sees it; without a cache it holds nothing.

    New answers are written at the end, and only if the call could use what the model wrote: a useless answer
    is to be asked for again.

    Attributes:
        served: Answers that came from the cache.
        new: Answers that are not in it yet.
    """

    def __init__(self, cache: JsonCache | None) -> None:
        self._cache = cache
        self._known: set[str] = set()
        self.new: dict[str, Any] = {}
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

    def read(self, keys: Sequence[str | None], schema: Any) -> list[Any]:
        """The answer to each key, or ``MISSING``."""
        known = [key for key in keys if key is not None]
        found = self._cache.get(known) if self._cache is not None else {}
        answers = [_read(found.get(key), schema) if key else MISSING for key in keys]
        self._known |= {
            key for key, answer in zip(keys, answers, strict=True) if key and answer is not MISSING
        }
        self.served += sum(answer is not MISSING for answer in answers)
        return answers

    def add(self, key: str | None, answer: Any) -> None:
        """Note an answer that the model gave."""
        if key is not None and key not in self._known:
            self.new[key] = answer.model_dump(mode="json") if isinstance(answer, BaseModel) else answer

    def write(self) -> None:
        """Write the new answers."""
        if self._cache is not None:
            self._cache.put(self.new)
            self.new = {}


def _read(value: Any, schema: Any) -> Any:
    """A stored answer in the form that is asked for; what does not fit is asked for anew."""
    if schema is str:
        return value if isinstance(value, str) and value else MISSING
    try:
        return MISSING if value is None else target_of(schema).accept(value)
    except SchemaMismatchError:
        return MISSING
