"""The stream of an answer's tokens without thoughts, as the answer itself is; and the last message of a model."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from langgraph.pregel._messages import StreamMessagesHandler

from rag_kit.models.replies import without_thinking
from rag_kit.text.citations.decline import DECLINED

_TAG_NAMES = ("think", "thinking", "thought", "reasoning")
_THOUGHT_TAGS = [f"<{slash}{name}>" for name in _TAG_NAMES for slash in ("", "/")]
_THOUGHT_TAG = re.compile(rf"<(/?)(?:{'|'.join(_TAG_NAMES)})>", re.IGNORECASE)
# the end of a statement with its citation, as the prompts ask for it: ".[1]" or " [1]."
_CITED_STATEMENT = re.compile(r"[.!?。！？] ?[\[［【]\d{1,4}[\]］】]|[\[［【]\d{1,4}[\]］】] ?[.!?。！？]")

# the answer of a run that found none and could not search everything; and what is added to a model's own words
_INCOMPLETE = {
    "en": "The answer is not in the documents that could be searched. Some could not be searched.",
    "zh": "能检索到的文档中没有答案。有些文档未能检索。",
}
_NOT_ALL_SEARCHED = {"en": "Some documents could not be searched.", "zh": "有些文档未能检索。"}


def limit_decline(answer: str, language: str) -> str:
    """Reword an answer that declines, for a run that could not search everything."""
    if answer in DECLINED.values():  # the kit's sentence, and not a model's own words
        return _INCOMPLETE[language]
    return f"{answer}\n\n{_NOT_ALL_SEARCHED[language]}"


class MessageCatcher(BaseCallbackHandler):
    """Keeps the last message of the models that are called; with ``streamed``, of those whose tokens are streamed."""

    run_inline = True
    message: Any = None

    def __init__(self, *, streamed: bool = False) -> None:
        self.streamed = streamed

    def on_llm_end(self, response: LLMResult, *, tags: list[str] | None = None, **kwargs: Any) -> None:
        """Keep the message of an answer, streamed or not."""
        if not self.streamed or TAG_NOSTREAM not in (tags or ()):
            self.message = getattr(response.generations[0][0], "message", None)


#: A tag of runs whose listener can take back what it showed, or whose model is known to open its thoughts with a tag.
AT_ONCE = "rag_kit:at_once"
#: Models, by provider and name -> whether their thoughts begin without a tag, as far as their answers showed it.
Habits = dict[tuple[Any, Any], bool]
_MAX_HABITS = 100


def cut_thoughts(config: RunnableConfig, habits: Habits, finish: Callable[[str], str]) -> RunnableConfig:
    """Copy a config so that LangGraph's ``messages`` stream gets no thoughts, and the answer as ``finish`` gives it."""
    callbacks = config.get("callbacks")
    if not isinstance(callbacks, BaseCallbackManager):
        return config
    if not any(isinstance(handler, StreamMessagesHandler) for handler in callbacks.handlers):
        return config
    # whether an unknown model may begin its thoughts without a tag; None: wait until its answer shows it
    untagged = False if AT_ONCE in (config.get("tags") or ()) else None
    copied = callbacks.copy()
    replaced: dict[int, Any] = {}  # id of a handler, which may be in both lists -> the one to take
    for handler in [*copied.handlers, *copied.inheritable_handlers]:
        is_stream = isinstance(handler, StreamMessagesHandler)
        replaced[id(handler)] = _without_thoughts(handler, habits, untagged, finish) if is_stream else handler
    copied.handlers = [replaced[id(handler)] for handler in copied.handlers]
    copied.inheritable_handlers = [replaced[id(handler)] for handler in copied.inheritable_handlers]
    return {**config, "callbacks": copied}


def _without_thoughts(
    handler: Any, habits: Habits, untagged: bool | None, finish: Callable[[str], str]
) -> Any:
    """Copy a handler so that it streams no thoughts; ``untagged`` is the habit of a model that is not in ``habits``."""
    filters: dict[Any, ThoughtFilter] = {}  # by the id of a message

    def filter_chunk(chunk: AIMessageChunk, model: tuple[Any, Any]) -> Any:
        """Return a chunk with the text that may be shown now, and add what it shows to ``habits``."""
        thought_filter = filters.setdefault(chunk.id, ThoughtFilter(habits.get(model, untagged), finish))
        is_last = chunk.chunk_position == "last"
        shown: Any = _map_text(chunk, thought_filter.feed)
        if is_last and (held_back := thought_filter.flush()):
            has_blocks = isinstance(shown.content, list)
            rest: Any = [{"type": "text", "text": held_back}] if has_blocks else held_back
            shown = shown.model_copy(update={"content": shown.content + rest})
        # a closing tag alone shows that the model opens none; an answer without one counts at its end
        if thought_filter.untagged or (is_last and len(habits) < _MAX_HABITS):
            habits[model] = thought_filter.untagged or habits.get(model, False)
        return shown

    def stream(item: Any) -> None:
        namespace, mode, (message, metadata) = item
        if isinstance(message, AIMessageChunk):
            model = metadata.get("ls_provider"), metadata.get("ls_model_name")
            message = filter_chunk(message, model)
        elif isinstance(message, BaseMessage):  # and no event of LangGraph's newer protocol
            message = _map_text(message, lambda text: finish(without_thinking(text)))
        handler.stream((namespace, mode, (message, metadata)))

    filtered = copy.copy(handler)
    filtered.stream = stream
    return filtered


def _map_text(message: BaseMessage, change: Callable[[str], str]) -> BaseMessage:
    """Copy a message with its text, or that of its blocks, changed; blocks of other kinds stay."""
    content: Any = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": change(content)}) if content else message
    blocks = []
    for block in content:
        has_text = isinstance(block, dict) and isinstance(block.get("text"), str)
        blocks.append({**block, "text": change(block["text"])} if has_text else block)
    return message.model_copy(update={"content": blocks})


class ThoughtFilter:
    """Removes thoughts from a text that comes in pieces.

    A piece that may be the beginning of a tag is kept back until the next one. Some servers write the opening tag
    themselves, so that only ``</think>`` comes. From a model that does so (``untagged`` is True) all is kept back until
    then, or until the end; from one that is not known yet (None) until a statement has its citation, which an answer
    has after its first sentence. The sentence that declines is kept back until the end, when ``finish`` has its way.

    Example:
        >>> only = ThoughtFilter()
        >>> [only.feed(piece) for piece in ("<th", "ink>Hm, 60?</thi", "nk>\\n\\nAt 6", "0 < 70.")]
        ['', '', 'At 6', '0 < 70.']
        >>> only = ThoughtFilter()
        >>> [only.feed(piece) for piece in ("Hm", ", 60?</think>", "At 60.[1]")]
        ['', '', 'At 60.[1]']
    """

    def __init__(self, untagged: bool | None = None, finish: Callable[[str], str] = str) -> None:
        self._finish = finish
        self.untagged = bool(untagged)
        self._habit_is_known = untagged is not None
        self._may_be_thought = untagged is not False  # all so far may be a thought that no tag opened
        self._text = self._shown = ""

    def feed(self, piece: str) -> str:
        """Take one more piece; return the text that may be shown now."""
        self._text += piece
        tag = _THOUGHT_TAG.search(self._text)
        if self._may_be_thought:
            # a tag tells thoughts from the answer; and where an unknown model has written a citation, it answers
            is_decided = tag or (not self._habit_is_known and _CITED_STATEMENT.search(self._text))
            if not is_decided:
                return ""
            self._may_be_thought = False
        if tag and tag[1]:  # the first tag is a closing one: all before it was a thought
            self.untagged = True
        answer = without_thinking(_without_begun_tag(self._text))
        if any(sentence.startswith(answer.strip()) for sentence in DECLINED.values()):
            return ""
        return self._show(answer)

    def flush(self) -> str:
        """Return the text that was held back; called at the end."""
        return self._show(self._finish(without_thinking(self._text)))

    def _show(self, answer: str) -> str:
        """Return what of the answer so far was not shown yet."""
        # what was shown may turn out to be a thought that no tag opened; then the answer is shown from its beginning
        shown = self._shown if answer.startswith(self._shown) else ""
        self._shown = answer
        return answer[len(shown) :]


def _without_begun_tag(text: str) -> str:
    """Cut off the end of a text that may be the beginning of a tag: ``"so.</thi" -> "so."``."""
    start = text.rfind("<")
    end = text[start:].lower()
    if start >= 0 and any(tag.startswith(end) and tag != end for tag in _THOUGHT_TAGS):
        return text[:start]
    return text
