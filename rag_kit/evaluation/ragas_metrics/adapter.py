"""A judge as an LLM and as embeddings of Ragas's: limits, caps, retries, cache and redaction stay the judge's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from rag_kit.concurrency import run_coroutine
from rag_kit.errors import ModelOutputError, RagKitError
from rag_kit.evaluation.ragas_metrics.importing import import_ragas

if TYPE_CHECKING:
    from rag_kit.evaluation.judge import Judge

#: From a prompt's input and the reply to what is wrong with the reply; ``None`` if nothing is.
Check = Callable[[Any, BaseModel], str | None]


class Calls:
    """What one cell asks of the judge.

    The same prompt asked again is another repetition, with a reply of its own. A reply that fails the check is asked
    for once more and never kept. After a failure nothing more is asked: some of Ragas's metrics swallow errors and try
    again, so the failure stays in `failure` for the caller to raise.

    Args:
        judge: The judge.
        check: What is wrong with a reply.
    """

    def __init__(self, judge: Judge, check: Check | None = None) -> None:
        self.judge = judge
        self.inputs: dict[str, Any] = {}
        self.replies: list[BaseModel] = []
        self.failure: Exception | None = None
        self.vectors: dict[str, list[float]] = {}
        self._check = check
        self._asked: Counter[str] = Counter()

    async def ask(self, prompt: str, schema: type[BaseModel]) -> Any:
        """The reply to a prompt of Ragas's.

        Raises:
            ModelError: If the judge cannot be reached, or its reply is wrong twice.
        """
        if self.failure is not None:
            raise self.failure
        try:
            reply = await self._sound(prompt, schema)
        except RagKitError as error:
            self.failure = error
            raise
        self.replies.append(reply)
        return reply

    async def _sound(self, prompt: str, schema: type[BaseModel]) -> BaseModel:
        data = self.inputs.get(prompt)
        wrong: str | None = None

        def keep(reply: Any) -> bool:
            nonlocal wrong
            wrong = None if self._check is None else self._check(data, reply)
            return wrong is None

        for _ in range(2):
            repeat = self._asked[prompt]
            self._asked[prompt] += 1
            reply: BaseModel = await self.judge.complete(prompt, schema, repeat=repeat, keep=keep)
            if keep(reply):
                return reply
        raise ModelOutputError(f"the judge was asked twice, and {wrong}")

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of texts; those that this cell has asked for before are at hand."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if missing:
            self.vectors |= dict(zip(missing, await self.judge.embed(missing), strict=True))
        return [self.vectors[text] for text in texts]


class ObservedPrompt:
    """A prompt of Ragas's that remembers its input, so that a reply can be checked against it."""

    def __init__(self, prompt: Any, calls: Calls) -> None:
        self._prompt, self._calls = prompt, calls

    def to_string(self, data: Any) -> str:
        """What Ragas sends."""
        text: str = self._prompt.to_string(data)
        self._calls.inputs[text] = data
        return text


def ragas_llm(judge: Judge | Calls | None) -> Any:
    """A judge as the ``llm`` of any class of ``ragas.metrics.collections``; prompts are sent as Ragas writes them.

    Args:
        judge: The judge; ``None`` for an object that is handed to ``evaluate``, which puts its own judge in.

    Returns:
        An ``InstructorBaseRagasLLM``: ``agenerate(prompt, response_model)``, and ``generate`` which blocks.

    Raises:
        MissingExtraError: If Ragas is not installed.
    """
    return _classes()[0](_calls(judge))


def ragas_embeddings(judge: Judge | Calls | None) -> Any:
    """A judge as the ``embeddings`` of any class of ``ragas.metrics.collections``.

    Returns:
        A ``BaseRagasEmbedding``.

    Raises:
        MissingExtraError: If Ragas is not installed.
    """
    return _classes()[1](_calls(judge))


def _calls(judge: Judge | Calls | None) -> Calls | None:
    return judge if judge is None or isinstance(judge, Calls) else Calls(judge)


@lru_cache(maxsize=1)
def _classes() -> tuple[type, type]:
    """The two adapters; Ragas's base classes are only known once it is imported."""
    import_ragas("Ragas's metrics")
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM

    class JudgeLLM(InstructorBaseRagasLLM):
        """An LLM of Ragas's that is a judge."""

        def __init__(self, calls: Calls) -> None:
            self.calls = calls

        async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> Any:
            return await self.calls.ask(prompt, response_model)

        def generate(self, prompt: str, response_model: type[BaseModel]) -> Any:
            return run_coroutine(self.agenerate(prompt, response_model))

    class JudgeEmbedding(BaseRagasEmbedding):
        """Embeddings of Ragas's that are a judge's."""

        def __init__(self, calls: Calls) -> None:
            super().__init__()
            self.calls = calls

        async def aembed_texts(self, texts: list[str], **kwargs: Any) -> list[list[float]]:
            return await self.calls.embed(texts)

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            return (await self.calls.embed([text]))[0]

        def embed_texts(self, texts: list[str], **kwargs: Any) -> list[list[float]]:
            known = self.calls.vectors
            if all(text in known for text in texts):  # fetched before, so that the event loop need not wait
                return [known[text] for text in texts]
            return run_coroutine(self.calls.embed(texts))

        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            return self.embed_texts([text])[0]

    return JudgeLLM, JudgeEmbedding
