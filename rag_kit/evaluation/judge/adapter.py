"""What Ragas's metrics are handed: an LLM, embeddings and prompts that are the judge's."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from rag_kit.concurrency import run_coroutine
from rag_kit.errors import ModelOutputError
from rag_kit.evaluation.judge.calls import Call, Calls
from rag_kit.evaluation.judge.ragas_import import import_ragas

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.judge import Judge, Language

_ADAPTERS = "Ragas's metrics"
PLAIN = "judge_ragas_prompt"


class PromptText(str):
    """What a prompt gives a metric as its text: readable, and with the call that it stands for."""

    call: Call

    @classmethod
    def of(cls, call: Call) -> PromptText:
        """The text of a call."""
        text = cls(json.dumps({call.prompt: {k: str(v) for k, v in call.values.items()}}, ensure_ascii=False))
        text.call = call
        return text


class FilePrompt:
    """Takes the place of a prompt object of Ragas's; what is sent comes from a prompt file.

    Args:
        call: From the metric's input object to the call.

    Example:
        >>> prompt = FilePrompt(lambda data: Call("judge_question", {"answer": data["answer"]}))
        >>> prompt.to_string({"answer": "In Bath."})
        '{"judge_question": {"answer": "In Bath."}}'
    """

    def __init__(self, call: Callable[[Any], Call]) -> None:
        self._call = call

    def to_string(self, data: Any) -> PromptText:
        """The metric's input as a text that the judge's LLM knows."""
        return PromptText.of(self._call(data))


def ragas_llm(judge: Judge | Calls, *, language: Language | None = None) -> Any:
    """A judge as an LLM for the classes of ``ragas.metrics.collections``.

    Prompts that are no `FilePrompt` are sent as Ragas wrote them, through the file ``judge_ragas_prompt``.

    Args:
        judge: The judge, or the calls of one cell of it.
        language: Language of the prompts; default: the judge's, else English.

    Returns:
        An ``InstructorBaseRagasLLM``: ``agenerate(prompt, response_model)``, and ``generate`` which blocks.

    Raises:
        MissingExtraError: If Ragas is not installed.
    """
    return _classes()[0](_calls(judge, language))


def ragas_embeddings(judge: Judge | Calls) -> Any:
    """A judge as embeddings for the classes of ``ragas.metrics.collections``.

    Returns:
        A ``BaseRagasEmbedding``. A metric that embeds without awaiting finds what `Calls.embed` was given before.

    Raises:
        MissingExtraError: If Ragas is not installed.
    """
    return _classes()[1](_calls(judge, None))


def _calls(judge: Judge | Calls, language: Language | None) -> Calls:
    if isinstance(judge, Calls):
        return judge
    return Calls(judge, language or ("zh" if judge.language == "zh" else "en"))


@lru_cache(maxsize=1)
def _classes() -> tuple[type, type]:
    """The two adapters; Ragas's base classes are only known once it is imported."""
    import_ragas(_ADAPTERS)
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM

    class JudgeLLM(InstructorBaseRagasLLM):
        """An LLM of Ragas's that is a judge."""

        def __init__(self, calls: Calls) -> None:
            self.calls = calls

        async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> Any:
            call = getattr(prompt, "call", None)
            if call is None:
                call = Call(PLAIN, {"prompt": str(prompt)}, response_model)
            reply = await self.calls.take(call)
            if isinstance(reply, response_model):
                return reply
            try:
                return response_model.model_validate(reply)
            except ValueError as error:
                raise ModelOutputError(
                    f"the judge's answer does not fit {response_model.__name__}: {error}"
                ) from None

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
            if all(text in known for text in texts):
                return [known[text] for text in texts]
            return run_coroutine(self.calls.embed(texts))

        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            return self.embed_texts([text])[0]

    return JudgeLLM, JudgeEmbedding
