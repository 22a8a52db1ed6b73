"""The chat model that is not a language model, and which of its functions answers which task."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from rag_kit.concurrency.notes import write_note
from rag_kit.models.extractive.answering import extract_answer
from rag_kit.models.extractive.blocks import Prompt, read_prompt
from rag_kit.models.replies import estimate_tokens, text_of
from rag_kit.models.schema import resolve
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


ABOUT = {
    "en": (
        "I am rag_kit's extractive model, not a language model: I can only quote sentences from given passages. "
        "Name a real model with RAG_KIT_CHAT_MODEL to chat."
    ),
    "zh": (
        "我是 rag_kit 的抽取式模型，不是语言模型：只能从给定的段落里摘录句子。"
        "要对话，请用 RAG_KIT_CHAT_MODEL 指定一个真正的模型。"
    ),
}
# task -> module and function that answers it; a module is imported with its first task
_TABLE = Path(__file__).with_name("tasks.txt").read_text(encoding="utf-8")
_FUNCTIONS: dict[str, tuple[str, str]] = {}
for _module, _tasks in (line.split(": ", 1) for line in _TABLE.splitlines()):
    for _task, _, _function in (entry.partition("=") for entry in _tasks.split()):
        _FUNCTIONS[_task] = f"rag_kit.models.extractive.{_module}", _function or _task


def perform(prompt: Prompt) -> str:
    """Reply to a prompt by the function of its task, in prose, or in JSON if the task or a schema wants that."""
    task = prompt.task
    if not task and prompt.question and prompt.passages:
        task = "answer"
    reply: str | dict[str, Any]
    if task in _FUNCTIONS:
        module, function = _FUNCTIONS[task]
        reply = getattr(import_module(module), function)(prompt)
    else:
        if task:
            why = "'extractive' is no language model and cannot do this; the rest of the run goes on"
            write_note(f"{task}: {why}")
        reply = ABOUT[prompt.language] if prompt.schema is None else _guess_fields(prompt)
    if prompt.schema is not None:
        reply = fill(prompt.schema, {"answer": reply} if isinstance(reply, str) else reply)
    return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


def fill(schema: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Make an object for a JSON schema: those of ``fields``, and a placeholder for every other field."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return dict(fields)
    return {name: fields.get(name, _placeholder(part, schema)) for name, part in properties.items()}


def _guess_fields(prompt: Prompt) -> dict[str, Any]:
    """Fill in the fields of an unknown task that have an honest value."""
    question = prompt.question or prompt.block("query") or prompt.user
    answer = extract_answer(question, prompt.passages)
    return {
        "query": question,
        "question": question,
        "queries": [question],
        "questions": [question],
        "passages": [answer or question],
        "relevant": bool(answer),
        "score": float(bool(answer)),
    }


def _placeholder(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return a value that a schema allows and that says nothing; None if it names no type. ``root`` has references."""
    schema = resolve(schema, root.get("$defs", {}))
    if schema.get("enum"):
        return schema["enum"][0]
    by_type = {"string": "unknown", "boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}
    return by_type.get(str(schema.get("type")))
