"""When an answer counts, by RGB's own rules: everything is a search for a string, no judge is asked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

#: A part of the answer: one text, or several of which one is enough.
Part = str | tuple[str, ...]

DECLINES = ("信息不足", "insufficient information")
ERRORS = ("事实性错误", "factual errors")
SEED = 2333


@dataclass(frozen=True)
class Item:
    """One question of RGB, or one made in its form.

    Args:
        id: Unique in its file.
        language: ``"en"`` or ``"zh"``.
        question: What is asked.
        parts: All of them must be in a right answer.
        positive: Passages that hold the answer: one list for each part where several are asked, else one list.
        negative: Passages about the same things that do not hold it.
        positive_wrong: The first list of ``positive`` with a wrong answer put in the place of the right one.
        kind: ``"plain"``, ``"integration"`` or ``"counterfactual"``.
    """

    id: str
    language: str
    question: str
    parts: tuple[Part, ...]
    positive: tuple[tuple[str, ...], ...]
    negative: tuple[str, ...]
    positive_wrong: tuple[str, ...] = ()
    kind: str = "plain"


@dataclass(frozen=True)
class Verdict:
    """What the rules say of a reply.

    Args:
        labels: 1 or 0 for each part of the answer; ``(-1,)`` where the reply declines.
        detected: Whether it says that the passages hold factual errors.
    """

    labels: tuple[int, ...]
    detected: bool

    @property
    def right(self) -> bool:
        """Every part of the answer is there."""
        return 0 not in self.labels and 1 in self.labels

    @property
    def declined(self) -> bool:
        """The reply says that the passages do not hold the answer."""
        return self.labels == (-1,)


def judge(reply: str, item: Item, declines: Sequence[str] = ()) -> Verdict:
    """Apply the rules to a reply.

    Blanks are taken out of a Chinese reply. A reply that holds the words of the decline sentence declines, whatever
    else it says. Else each part of the answer counts where it, or one of its alternatives, occurs in the reply,
    whatever the case of letters.

    Args:
        reply: What the model said.
        item: The question.
        declines: Further words that decline, for pipelines whose prompts ask for another sentence.

    Example:
        >>> item = Item("1", "en", "Where?", ("Tampa", ("Florida", "FL")), (), ())
        >>> judge("In Tampa, fl.", item).right, judge("Because of insufficient information: no.", item).labels
        (True, (-1,))
    """
    text = reply.replace(" ", "") if item.language == "zh" else reply
    detected = any(words in text for words in ERRORS)
    more = [words.replace(" ", "") if item.language == "zh" else words for words in declines]
    if any(words in text for words in (*DECLINES, *more)):
        return Verdict((-1,), detected)
    lowered = text.lower()
    labels = []
    for part in item.parts:
        alternatives = (part,) if isinstance(part, str) else part
        labels.append(int(any(each.lower() in lowered for each in alternatives)))
    return Verdict(tuple(labels), detected)


def passages_of(item: Item, noise_rate: float, count: int, seed: int = SEED) -> list[str]:
    """The passages that a question is asked with.

    ``ceil(count * noise_rate)`` of them are noise. Where there are too few of one kind, those of the other fill up;
    with several parts each part's passages come first, and noise takes what room they leave; a counterfactual
    question has the passages with the wrong answer. The order is drawn anew from the seed for each question.

    Args:
        item: The question.
        noise_rate: From 0 to 1.
        count: Passages.
        seed: RGB's is 2333.
    """
    draw = random.Random(seed)
    noise = ceil(count * noise_rate)
    if item.kind == "integration":
        found = _of_each_part(item, count - noise, draw)
        found += item.negative[: max(0, count - len(found))]
    elif item.kind == "counterfactual":
        places = range(len(item.positive_wrong))
        chosen = draw.sample(list(places), min(len(places), count - noise))
        found = [item.positive_wrong[place] for place in chosen] + list(item.negative[:noise])
    else:
        found = _plain(item, noise, count, noise_rate)
    draw.shuffle(found)
    return found


def _plain(item: Item, noise: int, count: int, noise_rate: float) -> list[str]:
    positive = [text for group in item.positive for text in group]
    good = count - noise
    if noise_rate == 1:
        noise, good = count, 0
    elif noise > len(item.negative):
        noise = len(item.negative)
        good = count - noise
    elif good > len(positive):
        good = len(positive)
        noise = count - good
    return positive[:good] + list(item.negative[:noise])


def _of_each_part(item: Item, good: int, draw: random.Random) -> list[str]:
    groups = [list(group) for group in item.positive]
    for group in groups:
        draw.shuffle(group)
    found = [group[0] for group in groups if group]
    for place in range(1, max(map(len, groups), default=0)):
        for group in groups:
            if len(found) >= good:
                return found
            if place < len(group):
                found.append(group[place])
    return found
