"""Vectors for a judge: in batches, each distinct text once, kept beside the replies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency import check_budget, remaining_seconds
from rag_kit.errors import ConfigurationError, InvalidInputError, ModelOutputError
from rag_kit.evaluation.judge.keys import endpoint_of, vector_key
from rag_kit.evaluation.judge.replies import PerLoop, Replies
from rag_kit.models.clients import aembed_bare
from rag_kit.models.embedding import embedding_name
from rag_kit.models.endpoint import base_url
from rag_kit.models.failures import RETRYABLE, classify, map_model_error, retry_after
from rag_kit.models.redact import host_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_BATCH = 64
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_GREATEST = 1e100


class Vectors:
    """An embedding model behind the limits of a judge."""

    def __init__(
        self,
        embeddings: Embeddings | None,
        replies: Replies,
        slots: PerLoop[asyncio.Semaphore],
        *,
        timeout: float | None,
        max_retries: int,
    ) -> None:
        self._embeddings = embeddings
        self._model = sending_text(embeddings)
        self._replies = replies
        self._slots = slots
        self._timeout = timeout
        self._max_retries = max_retries
        # the name leaves port and path out, which here may be two models
        self._name = f"{embedding_name(embeddings)} {endpoint_of(embeddings)}"
        self.embedded = 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """As `Judge.embed`."""
        if self._embeddings is None:
            raise ConfigurationError(
                "the judge has no embedding model; give Judge(embeddings=...) one, set RAG_KIT_EMBEDDING_MODEL, or "
                "install the embedded one: rag-kit models install minilm"
            )
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError("embed takes a list of texts; put the single one into a list")
        keys = {text: vector_key(self._name, text) for text in texts}
        kept = await self._replies.get(list(keys.values()))
        found = {text: kept[key] for text, key in keys.items() if _is_vector(kept.get(key))}
        if len({len(vector) for vector in found.values()}) > 1:
            found = {}  # not of one model
        asked = await self._ask([text for text in keys if text not in found], keys)
        if found and asked and len(next(iter(asked.values()))) != len(next(iter(found.values()))):
            asked |= await self._ask(list(found), keys)
        found |= asked
        return [found[text] for text in texts]

    async def _ask(self, texts: list[str], keys: dict[str, str]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            vectors = await self._request(batch)
            found |= dict(zip(batch, vectors, strict=True))
            await self._replies.put({keys[text]: found[text] for text in batch})
        return found

    async def _request(self, batch: list[str]) -> list[list[float]]:
        assert self._model is not None
        pause = _FIRST_PAUSE
        for left in range(self._max_retries, -1, -1):
            check_budget()
            async with self._slots.here():
                try:
                    async with asyncio.timeout(_sooner(self._timeout, remaining_seconds())):
                        given: Any = await aembed_bare(self._model, batch)
                    break
                except Exception as error:  # noqa: BLE001 - sorted by kind below, and raised without its request
                    failure = error
            mapped = map_model_error(failure, model=self._embeddings)
            wished = retry_after(failure)
            wait = pause if wished is None else wished
            if classify(failure) not in RETRYABLE or not left or wait > _LONGEST_PAUSE:
                raise mapped
            await asyncio.sleep(wait)
            pause *= 2
        self.embedded += len(batch)
        try:
            vectors = [[float(number) for number in vector] for vector in given]
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelOutputError(f"the embedding model gave what are no vectors: {error}") from None
        same = len({len(vector) for vector in vectors}) <= 1
        if len(vectors) != len(batch) or not same or not all(map(_is_vector, vectors)):
            raise ModelOutputError(
                f"the embedding model gave {len(vectors)} vectors for {len(batch)} texts, of several lengths, or "
                "one that is empty, all zero or not finite; with such a vector there is no cosine"
            )
        return vectors


def sending_text(embeddings: Embeddings | None) -> Embeddings | None:
    """A copy of OpenAI embeddings that sends texts, not token numbers, to an endpoint of another provider.

    LangChain's default, numbers of tokens, is OpenAI's own form, and needs a tokenizer that is downloaded.
    """
    model: Any = embeddings
    if not hasattr(model, "check_embedding_ctx_length") or not hasattr(model, "model_copy"):
        return embeddings
    if (host_of(base_url(model)) or "api.openai.com").endswith((".openai.com", ".azure.com")):
        return embeddings
    copied: Embeddings = model.model_copy(update={"check_embedding_ctx_length": False})
    return copied


def _is_vector(value: Any) -> bool:
    """Whether there is a cosine with it: numbers whose squares are neither lost nor infinite."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(number) in (int, float) and -_GREATEST <= number <= _GREATEST for number in value)
        and max(map(abs, value)) >= 1 / _GREATEST
    )


def _sooner(*seconds: float | None) -> float | None:
    return min((each for each in seconds if each is not None), default=None)
