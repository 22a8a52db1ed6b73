"""The task ``route``: choose the listed sources that share the question's words."""

from __future__ import annotations

import json
from dataclasses import replace

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text.likeness import WordLikeness

_REASON = {"en": "It shares these words with the question: {}.", "zh": "与问题有相同的词：{}。"}
_MAX_SOURCES = 100


def route(prompt: Prompt) -> Reply:
    """Choose among the lines ``- "name": description`` of the block ``sources``.

    Returns:
        The sources that share a word of content with the question, best first, at most as many as the block
        ``most`` says (by default one).

    Example:
        >>> listed = '- "tea": leaves and pots\\n- "cars": engines and wheels'
        >>> body = f"<sources>{listed}</sources><question>Which wheels are best?</question>"
        >>> route(Prompt("route", body, "", (), (), None)).fields["choices"][0]["name"]
        'cars'
    """
    last = replace(prompt, body=prompt.user)  # worked examples before it are not what is asked
    question = last.block("question")
    sources = _sources(last.block("sources"))
    likeness = WordLikeness([[name, text] for name, text in sources])
    scores = likeness.scores(question)
    most = last.block("most")
    room = int(most) if most.isascii() and most.isdigit() and len(most) < 4 else 1
    best = sorted((place for place, score in enumerate(scores) if score > 0), key=lambda p: (-scores[p], p))
    reason = _REASON[replace(prompt, question=question).language]
    choices = [
        {"name": sources[place][0], "reason": reason.format(", ".join(likeness.shared(question, place)))}
        for place in best[:room]
    ]
    return Reply(", ".join(choice["name"] for choice in choices), {"choices": choices}, as_json=True)


def _sources(text: str) -> list[tuple[str, str]]:
    """Name and description of each line."""
    found = []
    decoder = json.JSONDecoder()
    for line in text.splitlines()[:_MAX_SOURCES]:
        start = line.find('"')
        if start < 0:
            continue
        try:
            name, end = decoder.raw_decode(line, start)
        except ValueError:
            continue
        found.append((str(name), line[end:].lstrip(": ")))
    return found
