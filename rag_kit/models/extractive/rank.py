"""The tasks ``rerank_listwise`` and ``compress``: passages in order of their evidence, sentences that hold some."""

from __future__ import annotations

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text.evidence.question import analyse
from rag_kit.text.evidence.sentences import collect

_SHARE = 0.5
_MAX_QUESTION = 4_000


def rank(prompt: Prompt) -> Reply:
    """All passages, that with the best sentence first; equal ones keep their order."""
    values = _values(prompt)
    order = sorted(range(len(values)), key=lambda place: -values[place])
    numbers = [prompt.passages[place].number for place in order]
    return Reply(" > ".join(f"[{number}]" for number in numbers), {"ranking": numbers}, as_json=True)


def compress(prompt: Prompt) -> Reply:
    """The sentences whose evidence comes near the best one's; none if none has any."""
    values = _values(prompt)
    low = _SHARE * max(values, default=0.0)
    numbers = [
        passage.number
        for passage, value in zip(prompt.passages, values, strict=True)
        if value > 0 and value >= low
    ]
    return Reply(", ".join(map(str, numbers)), {"sentences": numbers}, as_json=True)


def _values(prompt: Prompt) -> list[float]:
    """The worth of the best sentence of each passage."""
    values = [0.0] * len(prompt.passages)
    for found in collect(analyse(prompt.question[:_MAX_QUESTION]), prompt.passages):
        values[found.place] = max(values[found.place], found.worth())
    return values
