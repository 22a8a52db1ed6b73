"""The summary of a conversation."""

from __future__ import annotations

import re

from rag_kit.models.extractive.blocks import Prompt
from rag_kit.text import sentences
from rag_kit.text.citations.decline import is_declined

_MARKS = re.compile(r"\s?[\[［【]\d[^\]］】]{0,20}[\]］】]")


def summarise_history(prompt: Prompt) -> str:
    """Each question with the first sentence of its answer, the newest that fit into the block ``max_chars``.

    Example:
        >>> turns = (("user", "Who wrote Emma?"), ("assistant", "Jane Austen.[1] She wrote six novels.[1]"))
        >>> summarise_history(Prompt("summarise_history", turns=turns))
        'Who wrote Emma? Jane Austen.'
    """
    lines: list[str] = []
    for role, text in prompt.turns:
        if role == "summary":
            lines += [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        elif role == "user":
            lines.append(" ".join(text.split()))
        elif lines and not is_declined(text):
            first = next((" ".join(s.text.split()) for s in sentences(_MARKS.sub("", text))), "")
            lines[-1] = f"{lines[-1]} {first}".strip()
    room = prompt.number("max_chars", 2_000)
    while len(lines) > 1 and sum(len(line) + 1 for line in lines) > room:
        del lines[0]
    return "\n".join(lines)[:room]
