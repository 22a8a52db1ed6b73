"""The judge: one chat model and one embedding model, asked within limits, counted, and never twice for the same."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Literal, cast

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel

from rag_kit.concurrency import Budget, use_budget
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import time_limit
from rag_kit.errors import ConfigurationError, InvalidInputError, ModelOutputError
from rag_kit.evaluation.judge.cache import JudgeCache, PerLoop, cache_key, identity_of
from rag_kit.models import astructured_call, atext_call, chat_model, embedding_model
from rag_kit.models.calls import seconds_before_retry
from rag_kit.models.clients import aembed_bare
from rag_kit.models.embedding import embedding_name, sending_text
from rag_kit.models.failures import map_model_error
from rag_kit.models.json_cache import plain_endpoint
from rag_kit.models.model_call import check_limits, is_extractive
from rag_kit.models.runnables import base_url, model_name
from rag_kit.models.schema import target_of
from rag_kit.prompts import PromptTemplate
from rag_kit.prompts.library import PromptLibrary
from rag_kit.retrieval.fields import check_count
from rag_kit.retrieval.vectors import checked_vectors
from rag_kit.text import detect_language

Language = Literal["en", "zh"]
Fault = Callable[[Any], str | None]  # says what is wrong with a reply; None: nothing
Values = Mapping[str, Any]  # of the variables of a prompt
PREFIX = "judge_"
_BATCH = 64  # texts embedded at a time
_VERBATIM = ChatPromptTemplate.from_messages([("user", "{text}")])  # sends its one value unchanged
NO_MODEL = (
    "a judge needs a language model, and the embedded 'extractive' is none: give Judge('openai:...') or a LangChain "
    "chat model, or set RAG_KIT_CHAT_MODEL; Judge('none', embeddings) is for metrics that compare vectors alone"
)
#: Values of a prompt by which its language is chosen, best first.
_LANGUAGE_SAMPLES = ("question", "answer", "text", "response", "reference")


class Judge:
    """A chat model and an embedding model that metrics ask.

    Every question goes through a prompt file, in English or in Chinese, and through the kit's structured call: JSON
    schema, function calling, JSON mode, text with one repair, whatever the model can do. At most `max_concurrency`
    requests are under way on an event loop; the judge may be used from several loops one after another.

    With a cache the same question is paid for once: the key holds the model's name, endpoint and settings, the
    content of the prompt file, the values, the schema, and the number of the repetition. Failures are never kept.

    Args:
        llm: A LangChain chat model, or the name of one; ``None``: the configured one; ``"none"``: none, for metrics
            that compare vectors alone. The embedded ``extractive`` is no language model and no judge.
        embeddings: LangChain embeddings, or the name of some; ``None``: what ``embedding_model()`` finds.
        language: Language of the prompts; ``"auto"``: that of the question that is judged.
        cache: File for replies and vectors, JSON in SQLite, readable for its owner alone; ``None``: none.
        max_concurrency: Most requests at a time.
        timeout: Seconds for one request.
        max_retries: Most retries of one question after a rate limit, a server error, a time-out.
        max_calls: Most requests to the chat model over the judge's life.
        max_tokens: Most tokens in and out; the request that goes over is kept, the next one is refused.
        deadline: Seconds from the first question on.

    Raises:
        InvalidInputError: If an argument is not allowed.
        ConfigurationError: If a model that is named cannot be made, or there is none.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> Judge(FakeListChatModel(responses=["{}"]), "none", max_calls=1000)
        Judge('FakeListChatModel', embeddings='none', language='auto')
    """

    def __init__(
        self,
        llm: BaseChatModel | str | None = None,
        embeddings: Embeddings | str | None = None,
        *,
        language: Literal["auto", "en", "zh"] = "auto",
        cache: Path | str | None = None,
        max_concurrency: int = 16,
        timeout: float | None = 60.0,
        max_retries: int = 2,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
    ) -> None:
        if language not in ("auto", "en", "zh"):
            raise InvalidInputError(f"language is {language!r}; allowed are 'auto', 'en', 'zh'")
        check_count("max_concurrency", max_concurrency)
        check_limits(timeout, max_retries)
        self._caps = Budget(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline)
        self.llm: Any = _chat_model(llm)
        self.embeddings = _embedding_model(embeddings)
        self.language = language
        self.timeout, self.max_retries, self.max_concurrency = timeout, max_retries, max_concurrency
        self._budget: Budget | None = None
        self._cached, self._seconds = 0, 0.0
        # taken now: a scripted model may count in a field of its own
        self._identity = identity_of(self.llm)
        self._cache = JudgeCache(cache)
        self.slots = PerLoop(lambda: asyncio.Semaphore(max_concurrency))
        self._embedder = sending_text(self.embeddings)
        # the model's name leaves out port and path, by which alone two models may differ
        self._embedder_name = f"{embedding_name(self.embeddings)} {plain_endpoint(base_url(self.embeddings))}"
        self._embedded = 0
        self._library = PromptLibrary()
        self._prompts: dict[tuple[str, str], PromptTemplate] = {}

    @property
    def name(self) -> str:
        """The chat model's name, for people."""
        return "none" if self.llm is None else model_name(self.llm) or type(self.llm).__name__

    @property
    def usage(self) -> dict[str, Any]:
        """Counts since the judge was made: ``calls`` (requests to the chat model), ``cached`` (replies from the cache),
        ``tokens``, ``seconds`` (of all requests, added up), ``embedded`` (texts sent to the embedding model)."""
        budget = self._budget or Budget()
        return {
            "calls": budget.calls, "cached": self._cached, "tokens": budget.tokens,
            "seconds": round(self._seconds, 3), "embedded": self._embedded,
        }  # fmt: skip

    def fingerprint(self) -> dict[str, Any]:
        """Return plain JSON that identifies this judge: models, endpoints, prompts. No key is in it.

        A value that was judged is taken up again only while this is the same.
        """
        prompts: dict[str, Any] = {}
        for name, language in sorted(self._library.entries()):
            if name.startswith(PREFIX) and self.language in ("auto", language):
                metadata = self._library.load(name, language).metadata or {}
                prompts[f"{name}.{language}"] = metadata.get("hash")
        return {
            "model": self.name,
            "class": type(self.llm).__name__,
            "endpoint": plain_endpoint(base_url(self.llm)),
            "settings": None if self._identity is None else self._identity[:16],
            "embeddings": embedding_name(self.embeddings),
            "language": self.language,
            "prompts": prompts,
        }

    def language_for(self, text: str) -> Language:
        """Return the language to judge in: the judge's own, else that of a text."""
        if self.language != "auto":
            return self.language
        return "zh" if detect_language(text) == "zh" else "en"

    async def ask(
        self, prompt_name: str, values: Values, *, repeat: int = 0, fault: Fault = lambda reply: None
    ) -> Any:
        """Ask the chat model through a prompt file, in the language of the judge, else of the question.

        Args:
            prompt_name: Name of a prompt file.
            values: What it is filled in with.
            repeat: 0 for the first time that this very thing is asked, 1 for the second: each has its own reply.
            fault: Says what is wrong with a reply; such a reply is requested once more, and never kept.

        Returns:
            An object of the class that the prompt file names; a dict where it holds a JSON schema; else text.

        Raises:
            ModelError: If the model cannot be reached or gives no valid answer.
            BudgetExceededError: If a cap is reached.
            InvalidInputError: If there is no such prompt, or the values do not fit it.
        """
        texts = {name: value for name, value in values.items() if isinstance(value, str)}
        sample = next((texts[name] for name in _LANGUAGE_SAMPLES if name in texts), "\n".join(texts.values()))
        key = (prompt_name, self.language_for(sample))
        if key not in self._prompts:  # read once, on a thread
            self._prompts[key] = await run_in_thread(self._library.load, *key)
        prompt = self._prompts[key]
        return await self._cached_reply(prompt, values, prompt.output_schema, repeat, fault)

    async def complete(
        self, text: str, schema: type[BaseModel], *, repeat: int = 0, fault: Fault = lambda reply: None
    ) -> Any:
        """Send a text as the only message, and return an object of the class ``schema``; the rest is as for `ask`."""
        return await self._cached_reply(_VERBATIM, {"text": text}, schema, repeat, fault)

    async def _cached_reply(self, prompt: Any, values: Values, schema: Any, repeat: int, fault: Fault) -> Any:
        """Return the reply from the cache, else from the model; equal requests at one time are sent once."""
        if self._identity is None or self._cache.file is None:
            return await self._faultless_reply(prompt, values, schema, fault)
        metadata = prompt.metadata or {"name": "text"}  # _VERBATIM is no prompt file, and has none
        prompt_id = [metadata.get(name) for name in ("name", "language", "hash")]
        schema_text = None  # a schema that is written into a prompt file is in the hash of that file
        if isinstance(schema, type):
            schema_text = target_of(schema, metadata.get("language") or "en").text
        key = cache_key("reply", self._identity, prompt_id, dict(values), schema_text, repeat)
        async with self._cache.exclusive(key):
            stored = await self._cache.get([key])
            reply = _read_reply(stored[key], schema) if key in stored else None
            if reply is not None and not fault(reply):
                self._cached += 1
                return reply
            reply = await self._faultless_reply(prompt, values, schema, fault)
            record = reply.model_dump(mode="json") if isinstance(reply, BaseModel) else reply
            await self._cache.put({key: record})
            return reply

    async def _faultless_reply(self, prompt: Any, values: Values, schema: Any, fault: Fault) -> Any:
        """Return the model's reply; if it has a fault, ask once more, and raise `ModelOutputError` for a second one."""
        for _ in range(2):
            reply = await self._request_reply(prompt, values, schema)
            problem = fault(reply)
            if problem is None:
                return reply
        raise ModelOutputError(f"the judge was asked twice, and {problem}")

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts, in order; each distinct text once, in batches.

        Raises:
            ConfigurationError: If the judge has no embedding model.
            ModelError: If it cannot be reached, or gives vectors that cannot be used.
        """
        if self._embedder is None:
            raise ConfigurationError(
                "the judge has no embedding model; give Judge(embeddings=...) one, set RAG_KIT_EMBEDDING_MODEL, or "
                "install one: rag-kit models install e5"
            )
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError("embed takes a list of texts; put the single one into a list")
        keys = {text: cache_key("vector", self._embedder_name, text) for text in texts}
        stored = await self._cache.get(list(keys.values()))
        cached = {text: stored[key] for text, key in keys.items() if _is_vector(stored.get(key))}
        new = await self._embed_and_store([text for text in keys if text not in cached], keys)
        lengths = {len(vector) for vector in (*cached.values(), *new.values())}
        if len(lengths) > 1:  # the cached ones are of another model
            new |= await self._embed_and_store(list(cached), keys)
        vectors = cached | new
        return [vectors[text] for text in texts]

    async def _embed_and_store(self, texts: list[str], keys: Mapping[str, str]) -> dict[str, list[float]]:
        """Embed texts in batches, store the vectors under their ``keys``, and return them by text."""
        vectors: dict[str, list[float]] = {}
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            reply = await self._embed_batch(batch)
            rows = checked_vectors(reply, len(batch), self._embedder).tolist()
            if not all(map(_is_vector, rows)):
                raise ModelOutputError("the embedding model gave a vector of zeros, which has no cosine")
            new = dict(zip(batch, rows, strict=True))
            self._embedded += len(batch)
            await self._cache.put({keys[text]: vector for text, vector in new.items()})
            vectors |= new
        return vectors

    async def _embed_batch(self, batch: list[str]) -> Any:
        """Return the embedding model's reply for one batch; retry a failure that may pass, with longer pauses."""
        for attempt in count():
            async with self.slots.for_running_loop():
                seconds, _ = time_limit(self.timeout)  # of what is left after waiting for the slot
                try:
                    async with asyncio.timeout(seconds):
                        return await aembed_bare(cast(Embeddings, self._embedder), "documents", batch)
                except Exception as error:  # noqa: BLE001 - raised below, or retried
                    failure = error
            mapped = map_model_error(failure, model=self._embedder)
            may_retry = attempt < self.max_retries
            # raises ``mapped`` if that is not to be retried
            await asyncio.sleep(seconds_before_retry(failure, mapped, attempt, may_retry=may_retry))

    async def _request_reply(self, prompt: Any, values: Values, schema: Any) -> Any:
        """Send a request within the limits and caps; return an object of the schema, or a text without one."""
        if self.llm is None:
            raise ConfigurationError(NO_MODEL)
        limits: Any = {"timeout": self.timeout, "max_retries": self.max_retries}
        self._budget = self._budget or replace(self._caps)  # its deadline runs from now on
        async with self.slots.for_running_loop():
            started = time.perf_counter()
            try:
                with use_budget(self._budget):
                    if schema is None:
                        return await atext_call(self.llm, prompt, values, **limits)
                    return await astructured_call(self.llm, prompt, values, schema, **limits)
            finally:
                self._seconds += time.perf_counter() - started

    def __repr__(self) -> str:
        return f"Judge({self.name!r}, embeddings={embedding_name(self.embeddings)!r}, language={self.language!r})"


def _chat_model(llm: Any) -> Any:
    """Return a chat model, made if it is a name or the configured one; ``None`` if the name is ``"none"``."""
    if llm == "none":
        return None
    model = chat_model(llm) if llm is None or isinstance(llm, str) else llm
    if is_extractive(model):
        raise ConfigurationError(NO_MODEL)
    if not hasattr(model, "ainvoke"):
        raise InvalidInputError(f"llm is a {type(llm).__name__}; give a LangChain chat model or its name")
    return model


def _embedding_model(embeddings: Any) -> Embeddings | None:
    """Return the embedding model, made if it is a name or the configured one; ``None`` if there is none."""
    model = embedding_model(embeddings) if embeddings is None or isinstance(embeddings, str) else embeddings
    if model is not None and not hasattr(model, "aembed_documents"):
        raise InvalidInputError(
            f"embeddings is a {type(embeddings).__name__}; give LangChain embeddings or a name"
        )
    return model


def _read_reply(record: Any, schema: Any) -> Any:
    """Read a reply from the cache; ``None`` if it does not fit what is asked now."""
    if schema is None:
        return record if isinstance(record, str) and record.strip() else None  # a live one is never empty
    try:
        return target_of(schema).accept(record) if isinstance(record, dict) else None
    except ValueError:
        return None


def _is_vector(value: Any) -> bool:
    """Tell whether a value is a vector with a cosine: a list of numbers whose sum of squares is neither 0 nor inf."""
    are_numbers = isinstance(value, list) and all(type(number) in (int, float) for number in value)
    return are_numbers and 0 < sum(number * number for number in value) < math.inf
