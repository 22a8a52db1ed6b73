"""The task ``summarise_history``: what was asked and the first sentence of each answer, the newest that fit."""

from __future__ import annotations

import re

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text import sentences
from rag_kit.text.citations.decline import is_declined

_MARKS = re.compile(r"\s?[\[［【]\d[^\]］】]{0,20}[\]］】]")
_USUAL = 2_000


def summarise_history(prompt: Prompt) -> Reply:
    """Shorten a conversation by leaving out: nothing is put in other words.

    Returns:
        A line for each question with the first sentence of its answer, oldest first; of an earlier summary its
        lines. Where not all fit into the block ``max_chars``, the oldest are left out.

    Example:
        >>> turns = (("user", "Who wrote Emma?"), ("assistant", "Jane Austen.[1] She wrote six novels.[1]"))
        >>> summarise_history(Prompt("summarise_history", "", "", (), turns, None)).text
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
    most = prompt.block("max_chars")
    room = int(most) if most.isascii() and most.isdigit() and len(most) < 7 else _USUAL
    kept: list[str] = []
    for line in reversed(lines):
        if len(line) + 1 > room:
            break
        kept.append(line)
        room -= len(line) + 1
    if not kept and lines:
        kept = [lines[-1][:room]]
    return Reply("\n".join(reversed(kept)))
