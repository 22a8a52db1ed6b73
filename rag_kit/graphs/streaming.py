"""The stream of an answer's tokens without the model's thoughts, as the answer itself is."""

from __future__ import annotations

import copy
import re
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel._messages import StreamMessagesHandler

from rag_kit.models.replies import without_thinking

_NAMES = ("think", "thinking", "thought", "reasoning")
_OPEN = re.compile(rf"<(?:{'|'.join(_NAMES)})>", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{'|'.join(_NAMES)})>", re.IGNORECASE)


def cut_thoughts(config: RunnableConfig) -> RunnableConfig:
    """A config with which LangGraph's ``messages`` stream shows no thoughts between ``<think>`` tags."""
    callbacks = config.get("callbacks")
    if not isinstance(callbacks, BaseCallbackManager):
        return config
    if not any(isinstance(handler, StreamMessagesHandler) for handler in callbacks.handlers):
        return config
    own = callbacks.copy()
    by_id = {id(handler): _filtered(handler) for handler in [*own.handlers, *own.inheritable_handlers]}
    own.handlers = [by_id[id(handler)] for handler in own.handlers]
    own.inheritable_handlers = [by_id[id(handler)] for handler in own.inheritable_handlers]
    return {**config, "callbacks": own}


def _filtered(handler: Any) -> Any:
    """A handler that streams messages, with a filter before its exit; any other as it is."""
    if not isinstance(handler, StreamMessagesHandler):
        return handler
    filtered, send, filters = copy.copy(handler), handler.stream, dict[Any, ThoughtFilter]()

    def stream(chunk: Any) -> None:
        namespace, mode, (message, metadata) = chunk
        if isinstance(message, BaseMessage):  # and no event of LangGraph's newer protocol
            message = _without_thoughts(message, filters)
        send((namespace, mode, (message, metadata)))

    filtered.stream = stream
    return filtered


def _without_thoughts(message: BaseMessage, filters: dict[Any, ThoughtFilter]) -> BaseMessage:
    """A copy of a message, or of a chunk of one, whose text has no thoughts."""
    if not isinstance(message, AIMessageChunk):
        return _map_text(message, without_thinking)
    only = filters.setdefault(message.id, ThoughtFilter())
    shown = _map_text(message, only.feed)
    if message.chunk_position == "last" and (rest := only.flush()):
        shown = shown.model_copy(update={"content": rest}) if not shown.content else shown
    return shown


def _map_text(message: BaseMessage, change: Any) -> BaseMessage:
    """A copy of a message with other text; blocks of other kinds stay."""
    content: Any = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": change(content)}) if content else message
    blocks = [
        {**block, "text": change(block["text"])}
        if isinstance(block, dict) and isinstance(block.get("text"), str)
        else block
        for block in content
    ]
    return message.model_copy(update={"content": blocks})


class ThoughtFilter:
    """Takes a text in pieces and gives back what is no thought.

    A piece that may be the beginning of a tag is kept back until the next one. A thought whose opening tag the server
    swallowed cannot be told from an answer while it streams.

    Example:
        >>> only = ThoughtFilter()
        >>> [only.feed(piece) for piece in ("<th", "ink>Hm, 60?</thi", "nk>\\n\\nAt 6", "0 < 70.")]
        ['', '', 'At 6', '0 < 70.']
    """

    def __init__(self) -> None:
        self._kept, self._inside, self._started = "", False, False

    def feed(self, piece: str) -> str:
        """Take one more piece; give what may be shown now."""
        text, shown = self._kept + piece, ""
        self._kept = ""
        while True:
            tag = (_CLOSE if self._inside else _OPEN).search(text)
            if tag is None:
                break
            shown += "" if self._inside else text[: tag.start()]
            text, self._inside = text[tag.end() :], not self._inside
        begun = _begun_tag(text)
        self._kept, text = text[begun:], text[:begun]
        return self._show(shown if self._inside else shown + text)

    def flush(self) -> str:
        """Give what was kept back, at the end of the text."""
        kept, self._kept = self._kept, ""
        return "" if self._inside else self._show(kept)

    def _show(self, text: str) -> str:
        """The text, without white space before the first word, as in the answer."""
        text = text if self._started else text.lstrip()
        self._started = self._started or bool(text)
        return text


def _begun_tag(text: str) -> int:
    """Find where a tag begins that the end of a text may be a part of; the text's length without one."""
    start = text.rfind("<")
    if start < 0:
        return len(text)
    tail = text[start:].lower()
    tags = [f"<{slash}{name}>" for name in _NAMES for slash in ("", "/")]
    return start if any(tag.startswith(tail) for tag in tags) else len(text)
