"""Reading a rendered prompt: its task, and the tagged blocks that hold its values."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from rag_kit.models.replies import text_of
from rag_kit.prompts.rendering import unescape_tags
from rag_kit.text import detect_language
from rag_kit.text.evidence.questions import MAX_QUESTION
from rag_kit.text.evidence.sentences import PassageText, passage_text

MAX_PASSAGE_CHARS = 100_000
_TASK = re.compile(r"<task>\s*([A-Za-z][\w-]{0,63})\s*</task>")
_MAX_BLOCKS = 1000
_ATTRIBUTE = re.compile(r'([\w-]{1,40})="([^"]*)"')
_STRUCK = re.compile(r"~~[^~\n]{1,500}~~ ?")  # no longer said: neither an answer nor something to ask about


@dataclass(frozen=True)
class Prompt:
    """The parts of a prompt that this model understands; a missing part is empty.

    ``task`` stands in the system message, ``user`` is the text of the last message of another kind, ``body`` that of
    all of these; ``turns`` are pairs of role and text, ``schema`` is the JSON schema of the answer.
    """

    task: str = ""
    user: str = ""
    question: str = ""
    passages: tuple[PassageText, ...] = ()
    turns: tuple[tuple[str, str], ...] = ()
    schema: dict[str, Any] | None = None
    body: str = ""

    @property
    def request(self) -> str:
        """The question, or what the user wrote."""
        return (self.question or self.user)[:MAX_QUESTION].strip()

    @property
    def language(self) -> str:
        """Language of what is asked: ``"en"`` or ``"zh"``."""
        return detect_language(self.question or self.user)

    def block(self, name: str) -> str:
        """Return the text of the first block of that name, unescaped; "" if there is none."""
        return _block(self.body, name)

    def number(self, name: str, default: int) -> int:
        """Return the number in the block of that name."""
        return _number(self.block(name), default)


def read_prompt(messages: Sequence[BaseMessage]) -> Prompt:
    """Read the messages of a prompt.

    The task counts only in a system message, so that no passage and no user can change it; a value cannot end
    its block early because prompts escape the tags inside values.
    """
    system = "\n".join(text_of(m) for m in messages if isinstance(m, SystemMessage))
    texts = [text_of(m) for m in messages if not isinstance(m, SystemMessage)]
    body = "\n".join(texts)
    task = _TASK.search(system)
    return Prompt(
        task=task[1] if task else "",
        user=texts[-1] if texts else "",
        question=_block(body, "question"),
        passages=tuple(
            passage_text(_number(attributes.get("id", ""), number), text[:MAX_PASSAGE_CHARS], attributes)
            for number, (attributes, text) in enumerate(_elements(_STRUCK.sub("", body), "passage"), start=1)
        ),
        turns=tuple((attributes.get("role", "user"), text) for attributes, text in _elements(body, "turn")),
        schema=_schema(body) or _schema(system),
        body=body,
    )


def _elements(body: str, name: str) -> Iterator[tuple[dict[str, str], str]]:
    """Yield attributes and text of each element with this tag name, in linear time whatever is left open."""
    opening, closing = f"<{name} ", f"</{name}>"
    position = 0
    for _ in range(_MAX_BLOCKS):
        start = body.find(opening, position)
        head = body.find(">", start)
        end = body.find(closing, head)
        if start < 0 or head < 0 or end < 0:
            return
        matches = _ATTRIBUTE.finditer(body, start, head)
        attributes = {match[1]: html.unescape(match[2]) for match in matches}
        yield attributes, unescape_tags(body[head + 1 : end]).strip()
        position = end + len(closing)


def _block(body: str, name: str) -> str:
    """Return the text of the first element with this tag name, up to the end of the prompt if it is not closed."""
    opening, closing = f"<{name}>", f"</{name}>"
    start = body.find(opening)
    if start < 0:
        return ""
    end = body.find(closing, start)
    return unescape_tags(body[start + len(opening) : end if end >= 0 else len(body)]).strip()


def _number(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else default


def _schema(body: str) -> dict[str, Any] | None:
    """Return the JSON schema in the prompt, if any."""
    try:
        schema = json.loads(_block(body, "schema"))
    except (ValueError, RecursionError):
        return None
    return schema if isinstance(schema, dict) else None
