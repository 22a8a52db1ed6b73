"""The chat model that is not a language model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from rag_kit.models.extractive.blocks import read_prompt
from rag_kit.models.extractive.tasks import perform
from rag_kit.models.replies import estimate_tokens, text_of
from rag_kit.text.analysis import warm_up

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PIECE = re.compile(rf"\s*[{_HAN}]{{1,2}}|\s*[^\s{_HAN}]+|\s+")


class ExtractiveChatModel(BaseChatModel):
    """A deterministic stand-in for a language model: it selects sentences, cites them, or declines.

    It reads the tagged blocks of this kit's prompts (the task from the system message alone) and nothing else:
    no network, no weights, no state between calls. The task ``answer`` gives at most three sentences of the passages
    with ``[n]`` after each, or the decline sentence; ``condense`` gives ``{"query": ...}``; a prompt of another
    kind gets an honest line about what this model is. It exists so that demos, tests and notebooks run everywhere;
    for real use name a real model. Token counts in ``usage_metadata`` are estimates.

    Example:
        >>> from langchain_core.messages import HumanMessage, SystemMessage
        >>> passages = '<passage id="1">The Rhine is 1,230 km long. Ships use it.</passage>'
        >>> reply = ExtractiveChatModel().invoke([
        ...     SystemMessage("<task>answer</task>"),
        ...     HumanMessage(f"<passages>{passages}</passages><question>How long is the Rhine?</question>"),
        ... ])
        >>> reply.content
        'The Rhine is 1,230 km long.[1]'
    """

    model: str = "extractive"
    stop: list[str] | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Load the dictionaries now, so that no call blocks on a file."""
        super().model_post_init(context)
        warm_up()

    @property
    def _llm_type(self) -> str:
        return "rag-kit-extractive"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        return {**params, "ls_provider": "rag_kit", "ls_model_name": str(kwargs.get("model") or self.model)}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """Return the whole reply in one message."""
        text = perform(read_prompt(messages))
        for mark in filter(None, stop or self.stop or []):
            text = text.partition(mark)[0]
        read = sum(estimate_tokens(text_of(message)) for message in messages)
        written = estimate_tokens(text)
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        about = {"model_name": self.model, "model_provider": "rag_kit", "finish_reason": "stop"}
        message = AIMessage(content=text, usage_metadata=usage, response_metadata=about)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        """Stream the reply word by word, then its metadata."""
        whole: Any = self._generate(messages, stop).generations[0].message
        about = {name: getattr(whole, name) for name in ("usage_metadata", "response_metadata")}
        pieces = [AIMessageChunk(content=piece) for piece in _PIECE.findall(whole.content)]
        for piece in (*pieces, AIMessageChunk(content="", chunk_position="last", **about)):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                run_manager.on_llm_new_token(str(piece.content), chunk=chunk)
            yield chunk
